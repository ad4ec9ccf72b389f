"""Admission is exact: at most `max` come in, and all of `max`, whatever runs at the same time."""

import asyncio
import random
from collections import Counter

import pytest
from sqlalchemy import text

from tenure.db.commands import cancel_job, retry_job
from tenure.db.enqueue import AdmissionLimits, EnqueueOutcome, NewJob, QueueLimits, Refused, set_installation_limit
from tenure.db.limits import set_limit
from tenure.db.outcome import Ending
from tenure.db.states import AdmissionLimit
from tests.db.steps import created, drift, finish, reclaim, refused
from tests.factories import ADMIN_LIMITS, Seed, seed_workspace

NONE = AdmissionLimits(pending_per_workspace=0)


async def at_once(seed: Seed, jobs: list[NewJob], limits: AdmissionLimits) -> list[EnqueueOutcome]:
    outcomes = await asyncio.gather(*(seed.enqueue(j, limits=limits) for j in jobs))
    return [o for (o,) in outcomes]


async def deadlocks(seed: Seed) -> int:
    return int(await seed.scalar("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"))


async def limit(seed: Seed, kind: AdmissionLimit, maximum: int, queue: str | None = None) -> None:
    async with seed.database.transaction() as session:
        await set_limit(session, seed.slug, kind, maximum, queue)


@pytest.mark.guarantee(5)
async def test_g5_two_hundred_at_once_in_the_admin_queue(seed: Seed) -> None:
    actors = [seed.actor_id, *[await seed.member(f"m{n}@acme.example") for n in range(3)]]
    jobs = [seed.new_job(queue="admin", actor_id=actors[n % 4]) for n in range(200)]
    outcomes = await at_once(seed, jobs, AdmissionLimits(1000, {"admin": ADMIN_LIMITS}))
    by_actor = Counter(j.actor_id for j in created(outcomes))
    assert by_actor.total() == 10
    assert max(by_actor.values()) <= 3
    for refusal in refused(outcomes):
        assert refusal.queue == "admin"
        assert refusal.used == refusal.max
        assert refusal.retry_after_seconds is None
    assert await drift(seed.database) == 0


@pytest.mark.guarantee(5)
async def test_g5_two_hundred_at_once_in_a_workspace(seed: Seed) -> None:
    outcomes = await at_once(seed, [seed.new_job(queue=f"q{n % 3}") for n in range(200)], AdmissionLimits(10))
    assert len(created(outcomes)) == 10
    assert set(refused(outcomes)) == {Refused(AdmissionLimit.PENDING_PER_WORKSPACE, None, 10, 10, None)}
    assert await drift(seed.database) == 0


@pytest.mark.guarantee(5)
async def test_g5_the_installation_over_five_workspaces(seed: Seed) -> None:
    seeds = [seed, *[await seed_workspace(seed.database, f"w{n}") for n in range(4)]]
    await seed.database.run(lambda c: set_installation_limit(c, 10))
    outcomes = await at_once(seed, [seeds[n % 5].new_job() for n in range(200)], NONE)
    assert len(created(outcomes)) == 10
    assert set(refused(outcomes)) == {Refused(AdmissionLimit.PENDING_GLOBAL, None, 10, 10, None)}
    assert await drift(seed.database) == 0
    assert await deadlocks(seed) == 0


@pytest.mark.guarantee(5)
async def test_g5_a_batch_takes_what_is_left_of_the_installation(seed: Seed) -> None:
    await seed.database.run(lambda c: set_installation_limit(c, 37))
    outcomes = await asyncio.gather(*(seed.enqueue(*(seed.new_job() for _ in range(10)), limits=NONE) for _ in range(6)))
    assert sum(len(created(o)) for o in outcomes) == 37
    assert await drift(seed.database) == 0


@pytest.mark.guarantee(5)
async def test_g5_twenty_four_hours(seed: Seed) -> None:
    limits = AdmissionLimits(0, {"daily": QueueLimits(created_per_day=5)})
    outcomes = await at_once(seed, [seed.new_job(queue="daily") for _ in range(40)], limits)
    assert len(created(outcomes)) == 5
    for refusal in refused(outcomes):
        assert (refusal.limit, refusal.queue, refusal.max) == (AdmissionLimit.CREATED_PER_DAY, "daily", 5)
        assert refusal.retry_after_seconds is not None
        assert 86_300 < refusal.retry_after_seconds <= 86_400
    for job in await seed.claim(5):
        await finish(seed, job)
    assert refused(await seed.enqueue(seed.new_job(queue="daily"), limits=limits))  # ended jobs count too


@pytest.mark.guarantee(5)
async def test_g5_twenty_four_hours_roll(seed: Seed) -> None:
    limits = AdmissionLimits(0, {"daily": QueueLimits(created_per_day=3)})
    await seed.enqueue(*(seed.new_job(queue="daily") for _ in range(3)), limits=limits)
    age = "UPDATE job SET created_at = clock_timestamp() - make_interval(hours => :hours) WHERE lane_number = :n"
    await seed.execute(age, hours=25, n=1)
    await seed.execute(age, hours=20, n=2)
    outcomes = await at_once(seed, [seed.new_job(queue="daily") for _ in range(20)], limits)
    assert len(created(outcomes)) == 1
    for refusal in refused(outcomes):
        assert refusal.retry_after_seconds == pytest.approx(4 * 3600, abs=60)


@pytest.mark.guarantee(5)
async def test_g5_twenty_four_hours_in_one_batch(seed: Seed) -> None:
    limits = AdmissionLimits(0, {"daily": QueueLimits(created_per_day=5)})
    outcomes = await seed.enqueue(*(seed.new_job(queue="daily") for _ in range(12)), limits=limits)
    assert len(created(outcomes)) == 5
    assert [r.retry_after_seconds for r in refused(outcomes)] == pytest.approx([86_400] * 7, abs=60)


@pytest.mark.guarantee(5)
async def test_g5_twenty_four_hours_raised_and_lowered(seed: Seed) -> None:
    def limits(maximum: int) -> AdmissionLimits:
        return AdmissionLimits(0, {"daily": QueueLimits(created_per_day=maximum)})

    for maximum, expected in ((2, 2), (5, 3), (3, 0), (0, 20), (21, 0), (26, 1)):
        batch = [seed.new_job(queue="daily") for _ in range(20)]
        assert len(created(await seed.enqueue(*batch, limits=limits(maximum)))) == expected, maximum


@pytest.mark.guarantee(5)
async def test_g5_a_workspaces_own_limits_come_first(seed: Seed) -> None:
    defaults = AdmissionLimits(1, {"q": QueueLimits(pending_per_workspace=1, pending_per_actor=1, created_per_day=1)})
    await limit(seed, AdmissionLimit.PENDING_PER_WORKSPACE, 5)
    await limit(seed, AdmissionLimit.PENDING_PER_WORKSPACE, 4, "q")
    await limit(seed, AdmissionLimit.PENDING_PER_ACTOR, 3, "q")
    await limit(seed, AdmissionLimit.CREATED_PER_DAY, 2, "q")
    other = await seed_workspace(seed.database, "other")
    batch = [s.new_job(queue="q") for s in (seed, other) for _ in range(10)]
    outcomes = await seed.enqueue(*batch, limits=defaults)
    assert Counter(j.workspace_id for j in created(outcomes)) == {seed.workspace_id: 2, other.workspace_id: 1}
    for kind, expected in (
        (AdmissionLimit.CREATED_PER_DAY, 1),
        (AdmissionLimit.PENDING_PER_ACTOR, 1),
        (AdmissionLimit.PENDING_PER_WORKSPACE, 1),
    ):
        await limit(seed, kind, 0, "q")
        assert len(created(await seed.enqueue(*(seed.new_job(queue="q") for _ in range(9)), limits=defaults))) == expected
    await limit(seed, AdmissionLimit.PENDING_PER_WORKSPACE, 0)
    assert len(created(await seed.enqueue(*(seed.new_job(queue="q") for _ in range(9)), limits=defaults))) == 9


@pytest.mark.guarantee(5)
async def test_g5_a_lowered_limit_says_what_is_used(seed: Seed) -> None:
    await seed.enqueue(*(seed.new_job() for _ in range(5)))
    (refusal,) = refused(await seed.enqueue(seed.new_job(), limits=AdmissionLimits(2)))
    assert (refusal.used, refusal.max) == (5, 2)


@pytest.mark.guarantee(5)
async def test_g5_the_installations_limit_moves(seed: Seed) -> None:
    for maximum, expected in ((3, 3), (5, 2), (2, 0), (6, 1), (0, 9), (10, 0), (16, 1)):
        await seed.database.run(lambda c, m=maximum: set_installation_limit(c, m))  # type: ignore[misc]
        outcomes = await seed.enqueue(*(seed.new_job() for _ in range(9)), limits=NONE)
        assert len(created(outcomes)) == expected, maximum
        assert await drift(seed.database) == 0


async def test_the_installations_limit_set_by_many_at_once(seed: Seed) -> None:
    await asyncio.gather(*(seed.database.run(lambda c, m=n % 3 * 50: set_installation_limit(c, m)) for n in range(30)))  # type: ignore[misc]
    assert await drift(seed.database) == 0


@pytest.mark.guarantee(5)
async def test_g5_every_end_gives_back_exactly_one_place(seed: Seed) -> None:
    """A shard chosen anew for every row once gave back none, or two."""
    await seed.enqueue(*(seed.new_job() for _ in range(40)))
    for job in await seed.claim(40):
        await finish(seed, job)
        assert await drift(seed.database) == 0


@pytest.mark.guarantee(5)
async def test_g5_nothing_drifts_and_nothing_deadlocks_under_mixed_work(seed: Seed) -> None:
    """Near all limits at once: batches, ends, cancels, retries, reclaims and a moving limit, over four workspaces."""
    seeds = [seed, *[await seed_workspace(seed.database, f"w{n}") for n in range(3)]]
    limits = AdmissionLimits(12, {"a": QueueLimits(pending_per_workspace=8, pending_per_actor=6)})
    before = await deadlocks(seed)
    await seed.database.run(lambda c: set_installation_limit(c, 30))

    async def enqueue(chance: random.Random) -> None:
        for _ in range(12):
            size = chance.randint(1, 12)
            batch = [chance.choice(seeds).new_job(f"k{chance.randint(0, 40)}", queue=chance.choice("ab")) for _ in range(size)]
            await seed.enqueue(*batch, limits=limits)
            pending = "SELECT count(*) FROM job WHERE state IN ('QUEUED', 'RUNNING') {} GROUP BY {} ORDER BY 1 DESC LIMIT 1"
            assert (await seed.scalar(pending.format("", "1=1")) or 0) <= 30
            assert (await seed.scalar(pending.format("", "workspace_id")) or 0) <= 12
            assert (await seed.scalar(pending.format("AND queue = 'a'", "workspace_id")) or 0) <= 8

    async def work(chance: random.Random) -> None:
        for _ in range(15):
            for job in await seed.claim(4, lease=chance.choice((0.0, 60.0))):
                ending = chance.choice((Ending.SUCCEEDED, Ending.FAILED, Ending.RETRY, Ending.RELEASED))
                await finish(seed, job, ending)
            await reclaim(seed)

    async def command(chance: random.Random) -> None:
        for _ in range(20):
            async with seed.database.statement() as connection:
                job_id = await connection.scalar(text("SELECT id FROM job ORDER BY random() LIMIT 1"))
                if job_id is not None and chance.random() < 0.5:
                    await cancel_job(connection, job_id, seed.actor_id)
                elif job_id is not None:
                    await retry_job(connection, job_id, seed.actor_id, None, limits)

    chances = [random.Random(n) for n in range(10)]
    await asyncio.gather(
        *(enqueue(c) for c in chances[:5]), *(work(c) for c in chances[5:8]), *(command(c) for c in chances[8:])
    )
    assert await drift(seed.database) == 0
    assert await deadlocks(seed) == before
