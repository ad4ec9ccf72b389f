"""Writes down how attempts ended: those that end together in one statement, again while the database is away."""

import asyncio
import logging
from collections.abc import Sequence

from tenure.db.batching import Batcher
from tenure.db.claim import Beat, heartbeat
from tenure.db.engine import Connection, Database
from tenure.db.errors import StorageUnavailable
from tenure.db.notify import Hint, HintSender
from tenure.db.outcome import Finish, Finished, finish_jobs
from tenure.db.states import JobState
from tenure.workers.held import HeldJob

logger = logging.getLogger(__name__)

OUTAGE_PAUSE_SECONDS = 0.25


class Recorder:
    """Records ends under their leases, and tells of them."""

    def __init__(self, database: Database, hints: HintSender, lease_seconds: float) -> None:
        self._database = database
        self._hints = hints
        self._lease_seconds = lease_seconds
        self._batcher: Batcher[tuple[HeldJob, Finish], Finished] = Batcher(self._write)

    async def record(self, held: HeldJob, finish: Finish) -> Finished | None:
        """What became of the job; None where the lease was lost, before or while this was written."""
        while not held.is_lost:
            try:
                finished = await self._batcher.submit((held, finish))
            except StorageUnavailable:  # the lease may still be ours when the database is back
                await asyncio.sleep(OUTAGE_PAUSE_SECONDS)
                continue
            if finished.state is None or finished.version is None:
                break
            self._hints.send(Hint(finished.job_id, finished.version, is_ready=finished.state is JobState.QUEUED))
            return finished
        logger.warning("LeaseLost", extra={"job": str(held.id), "token": held.token})
        return None

    async def _write(self, ends: Sequence[tuple[HeldJob, Finish]]) -> list[Finished]:
        async def statements(connection: Connection) -> list[Finished]:
            beats = [Beat(held.id, held.token, p) for held, _ in ends if (p := held.take_progress())]
            if beats:
                await heartbeat(connection, beats, self._lease_seconds)
            return await finish_jobs(connection, [finish for _, finish in ends])

        return await self._database.run(statements)
