"""The worker of a process: reserves capacity, claims, runs and records; stops gracefully, giving back what it holds.

Order of the end: no more claims; handlers finish within the grace period; the rest is released; then heartbeats stop. Each
step has a deadline.
"""

import asyncio
import logging
import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from broadcaster import Broadcast

from tenure.db.claim import ClaimCursor, claim_jobs
from tenure.db.engine import Database
from tenure.db.errors import StorageUnavailable
from tenure.db.jobs import JobSnapshot
from tenure.db.notify import CHANNEL, RESYNC, Hint, HintSender, decode_hints
from tenure.workers.backoff import Backoff
from tenure.workers.context import HandlerOptions
from tenure.workers.errors import StopReason
from tenure.workers.executor import STOP_PATIENCE_SECONDS, Executor
from tenure.workers.heartbeat import Heartbeat
from tenure.workers.held import HeldJob
from tenure.workers.janitor import Janitor
from tenure.workers.recorder import Recorder
from tenure.workers.registry import Registry

logger = logging.getLogger(__name__)

RELEASE_SECONDS = STOP_PATIENCE_SECONDS + 5.0
"""For ending interrupted handlers and recording their release."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """A worker's numbers; seconds unless said."""

    lease_seconds: float = 60
    heartbeat_seconds: float = 15
    poll_seconds: float = 2
    concurrency: int = 2
    """How many jobs run at a time in this process."""
    shutdown_grace_seconds: float = 20
    backoff: Backoff = Backoff(2, 600)
    handler: HandlerOptions = HandlerOptions()


class Worker:
    """Runs jobs until it is stopped. `owner` names it in leases; a fresh random name for each process start is the rule."""

    def __init__(
        self,
        database: Database,
        registry: Registry,
        options: WorkerOptions,
        *,
        hints: HintSender,
        broadcast: Broadcast,
        owner: str | None = None,
    ) -> None:
        self._database = database
        self._registry = registry
        self._options = options
        self._hints = hints
        self._broadcast = broadcast
        self.owner = owner or f"{os.getpid()}-{secrets.token_hex(8)}"
        self._recorder = Recorder(database, hints, options.lease_seconds)
        self._janitor = Janitor(database, hints, options.poll_seconds)
        self._executor = Executor(database, options.backoff, options.handler, self._tell)
        self._heartbeat: Heartbeat | None = None
        self._running: dict[asyncio.Task[None], HeldJob] = {}
        self._taken = 0
        self._cursor = ClaimCursor()
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Begins the graceful end of `run`."""
        self._stopping.set()
        self._wake.set()

    async def run(self) -> None:
        """Works until `stop`, then until what it held is finished or released. Raises SchemaTooNew when shut out."""
        loop = asyncio.get_running_loop()

        def on_saved(job_id: UUID, version: int) -> None:  # from the heartbeat's thread
            loop.call_soon_threadsafe(self._tell, job_id, version)

        self._heartbeat = Heartbeat(
            self._database.url,
            lease_seconds=self._options.lease_seconds,
            heartbeat_seconds=self._options.heartbeat_seconds,
            on_saved=on_saved,
        )
        self._heartbeat.start()
        logger.info("Worker started", extra={"owner": self.owner, "kinds": [k.name for k in self._registry]})
        loops = [
            asyncio.create_task(self._fetch(), name="fetcher"),
            asyncio.create_task(self._janitor.run(), name="janitor"),
            asyncio.create_task(self._listen(), name="wake-ups"),
        ]
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({*loops, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.stop()
            stopping.cancel()
            for task in loops[1:]:
                task.cancel()
            await self._finish_running(loops[0])
            await self._heartbeat.stop()
            logger.info("Worker stopped", extra={"owner": self.owner})
        for task in loops:
            with suppress(asyncio.CancelledError):
                await task

    # ------------------------------------------------------------ fetching

    async def _fetch(self) -> None:
        """Claims as many jobs as there are free slots, whenever there is a reason to look."""
        kinds = [kind.name for kind in self._registry]
        while not self._stopping.is_set():
            self._wake.clear()
            free = self._options.concurrency - self._taken
            claimed = await self._claim(kinds, free) if free > 0 and kinds else []
            if claimed and len(claimed) < free:
                continue  # there may be more: a claim looks at a bounded number of queues
            with suppress(TimeoutError):
                async with asyncio.timeout(self._options.poll_seconds):
                    await self._wake.wait()

    async def _claim(self, kinds: list[str], free: int) -> list[JobSnapshot]:
        claimed_at = time.monotonic()
        self._taken += free  # reserved before the claim, so that no more is leased than can be run
        jobs: list[JobSnapshot] = []
        try:
            # Not `Database.run`: a claim whose answer was lost must not be sent again; its lease runs out instead.
            async with self._database.statement() as connection:
                jobs, self._cursor = await claim_jobs(
                    connection,
                    owner=self.owner,
                    kinds=kinds,
                    limit=free,
                    lease_seconds=self._options.lease_seconds,
                    cursor=self._cursor,
                )
        except StorageUnavailable:
            logger.warning("Claiming waits for the database")
        except Exception:
            logger.exception("A claim failed")
        finally:
            self._taken -= free - len(jobs)
        for job in jobs:
            self._start(job, claimed_at)
        return jobs

    def _start(self, job: JobSnapshot, claimed_at: float) -> None:
        kind = self._registry.get(job.kind)
        assert kind is not None and self._heartbeat is not None  # noqa: S101, PT018 - only registered kinds are claimed
        held = HeldJob(job, kind, claimed_at=claimed_at)
        self._heartbeat.add(held)
        self._tell(held.id, job.version)
        task = asyncio.create_task(self._work(held), name=f"job-{job.id}")
        self._running[task] = held
        task.add_done_callback(self._running.pop)

    async def _work(self, held: HeldJob) -> None:
        assert self._heartbeat is not None  # noqa: S101
        leftover: asyncio.Future[Any] | None = None
        try:
            finish, leftover = await self._executor.run(held)
            if finish is not None:
                await self._recorder.record(held, finish)
        except Exception:
            logger.exception("An attempt could not be recorded; its lease will run out", extra={"job": str(held.id)})
        finally:
            self._heartbeat.remove(held)
            if leftover is None or leftover.done():
                self._free_slot()
            else:
                leftover.add_done_callback(lambda _: self._free_slot())

    def _free_slot(self) -> None:
        self._taken -= 1
        self._wake.set()

    def _tell(self, job_id: UUID, version: int) -> None:
        self._hints.send(Hint(job_id, version))

    # ------------------------------------------------------------ wake-ups

    async def _listen(self) -> None:
        """Turns hints into looks: at the queues where a job is ready, at a held job that has changed elsewhere."""
        assert self._heartbeat is not None  # noqa: S101
        async with self._broadcast.subscribe(channel=CHANNEL) as subscriber:
            while True:
                message = (await subscriber.get()).message
                if message == RESYNC:
                    self._wake.set()
                    for held in self._running.values():
                        self._heartbeat.beat_now(held.id)
                    continue
                for hint in decode_hints(message):
                    if hint.is_ready:
                        self._wake.set()
                    held_job = self._heartbeat.get(hint.job_id)
                    if held_job is not None and hint.version > held_job.version:
                        self._heartbeat.beat_now(hint.job_id)

    # ------------------------------------------------------------ the end

    async def _finish_running(self, fetcher: asyncio.Task[None]) -> None:
        """Waits for handlers within the grace period, then interrupts and releases the rest."""
        # A claim that is under way is awaited, not cancelled: what it leased must be released.
        await asyncio.wait({fetcher}, timeout=10)
        fetcher.cancel()
        if self._running:
            await asyncio.wait(set(self._running), timeout=self._options.shutdown_grace_seconds)
        for held in list(self._running.values()):
            held.stop(StopReason.SHUTDOWN)
        if self._running:
            await asyncio.wait(set(self._running), timeout=RELEASE_SECONDS)
        for task, held in list(self._running.items()):
            logger.warning("A job could not be released in time; its lease will run out", extra={"job": str(held.id)})
            task.cancel()
