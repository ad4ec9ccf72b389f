"""Taking leases and keeping them: claim, heartbeat, reclaim. Each takes many jobs in one statement."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import text

from tenure.db.engine import Executor
from tenure.db.jobs import JobSnapshot
from tenure.db.states import JobState

CLAIM = text(
    "SELECT (c.job).*, cursor_workspace, cursor_queue FROM tenure_claim(CAST(:owner AS text), CAST(:kinds AS text[]),"
    " CAST(:limit AS int), CAST(:lease AS double precision), CAST(:workspace AS uuid), CAST(:queue AS text)) AS c"
)
HEARTBEAT_SQL = (
    "SELECT job_id, status, cancel_requested, version FROM tenure_heartbeat({0}::uuid[], {1}::bigint[], {2}::text[],"
    " {3}::double precision)"
)
HEARTBEAT_POSITIONAL = HEARTBEAT_SQL.format("$1", "$2", "$3", "$4")
"""For the heartbeat thread, which has a bare connection of its own."""


@dataclass(frozen=True, slots=True)
class ClaimCursor:
    """Where the worker's next turn among the lanes begins. Kept in the process."""

    workspace_id: UUID | None = None
    queue: str = ""


async def claim_jobs(
    executor: Executor, *, owner: str, kinds: Sequence[str], limit: int, lease_seconds: float, cursor: ClaimCursor
) -> tuple[list[JobSnapshot], ClaimCursor]:
    """Leases up to `limit` due jobs of the kinds, taking turns among the workspaces' queues. Waits for nobody.

    The snapshots' attempts are left out.
    """
    values = {
        "owner": owner,
        "kinds": list(kinds),
        "limit": limit,
        "lease": lease_seconds,
        "workspace": cursor.workspace_id,
        "queue": cursor.queue,
    }
    rows = (await executor.execute(CLAIM, values)).mappings().all()
    if not rows:
        return [], cursor
    last = rows[-1]
    jobs = [JobSnapshot.from_row(row) for row in rows if row["id"] is not None]  # null: nothing for us so far, go on there
    return jobs, ClaimCursor(last["cursor_workspace"], last["cursor_queue"])


class BeatStatus(StrEnum):
    OK = "OK"
    LOST = "LOST"
    UNKNOWN = "UNKNOWN"
    """Another transaction held the row: nothing is known, ask again."""


@dataclass(frozen=True, slots=True)
class Beat:
    """One job's heartbeat. `progress` holds what changed: total, succeeded, skipped, failed, message."""

    job_id: UUID
    token: int
    progress: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class BeatResult:
    job_id: UUID
    status: BeatStatus
    is_cancel_requested: bool
    version: int | None


def heartbeat_arguments(beats: Sequence[Beat], lease_seconds: float) -> tuple[list[Any], list[Any], list[Any], float]:
    """The arguments of HEARTBEAT_POSITIONAL."""
    return (
        [b.job_id for b in beats],
        [b.token for b in beats],
        [None if b.progress is None else json.dumps(b.progress, ensure_ascii=False) for b in beats],
        lease_seconds,
    )


async def heartbeat(executor: Executor, beats: Sequence[Beat], lease_seconds: float) -> list[BeatResult]:
    """Extends all the leases and saves the progress given with them, in one statement."""
    statement = text(
        "SELECT job_id, status, cancel_requested, version FROM tenure_heartbeat(CAST(:ids AS uuid[]),"
        " CAST(:tokens AS bigint[]), CAST(:progress AS text[]), CAST(:lease AS double precision))"
    )
    ids, tokens, progress, lease = heartbeat_arguments(beats, lease_seconds)
    rows = await executor.execute(statement, {"ids": ids, "tokens": tokens, "progress": progress, "lease": lease})
    return [beat_result(row) for row in rows]


def beat_result(row: Any) -> BeatResult:
    return BeatResult(row[0], BeatStatus(row[1]), row[2], row[3])


@dataclass(frozen=True, slots=True)
class Moved:
    """A job that changed its state."""

    job_id: UUID
    state: JobState
    version: int


async def reclaim_expired(executor: Executor, limit: int = 100) -> list[Moved]:
    """Takes back jobs whose lease has expired: QUEUED again, or ended where no attempt is left or a cancel was asked."""
    rows = await executor.execute(
        text("SELECT job_id, state, version FROM tenure_reclaim(CAST(:limit AS int))"), {"limit": limit}
    )
    return [Moved(row.job_id, JobState(row.state), row.version) for row in rows]
