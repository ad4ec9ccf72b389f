"""Claims: order, turns, kinds, pauses, and plans that do not walk the table."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest
from sqlalchemy import text

from tenure.db.claim import Beat, BeatStatus, ClaimCursor, claim_jobs, heartbeat
from tenure.db.engine import Database
from tenure.db.jobs import JobSnapshot
from tenure.db.outcome import Ending, Finish, finish_jobs
from tenure.db.states import JobState
from tests.db.steps import created, drift
from tests.factories import Seed, seed_workspace

FILL = """
INSERT INTO job (id, workspace_id, actor_id, kind, queue, lane_number, priority, state, params, max_attempts, run_at,
  created_at, finished_at)
SELECT gen_random_uuid(), :workspace, :actor, 'test.noop', 'bulk', n, 0, :state, '{}', 3, clock_timestamp(),
  clock_timestamp(), CASE :state WHEN 'SUCCEEDED' THEN clock_timestamp() END
FROM generate_series(CAST(:first AS int), CAST(:last AS int)) AS n
"""


async def fill(seed: Seed, state: JobState, first: int, last: int) -> None:
    await seed.execute(FILL, workspace=seed.workspace_id, actor=seed.actor_id, state=state.value, first=first, last=last)


async def claim_from(seed: Seed, limit: int, cursor: ClaimCursor) -> tuple[list[JobSnapshot], ClaimCursor]:
    return await seed.database.run(
        lambda c: claim_jobs(c, owner="w", kinds=["test.noop"], limit=limit, lease_seconds=60, cursor=cursor)
    )


async def test_a_claim_leases_the_job(seed: Seed) -> None:
    job = await seed.job()
    (claimed,) = await seed.claim(owner="worker-9", lease=30)
    now = await seed.scalar("SELECT clock_timestamp()")
    stored = await seed.read(job.id)
    assert claimed.lease is not None
    assert claimed.lease == stored.lease
    assert claimed.lease.owner == "worker-9"
    assert timedelta(seconds=20) < claimed.lease.expires_at - now <= timedelta(seconds=30)
    assert (claimed.state, claimed.fencing_token, claimed.attempt, claimed.version) == (JobState.RUNNING, 1, 1, 2)
    (attempt,) = stored.attempts
    assert (attempt.fencing_token, attempt.owner, attempt.finished_at, attempt.outcome) == (1, "worker-9", None, None)
    assert await drift(seed.database) == 0


async def test_by_priority_then_time(seed: Seed) -> None:
    first = await seed.job()
    hour = timedelta(hours=1)
    low = await seed.job(priority=-100, run_at=first.created_at - 9 * hour)
    early = await seed.job(run_at=first.created_at - hour)
    high = await seed.job(priority=100)
    other_kind = await seed.job(kind="test.other", priority=50)
    claimed = await seed.claim(9, kinds=["test.noop", "test.other"])
    assert [j.id for j in claimed] == [high.id, other_kind.id, early.id, first.id, low.id]


async def test_kinds_that_are_not_asked_for_stay(seed: Seed) -> None:
    await seed.job(kind="test.other", priority=100)
    mine = await seed.job()
    assert [j.id for j in await seed.claim(10)] == [mine.id]
    assert await seed.claim(10, kinds=[]) == []


async def test_a_delayed_job_waits_and_does_not_block(seed: Seed) -> None:
    now = (await seed.job(kind="test.clock")).created_at
    for _ in range(5):
        await seed.job(priority=100, run_at=now + timedelta(hours=1))
    due = await seed.job()
    assert [j.id for j in await seed.claim(10)] == [due.id]


async def test_a_paused_lane_is_passed_over(seed: Seed) -> None:
    await seed.job(queue="paused")
    await seed.execute("UPDATE lane SET is_paused = true WHERE queue = 'paused'")
    open_job = await seed.job(queue="open")
    assert [j.id for j in await seed.claim(10)] == [open_job.id]
    await seed.execute("UPDATE lane SET is_paused = false")
    assert len(await seed.claim(10)) == 1


@pytest.mark.parametrize("limit", [0, 1, 3, 7, 50])
async def test_never_more_than_the_limit(seed: Seed, limit: int) -> None:
    await seed.enqueue(*(seed.new_job(queue=f"q{n % 4}", kind=f"test.{n % 3}", priority=n % 2) for n in range(40)))
    claimed = await seed.claim(limit, kinds=["test.0", "test.1", "test.2"])
    assert len({j.id for j in claimed}) == len(claimed) == min(limit, 40)


async def test_many_claimers_never_share_a_job(seed: Seed) -> None:
    jobs = created(await seed.enqueue(*(seed.new_job(queue=f"q{n % 3}") for n in range(200))))
    taken: list[JobSnapshot] = []

    async def worker(n: int) -> None:
        while found := await seed.claim(7, owner=f"worker-{n}"):
            taken.extend(found)

    await asyncio.gather(*(worker(n) for n in range(10)))
    taken.extend(await seed.claim(200))
    assert Counter(j.id for j in taken) == Counter(j.id for j in jobs)
    assert {j.fencing_token for j in taken} == {1}
    assert await seed.scalar("SELECT count(*) FROM job_attempt") == 200


async def test_a_claim_waits_for_nobody(seed: Seed) -> None:
    held, free = await seed.job(priority=5), await seed.job()
    async with seed.database.transaction() as holder:
        await holder.execute(text("SELECT 1 FROM job WHERE id = :id FOR UPDATE"), {"id": held.id})
        assert [j.id for j in await seed.claim(2)] == [free.id]
    assert [j.id for j in await seed.claim(2)] == [held.id]


async def test_workspaces_take_turns(database: Database, seed: Seed) -> None:
    """A backlog does not hold up another's single job."""
    await seed.enqueue(*(seed.new_job() for _ in range(500)))
    small = [await seed_workspace(database, f"small-{n}") for n in range(3)]
    singles = {(await s.job()).id for s in small}
    assert singles <= {j.id for j in await seed.claim(4)}
    single = await small[0].job()
    cursor, seen = ClaimCursor(), []
    for _ in range(2):
        jobs, cursor = await claim_from(seed, 1, cursor)
        seen += [j.id for j in jobs]
    assert single.id in seen


async def test_a_big_claim_takes_the_rest_from_the_backlog(database: Database, seed: Seed) -> None:
    await seed.enqueue(*(seed.new_job() for _ in range(100)))
    other = await seed_workspace(database, "other")
    await other.enqueue(*(other.new_job() for _ in range(5)))
    by_workspace = Counter(j.workspace_id for j in await seed.claim(40))
    assert by_workspace == {seed.workspace_id: 35, other.workspace_id: 5}


async def test_idle_lanes_in_front_do_not_starve_the_last_one(seed: Seed) -> None:
    """A claim looks at 1,000 lanes at most; the cursor goes on from there although nothing was found."""
    idle = FILL.replace("'bulk'", "'a' || n").replace("clock_timestamp(),\n", "clock_timestamp() + interval '1 day',\n", 1)
    values = {"workspace": seed.workspace_id, "actor": seed.actor_id, "state": "QUEUED", "first": 1, "last": 2500}
    await seed.execute(idle, **values)
    job = await seed.job(queue="z")
    cursor, claims = ClaimCursor(), 0
    found: list[JobSnapshot] = []
    while not found:
        found, cursor = await claim_from(seed, 1, cursor)
        claims += 1
        assert claims <= 4
    assert found[0].id == job.id


async def scans(seed: Seed) -> tuple[int, int]:
    """Rows of job and of lane read by sequential scans."""
    async with seed.database.statement() as connection:
        await connection.execute(text("SELECT pg_stat_force_next_flush()"))
        await connection.execute(text("SELECT 1"))
        row = await connection.execute(
            text("SELECT sum(seq_tup_read) FILTER (WHERE relname = 'job'),"
                 " sum(seq_tup_read) FILTER (WHERE relname = 'job_attempt') FROM pg_stat_user_tables")
        )  # fmt: skip
        job, attempt = row.one()
        return int(job), int(attempt)


@pytest.mark.parametrize("analyzed", [False, True])
async def test_no_hot_statement_walks_the_table(database_url: str, analyzed: bool) -> None:
    """Small first, so that the plans are cached for an empty table; then large, with and without statistics."""
    database = Database(database_url, pool_size=1)
    seed = await seed_workspace(database, "acme")
    await seed.execute("ALTER TABLE job SET (autovacuum_enabled = off)")

    async def cycle(count: int) -> None:
        jobs = await seed.claim(count)
        assert len(jobs) == count
        beats = [Beat(j.id, j.fencing_token, {"succeeded": 1}) for j in jobs]
        assert {b.status for b in await database.run(lambda c: heartbeat(c, beats, 60))} == {BeatStatus.OK}
        ends = [Finish(j.id, j.fencing_token, Ending.SUCCEEDED, result="{}") for j in jobs]
        assert {f.state for f in await database.run(lambda c: finish_jobs(c, ends))} == {JobState.SUCCEEDED}

    try:
        for _ in range(7):
            await seed.job()
            await cycle(1)
        await fill(seed, JobState.SUCCEEDED, 1, 20_000)
        await fill(seed, JobState.QUEUED, 20_001, 40_000)
        await seed.execute(
            "INSERT INTO lane (workspace_id, queue) VALUES (:w, 'bulk') ON CONFLICT DO NOTHING", w=seed.workspace_id
        )
        if analyzed:
            await seed.execute("ANALYZE job")
        before = await scans(seed)
        for count in (1, 10, 100):
            await cycle(count)
        assert await scans(seed) == before
    finally:
        await database.dispose()
