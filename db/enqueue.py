"""Enqueueing: idempotency, admission, job and audit event in one round trip, any number of jobs at once."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text

from tenure.db.canonical import HASH_ALGORITHM
from tenure.db.engine import Executor
from tenure.db.jobs import JobSnapshot
from tenure.db.states import AdmissionLimit


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """Default limits of one queue in each workspace; 0 means none."""

    pending_per_workspace: int = 0
    pending_per_actor: int = 0
    created_per_day: int = 0


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """The defaults, which `tenure limit set` overrides for one workspace; 0 means none.

    The installation's own limit stands in the database (`set_installation_limit`), since its capacity is shared out there.
    """

    pending_per_workspace: int = 1000
    queues: Mapping[str, QueueLimits] = field(default_factory=dict)

    def queues_json(self) -> str:
        return json.dumps(
            {
                name: {
                    AdmissionLimit.PENDING_PER_WORKSPACE: q.pending_per_workspace,
                    AdmissionLimit.PENDING_PER_ACTOR: q.pending_per_actor,
                    AdmissionLimit.CREATED_PER_DAY: q.created_per_day,
                }
                for name, q in self.queues.items()
            }
        )


@dataclass(frozen=True, slots=True)
class NewJob:
    """What is asked for, already checked. Without a key it is a job that the service itself wants."""

    workspace_id: UUID
    actor_id: UUID
    kind: str
    queue: str
    params: Any
    max_attempts: int
    priority: int = 0
    run_at: datetime | None = None
    idempotency_key: str | None = None
    request_hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The job; `replayed` where the key stood for it already."""

    job: JobSnapshot
    replayed: bool


@dataclass(frozen=True, slots=True)
class Conflict:
    """The key stands for another request."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An admission limit was reached; nothing was written. `queue` is null where the limit holds for all queues."""

    limit: AdmissionLimit
    queue: str | None
    used: int
    max: int
    retry_after_seconds: float | None


EnqueueOutcome = Enqueued | Conflict | Refused

ENQUEUE = text(
    "SELECT ord, status, refused_by, refused_queue, used, max, retry_after, (e.job).*, attempts FROM tenure_enqueue("
    "CAST(:workspaces AS uuid[]), CAST(:actors AS uuid[]), CAST(:kinds AS text[]), CAST(:queues AS text[]),"
    " CAST(:priorities AS int[]), CAST(:params AS text[]), CAST(:run_ats AS timestamptz[]), CAST(:max_attempts AS int[]),"
    " CAST(:keys AS text[]), CAST(:hashes AS bytea[]), CAST(:algorithm AS int), CAST(:max_workspace AS bigint),"
    " CAST(CAST(:queue_limits AS text) AS jsonb)) AS e ORDER BY ord"
)


async def enqueue_jobs(executor: Executor, jobs: Sequence[NewJob], limits: AdmissionLimits) -> list[EnqueueOutcome]:
    """One outcome for each job, in order. Each stands alone: a refused one leaves no trace.

    Safe to run again after a lost connection: the keys turn what was committed into replays.
    """
    if not jobs:
        return []
    values = {
        "workspaces": [j.workspace_id for j in jobs],
        "actors": [j.actor_id for j in jobs],
        "kinds": [j.kind for j in jobs],
        "queues": [j.queue for j in jobs],
        "priorities": [j.priority for j in jobs],
        "params": [json.dumps(j.params, ensure_ascii=False, allow_nan=False) for j in jobs],
        "run_ats": [j.run_at for j in jobs],
        "max_attempts": [j.max_attempts for j in jobs],
        "keys": [j.idempotency_key for j in jobs],
        "hashes": [j.request_hash for j in jobs],
        "algorithm": HASH_ALGORITHM,
        "max_workspace": limits.pending_per_workspace,
        "queue_limits": limits.queues_json(),
    }
    rows = (await executor.execute(ENQUEUE, values)).mappings().all()
    return [_outcome(row) for row in rows]


async def find_replay(
    executor: Executor, workspace_id: UUID, actor_id: UUID, key: str, request_hash: bytes
) -> JobSnapshot | None:
    """The job that the key stands for, if it stands for this very request."""
    statement = text(
        "SELECT job.*, tenure_attempts(job.id) AS attempts FROM idempotency_record AS i JOIN job ON job.id = i.job_id"
        " WHERE i.workspace_id = :workspace AND i.actor_id = :actor AND i.key = :key"
        " AND i.request_hash = :hash AND i.algorithm = :algorithm"
    )
    values = {
        "workspace": workspace_id,
        "actor": actor_id,
        "key": key,
        "hash": request_hash,
        "algorithm": HASH_ALGORITHM,
    }
    row = (await executor.execute(statement, values)).mappings().one_or_none()
    return None if row is None else JobSnapshot.from_row(row)


def _outcome(row: Mapping[Any, Any]) -> EnqueueOutcome:
    match row["status"]:
        case "CREATED" | "EXISTING":
            return Enqueued(JobSnapshot.from_row(row), replayed=row["status"] == "EXISTING")
        case "CONFLICT":
            return Conflict()
        case _:
            return refusal(row)


def refusal(row: Mapping[Any, Any]) -> Refused:
    """The refusal that a row of tenure_enqueue or tenure_retry tells of."""
    return Refused(AdmissionLimit(row["refused_by"]), row["refused_queue"], row["used"], row["max"], row.get("retry_after"))


async def set_installation_limit(executor: Executor, max_pending: int) -> None:
    """Makes this the limit of pending jobs in the whole installation; 0 means none. The process started last decides."""
    await executor.execute(text("SELECT tenure_set_installation_limit(CAST(:max AS bigint))"), {"max": max_pending})
