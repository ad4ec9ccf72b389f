"""Streams of a job's snapshots: one listener, one reader and one poll for all streams of a process.

A hint or the poll marks a job as dirty; the reader reads all dirty jobs in one statement and leaves the newest snapshot
with each watcher, replacing one that was not taken yet. Nothing queues up behind a slow client, no connection is held
between events, and with every hint lost the poll still delivers.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from uuid import UUID

from broadcaster import Broadcast

from tenure.db.engine import Database, Executor
from tenure.db.errors import StorageUnavailable
from tenure.db.jobs import JobSnapshot, read_jobs, read_versions
from tenure.db.notify import CHANNEL, RESYNC, decode_hints
from tenure.db.people import live_tokens
from tenure.resolvers.errors import Forbidden, ShuttingDown

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

MAX_READ = 500
RETRY_SECONDS = 0.5
UNSEEN = -1


class Watcher:
    """One stream's end of the hub: at most one snapshot that it has not taken, the newest."""

    __slots__ = ("_changed", "_failure", "_newest", "job_id", "token_id", "version")

    def __init__(self, job_id: UUID, token_id: UUID) -> None:
        self.job_id = job_id
        self.token_id = token_id
        self.version = UNSEEN
        """The newest version that was offered or taken."""
        self._newest: JobSnapshot | None = None
        self._failure: Exception | None = None
        self._changed = asyncio.Event()

    def offer(self, snapshot: JobSnapshot) -> bool:
        """Takes the snapshot in, unless it is no newer than what was offered before."""
        if snapshot.version <= self.version:
            return False
        self.version = snapshot.version
        self._newest = snapshot
        self._changed.set()
        return True

    def fail(self, failure: Exception) -> None:
        """Ends the stream with this error at its next step."""
        self._failure = failure
        self._changed.set()

    async def take(self) -> JobSnapshot:
        """Waits for a snapshot that was not taken yet. Raises Forbidden when the right is gone, ShuttingDown."""
        while True:
            await self._changed.wait()
            taken = self.take_waiting()
            if taken is not None:
                return taken

    def take_waiting(self) -> JobSnapshot | None:
        """The snapshot that waits, if one does. Raises like `take`."""
        self._changed.clear()
        if self._failure is not None:
            self._changed.set()
            raise self._failure
        taken, self._newest = self._newest, None
        return taken


class ProgressHub:
    """Watches jobs for the streams of one process. `run` must be running for them to get anything."""

    def __init__(
        self,
        database: Database,
        broadcast: Broadcast,
        *,
        poll_seconds: float,
    ) -> None:
        self._database = database
        self._broadcast = broadcast
        self._poll_seconds = poll_seconds
        self._watchers: dict[UUID, set[Watcher]] = {}
        self._dirty: set[UUID] = set()
        self._wake = asyncio.Event()
        self._is_closed = False

    @property
    def watched(self) -> int:
        """How many streams there are."""
        return sum(map(len, self._watchers.values()))

    @contextmanager
    def watch(self, job_id: UUID, token_id: UUID) -> Iterator[Watcher]:
        """Registers a stream. Read the job's snapshot only after that, or a change in between is missed."""
        if self._is_closed:
            raise ShuttingDown("This server is shutting down; connect again.")
        watcher = Watcher(job_id, token_id)
        self._watchers.setdefault(job_id, set()).add(watcher)
        try:
            yield watcher
        finally:
            watchers = self._watchers[job_id]
            watchers.discard(watcher)
            if not watchers:
                del self._watchers[job_id]

    def close(self) -> None:
        """Ends all streams, and refuses new ones."""
        self._is_closed = True
        for watcher in self._all():
            watcher.fail(ShuttingDown("This server is shutting down; connect again."))

    async def run(self) -> None:
        """Until cancelled. An outage of the database ends neither this nor any stream."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen(), name="progress-listener")
            group.create_task(self._read(), name="progress-reader")
            group.create_task(self._poll(), name="progress-poll")

    def _all(self) -> list[Watcher]:
        return [watcher for watchers in self._watchers.values() for watcher in watchers]

    def _mark(self, job_id: UUID, version: int) -> None:
        if any(watcher.version < version for watcher in self._watchers.get(job_id, ())):
            self._dirty.add(job_id)
            self._wake.set()

    def _mark_all(self) -> None:
        self._dirty.update(self._watchers)
        self._wake.set()

    async def _listen(self) -> None:
        async with self._broadcast.subscribe(CHANNEL) as events:
            while True:
                event = await events.get()
                if event.message == RESYNC:
                    self._mark_all()
                else:
                    for hint in decode_hints(event.message):
                        self._mark(hint.job_id, hint.version)

    async def _read(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            dirty, self._dirty = [i for i in self._dirty if i in self._watchers], set()
            for start in range(0, len(dirty), MAX_READ):
                ids = dirty[start : start + MAX_READ]
                snapshots = await self._read_jobs(ids)
                if snapshots is None:
                    self._dirty.update(dirty[start:])
                    self._wake.set()
                    await asyncio.sleep(RETRY_SECONDS)
                    break
                for job_id, snapshot in snapshots.items():
                    for watcher in self._watchers.get(job_id, ()):
                        watcher.offer(snapshot)

    async def _read_jobs(self, ids: list[UUID]) -> dict[UUID, JobSnapshot] | None:
        return await self._tried(lambda connection: read_jobs(connection, ids))

    async def _poll(self) -> None:
        clock = asyncio.get_running_loop().time
        due = clock()
        while True:
            due = max(due + self._poll_seconds, clock())
            await asyncio.sleep(due - clock())
            watchers = self._all()
            if watchers:
                await self._check_rights(watchers)
                await self._check_versions()

    async def _check_rights(self, watchers: list[Watcher]) -> None:
        ids = list({watcher.token_id for watcher in watchers})
        alive = await self._tried(lambda connection: live_tokens(connection, ids))
        if alive is not None:
            for watcher in watchers:
                if watcher.token_id not in alive:
                    watcher.fail(Forbidden("You may no longer watch this."))

    async def _check_versions(self) -> None:
        ids = list(self._watchers)
        versions = await self._tried(lambda connection: read_versions(connection, ids))
        for job_id, version in (versions or {}).items():
            self._mark(job_id, version)

    async def _tried(self, call: Callable[[Executor], Awaitable[Result]]) -> Result | None:
        """What the call gives, or null where it failed: what it would have told is asked again soon."""
        try:
            return await self._database.run(call)
        except StorageUnavailable:
            logger.warning("The database is away; streams wait", extra={"streams": self.watched})
        except Exception:
            logger.exception("Reading for streams failed", extra={"streams": self.watched})
        return None
