"""Worker processes on the test's own database, and a course that they can be held in the middle of."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

import pytest

from tenure.db.courses import PageRow, list_pages
from tenure.db.jobs import JobSnapshot
from tests.factories import Seed, lock_page
from tests.processes import FAST, Process

PAGES = 12
HELD_AT = 5
"""The page, from 0, at which `held` keeps a worker."""


@dataclass(frozen=True)
class Course:
    """A course to tag, and ways to see how far that has come."""

    seed: Seed
    id: UUID

    async def pages(self) -> list[PageRow]:
        async with self.seed.database.statement() as connection:
            return await list_pages(connection, self.id, limit=1000)

    async def tag(self, *tags: str, **changes: object) -> JobSnapshot:
        params = {"courseId": str(self.id), "tags": list(tags)}
        return await self.seed.job(kind="course.tag_pages", queue="admin", params=params, **changes)

    async def tagged(self) -> list[PageRow]:
        return [page for page in await self.pages() if page.tags]

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Workers get no further than to page HELD_AT."""
        page = (await self.pages())[HELD_AT]
        async with self.seed.database.transaction() as session:
            await lock_page(session, page.id)
            yield

    async def until(self, job_id: UUID, fits: Callable[[JobSnapshot], bool]) -> JobSnapshot:
        while True:
            job = await self.seed.read(job_id)
            if fits(job):
                return job

    async def until_held(self, job_id: UUID) -> JobSnapshot:
        """The worker has done what comes before the page, and waits for its lock."""
        job = await self.until(job_id, lambda j: j.succeeded == HELD_AT)
        await self.seed.until_somebody_waits()
        return job

    async def ended(self, job_id: UUID) -> JobSnapshot:
        return await self.until(job_id, lambda j: j.is_terminal)


@pytest.fixture
async def course(seed: Seed) -> Course:
    return Course(seed, await seed.course("book", [f"# Page {n}\n" for n in range(PAGES)]))


StartProcess = Callable[..., Process]


@pytest.fixture
def start_worker_process(database_url: str) -> Iterator[StartProcess]:
    """Starts `tenure worker`; keyword arguments are settings."""
    with ExitStack() as stack:

        def start(**settings: str) -> Process:
            env = {**FAST, "TENURE_DATABASE_URL": database_url, **settings}
            return stack.enter_context(Process("worker", env=env))

        yield start
