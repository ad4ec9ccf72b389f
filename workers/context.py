"""What a handler is given: who asks, its progress, checkpoints, and transactions that commit only under the lease."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tenure.db.claim import Beat, heartbeat
from tenure.db.engine import Session
from tenure.db.errors import LeaseLost
from tenure.db.outcome import Ending, Finish, ItemCounts, fence, finish_jobs, read_item_counts
from tenure.workers.attempt import Attempt
from tenure.workers.items import Item, Keys, walk_items
from tenure.workers.values import clean_text, result_text

logger = logging.getLogger("tenure.handler")

MAX_COUNT = 2**31 - 1
KEEP_LEASE_SECONDS = 60.0
"""For the last progress, which is written in the commit that ends the lease."""


@dataclass(frozen=True, slots=True)
class HandlerOptions:
    """Settings that built-in kinds read."""

    max_course_pages: int = 100_000


class JobContext:
    """One attempt, as its handler sees it.

    Once the handler has to end, each method raises: JobStopped (no Exception, so that `except Exception` lets it pass) or
    LeaseLost, where another may hold the job.
    """

    def __init__(self, attempt: Attempt, options: HandlerOptions) -> None:
        self._attempt = attempt
        self._held = held = attempt.held
        self._is_open = False
        self._result: str | None = None
        self.options = options
        self.log = logging.LoggerAdapter(
            logger, {"job": str(held.id), "kind": held.job.kind, "attempt": held.job.attempt, "token": held.token}
        )

    @property
    def job_id(self) -> UUID:
        return self._held.id

    @property
    def workspace_id(self) -> UUID:
        return self._held.job.workspace_id

    @property
    def actor_id(self) -> UUID:
        """In whose name the job runs."""
        return self._held.job.actor_id

    @property
    def attempt(self) -> int:
        """Attempts spent since the last retry, this one included; from 1."""
        return self._held.job.attempt

    @property
    def is_cancel_requested(self) -> bool:
        """Whether a cancel was asked, as of the last heartbeat. Costs nothing: for code that cannot stop at a checkpoint."""
        return self._held.is_cancel_requested

    async def progress(
        self,
        *,
        total: int | None = None,
        succeeded: int | None = None,
        skipped: int | None = None,
        failed: int | None = None,
        message: str | None = None,
    ) -> None:
        """Notes progress; what is left out stays. Cheap: saved within a moment, together with other changes.

        Counts are refused (ValueError) in a job that works through items, which counts them by itself.
        """
        self._held.raise_if_stopped()
        counts = {"total": total, "succeeded": succeeded, "skipped": skipped, "failed": failed}
        changes: dict[str, Any] = {name: value for name, value in counts.items() if value is not None}
        if changes and self._held.job.items_total is not None:
            raise ValueError("A job that works through items counts them by itself; give a message alone.")
        for name, value in changes.items():
            if not 0 <= value <= MAX_COUNT:
                raise ValueError(f"{name} is 0 to {MAX_COUNT}, not {value}.")
        if message is not None:
            changes["message"] = clean_text(message)
        self._held.note_progress(changes)

    async def counts(self) -> ItemCounts:
        """The outcomes of the job's items so far, over all its attempts: exact, since they commit with the outcomes."""
        job_id = self._held.id
        return await self._attempt.patiently(lambda c: read_item_counts(c, job_id))

    async def checkpoint(self) -> None:
        """Raises JobStopped if a cancel was asked, the actor may no longer do this, or the handler has to end; LeaseLost.

        While the database is away it waits, as long as the lease may still be ours.
        """
        await self._attempt.check()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        """A transaction on Tenure's database that commits only if the lease is still ours at its end. Raises LeaseLost.

        `await ctx.succeed(result)` inside it ends the job in the same commit.
        """
        if self._is_open:
            raise RuntimeError("This job's transaction is open already.")
        self._is_open = True
        self._result = None
        try:
            async with self._attempt.transaction(self._close) as session:
                yield session
        finally:
            self._is_open = False
        if self._result is not None:
            self._held.is_ended = True

    async def _close(self, session: Session) -> int | None:
        """The transaction's last statement: the fence, or the job's end."""
        if self._result is None:
            await fence(session, self._held.id, self._held.token)
            return None
        if progress := self._held.take_progress():
            await heartbeat(session, [Beat(self._held.id, self._held.token, progress)], KEEP_LEASE_SECONDS)
        finish = Finish(self._held.id, self._held.token, Ending.SUCCEEDED, result=self._result)
        (finished,) = await finish_jobs(session, [finish])
        if finished.state is None:
            raise LeaseLost(f"The lease of job {self._held.id} with token {self._held.token} is lost.")
        return finished.version

    async def succeed(self, result: Any = None) -> None:
        """Ends the job with this result when the open `ctx.transaction()` commits. Raises RuntimeError outside of one."""
        if not self._is_open:
            raise RuntimeError("ctx.succeed() belongs inside `async with ctx.transaction()`; else return the result.")
        self._result = result_text(result)

    async def items(self, keys: Keys) -> AsyncIterator[Item]:
        """Walks a durable snapshot of keys, one item each, with a checkpoint before each.

        `keys` are strings, or an async function that returns them; they are read where no snapshot was taken yet. Later
        attempts go on behind what is done. Each item must get an outcome before the next one is asked for.
        """
        async for item in walk_items(self._attempt, keys):
            yield item
