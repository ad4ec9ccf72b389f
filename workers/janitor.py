"""Takes back jobs whose lease has expired, and ends the process when the schema shuts it out."""

import asyncio
import logging

from tenure.db.claim import reclaim_expired
from tenure.db.engine import Database
from tenure.db.errors import SchemaMissing, SchemaTooNew, StorageUnavailable
from tenure.db.migrate import check_compatible
from tenure.db.notify import Hint, HintSender
from tenure.db.states import JobState

logger = logging.getLogger(__name__)

RECLAIM_BATCH = 100


class Janitor:
    """One round each poll interval. Any number of processes may do it side by side: rows that another holds are passed over."""

    def __init__(self, database: Database, hints: HintSender, poll_seconds: float) -> None:
        self._database = database
        self._hints = hints
        self._poll_seconds = poll_seconds

    async def run(self) -> None:
        """Until cancelled. Raises SchemaTooNew."""
        while True:
            try:
                await self._database.run(check_compatible)
                while await self.reclaim() == RECLAIM_BATCH:
                    pass
            except (StorageUnavailable, SchemaMissing):
                logger.warning("Reclaim waits for the database")
            except SchemaTooNew:
                raise
            except Exception:
                logger.exception("Reclaim failed; it is tried again")
            await asyncio.sleep(self._poll_seconds)

    async def reclaim(self) -> int:
        """One batch; how many jobs were taken back."""
        moved = await self._database.run(lambda c: reclaim_expired(c, RECLAIM_BATCH))
        for one in moved:
            logger.warning("Reclaimed a job whose lease had expired", extra={"job": str(one.job_id), "state": one.state.value})
            self._hints.send(Hint(one.job_id, one.version, is_ready=one.state is JobState.QUEUED))
        return len(moved)
