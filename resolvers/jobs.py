"""Reading jobs, cancelling and retrying them. To enqueue is a matter of its own: see `enqueueing`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from tenure.db.commands import NotRetryable as NotRetryableOutcome
from tenure.db.commands import Retried, cancel_job, retry_job
from tenure.db.enqueue import Refused
from tenure.db.jobs import JobCountsRow, JobFilter, JobOrder, JobPosition, JobSnapshot, count_jobs, list_jobs, position_of
from tenure.db.notify import Hint
from tenure.db.states import JobState, Role
from tenure.resolvers.context import Context, Kind, require_role
from tenure.resolvers.errors import AdmissionRejected, NotFound, NotRetryable
from tenure.resolvers.paging import Listing, PageArguments, Slice, decode_id, decode_instant, paginate
from tenure.resolvers.values import is_storable, parse_id

NO_SUCH_JOB = "There is no such job."


@dataclass(frozen=True, slots=True)
class JobFilterInput:
    """As the client gave it: ids and names may be those of nothing."""

    states: Sequence[JobState] | None = None
    kinds: Sequence[str] | None = None
    queues: Sequence[str] | None = None
    actor_ids: Sequence[str] | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None

    def parsed(self) -> JobFilter:
        """The filter without what can match nothing; a list that was given stays given."""
        return JobFilter(
            states=self.states,
            kinds=_storable(self.kinds),
            queues=_storable(self.queues),
            actor_ids=None if self.actor_ids is None else [i for i in map(parse_id, self.actor_ids) if i is not None],
            created_after=self.created_after,
            created_before=self.created_before,
        )


def _storable(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else [name for name in names if is_storable(name)]


# ---------------------------------------------------------------- reads


async def read_visible_job(context: Context, job_id: str) -> JobSnapshot | None:
    """The job, where it is in the caller's workspace."""
    parsed = parse_id(job_id)
    if parsed is None or context.principal is None:
        return None
    job = await context.loaders.jobs.load(parsed)
    return job if job is not None and context.may_see(job.workspace_id) else None


async def jobs_page(
    context: Context, workspace_id: UUID, arguments: PageArguments, job_filter: JobFilterInput | None, order: JobOrder
) -> Slice[JobSnapshot]:
    """The workspace's jobs that pass the filter. Raises BadRequest."""
    parsed = None if job_filter is None else job_filter.parsed()
    listing: Listing[JobSnapshot, JobPosition] = Listing(
        name=f"jobs.{order}.{workspace_id.hex}",
        position_of=lambda job: position_of(job, order),
        encode=lambda place: [place.id.hex] if place.at is None else [place.id.hex, place.at.isoformat()],
        decode=_decode_by_end if order is JobOrder.FINISHED_AT_DESC else _decode_by_id,
    )

    async def fetch(
        *, limit: int, after: JobPosition | None, before: JobPosition | None, backward: bool
    ) -> Sequence[JobSnapshot]:
        return await context.database.run(
            lambda c: list_jobs(
                c,
                workspace_id,
                limit=limit,
                job_filter=parsed,
                order=order,
                after=after,
                before=before,
                backward=backward,
            )
        )

    return await paginate(listing, arguments, fetch)


def _decode_by_id(values: list[Any]) -> JobPosition:
    (job_id,) = values
    return JobPosition(decode_id(job_id))


def _decode_by_end(values: list[Any]) -> JobPosition:
    job_id, at = values
    return JobPosition(decode_id(job_id), decode_instant(at))


async def job_counts(context: Context, workspace_id: UUID, job_filter: JobFilterInput | None) -> JobCountsRow:
    parsed = None if job_filter is None else job_filter.parsed()
    return await context.database.run(lambda connection: count_jobs(connection, workspace_id, parsed))


def list_kinds(context: Context) -> list[Kind]:
    """All kinds that this installation knows. Raises Unauthenticated."""
    context.signed_in()
    return list(context.kinds)


# ---------------------------------------------------------------- commands


async def _job_to_command(context: Context, job_id: str) -> tuple[JobSnapshot, UUID]:
    """The job and the caller's actor. Raises Unauthenticated, NotFound, Forbidden, in this order."""
    principal = context.signed_in()
    job = await read_visible_job(context, job_id)
    if job is None:
        raise NotFound(NO_SUCH_JOB)
    require_role(principal, Role.OPERATOR)
    return job, principal.actor.id


async def cancel(context: Context, job_id: str) -> JobSnapshot:
    """The job as it stands: cancelled, asked to stop, or unchanged. Raises NotFound, Forbidden."""
    known, actor_id = await _job_to_command(context, job_id)
    job = await context.database.run(lambda connection: cancel_job(connection, known.id, actor_id))
    if job is None:
        raise NotFound(NO_SUCH_JOB)
    context.hints.send(Hint(job.id, job.version))
    return job


async def retry(context: Context, job_id: str, expected_version: int | None) -> JobSnapshot:
    """The job, queued anew. Raises NotFound, Forbidden, NotRetryable, AdmissionRejected."""
    known, actor_id = await _job_to_command(context, job_id)
    # Once: after a lost connection a second try could meet its own first and call the job not retryable.
    outcome = await context.database.run(
        lambda connection: retry_job(connection, known.id, actor_id, expected_version, context.limits), tries=1
    )
    match outcome:
        case Retried(job):
            context.hints.send(Hint(job.id, job.version, is_ready=job.state is JobState.QUEUED))
            return job
        case NotRetryableOutcome(job):
            raise NotRetryable(job)
        case Refused():
            raise AdmissionRejected(outcome)
        case None:
            raise NotFound(NO_SUCH_JOB)
