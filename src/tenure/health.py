"""/livez: the process answers. /readyz: it can do its work, or which of its parts cannot."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tenure.db.engine import is_unavailable
from tenure.db.errors import SchemaMissing, SchemaTooNew
from tenure.db.migrate import check_compatible
from tenure.services import Services

CHECK_SECONDS = 3
OK = "ok"


async def readiness(services: Services) -> dict[str, str]:
    """What each part says of itself: ok, or why not."""
    parts = {"database": OK, "schema": OK, "listener": OK if services.listener.is_connected else "reconnecting"}
    try:
        async with asyncio.timeout(CHECK_SECONDS), services.database.statement() as connection:
            await check_compatible(connection)
    except (SchemaTooNew, SchemaMissing) as error:
        parts["schema"] = error.message
    except Exception as error:
        if not isinstance(error, TimeoutError) and not is_unavailable(error):
            raise
        parts["database"] = "cannot be reached"
        parts["schema"] = "unknown"
    return parts


def health_routes(services: Services) -> list[Route]:
    async def livez(_: Request) -> Response:
        return JSONResponse({"status": OK})

    async def readyz(_: Request) -> Response:
        parts = await readiness(services)
        is_ready = all(state == OK for state in parts.values())
        return JSONResponse({"status": OK if is_ready else "unavailable", "parts": parts}, 200 if is_ready else 503)

    return [Route("/livez", livez), Route("/readyz", readyz)]
