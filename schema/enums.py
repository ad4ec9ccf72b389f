"""The database layer's words as GraphQL enums, with what each value means."""

from collections.abc import Mapping
from enum import Enum, StrEnum

import strawberry

from tenure.db.jobs import JobOrder
from tenure.db.states import AdmissionLimit, AttemptOutcome, JobState, Role


def _describe(enum: type[Enum], description: str, values: Mapping[str, str]) -> None:
    """Registers the enum. Its values are described here, since the layers below know of no API."""
    strawberry.enum(enum, description=description)
    definition = enum.__strawberry_definition__  # type: ignore[attr-defined]  # what the call above has put there
    for value in definition.values:
        value.description = values.get(value.name)


class ErrorCode(StrEnum):
    """What kind of outcome an error is."""

    IDEMPOTENCY_CONFLICT = "IDEMPOTENCY_CONFLICT"
    ADMISSION_REJECTED = "ADMISSION_REJECTED"
    RATE_LIMITED = "RATE_LIMITED"
    FORBIDDEN = "FORBIDDEN"
    INVALID_INPUT = "INVALID_INPUT"
    NOT_FOUND = "NOT_FOUND"
    NOT_RETRYABLE = "NOT_RETRYABLE"
    ETAG_MISMATCH = "ETAG_MISMATCH"


_describe(
    Role,
    "What a member may do; each role may do what the ones before it may.",
    {
        "VIEWER": "May read.",
        "OPERATOR": "May also cancel and retry.",
        "ADMIN": "May also enqueue, pause queues, manage members and tokens.",
    },
)
_describe(
    JobState,
    "Where a job stands in its life.",
    {"QUEUED": "Waiting for a worker, or for its runAt.", "RUNNING": "Leased by a worker."},
)
_describe(
    AttemptOutcome,
    "How an attempt ended.",
    {"RELEASED": "Handed back at a graceful shutdown; not counted.", "LOST": "Its lease ran out."},
)
_describe(
    AdmissionLimit,
    "What limits how much may be enqueued.",
    {
        "PENDING_GLOBAL": "Queued and running jobs in the whole installation.",
        "PENDING_PER_ACTOR": "Of the caller.",
        "CREATED_PER_DAY": "Jobs created in the last 24 hours.",
    },
)
_describe(JobOrder, "How a list of jobs is ordered.", {"FINISHED_AT_DESC": "Ended jobs only."})
_describe(
    ErrorCode,
    "What kind of outcome an error is; each value is described by its counterpart in HTTP.",
    {
        "IDEMPOTENCY_CONFLICT": "409",
        "ADMISSION_REJECTED": "429",
        "RATE_LIMITED": "429",
        "FORBIDDEN": "403",
        "INVALID_INPUT": "422",
        "NOT_FOUND": "404",
        "NOT_RETRYABLE": "409",
        "ETAG_MISMATCH": "412",
    },
)

__all__ = ["AdmissionLimit", "AttemptOutcome", "ErrorCode", "JobOrder", "JobState", "Role"]
