"""One leased job inside this process: what the handler's loop and the heartbeat thread both know of it."""

import threading
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

from tenure.db.jobs import JobSnapshot
from tenure.workers.errors import JobStopped, StopReason
from tenure.workers.registry import Kind


class HeldJob:
    """The lease, the reason to stop if there is one, and the progress that is still to be saved.

    Thread-safe: the heartbeat thread reads progress and sets reasons, the loop does the rest. The first reason to stop stays.
    """

    def __init__(self, job: JobSnapshot, kind: Kind, *, claimed_at: float | None = None) -> None:
        self.job = job
        self.kind = kind
        self.version = job.version
        self.is_ended = False
        """The handler ended the job itself, in a transaction of its own."""
        self.trusted_from = time.monotonic() if claimed_at is None else claimed_at
        """When the last good heartbeat (or the claim) was sent, by this process's monotonic clock."""
        self._lock = threading.Lock()
        self._reason: StopReason | None = None
        self._is_cancel_requested = False
        self._progress: dict[str, Any] = {}
        self._on_stop: Callable[[], None] | None = None

    @property
    def id(self) -> UUID:
        return self.job.id

    @property
    def token(self) -> int:
        return self.job.fencing_token

    @property
    def reason(self) -> StopReason | None:
        return self._reason

    @property
    def is_lost(self) -> bool:
        return self._reason is StopReason.LEASE_LOST

    @property
    def is_cancel_requested(self) -> bool:
        return self._is_cancel_requested

    def request_cancel(self) -> None:
        """Seen by the handler at its next checkpoint."""
        self._is_cancel_requested = True

    def stop(self, reason: StopReason) -> bool:
        """Makes this the reason to stop, unless there is one; true if it is new. The handler is interrupted."""
        with self._lock:
            if self._reason is not None:
                return False
            self._reason = reason
            callback = self._on_stop
        if callback is not None:
            callback()
        return True

    def when_stopped(self, callback: Callable[[], None]) -> None:
        """Calls back once there is a reason to stop, from whatever thread finds it; at once if there is one already."""
        with self._lock:
            self._on_stop = callback
            is_stopped = self._reason is not None
        if is_stopped:
            callback()

    def raise_if_stopped(self) -> None:
        """Raises JobStopped once there is a reason."""
        if self._reason is not None:
            raise JobStopped(self._reason)

    def note_progress(self, changes: dict[str, Any]) -> None:
        with self._lock:
            self._progress.update(changes)

    def take_progress(self) -> dict[str, Any] | None:
        """What changed since it was last taken; null where nothing did."""
        with self._lock:
            taken, self._progress = self._progress, {}
        return taken or None

    def give_back(self, progress: dict[str, Any] | None) -> None:
        """Keeps progress that could not be saved; what was noted since is newer."""
        if progress:
            with self._lock:
                self._progress = {**progress, **self._progress}

    @property
    def has_progress(self) -> bool:
        return bool(self._progress)
