"""Each guard taken out: the scenario that it prevents happens then, and only then.

A scenario returns how often a guarantee was broken. It runs on the functions as they are (0), and with one guard's text
replaced in the test's own database (more than 0), so that none of these tests can pass for the wrong reason.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from tenure.db.claim import Beat, BeatStatus, heartbeat
from tenure.db.enqueue import AdmissionLimits, Enqueued, enqueue_jobs, set_installation_limit
from tenure.db.errors import LeaseLost
from tenure.db.outcome import ItemOutcome, fence, settle_item, snapshot_items
from tenure.db.states import JobState
from tests.db.steps import expire, finish, reclaim, take_over
from tests.factories import LIMITS, Seed

FUNCTIONS = Path(__file__).parent.parent.parent / "migrations" / "sql" / "0001"


@dataclass(frozen=True)
class Guard:
    """A piece of a function's text, and what stands there once it is taken out."""

    function: str
    text: str
    without: str = ""

    async def take_out(self, seed: Seed) -> None:
        source = (FUNCTIONS / f"{self.function}.sql").read_text()
        assert self.text in source
        mutated = source.replace(self.text, self.without).replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
        async with seed.database.statement() as connection:
            await connection.exec_driver_sql(mutated)
        await seed.database.dispose()  # no connection keeps a plan of the old one


Scenario = Callable[[Seed], Awaitable[int]]


async def stale_finish(seed: Seed) -> int:
    stale = await seed.running_job()
    current = await take_over(seed, stale)
    await finish(seed, stale)
    return int((await seed.read(stale.id)).fencing_token != current.fencing_token) + int(
        (await seed.read(stale.id)).state is not JobState.RUNNING
    )


async def stale_heartbeat(seed: Seed) -> int:
    stale = await seed.running_job()
    await take_over(seed, stale)
    beat = Beat(stale.id, stale.fencing_token, {"message": "stale"})
    (result,) = await seed.database.run(lambda c: heartbeat(c, [beat], 60))
    return int(result.status is BeatStatus.OK) + int((await seed.read(stale.id)).progress_message == "stale")


async def stale_item(seed: Seed) -> int:
    stale = await seed.running_job()
    async with seed.database.transaction() as session:
        await snapshot_items(session, stale.id, stale.fencing_token, ["a"])
    await take_over(seed, stale)
    try:
        await seed.database.run(lambda c: settle_item(c, stale.id, stale.fencing_token, 1, ItemOutcome.SUCCEEDED))
    except LeaseLost:
        return 0
    return (await seed.read(stale.id)).succeeded


async def stale_transaction(seed: Seed) -> int:
    stale = await seed.running_job()
    await take_over(seed, stale)
    try:
        async with seed.database.transaction() as session:
            await fence(session, stale.id, stale.fencing_token)
    except LeaseLost:
        return 0
    return 1


async def takeover_during_a_fenced_transaction(seed: Seed) -> int:
    """A reclaim that gets through before the fenced transaction commits would let it commit for a lost lease."""
    job = await seed.running_job()
    await expire(seed, job)
    async with seed.database.transaction() as session:
        await fence(session, job.id, job.fencing_token)
        return len(await reclaim(seed))


async def reclaim_of_a_live_lease(seed: Seed) -> int:
    await seed.running_job()
    return len(await reclaim(seed))


async def one_key_twice(seed: Seed) -> int:
    outcomes = [(await seed.enqueue(seed.new_job("k")))[0] for _ in range(2)]
    created = [o.job.id for o in outcomes if isinstance(o, Enqueued) and not o.replayed]
    return len(created) - 1


async def two_at_once_where_one_may(seed: Seed) -> int:
    """The second decides while the first has not committed: it has to wait for what the first does."""
    one = AdmissionLimits(pending_per_workspace=1)
    for queue in ("default", "other"):  # the counters' rows exist: making them would wait too
        await seed.cancel((await seed.job(queue=queue)).id)
    async with seed.database.transaction() as session:
        await enqueue_jobs(session, [seed.new_job()], one)
        second = asyncio.create_task(seed.enqueue(seed.new_job(actor_id=uuid4(), queue="other"), limits=one))
        await seed.until_somebody_waits()
    await second
    return int(await seed.scalar("SELECT count(*) FROM job WHERE state = 'QUEUED'")) - 1


async def more_than_the_installation_takes(seed: Seed) -> int:
    await seed.database.run(lambda c: set_installation_limit(c, 1))
    for _ in range(5):
        await seed.enqueue(seed.new_job(), limits=LIMITS)
    return int(await seed.scalar("SELECT count(*) FROM job")) - 1


async def a_refusal_that_leaves_its_key(seed: Seed) -> int:
    await seed.enqueue(seed.new_job("k"), limits=AdmissionLimits(pending_per_workspace=1))
    await seed.enqueue(seed.new_job("refused"), limits=AdmissionLimits(pending_per_workspace=1))
    return int(await seed.scalar("SELECT count(*) FROM idempotency_record")) - 1


TOKEN = "j.fencing_token = p_token AND "
GUARDS = [
    pytest.param(
        Guard("finish", "j.fencing_token = u.token AND "), stale_finish, id="token-finish", marks=pytest.mark.guarantee(2)
    ),
    pytest.param(
        Guard("heartbeat", "j.fencing_token = asked.token AND "),
        stale_heartbeat,
        id="token-heartbeat",
        marks=pytest.mark.guarantee(2),
    ),
    pytest.param(Guard("settle_item", TOKEN), stale_item, id="token-item", marks=pytest.mark.guarantee(2)),
    pytest.param(Guard("fence", TOKEN), stale_transaction, id="token-fence", marks=pytest.mark.guarantee(2)),
    pytest.param(
        Guard("fence", " FOR UPDATE"), takeover_during_a_fenced_transaction, id="fence-lock", marks=pytest.mark.guarantee(10)
    ),
    pytest.param(
        Guard("reclaim", " AND j.lease_expires_at < clock_timestamp()"),
        reclaim_of_a_live_lease,
        id="reclaim-condition",
        marks=pytest.mark.guarantee(2),
    ),
    pytest.param(
        Guard("enqueue", "WHEN u.k IS NULL OR i.job_id = u.id THEN", "WHEN true THEN"),
        one_key_twice,
        id="key",
        marks=pytest.mark.guarantee(4),
    ),
    pytest.param(
        Guard("enqueue", "WHERE u.s = 'REFUSED' AND i.workspace_id", "WHERE false AND i.workspace_id"),
        a_refusal_that_leaves_its_key,
        id="refusal-leaves-nothing",
        marks=pytest.mark.guarantee(5),
    ),
    pytest.param(
        Guard("lock_lanes", " FOR UPDATE OF lane"), two_at_once_where_one_may, id="lane-lock", marks=pytest.mark.guarantee(5)
    ),
    pytest.param(
        Guard("take_capacity", "WHERE remaining >= p_need"),
        more_than_the_installation_takes,
        id="shards",
        marks=pytest.mark.guarantee(5),
    ),
]


@pytest.mark.parametrize(("guard", "scenario"), GUARDS)
async def test_the_guard_is_what_prevents_it(seed: Seed, guard: Guard, scenario: Scenario) -> None:
    assert await scenario(seed) == 0
    await seed.execute("TRUNCATE job, job_attempt, job_item, idempotency_record, audit_event, lane, lane_actor")
    await seed.database.run(lambda c: set_installation_limit(c, 10_000))
    await guard.take_out(seed)
    assert await scenario(seed) > 0
