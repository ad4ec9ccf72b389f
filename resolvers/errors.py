"""What may come of a request besides its answer. Messages are written for the client; no error here carries driver text."""

from collections.abc import Sequence
from dataclasses import dataclass

from tenure.db.enqueue import Refused
from tenure.db.errors import NotFound, TenureError
from tenure.db.jobs import JobSnapshot
from tenure.db.states import Role


class Unauthenticated(TenureError):
    """Nobody is signed in."""

    code = "UNAUTHENTICATED"


class Forbidden(TenureError):
    """A member without the role that it takes; null where it is no question of the role."""

    code = "FORBIDDEN"

    def __init__(self, message: str, required_role: Role | None = None) -> None:
        super().__init__(message)
        self.required_role = required_role


class BadRequest(TenureError):
    """Paging arguments out of range, a cursor that is none, a negative version."""

    code = "BAD_REQUEST"


class ShuttingDown(TenureError):
    """The process is about to end; another one answers."""

    code = "UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """What is wrong with one value; `path` leads to it from the input object down."""

    path: tuple[str, ...]
    message: str


class InvalidInput(TenureError):
    """The input breaks rules; all that were found are listed, up to MAX_PROBLEMS."""

    code = "INVALID_INPUT"

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        super().__init__("The input is not valid.")
        self.problems = tuple(problems)


class IdempotencyConflict(TenureError):
    """The key stands for another request."""

    code = "IDEMPOTENCY_CONFLICT"


class AdmissionRejected(TenureError):
    """An admission limit was reached; nothing was written."""

    code = "ADMISSION_REJECTED"

    def __init__(self, refused: Refused) -> None:
        lane = "" if refused.queue is None else f" in queue {refused.queue!r}"
        super().__init__(f"Too many jobs{lane}: {refused.used} of {refused.max}.")
        self.refused = refused


class NotRetryable(TenureError):
    """The job is in no state to be retried, or has moved on since."""

    code = "NOT_RETRYABLE"

    def __init__(self, job: JobSnapshot) -> None:
        super().__init__("The job is neither failed nor cancelled, or has changed since.")
        self.job = job


__all__ = [
    "AdmissionRejected",
    "BadRequest",
    "FieldProblem",
    "Forbidden",
    "IdempotencyConflict",
    "InvalidInput",
    "NotFound",
    "NotRetryable",
    "ShuttingDown",
    "Unauthenticated",
]
