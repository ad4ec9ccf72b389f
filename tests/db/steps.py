"""Moves that several of the tests in this folder make, and the invariants that they count."""

from typing import Any

from sqlalchemy import text

from tenure.db.claim import Moved, reclaim_expired
from tenure.db.engine import Database
from tenure.db.enqueue import Enqueued, EnqueueOutcome, Refused
from tenure.db.jobs import JobSnapshot
from tenure.db.outcome import Ending, Finish, Finished, finish_jobs
from tests.factories import Seed

DRIFT = text("""
WITH pending AS (SELECT * FROM job WHERE state IN ('QUEUED', 'RUNNING'))
SELECT
  (SELECT count(*) FROM lane AS l WHERE l.pending <> (
     SELECT count(*) FROM pending AS p WHERE p.workspace_id = l.workspace_id AND l.queue IN (p.queue, '*')))
  + (SELECT count(*) FROM lane_actor AS l WHERE l.pending <> (
     SELECT count(*) FROM pending AS p
     WHERE p.workspace_id = l.workspace_id AND l.queue = p.queue AND l.actor_id = p.actor_id))
  + abs((SELECT CASE max_pending WHEN 0 THEN 1000000000000 ELSE max_pending END FROM installation)
     - (SELECT sum(remaining) FROM admission_shard) - (SELECT count(*) FROM pending))
""")


async def drift(database: Database) -> int:
    """How far the admission counters are from what the job rows say."""
    async with database.statement() as connection:
        return int(await connection.scalar(DRIFT) or 0)


async def finish(seed: Seed, job: JobSnapshot, ending: Ending = Ending.SUCCEEDED, **changes: Any) -> Finished:
    values: dict[str, Any] = {"result": "{}" if ending is Ending.SUCCEEDED else None, **changes}
    if ending in (Ending.FAILED, Ending.RETRY):
        values = {"code": "broken", "message": "It broke.", **values}
    record = Finish(job.id, job.fencing_token, ending, **values)
    (done,) = await seed.database.run(lambda c: finish_jobs(c, [record]))
    return done


async def expire(seed: Seed, job: JobSnapshot) -> None:
    await seed.execute("UPDATE job SET lease_expires_at = clock_timestamp() - interval '1 second' WHERE id = :id", id=job.id)


async def reclaim(seed: Seed) -> list[Moved]:
    return await seed.database.run(reclaim_expired)


async def take_over(seed: Seed, job: JobSnapshot) -> JobSnapshot:
    """The job in another worker's hands, after its lease ran out."""
    await expire(seed, job)
    await reclaim(seed)
    (taken,) = await seed.claim(kinds=[job.kind], owner="worker-2")
    assert taken.id == job.id
    return taken


def created(outcomes: list[EnqueueOutcome]) -> list[JobSnapshot]:
    return [o.job for o in outcomes if isinstance(o, Enqueued) and not o.replayed]


def refused(outcomes: list[EnqueueOutcome]) -> list[Refused]:
    return [o for o in outcomes if isinstance(o, Refused)]
