"""The real application on a real port, and clients for it."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import uvicorn
import websockets
from pydantic import BaseModel, ConfigDict, Field, RootModel
from starlette.applications import Starlette
from websockets.asyncio.client import ClientConnection

from tenure.app import create_app
from tenure.db.states import Role
from tenure.services import Services, open_services
from tenure.settings import Settings
from tenure.workers.registry import Registry, kind, load_registry
from tests.factories import Seed

WAIT_SECONDS = 20
ENQUEUE = """
mutation ($input: EnqueueJobInput!) { enqueueJob(input: $input) {
  __typename
  ... on EnqueueJobPayload { replayed job { id kind queue priority params state version maxAttempts idempotencyKey runAt } }
  ... on InvalidInput { fields { path message } }
  ... on Forbidden { requiredRole }
  ... on AdmissionRejected { limit queue used max retryAfterSeconds }
  ... on Error { code message }
} }
"""
WATCH = "subscription ($id: ID!, $since: Int) { jobProgress(id: $id, sinceVersion: $since) { id state version isTerminal } }"


class Anything(RootModel[Any]):
    pass


class Typed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    count: int = Field(ge=1)
    tags: list[str] = []


@kind("test.noop")
async def noop(_ctx: object) -> None:
    """Does nothing."""


@kind("test.any", max_attempts=7)
async def anything(_ctx: object, params: Anything) -> None: ...


@kind("test.typed", role="viewer")
async def typed(_ctx: object, params: Typed) -> None: ...


@kind("test.operator", role="operator")
async def operate(_ctx: object) -> None: ...


@kind("test.admin", queue="admin")
async def administer(_ctx: object) -> None: ...


def test_registry() -> Registry:
    registry = load_registry()
    for handler in (noop, anything, typed, operate, administer):
        registry.add_handler(handler)
    return registry


test_registry.__test__ = False  # type: ignore[attr-defined]  # pytest is not to collect it


class Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@dataclass
class Api:
    """The served application and its administrator's token."""

    seed: Seed
    app: Starlette
    services: Services
    address: str
    token: str
    client: httpx.AsyncClient
    _tokens: dict[Role, str] = field(default_factory=dict)

    async def post(self, query: str, token: str | None = None, **variables: Any) -> Any:
        """The answer, whatever it is, of a signed-in administrator or of whoever the token is of ("" is nobody)."""
        body = json.dumps({"query": query, "variables": variables})
        return (await self.send(body, token)).json()

    async def send(self, body: str | bytes, token: str | None = None, **headers: str) -> httpx.Response:
        return await self.client.post(
            "/graphql", content=body, headers={"Content-Type": "application/json", **self.headers(token), **headers}
        )

    def headers(self, token: str | None = None) -> dict[str, str]:
        token = self.token if token is None else token
        return {"Authorization": f"Bearer {token}"} if token else {}

    async def data(self, query: str, token: str | None = None, **variables: Any) -> Any:
        """The data of an answer without errors."""
        answer = await self.post(query, token, **variables)
        assert "errors" not in answer, answer
        return answer["data"]

    async def error_code(self, query: str, token: str | None = None, **variables: Any) -> str:
        """The code of an answer's only error."""
        (error,) = (await self.post(query, token, **variables))["errors"]
        code: str = error["extensions"]["code"]
        return code

    async def enqueue(self, token: str | None = None, **changes: Any) -> Any:
        defaults = {"workspaceId": str(self.seed.workspace_id), "kind": "test.noop", "params": {}, "idempotencyKey": "key"}
        return (await self.data(ENQUEUE, token, input={**defaults, **changes}))["enqueueJob"]

    async def role(self, role: Role) -> str:
        """A token of a member with this role."""
        if role not in self._tokens:
            email = f"some-{role.lower()}@acme.example"
            await self.seed.member(email, role)
            self._tokens[role] = await self.seed.token(role, email)
        return self._tokens[role]

    def open_socket(self, **headers: str) -> AbstractAsyncContextManager[ClientConnection]:
        return websockets.connect(
            f"ws://{self.address}/graphql",
            subprotocols=[websockets.Subprotocol("graphql-transport-ws")],
            additional_headers=headers,
            ping_interval=None,
        )

    @asynccontextmanager
    async def socket(self, token: str | None = None) -> AsyncIterator["Socket"]:
        """An acknowledged socket."""
        async with self.open_socket() as connection:
            found = Socket(connection)
            payload = self.headers(token)
            await found.send({"type": "connection_init", "payload": payload})
            assert await found.receive() == {"type": "connection_ack"}
            yield found


@dataclass
class Socket:
    connection: ClientConnection

    async def send(self, message: Any) -> None:
        await self.connection.send(message if isinstance(message, str | bytes) else json.dumps(message))

    async def receive(self) -> Any:
        async with asyncio.timeout(WAIT_SECONDS):
            return json.loads(await self.connection.recv())

    async def subscribe(self, query: str, operation: str = "1", **variables: Any) -> None:
        payload = {"query": query, "variables": variables}
        await self.send({"id": operation, "type": "subscribe", "payload": payload})

    async def watch(self, job_id: object, operation: str = "1", since: int | None = None) -> None:
        await self.subscribe(WATCH, operation, id=str(job_id), since=since)

    async def snapshot(self) -> Any:
        """The snapshot of the next message, which is to be one."""
        message = await self.receive()
        assert message["type"] == "next", message
        assert "errors" not in message["payload"], message
        return message["payload"]["data"]["jobProgress"]

    async def error(self) -> Any:
        """The only error of the next message."""
        message = await self.receive()
        (found,) = message["payload"] if message["type"] == "error" else message["payload"]["errors"]
        return found

    async def close_code(self) -> int:
        """The code with which the server closes, whatever it sends before."""
        async with asyncio.timeout(WAIT_SECONDS):
            with contextlib.suppress(websockets.ConnectionClosed):
                while True:
                    await self.connection.recv()
        code = self.connection.close_code
        assert code is not None
        return code


Serve = Callable[..., AbstractAsyncContextManager[Api]]


@pytest.fixture
def serve(seed: Seed, database_url: str) -> Serve:
    """Starts the application with these settings."""

    @asynccontextmanager
    async def start(**settings: Any) -> AsyncIterator[Api]:
        chosen = Settings(database_url=database_url, _env_file=None, **{"poll_seconds": 3600, **settings})
        async with open_services(chosen, database_url, name="api test") as services:
            app = create_app(chosen, services, test_registry())
            with socket.create_server(("127.0.0.1", 0)) as listening:
                config = uvicorn.Config(app, log_config=None, lifespan="on", ws="websockets-sansio", access_log=False)
                server = Server(config)
                serving = asyncio.create_task(server.serve([listening]))
                address = f"127.0.0.1:{listening.getsockname()[1]}"
                try:
                    async with httpx.AsyncClient(base_url=f"http://{address}", timeout=WAIT_SECONDS) as client:
                        yield Api(seed, app, services, address, await seed.token(), client)
                finally:
                    await app.state.shutdown()
                    server.should_exit = True
                    await serving

    return start


@pytest.fixture
async def api(serve: Serve) -> AsyncIterator[Api]:
    """The application; its poll comes once an hour, so that what arrives was told by a hint."""
    async with serve() as started:
        yield started
