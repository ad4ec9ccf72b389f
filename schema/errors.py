"""Outcomes that a caller can act on, as data: each is a member of a mutation's union and implements `Error`."""

import math
from collections.abc import Callable
from typing import Any

import strawberry

from tenure.resolvers import errors
from tenure.schema.enums import AdmissionLimit, ErrorCode, Role
from tenure.schema.jobs import Job

MAX_INT = 2**31 - 1


@strawberry.interface(name="Error", description="An outcome that is no success.")
class DomainError:
    code: ErrorCode
    message: str


@strawberry.type(description="The key was used before, with another request.")
class IdempotencyConflict(DomainError):
    pass


@strawberry.type(description="An admission limit was reached; nothing was written.")
class AdmissionRejected(DomainError):
    limit: AdmissionLimit
    queue: str | None = strawberry.field(description="Null where the limit holds for every queue of the workspace.")
    used: int
    max: int
    retry_after_seconds: int | None = strawberry.field(description="Where it can be known.")


@strawberry.type(description="Too many jobs were asked for from one address.")
class RateLimited(DomainError):
    max: int
    window_seconds: int
    retry_after_seconds: int


@strawberry.type(description="It takes a role that the caller has not.")
class Forbidden(DomainError):
    required_role: Role | None


@strawberry.type(description="One value that breaks a rule.")
class FieldError:
    path: list[str] = strawberry.field(description='Where, from the input object down, such as ["params", "tags", "0"].')
    message: str


@strawberry.type(description="The input breaks rules; all that were found are listed.")
class InvalidInput(DomainError):
    fields: list[FieldError]


@strawberry.type(description="It does not exist, or is in a workspace that the caller is no member of.")
class NotFound(DomainError):
    pass


@strawberry.type(description="The job is in no state to be retried, or has moved on.")
class NotRetryable(DomainError):
    job: Job


def _plain(member: type[Any]) -> Callable[[Any], Any]:
    return lambda error: member(code=ErrorCode(error.code), message=error.message)


def _admission_rejected(error: errors.AdmissionRejected) -> AdmissionRejected:
    refused = error.refused
    wait = refused.retry_after_seconds
    return AdmissionRejected(
        code=ErrorCode.ADMISSION_REJECTED,
        message=error.message,
        limit=refused.limit,
        queue=refused.queue,
        used=min(refused.used, MAX_INT),
        max=min(refused.max, MAX_INT),
        retry_after_seconds=None if wait is None else min(max(0, math.ceil(wait)), MAX_INT),
    )


def _invalid_input(error: errors.InvalidInput) -> InvalidInput:
    return InvalidInput(
        code=ErrorCode.INVALID_INPUT,
        message=error.message,
        fields=[FieldError(path=list(p.path), message=p.message) for p in error.problems],
    )


def _forbidden(error: errors.Forbidden) -> Forbidden:
    return Forbidden(code=ErrorCode.FORBIDDEN, message=error.message, required_role=error.required_role)


def _not_retryable(error: errors.NotRetryable) -> NotRetryable:
    return NotRetryable(code=ErrorCode.NOT_RETRYABLE, message=error.message, job=Job.from_row(error.job))


EXPECTED: dict[type[Exception], Callable[[Any], Any]] = {
    errors.NotFound: _plain(NotFound),
    errors.IdempotencyConflict: _plain(IdempotencyConflict),
    errors.AdmissionRejected: _admission_rejected,
    errors.InvalidInput: _invalid_input,
    errors.Forbidden: _forbidden,
    errors.NotRetryable: _not_retryable,
}
"""Each mutation's union has the members that its resolver can raise; what is not here is a top-level error."""

EXPECTED_ERRORS = tuple(EXPECTED)


def as_member(error: Exception) -> Any:
    """The union member that stands for one of EXPECTED_ERRORS."""
    return EXPECTED[type(error)](error)
