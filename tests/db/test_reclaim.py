"""Reclaim: what an expired lease leads to, and that only an expired one is taken."""

import pytest
from sqlalchemy import text

from tenure.db.claim import Beat, heartbeat
from tenure.db.commands import cancel_job
from tenure.db.states import AttemptOutcome, JobState
from tests.db.steps import drift, expire, reclaim
from tests.factories import Seed


async def test_an_expired_job_is_queued_again(seed: Seed) -> None:
    job = await seed.running_job()
    await expire(seed, job)
    (moved,) = await reclaim(seed)
    after = await seed.read(job.id)
    assert (moved.job_id, moved.state, moved.version) == (job.id, JobState.QUEUED, job.version + 1)
    assert (after.state, after.attempt, after.fencing_token, after.lease) == (JobState.QUEUED, 1, 1, None)
    assert after.attempts[0].outcome is AttemptOutcome.LOST
    assert [e.code for e in after.errors] == ["lease_expired"]
    (again,) = await seed.claim()
    assert (again.fencing_token, again.attempt) == (2, 2)


async def test_the_last_attempt_lost_fails_the_job(seed: Seed) -> None:
    job = await seed.running_job(max_attempts=1)
    await expire(seed, job)
    (moved,) = await reclaim(seed)
    assert moved.state is JobState.FAILED
    assert (await seed.read(job.id)).errors[-1].code == "lease_expired"
    assert await seed.actions(job.id) == ["job.queued", "job.failed"]
    assert await drift(seed.database) == 0


@pytest.mark.parametrize("attempts", [1, 3])
async def test_a_lost_job_whose_cancel_was_asked_is_cancelled(seed: Seed, attempts: int) -> None:
    job = await seed.running_job(max_attempts=attempts)
    await seed.database.run(lambda c: cancel_job(c, job.id, seed.actor_id))
    await expire(seed, job)
    (moved,) = await reclaim(seed)
    assert moved.state is JobState.CANCELLED
    assert await seed.actions(job.id) == ["job.queued", "job.cancel_requested", "job.cancelled"]
    assert await drift(seed.database) == 0


@pytest.mark.guarantee(2)
async def test_g2_a_live_lease_is_left_alone(seed: Seed) -> None:
    await seed.running_job()
    assert await reclaim(seed) == []


@pytest.mark.guarantee(2)
async def test_g2_a_lease_that_is_being_revived_is_left_alone(seed: Seed) -> None:
    job = await seed.running_job()
    await expire(seed, job)
    async with seed.database.transaction() as worker:
        await heartbeat(worker, [Beat(job.id, job.fencing_token)], 60)
        assert await reclaim(seed) == []
    assert await reclaim(seed) == []
    assert (await seed.read(job.id)).fencing_token == job.fencing_token


@pytest.mark.guarantee(2)
async def test_g2_a_reclaim_that_rolls_back_leaves_the_lease(seed: Seed) -> None:
    job = await seed.running_job()
    await expire(seed, job)
    async with seed.database.transaction() as taker:
        await taker.execute(text("SELECT * FROM tenure_reclaim(10)"))
        await taker.rollback()
    before = await seed.read(job.id)
    assert before.state is JobState.RUNNING


async def test_no_more_than_the_limit(seed: Seed) -> None:
    for _ in range(5):
        await expire(seed, await seed.running_job())
    async with seed.database.statement() as connection:
        rows = (await connection.execute(text("SELECT * FROM tenure_reclaim(2)"))).all()
    assert len(rows) == 2
    assert len(await reclaim(seed)) == 3
