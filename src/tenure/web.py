"""The built UI, the page that a browser gets at /graphql, and the headers that keep both from harm."""

from importlib.resources import files
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; connect-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none';"
        " form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}

NOT_BUILT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Tenure</title>
<h1>Tenure</h1>
<p>The page is not built yet: run <code>make install</code>. The API answers at <a href="graphql">/graphql</a>.</p>
</html>
"""

GRAPHQL_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Tenure's GraphQL API</title>
<h1>Tenure's GraphQL API</h1>
<p>Send a POST with a JSON object that has <code>query</code> and, if need be, <code>variables</code>:</p>
<pre>curl -H "Authorization: Bearer $TENURE_TOKEN" -H "Content-Type: application/json" \\
  -d '{"query": "{ viewer { actor { name } } }"}' <var>this address</var></pre>
<p>Subscriptions are served on the same address by WebSocket, protocol <code>graphql-transport-ws</code>, with
<code>{"Authorization": "Bearer \N{HORIZONTAL ELLIPSIS}"}</code> in <code>connection_init</code>.
<code>tenure schema</code> prints the schema.</p>
</html>
"""


def static_directory() -> Path:
    """Where the built UI lies: in a wheel a folder of the package, in the repository a link to frontend/dist."""
    return Path(str(files("tenure").joinpath("static"))).resolve()


class Pages(StaticFiles):
    """The UI's files. A path that is no file is a page of the UI, unless it looks like one that is missing."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory=directory, check_dir=False)
        self._index = directory / "index.html"

    async def get_response(self, path: str, scope: Scope) -> Response:
        if scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(405)
        try:
            if path not in (".", "index.html") and self._index.is_file():
                response = await super().get_response(path, scope)
                if path.startswith("assets/"):  # their names change with their content
                    response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
                return response
        except HTTPException as error:
            if error.status_code != 404 or "." in path.rpartition("/")[2]:
                raise
        return self._page()

    def _page(self) -> Response:
        if not self._index.is_file():
            return HTMLResponse(NOT_BUILT, 503)
        return FileResponse(self._index, headers={"Cache-Control": "no-cache"})


class SecurityHeaders:
    """Pure ASGI middleware: streams and sockets pass as they are."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)
