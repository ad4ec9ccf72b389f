"""A serving process: the API, a worker, or both in one, from start to a graceful end.

The end has an order: the worker stops claiming and finishes or releases its jobs while the API still answers; then
subscriptions close, then HTTP, then the connections to the database. Every step has a deadline, and a second signal skips
what is left of them.
"""

import asyncio
import inspect
import logging
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette

from tenure.app import create_app
from tenure.cli.listening import address_of, cannot_listen
from tenure.db.engine import Database
from tenure.db.enqueue import set_installation_limit
from tenure.db.errors import SchemaMissing, StorageUnavailable, TenureError
from tenure.db.migrate import check_compatible
from tenure.services import Services, open_services
from tenure.settings import Settings
from tenure.workers.backoff import Backoff
from tenure.workers.context import HandlerOptions
from tenure.workers.registry import Registry, load_registry
from tenure.workers.runtime import RELEASE_SECONDS, Worker, WorkerOptions

logger = logging.getLogger(__name__)

SUBSCRIPTIONS_SECONDS = 5
HTTP_SECONDS = 10
SERVICES_SECONDS = 10
MARGIN_SECONDS = 20
"""Beyond the grace and the release, for a claim that is under way and for the heartbeat's thread."""


class CannotStart(TenureError):
    """The application failed before it served; the log says why."""

    code = "CANNOT_START"


@dataclass(frozen=True)
class Roles:
    """What a process does: it listens on the sockets, if there are any, and runs a worker or not."""

    name: str
    sockets: Sequence[socket.socket] = ()
    has_worker: bool = False
    on_ready: Callable[[str], None] = field(default=lambda _: None)
    """Is told the address, once connections to it are accepted; without sockets an empty one."""


async def serve(settings: Settings, database_url: str, roles: Roles) -> None:
    """Serves until SIGTERM or SIGINT, then ends gracefully.

    Raises SchemaMissing, StorageUnavailable, KindError or CannotListen at the start, SchemaTooNew at any time.
    """
    registry = load_registry(settings.kinds)
    stack = AsyncExitStack()
    process = ServingProcess(roles)
    process.watch_signals()
    try:
        services = await stack.enter_async_context(open_services(settings, database_url, name=roles.name))
        if roles.sockets:
            await services.database.run(lambda c: set_installation_limit(c, settings.max_pending))
            process.add_api(create_app(settings, services, registry), services.database, settings.poll_seconds)
        if roles.has_worker:
            process.add_worker(make_worker(settings, services, registry), settings.shutdown_grace_seconds)
        await process.run()
    finally:
        await process.step("connections", stack.aclose(), SERVICES_SECONDS)


def make_worker(settings: Settings, services: Services, registry: Registry) -> Worker:
    """The worker that the settings describe."""
    options = WorkerOptions(
        lease_seconds=settings.lease_seconds,
        heartbeat_seconds=settings.heartbeat_seconds,
        poll_seconds=settings.poll_seconds,
        concurrency=settings.worker_concurrency,
        shutdown_grace_seconds=settings.shutdown_grace_seconds,
        backoff=Backoff(settings.backoff_base_seconds, settings.backoff_cap_seconds),
        handler=HandlerOptions(max_course_pages=settings.max_course_pages),
    )
    return Worker(services.database, registry, options, hints=services.hints, broadcast=services.broadcast)


class ApiServer(uvicorn.Server):
    """uvicorn, but signals are the process's affair, and it tells when connections are accepted."""

    def __init__(self, app: Starlette) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="on",
                # Who calls is decided by the app, which knows the trusted proxies.
                proxy_headers=False,
                ws="websockets-sansio",
                ws_max_size=4 * 1024 * 1024,
                ws_ping_interval=20,
                # Long: when the loop is saturated, pongs wait in the socket, and none of these clients has gone.
                ws_ping_timeout=60,
                # Snapshots are small; a compressor for each of thousands of sockets is not.
                ws_per_message_deflate=False,
                timeout_graceful_shutdown=HTTP_SECONDS,
            )
        )
        self.accepting = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        except SystemExit:
            raise CannotStart("The API could not start; see the log.") from None
        except OSError as error:
            host, port = (sockets or [])[0].getsockname()[:2]
            raise cannot_listen(host, port, error) from error
        self.accepting.set()


class ServingProcess:
    """The parts that run, and the order in which they end."""

    def __init__(self, roles: Roles) -> None:
        self._roles = roles
        self._stop = asyncio.Event()
        self._forced = asyncio.Event()
        self._parts: list[asyncio.Task[None]] = []
        self._worker: tuple[Worker, asyncio.Task[None], float] | None = None
        self._api: tuple[Starlette, ApiServer, asyncio.Task[None]] | None = None

    def watch_signals(self) -> None:
        """From now on SIGTERM and SIGINT end the process gracefully, the second one at once."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, number.name)

    def _signalled(self, name: str) -> None:
        if self._stop.is_set():
            logger.warning("Stopping at once", extra={"signal": name})
            self._forced.set()
        else:
            logger.info("Stopping", extra={"signal": name})
            self._stop.set()

    def add_api(self, app: Starlette, database: Database, poll_seconds: float) -> None:
        server = ApiServer(app)
        serving = self._start(server.serve(list(self._roles.sockets)), "api")
        self._api = app, server, serving
        self._start(watch_schema(database, poll_seconds), "schema gate")

    def add_worker(self, worker: Worker, grace_seconds: float) -> None:
        self._worker = worker, self._start(worker.run(), "worker"), grace_seconds

    def _start(self, part: Awaitable[None], name: str) -> asyncio.Task[None]:
        async def run() -> None:
            await part

        task = asyncio.create_task(run(), name=name)
        self._parts.append(task)
        return task

    async def run(self) -> None:
        """Until a signal, or until a part ends by itself; then raises that one's error, after all others have ended."""
        try:
            if await self._is_ready():
                self._roles.on_ready(address_of(self._roles.sockets) if self._roles.sockets else "")
            await self._first_end(*self._parts)
        finally:
            self._stop.set()
            await self._end()
        for part in self._parts:
            if part.done() and not part.cancelled() and (error := part.exception()) is not None:
                raise error

    async def _is_ready(self) -> bool:
        if self._api is None:
            return True
        accepting = asyncio.create_task(self._api[1].accepting.wait())
        await self._first_end(*self._parts, accepting)
        accepting.cancel()
        return self._api[1].accepting.is_set()

    async def _first_end(self, *tasks: asyncio.Task[Any]) -> None:
        stopped = asyncio.create_task(self._stop.wait())
        await asyncio.wait({*tasks, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()

    async def _end(self) -> None:
        if self._worker is not None:
            worker, working, grace_seconds = self._worker
            worker.stop()
            await self.step("worker", working, grace_seconds + RELEASE_SECONDS + MARGIN_SECONDS)
        if self._api is not None:
            app, server, serving = self._api
            await self.step("subscriptions", _awaited(app.state.shutdown()), SUBSCRIPTIONS_SECONDS)
            server.should_exit = True
            server.force_exit = self._forced.is_set()
            await self.step("api", serving, HTTP_SECONDS + 5)
        for part in self._parts:
            part.cancel()

    async def step(self, name: str, end: Awaitable[object], seconds: float) -> None:
        """Waits for one step of the end, but no longer than this, nor after a second signal. Errors are left in the task."""
        task = asyncio.ensure_future(end)
        forced = asyncio.create_task(self._forced.wait())
        await asyncio.wait({task, forced}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        forced.cancel()
        if not task.done():
            logger.warning("A step of the shutdown was cut off", extra={"step": name})
            task.cancel()
        elif not task.cancelled() and task not in self._parts and (error := task.exception()) is not None:
            logger.error("A step of the shutdown failed", extra={"step": name}, exc_info=error)


async def _awaited(value: object) -> None:
    if inspect.isawaitable(value):
        await value


async def watch_schema(database: Database, poll_seconds: float) -> None:
    """Until cancelled. Raises SchemaTooNew once a migration shuts this software out."""
    while True:
        await asyncio.sleep(poll_seconds)
        try:
            await database.run(check_compatible)
        except (StorageUnavailable, SchemaMissing):
            logger.warning("The schema's version cannot be read")
