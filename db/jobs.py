"""Reads of jobs. A snapshot is read in one statement: row and attempts belong to one version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, func, literal_column, select, text, tuple_

from tenure.db.engine import Executor
from tenure.db.models import Job, Lane
from tenure.db.states import AttemptOutcome, JobState

COUNT_CAP = 10_000
"""Ended jobs are counted to here; a count above it would cost more than it tells."""


@dataclass(frozen=True, slots=True)
class JobErrorRow:
    at: datetime
    attempt: int
    code: str
    message: str
    item_key: str | None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "JobErrorRow":
        return cls(datetime.fromisoformat(value["at"]), value["attempt"], value["code"], value["message"], value["itemKey"])


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One lease of a job. Its number is its token."""

    fencing_token: int
    owner: str
    started_at: datetime
    finished_at: datetime | None
    outcome: AttemptOutcome | None
    error: JobErrorRow | None

    @property
    def is_counted(self) -> bool:
        return self.outcome != AttemptOutcome.RELEASED

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "AttemptRow":
        return cls(
            fencing_token=value["fencing_token"],
            owner=value["owner"],
            started_at=datetime.fromisoformat(value["started_at"]),
            finished_at=datetime.fromisoformat(value["finished_at"]) if value["finished_at"] else None,
            outcome=AttemptOutcome(value["outcome"]) if value["outcome"] else None,
            error=JobErrorRow.from_json(value["error"]) if value["error"] else None,
        )


@dataclass(frozen=True, slots=True)
class LeaseRow:
    owner: str
    expires_at: datetime
    heartbeat_at: datetime
    fencing_token: int


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """A job at one version. Two snapshots of one version are equal but for the lease's times."""

    id: UUID
    workspace_id: UUID
    actor_id: UUID
    kind: str
    queue: str
    priority: int
    state: JobState
    params: Any
    progress_total: int | None
    succeeded: int
    skipped: int
    failed: int
    progress_message: str | None
    items_total: int | None
    result: Any
    errors: list[JobErrorRow]
    error_count: int
    attempt: int
    max_attempts: int
    fencing_token: int
    attempts: list[AttemptRow]
    lease: LeaseRow | None
    version: int
    idempotency_key: str | None
    cancel_requested_at: datetime | None
    run_at: datetime
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def is_terminal(self) -> bool:
        return self.state.is_terminal

    @classmethod
    def from_row(cls, row: Mapping[Any, Any]) -> "JobSnapshot":
        lease = None
        if row["lease_owner"] is not None:
            lease = LeaseRow(row["lease_owner"], row["lease_expires_at"], row["heartbeat_at"], row["fencing_token"])
        return cls(
            **{name: row[name] for name in PLAIN_COLUMNS},
            state=JobState(row["state"]),
            params=row["params"],
            result=row["result"],
            errors=[JobErrorRow.from_json(e) for e in row["errors"]],
            attempts=[AttemptRow.from_json(a) for a in row.get("attempts") or ()],
            lease=lease,
        )


PLAIN_COLUMNS = (
    "id",
    "workspace_id",
    "actor_id",
    "kind",
    "queue",
    "priority",
    "progress_total",
    "succeeded",
    "skipped",
    "failed",
    "progress_message",
    "items_total",
    "error_count",
    "attempt",
    "max_attempts",
    "fencing_token",
    "version",
    "idempotency_key",
    "cancel_requested_at",
    "run_at",
    "created_at",
    "started_at",
    "finished_at",
)


ATTEMPTS: ColumnElement[Any] = literal_column("tenure_attempts(job.id)").label("attempts")


async def read_jobs(executor: Executor, ids: Sequence[UUID]) -> dict[UUID, JobSnapshot]:
    """The jobs that exist of those asked for."""
    statement = text(
        "SELECT job.*, tenure_attempts(job.id) AS attempts"
        " FROM unnest(CAST(:ids AS uuid[])) AS asked(id) JOIN job ON job.id = asked.id"
    )
    rows = await executor.execute(statement, {"ids": list(ids)})
    return {row["id"]: JobSnapshot.from_row(row) for row in rows.mappings()}


async def read_job(executor: Executor, job_id: UUID) -> JobSnapshot | None:
    return (await read_jobs(executor, [job_id])).get(job_id)


async def read_versions(executor: Executor, ids: Sequence[UUID]) -> dict[UUID, int]:
    """The versions alone, for the poll that heals lost notifications."""
    statement = text("SELECT job.id, job.version FROM unnest(CAST(:ids AS uuid[])) AS asked(id) JOIN job ON job.id = asked.id")
    rows = await executor.execute(statement, {"ids": list(ids)})
    return {row.id: row.version for row in rows}


# ---------------------------------------------------------------- lists


class JobOrder(StrEnum):
    CREATED_AT_DESC = "CREATED_AT_DESC"
    CREATED_AT_ASC = "CREATED_AT_ASC"
    FINISHED_AT_DESC = "FINISHED_AT_DESC"


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Null means any; an empty list means none."""

    states: Sequence[JobState] | None = None
    kinds: Sequence[str] | None = None
    queues: Sequence[str] | None = None
    actor_ids: Sequence[UUID] | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        found: list[ColumnElement[bool]] = []
        if self.states is not None:
            found.append(Job.state.in_([s.value for s in self.states]))
        if self.kinds is not None:
            found.append(Job.kind.in_(self.kinds))
        if self.queues is not None:
            found.append(Job.queue.in_(self.queues))
        if self.actor_ids is not None:
            found.append(Job.actor_id.in_(self.actor_ids))
        if self.created_after is not None:
            found.append(Job.created_at > self.created_after)
        if self.created_before is not None:
            found.append(Job.created_at < self.created_before)
        return found


@dataclass(frozen=True, slots=True)
class JobPosition:
    """A place in a list of jobs: the sort key of one row. `at` only in the order by end."""

    id: UUID
    at: datetime | None = None


def position_of(job: JobSnapshot, order: JobOrder) -> JobPosition:
    return JobPosition(job.id, job.finished_at if order is JobOrder.FINISHED_AT_DESC else None)


async def list_jobs(
    executor: Executor,
    workspace_id: UUID,
    *,
    limit: int,
    job_filter: JobFilter | None = None,
    order: JobOrder = JobOrder.CREATED_AT_DESC,
    after: JobPosition | None = None,
    before: JobPosition | None = None,
    backward: bool = False,
) -> list[JobSnapshot]:
    """Up to `limit` jobs between two positions, in the list's order; with `backward` the last ones instead of the first.

    The keys are (created, id) by the time-ordered id alone, or (finished_at, id): no row is skipped or repeated while
    others are enqueued.
    """
    by_end = order is JobOrder.FINISHED_AT_DESC
    descending = order is not JobOrder.CREATED_AT_ASC
    keys = (Job.finished_at, Job.id) if by_end else (Job.id,)
    statement = select(Job.__table__, ATTEMPTS).where(Job.workspace_id == workspace_id)
    if by_end:
        statement = statement.where(Job.finished_at.is_not(None))
    if job_filter is not None:
        statement = statement.where(*job_filter.conditions())
    for position, forward in ((after, True), (before, False)):
        if position is not None:
            values = (position.at, position.id) if by_end else (position.id,)
            left, right = tuple_(*keys), tuple_(*values)
            statement = statement.where(left < right if forward == descending else left > right)
    ascending = descending == backward
    statement = statement.order_by(*(key.asc() if ascending else key.desc() for key in keys)).limit(limit)
    rows = (await executor.execute(statement)).mappings().all()
    jobs = [JobSnapshot.from_row(dict(row)) for row in rows]
    return jobs[::-1] if backward else jobs


@dataclass(frozen=True, slots=True)
class JobCountsRow:
    queued: int
    running: int
    succeeded: int
    failed: int
    cancelled: int
    is_capped: bool = field(default=False)


async def count_jobs(executor: Executor, workspace_id: UUID, job_filter: JobFilter | None = None) -> JobCountsRow:
    """Jobs by state: queued and running exactly, ended ones to COUNT_CAP. One statement, so one moment."""
    conditions = job_filter.conditions() if job_filter is not None else []

    def counted(state: JobState, cap: int | None) -> Any:
        inner: Select[Any] = select(literal_column("1")).where(
            and_(Job.workspace_id == workspace_id, Job.state == literal_column(f"'{state.value}'"), *conditions)
        )
        if cap is not None:
            inner = inner.limit(cap)
        return select(func.count()).select_from(inner.subquery()).scalar_subquery()

    running = counted(JobState.RUNNING, None)
    queued = counted(JobState.QUEUED, None)
    if not conditions:  # the admission counter knows it without a walk over the backlog
        pending = select(Lane.pending).where(Lane.workspace_id == workspace_id, Lane.queue == "*").scalar_subquery()
        queued = func.coalesce(pending, 0) - running
    ended = [counted(s, COUNT_CAP + 1) for s in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)]
    row = (await executor.execute(select(queued, running, *ended))).one()
    counts = [int(n) for n in row]
    ended_counts = [min(n, COUNT_CAP) for n in counts[2:]]
    return JobCountsRow(
        queued=counts[0],
        running=counts[1],
        succeeded=ended_counts[0],
        failed=ended_counts[1],
        cancelled=ended_counts[2],
        is_capped=any(n > COUNT_CAP for n in counts[2:]),
    )
