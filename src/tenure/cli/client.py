"""A client of the GraphQL API, as much of it as watching a job takes: one query, one subscription."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

from gql import Client, GraphQLRequest
from gql.transport.aiohttp import AIOHTTPTransport
from gql.transport.exceptions import TransportError, TransportQueryError, TransportServerError
from gql.transport.websockets import WebsocketsTransport
from pydantic_settings import BaseSettings, SettingsConfigDict

from tenure.db.errors import NotFound, TenureError

Job = dict[str, Any]
"""A snapshot as the API gives it."""

CONNECT_SECONDS = 10
PING_SECONDS = 10
"""A half-open connection is silent; a ping that finds no answer breaks it."""
PASSING = frozenset({"UNAVAILABLE", "INTERNAL", "RATE_LIMITED", "TOO_MANY_SUBSCRIPTIONS"})
"""Codes of errors after which the same request may succeed."""

SNAPSHOT = """
fragment Snapshot on Job {
  id version kind queue state isTerminal attempt maxAttempts cancelRequestedAt runAt createdAt startedAt finishedAt
  progress { total done succeeded skipped failed fraction message }
  result errorCount errors { at attempt code message itemKey }
}
"""
READ = "query Job($id: ID!) { job(id: $id) { ...Snapshot } }" + SNAPSHOT
WATCH = "subscription Watch($id: ID!, $since: Int) { jobProgress(id: $id, sinceVersion: $since) { ...Snapshot } }" + SNAPSHOT


class ClientSettings(BaseSettings):
    """Where the API is, and as whom to speak to it."""

    model_config = SettingsConfigDict(env_prefix="TENURE_", env_file=".env", frozen=True, extra="ignore")

    url: str = "http://127.0.0.1:8000"
    token: str | None = None


class ApiUnreachable(TenureError):
    """The API did not answer, or asks to come again."""

    code = "UNAVAILABLE"


class ApiRefused(TenureError):
    """The API answered, and the same request will be refused again."""

    code = "REFUSED"


class JobApi:
    """Reads and watches jobs. Each call has a connection of its own, so that none is trusted for long."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ApiRefused(f"{url!r} is no http:// or https:// address (TENURE_URL).")
        self._base = url.rstrip("/")
        self._authorization = {"Authorization": f"Bearer {token}"}

    async def read(self, job_id: str) -> Job:
        """The job as it now stands. Raises NotFound, ApiUnreachable or ApiRefused."""
        transport = AIOHTTPTransport(f"{self._base}/graphql", headers=self._authorization, timeout=CONNECT_SECONDS)
        try:
            async with Client(transport=transport) as session:
                answer = await session.execute(GraphQLRequest(READ, variable_values={"id": job_id}))
        except (TransportError, OSError, TimeoutError) as error:
            raise self._translated(error) from error
        if answer["job"] is None:
            raise NotFound(f"There is no job {job_id}, or this token may not see it.")
        return dict(answer["job"])

    async def stream(self, job_id: str, since_version: int) -> AsyncGenerator[Job, None]:
        """Newer snapshots as they come, until the stream ends or breaks. Why it broke, the next `read` tells."""
        transport = WebsocketsTransport(
            f"ws{self._base.removeprefix('http')}/graphql",
            init_payload=self._authorization,
            subprotocols=[WebsocketsTransport.GRAPHQLWS_SUBPROTOCOL],
            connect_timeout=CONNECT_SECONDS,
            close_timeout=1,
            ping_interval=PING_SECONDS,
            pong_timeout=PING_SECONDS,
            connect_args={"max_size": None},
        )
        request = GraphQLRequest(WATCH, variable_values={"id": job_id, "since": since_version})
        try:
            async with Client(transport=transport) as session, aclosing(session.subscribe(request)) as snapshots:
                async for answer in snapshots:
                    yield dict(answer["jobProgress"])
        except Exception as error:  # whatever the library or the network raises: the stream is gone
            raise ApiUnreachable("The stream broke; polling until it is back.") from error

    def _translated(self, error: Exception) -> TenureError:
        if isinstance(error, TransportQueryError):
            codes = {(one.get("extensions") or {}).get("code") for one in error.errors or []}
            message = "; ".join(str(one.get("message")) for one in error.errors or []) or str(error)
            return ApiUnreachable(message) if codes & PASSING else ApiRefused(message)
        if isinstance(error, TransportServerError) and error.code is not None and error.code < 500 and error.code != 429:
            return ApiRefused(f"{self._base} refuses: {str(error).splitlines()[0]}")
        return ApiUnreachable(f"No answer from {self._base} (TENURE_URL). Is `tenure up` or `tenure api` running there?")
