"""Writes down how attempts ended: those that end together in one statement, again while the database is away."""

import asyncio
import logging
from dataclasses import dataclass

from tenure.db.claim import Beat, heartbeat
from tenure.db.engine import Connection, Database
from tenure.db.errors import StorageUnavailable
from tenure.db.notify import Hint, HintSender
from tenure.db.outcome import Finish, Finished, finish_jobs
from tenure.db.states import JobState
from tenure.workers.held import HeldJob

logger = logging.getLogger(__name__)

OUTAGE_PAUSE_SECONDS = 0.25
MAX_BATCH = 500


@dataclass(slots=True)
class _Waiting:
    held: HeldJob
    finish: Finish
    done: asyncio.Future[Finished | None]


class Recorder:
    """Batches by itself: what arrives while one statement is under way goes with the next."""

    def __init__(self, database: Database, hints: HintSender, lease_seconds: float) -> None:
        self._database = database
        self._hints = hints
        self._lease_seconds = lease_seconds
        self._waiting: list[_Waiting] = []
        self._pump: asyncio.Task[None] | None = None

    async def record(self, held: HeldJob, finish: Finish) -> Finished | None:
        """What became of the job; None where the lease was lost, before or while this was written."""
        if held.is_lost:
            return None
        waiting = _Waiting(held, finish, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._run(), name="recorder")
        return await waiting.done

    async def _run(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
            try:
                finished = await self._database.run(lambda c, b=batch: self._write(c, b))  # type: ignore[misc]
            except StorageUnavailable:
                self._keep_held(batch)
                await asyncio.sleep(OUTAGE_PAUSE_SECONDS)
                continue
            except Exception as error:  # noqa: BLE001 - each waiter gets it and logs it
                for waiting in batch:
                    if not waiting.done.done():
                        waiting.done.set_exception(error)
                continue
            for waiting, one in zip(batch, finished, strict=True):
                self._tell(waiting, one)

    async def _write(self, connection: Connection, batch: list[_Waiting]) -> list[Finished]:
        beats = [Beat(w.held.id, w.held.token, p) for w in batch if (p := w.held.take_progress())]
        if beats:
            await heartbeat(connection, beats, self._lease_seconds)
        return await finish_jobs(connection, [w.finish for w in batch])

    def _keep_held(self, batch: list[_Waiting]) -> None:
        """Those whose lease may still be ours are tried again; the others' end is for whoever reclaims them."""
        for waiting in batch:
            if waiting.held.is_lost:
                waiting.done.set_result(None)
            else:
                self._waiting.append(waiting)

    def _tell(self, waiting: _Waiting, finished: Finished) -> None:
        if finished.state is None or finished.version is None:
            logger.warning("LeaseLost", extra={"job": str(waiting.held.id), "token": waiting.held.token})
            result = None
        else:
            self._hints.send(Hint(finished.job_id, finished.version, is_ready=finished.state is JobState.QUEUED))
            result = finished
        if not waiting.done.done():
            waiting.done.set_result(result)
