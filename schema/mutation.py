"""The commands. What a caller can act on comes back as data, all else as a top-level error."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any

import strawberry
from strawberry.scalars import JSON

from tenure.db.enqueue import Enqueued
from tenure.resolvers import enqueueing, jobs
from tenure.schema.errors import (
    EXPECTED_ERRORS,
    AdmissionRejected,
    Forbidden,
    IdempotencyConflict,
    InvalidInput,
    NotFound,
    NotRetryable,
    RateLimited,
    as_member,
)
from tenure.schema.info import Info, described
from tenure.schema.jobs import Job
from tenure.schema.paging import given


@strawberry.input(description="A job to enqueue.")
class EnqueueJobInput:
    workspace_id: strawberry.ID
    kind: str
    params: JSON
    idempotency_key: str = strawberry.field(
        description="1 to 200 characters. Scoped to the workspace and the actor; kept for good."
    )
    priority: int | None = strawberry.UNSET
    run_at: datetime | None = strawberry.UNSET
    max_attempts: int | None = strawberry.UNSET

    def asked(self) -> enqueueing.EnqueueRequest:
        return enqueueing.EnqueueRequest(
            workspace_id=self.workspace_id,
            kind=self.kind,
            params=self.params,
            idempotency_key=self.idempotency_key,
            priority=given(self.priority),
            run_at=given(self.run_at),
            max_attempts=given(self.max_attempts),
        )


@strawberry.input(description="The tags that each page of a course is to get.")
class TagCourseInput:
    workspace_id: strawberry.ID
    course_id: strawberry.ID
    tags: list[str]
    idempotency_key: str


@strawberry.input(description="The job to cancel.")
class CancelJobInput:
    id: strawberry.ID


@strawberry.input(description="The job to retry.")
class RetryJobInput:
    id: strawberry.ID
    expected_version: int | None = strawberry.field(
        default=strawberry.UNSET,
        description="Refused as NOT_RETRYABLE if the job has moved on since, so that a request sent twice runs it once.",
    )


@strawberry.type(description="The job that was enqueued.")
class EnqueueJobPayload:
    job: Job
    replayed: bool = strawberry.field(
        description="True where the key was used before with the same request: job is that one, as it stands now."
    )

    @classmethod
    def from_outcome(cls, outcome: Enqueued) -> "EnqueueJobPayload":
        return cls(job=Job.from_row(outcome.job), replayed=outcome.replayed)


@strawberry.type(
    description="The job as it stands: CANCELLED if it was queued, with cancelRequestedAt if it runs, unchanged if it had"
    " ended."
)
class CancelJobPayload:
    job: Job


@strawberry.type(description="The job, queued anew.")
class RetryJobPayload:
    job: Job


EnqueueJobResult = Annotated[
    EnqueueJobPayload | IdempotencyConflict | AdmissionRejected | RateLimited | InvalidInput | NotFound | Forbidden,
    strawberry.union("EnqueueJobResult", description="What came of enqueueing a job."),
]
CancelJobResult = Annotated[
    CancelJobPayload | NotFound | Forbidden,
    strawberry.union("CancelJobResult", description="What came of cancelling a job."),
]
RetryJobResult = Annotated[
    RetryJobPayload | NotRetryable | AdmissionRejected | RateLimited | InvalidInput | NotFound | Forbidden,
    strawberry.union("RetryJobResult", description="What came of retrying a job."),
]


async def _outcome(work: Awaitable[Any], payload: Callable[[Any], Any]) -> Any:
    """The payload of what the resolver gives, or the union's member for the error that it raises."""
    try:
        return payload(await work)
    except EXPECTED_ERRORS as error:
        return as_member(error)


@strawberry.type(description="What can be asked for.")
class Mutation:
    @described("Enqueues one job.")
    async def enqueue_job(self, info: Info, input: EnqueueJobInput) -> EnqueueJobResult | None:  # noqa: A002 - the API's name
        work = enqueueing.enqueue(info.context, input.asked())
        outcome: EnqueueJobResult = await _outcome(work, EnqueueJobPayload.from_outcome)
        return outcome

    @described("Adds tags to each page of a course.")
    async def tag_course(self, info: Info, input: TagCourseInput) -> EnqueueJobResult | None:  # noqa: A002 - the API's name
        request = enqueueing.TagRequest(input.workspace_id, input.course_id, input.tags, input.idempotency_key)
        work = enqueueing.tag_course(info.context, request)
        outcome: EnqueueJobResult = await _outcome(work, EnqueueJobPayload.from_outcome)
        return outcome

    @described("Cancels a job that waits, asks one that runs to stop.")
    async def cancel_job(self, info: Info, input: CancelJobInput) -> CancelJobResult | None:  # noqa: A002 - the API's name
        work = jobs.cancel(info.context, input.id)
        outcome: CancelJobResult = await _outcome(work, lambda row: CancelJobPayload(job=Job.from_row(row)))
        return outcome

    @described("Queues a failed or cancelled job anew.")
    async def retry_job(self, info: Info, input: RetryJobInput) -> RetryJobResult | None:  # noqa: A002 - the API's name
        work = jobs.retry(info.context, input.id, given(input.expected_version))
        outcome: RetryJobResult = await _outcome(work, lambda row: RetryJobPayload(job=Job.from_row(row)))
        return outcome
