"""Workers inside the test's loop, with kinds made by the test."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from broadcaster import Broadcast

from tenure.db.engine import Database
from tenure.db.jobs import JobSnapshot
from tenure.db.notify import HintSender, ListenBackend
from tenure.workers.backoff import Backoff
from tenure.workers.registry import Registry
from tenure.workers.runtime import Worker, WorkerOptions
from tests.factories import Seed

FAST = {"poll_seconds": 0.05, "backoff": Backoff(0.001, 0.001)}


@dataclass
class Running:
    """A worker that works, and the means to wait for what it does."""

    worker: Worker
    task: asyncio.Task[None]
    seed: Seed

    async def stop(self) -> None:
        self.worker.stop()
        await self.task

    async def until(self, job_id: UUID, fits: Callable[[JobSnapshot], bool]) -> JobSnapshot:
        """The first snapshot that fits."""
        while True:
            job = await self.seed.read(job_id)
            if fits(job):
                return job
            await asyncio.sleep(0.01)  # a poll of the row, which is the truth

    async def ended(self, job_id: UUID) -> JobSnapshot:
        return await self.until(job_id, lambda j: j.is_terminal)


StartWorker = Callable[..., Awaitable[Running]]


@pytest.fixture
async def start_worker(database: Database, seed: Seed) -> AsyncIterator[StartWorker]:
    """Starts a worker for the given handlers; keyword arguments are WorkerOptions."""
    async with AsyncExitStack() as stack:

        async def start(*handlers: Any, kinds: Registry | None = None, **options: Any) -> Running:
            registry = kinds or Registry()
            for handler in handlers:
                registry.add_handler(handler)
            return await stack.enter_async_context(_running(database, seed, registry, WorkerOptions(**{**FAST, **options})))

        yield start


@asynccontextmanager
async def _running(database: Database, seed: Seed, registry: Registry, options: WorkerOptions) -> AsyncIterator[Running]:
    hints = HintSender(database.url)
    hints.start()
    async with Broadcast(backend=ListenBackend(database.url)) as broadcast:
        worker = Worker(database, registry, options, hints=hints, broadcast=broadcast)
        running = Running(worker, asyncio.create_task(worker.run()), seed)
        try:
            yield running
        finally:
            await running.stop()
            await hints.stop()
