"""What people do to a job that exists: cancel and retry. Each is one statement, audited in the same transaction."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text

from tenure.db.engine import Executor
from tenure.db.enqueue import AdmissionLimits, Refused, refusal
from tenure.db.jobs import JobSnapshot

CANCEL = text("SELECT (c.job).*, attempts FROM tenure_cancel(CAST(:job AS uuid), CAST(:actor AS uuid)) AS c")
RETRY = text(
    "SELECT status, refused_by, refused_queue, used, max, (r.job).*, attempts FROM tenure_retry("
    "CAST(:job AS uuid), CAST(:actor AS uuid), CAST(:version AS int), CAST(:max_workspace AS bigint),"
    " CAST(CAST(:queue_limits AS text) AS jsonb)) AS r"
)


async def cancel_job(executor: Executor, job_id: UUID, actor_id: UUID) -> JobSnapshot | None:
    """CANCELLED if it waited, asked to stop if it runs, as it was if it had ended; null where there is none.

    Asking again changes nothing and writes nothing.
    """
    row = (await executor.execute(CANCEL, {"job": job_id, "actor": actor_id})).mappings().one_or_none()
    return None if row is None else JobSnapshot.from_row(row)


@dataclass(frozen=True, slots=True)
class Retried:
    job: JobSnapshot


@dataclass(frozen=True, slots=True)
class NotRetryable:
    """It is not in a state to be retried, or has moved on from the version that was named."""

    job: JobSnapshot


async def retry_job(
    executor: Executor, job_id: UUID, actor_id: UUID, expected_version: int | None, limits: AdmissionLimits
) -> Retried | NotRetryable | Refused | None:
    """Queues a FAILED or CANCELLED job anew, with a fresh attempt budget; null where there is no such job."""
    values = {
        "job": job_id,
        "actor": actor_id,
        "version": expected_version,
        "max_workspace": limits.pending_per_workspace,
        "queue_limits": limits.queues_json(),
    }
    row = (await executor.execute(RETRY, values)).mappings().one_or_none()
    if row is None:
        return None
    match row["status"]:
        case "RETRIED":
            return Retried(JobSnapshot.from_row(row))
        case "NOT_RETRYABLE":
            return NotRetryable(JobSnapshot.from_row(row))
        case _:
            return refusal(row)
