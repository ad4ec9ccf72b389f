"""One attempt's access to the database: fenced transactions, and statements that outlast an outage of the database."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar
from uuid import UUID

from tenure.db.engine import Connection, Database, Session
from tenure.db.errors import LeaseLost, StorageUnavailable
from tenure.db.outcome import Permission, checkpoint
from tenure.workers.errors import JobStopped, StopReason
from tenure.workers.held import HeldJob

Result = TypeVar("Result")
OUTAGE_PAUSE_SECONDS = 0.25

CloseTransaction = Callable[[Session], Awaitable[int | None]]
"""The last statement of a fenced transaction: raises LeaseLost, or returns the job's new version if it made one."""


class Attempt:
    """What context and items share. `on_version(job_id, version)` is called after each commit that changed the job."""

    def __init__(self, held: HeldJob, database: Database, on_version: Callable[[UUID, int], None]) -> None:
        self.held = held
        self.database = database
        self._on_version = on_version

    async def patiently(self, call: Callable[[Connection], Awaitable[Result]]) -> Result:
        """Runs a statement, again while the database is away and the lease may still be ours. Raises LeaseLost, JobStopped."""
        while True:
            self.held.raise_if_stopped()
            try:
                return await self.database.run(call)
            except StorageUnavailable:
                await asyncio.sleep(OUTAGE_PAUSE_SECONDS)
            except LeaseLost:
                self.held.stop(StopReason.LEASE_LOST)
                raise

    @asynccontextmanager
    async def transaction(self, close: CloseTransaction) -> AsyncIterator[Session]:
        """A transaction that `close` ends under the lease. Raises LeaseLost, StorageUnavailable, JobStopped."""
        self.held.raise_if_stopped()
        try:
            async with self.database.transaction() as session:
                yield session
                version = await close(session)
        except LeaseLost:
            self.held.stop(StopReason.LEASE_LOST)
            raise
        if version is not None:
            self.saved(version)

    def saved(self, version: int) -> None:
        """The job has this version by a commit of ours."""
        self.held.version = max(self.held.version, version)
        self._on_version(self.held.id, version)

    async def check(self) -> None:
        """A checkpoint: raises JobStopped or LeaseLost unless the handler may go on."""
        held = self.held
        match await self.patiently(lambda c: checkpoint(c, held.id, held.token, held.kind.role)):
            case Permission.OK:
                return
            case Permission.CANCELLED:
                raise JobStopped(StopReason.CANCELLED)
            case Permission.UNAUTHORIZED:
                raise JobStopped(StopReason.UNAUTHORIZED)
            case Permission.LOST:
                held.stop(StopReason.LEASE_LOST)
                raise LeaseLost(f"The lease of job {held.id} with token {held.token} is lost.")
