"""The fenced writes of a worker: the outcome of an attempt or of an item, item snapshots, a handler's transactions.

Every one carries (job, token) and holds the job's row lock to its commit. Where the token is no longer the current one
nothing is written, and LeaseLost says so.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from uuid import UUID

from sqlalchemy import text

from tenure.db.engine import Executor
from tenure.db.errors import LeaseLost
from tenure.db.states import JobState, Role


class Ending(StrEnum):
    """How an attempt ended, as tenure_settle takes it."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    RETRY = "RETRY"
    CANCELLED = "CANCELLED"
    RELEASED = "RELEASED"


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of one attempt. `delay_seconds` counts for RETRY only, `result` (JSON text) for SUCCEEDED only."""

    job_id: UUID
    token: int
    ending: Ending
    result: str | None = None
    code: str | None = None
    message: str | None = None
    delay_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Finished:
    """What became of the job; state null where the lease was lost and nothing was written."""

    job_id: UUID
    state: JobState | None
    version: int | None


FINISH = text(
    "SELECT job_id, status, version FROM tenure_finish(CAST(:ids AS uuid[]), CAST(:tokens AS bigint[]),"
    " CAST(:endings AS text[]), CAST(:results AS text[]), CAST(:codes AS text[]), CAST(:messages AS text[]),"
    " CAST(:delays AS double precision[]))"
)


async def finish_jobs(executor: Executor, finishes: Sequence[Finish]) -> list[Finished]:
    """Records the ends of any number of attempts in one statement; each stands alone."""
    values = {
        "ids": [f.job_id for f in finishes],
        "tokens": [f.token for f in finishes],
        "endings": [f.ending.value for f in finishes],
        "results": [f.result for f in finishes],
        "codes": [f.code for f in finishes],
        "messages": [f.message for f in finishes],
        "delays": [f.delay_seconds for f in finishes],
    }
    rows = await executor.execute(FINISH, values)
    return [Finished(r.job_id, None if r.status == "LOST" else JobState(r.status), r.version) for r in rows]


async def fence(executor: Executor, job_id: UUID, token: int) -> None:
    """Holds the job's row to the end of this transaction. Raises LeaseLost. The last statement before COMMIT."""
    held = await executor.scalar(
        text("SELECT tenure_fence(CAST(:job AS uuid), CAST(:token AS bigint))"), {"job": job_id, "token": token}
    )
    if not held:
        raise LeaseLost(f"The lease of job {job_id} with token {token} is lost.")


class Permission(StrEnum):
    """What a checkpoint says."""

    OK = "OK"
    LOST = "LOST"
    CANCELLED = "CANCELLED"
    UNAUTHORIZED = "UNAUTHORIZED"


async def checkpoint(executor: Executor, job_id: UUID, token: int, role: Role) -> Permission:
    """May this lease's holder go on, and may the job's actor still have such a job run? One look, no lock."""
    roles = [r.value for r in Role if r.includes(role)]
    statement = text("SELECT tenure_checkpoint(CAST(:job AS uuid), CAST(:token AS bigint), CAST(:roles AS text[]))")
    found = await executor.scalar(statement, {"job": job_id, "token": token, "roles": roles})
    return Permission(found)


# ---------------------------------------------------------------- items


class ItemOutcome(StrEnum):
    SUCCEEDED = "SUCCEEDED"
    SKIPPED = "SKIPPED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class ItemRow:
    position: int
    key: str


SNAPSHOT_CHUNK = 5_000


async def snapshot_items(executor: Executor, job_id: UUID, token: int, keys: Iterable[str]) -> tuple[int, int]:
    """Makes the keys the job's items, all or none: returns their number and the job's new version.

    Runs in the caller's transaction; the fence comes last, so that writing many does not hold up the job's heartbeat.
    Raises LeaseLost.
    """
    await executor.execute(text("DELETE FROM job_item WHERE job_id = :job"), {"job": job_id})
    total = 0
    rest = iter(keys)
    while chunk := list(islice(rest, SNAPSHOT_CHUNK)):
        await executor.execute(
            text(
                "INSERT INTO job_item (job_id, position, key) SELECT CAST(:job AS uuid), CAST(:first AS int) + u.n, u.key"
                " FROM unnest(CAST(:keys AS text[])) WITH ORDINALITY AS u(key, n)"
            ),
            {"job": job_id, "first": total, "keys": chunk},
        )
        total += len(chunk)
    version = await executor.scalar(
        text(
            "UPDATE job SET items_total = :total, progress_total = :total, succeeded = 0, skipped = 0, failed = 0,"
            " version = version + 1"
            " WHERE id = :job AND fencing_token = :token AND state = 'RUNNING' RETURNING version"
        ),
        {"job": job_id, "token": token, "total": total},
    )
    if version is None:
        raise LeaseLost(f"The lease of job {job_id} with token {token} is lost.")
    return total, int(version)


async def pending_items(executor: Executor, job_id: UUID, *, after: int, limit: int) -> list[ItemRow]:
    """The next items without an outcome, in order."""
    rows = await executor.execute(
        text(
            "SELECT position, key FROM job_item WHERE job_id = :job AND position > :after AND outcome IS NULL"
            " ORDER BY position LIMIT :limit"
        ),
        {"job": job_id, "after": after, "limit": limit},
    )
    return [ItemRow(row.position, row.key) for row in rows]


async def settle_item(
    executor: Executor,
    job_id: UUID,
    token: int,
    position: int,
    outcome: ItemOutcome,
    code: str | None = None,
    message: str | None = None,
) -> int:
    """Records an item's outcome with the job's counters, and returns the job's version. Raises LeaseLost.

    The last statement of its transaction.
    """
    statement = text(
        "SELECT tenure_settle_item(CAST(:job AS uuid), CAST(:token AS bigint), CAST(:position AS int),"
        " CAST(:outcome AS text), CAST(:code AS text), CAST(:message AS text))"
    )
    values = {
        "job": job_id,
        "token": token,
        "position": position,
        "outcome": outcome.value,
        "code": code,
        "message": message,
    }
    version = await executor.scalar(statement, values)
    if version is None:
        raise LeaseLost(f"The lease of job {job_id} with token {token} is lost.")
    return int(version)


@dataclass(frozen=True, slots=True)
class ItemCounts:
    succeeded: int
    skipped: int
    failed: int


async def read_item_counts(executor: Executor, job_id: UUID) -> ItemCounts:
    """The job's counters. Raises LeaseLost where the job is gone."""
    row = (
        await executor.execute(text("SELECT succeeded, skipped, failed FROM job WHERE id = :job"), {"job": job_id})
    ).one_or_none()
    if row is None:
        raise LeaseLost(f"Job {job_id} does not exist.")
    return ItemCounts(row.succeeded, row.skipped, row.failed)
