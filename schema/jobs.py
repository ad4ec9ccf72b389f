"""Jobs: what a client sees of one at one version, lists of them, and the kinds that can be enqueued."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry
from strawberry.scalars import JSON

from tenure.db.jobs import AttemptRow, JobCountsRow, JobErrorRow, JobSnapshot, LeaseRow
from tenure.resolvers.context import Kind
from tenure.resolvers.jobs import JobFilterInput
from tenure.schema.enums import AttemptOutcome, JobState
from tenure.schema.info import Info, described
from tenure.schema.loading import present
from tenure.schema.paging import Node, given
from tenure.schema.people import Actor
from tenure.schema.scalars import BigInt

if TYPE_CHECKING:
    from tenure.schema.workspaces import Workspace


@strawberry.type(description="How far a job has come.")
class JobProgress:
    total: int | None = strawberry.field(description="Null until known.")
    done: int = strawberry.field(description="succeeded + skipped + failed")
    succeeded: int
    skipped: int
    failed: int
    fraction: float | None = strawberry.field(description="done / total in 0..1; null until total is known.")
    message: str | None

    @classmethod
    def from_row(cls, row: JobSnapshot) -> "JobProgress":
        done = row.succeeded + row.skipped + row.failed
        fraction = None
        if row.progress_total is not None:  # nothing of nothing is all of it
            fraction = min(1.0, done / row.progress_total) if row.progress_total else 1.0
        return cls(
            total=row.progress_total,
            done=done,
            succeeded=row.succeeded,
            skipped=row.skipped,
            failed=row.failed,
            fraction=fraction,
            message=row.progress_message,
        )


@strawberry.type(description="Something that went wrong with a job or with one of its items.")
class JobError:
    at: datetime
    attempt: int = strawberry.field(description="JobAttempt.number")
    code: str = strawberry.field(
        description="A stable machine-readable code, such as page_conflict, handler_error, lease_expired, timeout,"
        " actor_not_authorized."
    )
    message: str = strawberry.field(description="Safe to show: no traceback, no SQL, no secret; at most 500 characters.")
    item_key: str | None = strawberry.field(description="The item at fault, for a job that works through items.")

    @classmethod
    def from_row(cls, row: JobErrorRow) -> "JobError":
        return cls(at=row.at, attempt=row.attempt, code=row.code, message=row.message, item_key=row.item_key)


@strawberry.type(description="The right to run a job, for a time.")
class JobLease:
    owner: str
    expires_at: datetime
    heartbeat_at: datetime
    fencing_token: BigInt = strawberry.field(
        description="Rises with every lease of this job and never falls. A write that carries an older one is refused."
    )

    @classmethod
    def from_row(cls, row: LeaseRow) -> "JobLease":
        return cls(
            owner=row.owner,
            expires_at=row.expires_at,
            heartbeat_at=row.heartbeat_at,
            fencing_token=BigInt(row.fencing_token),
        )


@strawberry.type(description="One lease of a job and what came of it.")
class JobAttempt:
    number: int = strawberry.field(description="Counts every lease of the job, and never repeats.")
    fencing_token: BigInt
    is_counted: bool = strawberry.field(description="False where it was handed back and costs nothing.")
    owner: str
    started_at: datetime
    finished_at: datetime | None
    outcome: AttemptOutcome | None = strawberry.field(description="Null while it runs.")
    error: JobError | None

    @classmethod
    def from_row(cls, row: AttemptRow) -> "JobAttempt":
        return cls(
            number=row.fencing_token,
            fencing_token=BigInt(row.fencing_token),
            is_counted=row.is_counted,
            owner=row.owner,
            started_at=row.started_at,
            finished_at=row.finished_at,
            outcome=row.outcome,
            error=None if row.error is None else JobError.from_row(row.error),
        )


@strawberry.type(description="A piece of work that is asked for once and done in the background.")
class Job(Node):
    row: strawberry.Private[JobSnapshot]
    kind: str
    queue: str
    priority: int = strawberry.field(description="Higher runs first, within its workspace and queue; -100 to 100.")
    state: JobState
    is_terminal: bool
    params: JSON
    result: JSON | None
    error_count: int
    attempt: int = strawberry.field(description="Attempts spent of maxAttempts since the last retry.")
    max_attempts: int
    version: int = strawberry.field(description="Rises with every persisted change, but for one that only extends the lease.")
    idempotency_key: str | None = strawberry.field(description="Null for a job that the service itself asked for.")
    cancel_requested_at: datetime | None
    run_at: datetime
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @strawberry.field
    async def workspace(self, info: Info) -> Annotated["Workspace", strawberry.lazy("tenure.schema.workspaces")]:
        from tenure.schema.workspaces import Workspace  # noqa: PLC0415 - the two types refer to each other

        return Workspace.from_row(present(await info.context.loaders.workspaces.load(self.row.workspace_id)))

    @strawberry.field
    async def actor(self, info: Info) -> Actor:
        return Actor.from_row(present(await info.context.loaders.actors.load(self.row.actor_id)))

    @strawberry.field
    def progress(self) -> JobProgress:
        return JobProgress.from_row(self.row)

    @described("The newest, at most 50; errorCount counts all.")
    def errors(self) -> list[JobError]:
        return [JobError.from_row(error) for error in self.row.errors]

    @described("The newest 50, oldest first.")
    def attempts(self) -> list[JobAttempt]:
        return [JobAttempt.from_row(attempt) for attempt in self.row.attempts]

    @strawberry.field
    def lease(self) -> JobLease | None:
        return None if self.row.lease is None else JobLease.from_row(self.row.lease)

    @classmethod
    def from_row(cls, row: JobSnapshot) -> "Job":
        return cls(
            id=strawberry.ID(str(row.id)),
            row=row,
            kind=row.kind,
            queue=row.queue,
            priority=row.priority,
            state=row.state,
            is_terminal=row.is_terminal,
            params=row.params,
            result=row.result,
            error_count=row.error_count,
            attempt=row.attempt,
            max_attempts=row.max_attempts,
            version=row.version,
            idempotency_key=row.idempotency_key,
            cancel_requested_at=row.cancel_requested_at,
            run_at=row.run_at,
            created_at=row.created_at,
            started_at=row.started_at,
            finished_at=row.finished_at,
        )


@strawberry.type(description="Queued and running are exact; each other is counted to 10,000 at least.")
class JobCounts:
    queued: int
    running: int
    succeeded: int
    failed: int
    cancelled: int
    is_capped: bool = strawberry.field(description="True where one of them stands for 'at least'.")

    @classmethod
    def from_row(cls, row: JobCountsRow) -> "JobCounts":
        return cls(
            queued=row.queued,
            running=row.running,
            succeeded=row.succeeded,
            failed=row.failed,
            cancelled=row.cancelled,
            is_capped=row.is_capped,
        )


@strawberry.type(description="What can be enqueued.")
class JobKind:
    name: str
    description: str
    queue: str
    max_attempts: int
    params_schema: JSON = strawberry.field(description="JSON Schema (draft 2020-12) of params.")

    @classmethod
    def from_kind(cls, kind: Kind, default_max_attempts: int) -> "JobKind":
        return cls(
            name=kind.name,
            description=kind.description,
            queue=kind.queue,
            max_attempts=kind.max_attempts or default_max_attempts,
            params_schema=JSON(kind.params_schema),
        )


@strawberry.input(description="Which jobs; what is absent or null means any, an empty list means none.")
class JobFilter:
    states: list[JobState] | None = strawberry.UNSET
    kinds: list[str] | None = strawberry.UNSET
    queues: list[str] | None = strawberry.UNSET
    actor_ids: list[strawberry.ID] | None = strawberry.UNSET
    created_after: datetime | None = strawberry.UNSET
    created_before: datetime | None = strawberry.UNSET

    def asked(self) -> JobFilterInput:
        return JobFilterInput(
            states=given(self.states),
            kinds=given(self.kinds),
            queues=given(self.queues),
            actor_ids=given(self.actor_ids),
            created_after=given(self.created_after),
            created_before=given(self.created_before),
        )
