"""The one place where the parts of the API are put together: routes, the streams' hub, and what each request may reach."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount, Route, WebSocketRoute

from tenure.db.batching import Batcher
from tenure.db.enqueue import EnqueueOutcome, NewJob, enqueue_jobs
from tenure.graphql_http import MAX_BODY_BYTES, GraphQLView, RequestContext
from tenure.health import health_routes
from tenure.resolvers.hub import ProgressHub
from tenure.resolvers.loaders import Loaders
from tenure.schema import build_schema
from tenure.services import Services, admission_limits
from tenure.settings import Settings
from tenure.web import GRAPHQL_PAGE, Pages, SecurityHeaders, static_directory
from tenure.workers.registry import Registry

logger = logging.getLogger(__name__)

HUB_RESTART_SECONDS = 1


def create_app(settings: Settings, services: Services, registry: Registry) -> Starlette:
    """The ASGI application. Services must be open, and stay so for as long as it runs.

    `app.state.shutdown()` ends all streams and closes all sockets with 1012; call it before the server stops. It may be
    awaited.
    """
    hub = ProgressHub(services.database, services.broadcast, poll_seconds=settings.poll_seconds)
    view = GraphQLView(build_schema(), _context_factory(settings, services, registry, hub), GRAPHQL_PAGE)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(_keep_running(hub), name="progress-hub")
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def end_streams() -> None:
        await view.close_sockets()
        hub.close()

    app = Starlette(
        routes=[
            Route("/graphql", view),
            WebSocketRoute("/graphql", view),
            *health_routes(services),
            Mount("/", Pages(static_directory())),
        ],
        middleware=[Middleware(SecurityHeaders)],
        lifespan=lifespan,
        max_body_size=MAX_BODY_BYTES,
    )
    app.state.shutdown = lambda: asyncio.create_task(end_streams(), name="end-streams")
    app.state.hub = hub
    return app


def _context_factory(
    settings: Settings, services: Services, registry: Registry, hub: ProgressHub
) -> Callable[[str | None], RequestContext]:
    limits = admission_limits(settings)
    loaders = Loaders.over(services.database)

    async def enqueue(jobs: Sequence[NewJob]) -> list[EnqueueOutcome]:
        return await services.database.run(lambda connection: enqueue_jobs(connection, jobs, limits))

    enqueuing = Batcher(enqueue)

    def new_context(authorization: str | None) -> RequestContext:
        return RequestContext(
            database=services.database,
            hints=services.hints,
            hub=hub,
            kinds=registry,
            limits=limits,
            default_max_attempts=settings.max_attempts,
            loaders=loaders,
            enqueuing=enqueuing,
            authorization=authorization,
        )

    return new_context


async def _keep_running(hub: ProgressHub) -> None:
    """Streams outlive a fault of the hub: it starts again, and its poll finds what was missed."""
    while True:
        try:
            await hub.run()
        except Exception:
            logger.exception("The hub of streams failed; it starts again")
        await asyncio.sleep(HUB_RESTART_SECONDS)
