"""Keeps the leases of all jobs of the process, from a thread and a connection of its own.

A handler that blocks the event loop thus keeps its lease. The same statement saves progress and brings cancels. When
heartbeats have failed for a whole lease, counted from the sending of the last good one, the jobs are given up here: somebody
else may hold them by then.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from uuid import UUID

import asyncpg

from tenure.db.claim import HEARTBEAT_POSITIONAL, Beat, BeatStatus, beat_result, heartbeat_arguments
from tenure.db.engine import is_unavailable
from tenure.workers.errors import StopReason
from tenure.workers.held import HeldJob

logger = logging.getLogger(__name__)

PROGRESS_SECONDS = 0.25
"""How soon progress is saved: often enough to watch, seldom enough to be cheap."""

RETRY_SECONDS = 0.05
Saved = Callable[[UUID, int], None]


class Heartbeat:
    """The thread. `on_saved(job_id, version)` is called from it after progress was saved."""

    def __init__(self, database_url: str, *, lease_seconds: float, heartbeat_seconds: float, on_saved: Saved) -> None:
        self._url = database_url
        self._lease_seconds = lease_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self._timeout = max(0.5, min(5.0, heartbeat_seconds))
        self._on_saved = on_saved
        self._held: dict[UUID, HeldJob] = {}
        self._urgent: set[UUID] = set()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._is_stopping = False
        self._connection: asyncpg.Connection | None = None
        self._thread = threading.Thread(target=self._main, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        """Ends the thread, within a bound: it is a daemon, and leaves with the process if it hangs."""
        self._is_stopping = True
        self._nudge()
        await asyncio.to_thread(self._thread.join, self._timeout + 1)

    def add(self, held: HeldJob) -> None:
        with self._lock:
            self._held[held.id] = held

    def remove(self, held: HeldJob) -> None:
        with self._lock:
            if self._held.get(held.id) is held:
                del self._held[held.id]

    def beat_now(self, job_id: UUID) -> None:
        """The job has changed elsewhere, perhaps by a cancel: look at once."""
        with self._lock:
            if job_id in self._held:
                self._urgent.add(job_id)
        self._nudge()

    def get(self, job_id: UUID) -> HeldJob | None:
        return self._held.get(job_id)

    def _nudge(self) -> None:
        loop, wake = self._loop, self._wake
        if loop is not None and wake is not None:
            with suppress(RuntimeError):  # the thread's loop has ended
                loop.call_soon_threadsafe(wake.set)

    def _main(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._run())

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        due_at = time.monotonic() + self._heartbeat_seconds
        while not self._is_stopping:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, min(PROGRESS_SECONDS, due_at - time.monotonic()))):
                    await self._wake.wait()
            self._wake.clear()
            self._give_up_expired()
            is_due = time.monotonic() >= due_at
            beats = self._choose(everything=is_due)
            if is_due:
                due_at = time.monotonic() + self._heartbeat_seconds
            if beats and not await self._send(beats):
                due_at = min(due_at, time.monotonic() + RETRY_SECONDS)
        await self._disconnect()

    def _give_up_expired(self) -> None:
        now = time.monotonic()
        for held in self._snapshot():
            if now - held.trusted_from > self._lease_seconds and held.stop(StopReason.LEASE_LOST):
                logger.warning(
                    "LeaseLost: no heartbeat went through for a whole lease; the handler is stopped",
                    extra={"job": str(held.id), "token": held.token},
                )

    def _snapshot(self) -> list[HeldJob]:
        with self._lock:
            return list(self._held.values())

    def _choose(self, *, everything: bool) -> list[HeldJob]:
        with self._lock:
            urgent, self._urgent = self._urgent, set()
            return [
                held
                for held in self._held.values()
                if not held.is_lost and (everything or held.has_progress or held.id in urgent)
            ]

    async def _send(self, held_jobs: Iterable[HeldJob]) -> bool:
        """One statement for all; false where it has to be sent again soon."""
        by_id = {held.id: held for held in held_jobs}
        beats = [Beat(held.id, held.token, held.take_progress()) for held in by_id.values()]
        sent_at = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout):
                connection = await self._connect()
                rows = await connection.fetch(HEARTBEAT_POSITIONAL, *heartbeat_arguments(beats, self._lease_seconds))
        except Exception as error:
            for beat in beats:
                by_id[beat.job_id].give_back(beat.progress)
            if is_unavailable(error) or isinstance(error, TimeoutError):
                logger.warning("A heartbeat failed", extra={"error": type(error).__name__, "jobs": len(beats)})
            else:
                logger.exception("A heartbeat failed", extra={"jobs": len(beats)})
            await self._disconnect()
            return False
        progress = {beat.job_id: beat.progress for beat in beats}
        is_complete = True
        for row in rows:
            result = beat_result(row)
            held = by_id[result.job_id]
            if result.status is BeatStatus.OK:
                self._beaten(held, sent_at, result.version, had_progress=progress[held.id] is not None)
            elif result.status is BeatStatus.UNKNOWN:
                held.give_back(progress[held.id])
                is_complete = False
            elif held.stop(StopReason.LEASE_LOST):
                logger.warning("LeaseLost", extra={"job": str(held.id), "token": held.token})
            if result.is_cancel_requested:
                held.request_cancel()
        return is_complete

    def _beaten(self, held: HeldJob, sent_at: float, version: int | None, *, had_progress: bool) -> None:
        held.trusted_from = sent_at
        if version is not None:
            held.version = max(held.version, version)
            if had_progress:
                self._on_saved(held.id, version)

    async def _connect(self) -> asyncpg.Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await asyncpg.connect(
                self._url,
                timeout=self._timeout,
                command_timeout=self._timeout,
                server_settings={"application_name": "tenure heartbeat", "timezone": "UTC", "jit": "off"},
            )
        return self._connection

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()
