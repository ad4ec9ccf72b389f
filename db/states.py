"""The words of a job's life: states, attempt outcomes, limits and roles, and which state may follow which.

The SQL functions of `migrations/sql` decide the transitions; `ALLOWED` is the same rule as data, drawn in
docs/state-machine.md and walked by the tests.
"""

from enum import StrEnum


class JobState(StrEnum):
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def is_terminal(self) -> bool:
        return self in TERMINAL_STATES


TERMINAL_STATES = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})

ALLOWED: dict[JobState, frozenset[JobState]] = {
    JobState.QUEUED: frozenset({JobState.RUNNING, JobState.CANCELLED}),
    JobState.RUNNING: frozenset({JobState.QUEUED, JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED}),
    JobState.SUCCEEDED: frozenset(),
    JobState.FAILED: frozenset({JobState.QUEUED}),  # an operator's retry
    JobState.CANCELLED: frozenset({JobState.QUEUED}),  # an operator's retry
}


class AttemptOutcome(StrEnum):
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    RELEASED = "RELEASED"
    LOST = "LOST"


class AdmissionLimit(StrEnum):
    PENDING_GLOBAL = "PENDING_GLOBAL"
    PENDING_PER_WORKSPACE = "PENDING_PER_WORKSPACE"
    PENDING_PER_ACTOR = "PENDING_PER_ACTOR"
    CREATED_PER_DAY = "CREATED_PER_DAY"


class Role(StrEnum):
    """What a member may do; each role may do what the ones before it may."""

    VIEWER = "VIEWER"
    OPERATOR = "OPERATOR"
    ADMIN = "ADMIN"

    @property
    def rank(self) -> int:
        return list(Role).index(self)

    def includes(self, other: "Role") -> bool:
        return self.rank >= other.rank

    @staticmethod
    def least(first: "Role", second: "Role") -> "Role":
        return first if first.rank <= second.rank else second
