"""Heartbeats: leases extended without waiting, progress saved, cancels seen, and no word of a lost lease that is not sure."""

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest
from sqlalchemy import text

from tenure.db.claim import Beat, BeatResult, BeatStatus, heartbeat
from tenure.db.commands import cancel_job
from tenure.db.jobs import JobSnapshot
from tests.db.steps import drift, expire, finish, reclaim, take_over
from tests.factories import Seed


async def beat(seed: Seed, *beats: Beat, lease: float = 60) -> list[BeatResult]:
    return await seed.database.run(lambda c: heartbeat(c, beats, lease))


def of(job: JobSnapshot, **progress: object) -> Beat:
    return Beat(job.id, job.fencing_token, progress or None)


@pytest.mark.guarantee(3)
async def test_g3_a_pure_heartbeat_makes_no_version(seed: Seed) -> None:
    job = await seed.running_job(lease=1)
    (result,) = await beat(seed, of(job))
    assert result == BeatResult(job.id, BeatStatus.OK, False, job.version)
    after = await seed.read(job.id)
    assert job.lease is not None
    assert after.lease is not None
    assert after.lease.expires_at > job.lease.expires_at
    assert replace(after, lease=None, attempts=[]) == replace(job, lease=None, attempts=[])


@pytest.mark.guarantee(3)
async def test_g3_a_progress_makes_one_version(seed: Seed) -> None:
    job = await seed.running_job()
    (result,) = await beat(seed, of(job, total=10, succeeded=3, skipped=2, failed=1, message="half"))
    assert result == BeatResult(job.id, BeatStatus.OK, False, job.version + 1)
    after = await seed.read(job.id)
    assert (after.progress_total, after.succeeded, after.skipped, after.failed) == (10, 3, 2, 1)
    assert after.progress_message == "half"
    await beat(seed, of(job, succeeded=4))
    later = await seed.read(job.id)
    assert (later.progress_total, later.succeeded, later.skipped, later.progress_message) == (10, 4, 2, "half")
    assert later.version == job.version + 2


@pytest.mark.guarantee(2)
async def test_g2_ok_lost_and_unknown_in_one_statement_without_waiting(seed: Seed) -> None:
    jobs = [await seed.running_job() for _ in range(4)]
    free, taken, held, ended = jobs
    await take_over(seed, taken)
    await finish(seed, ended)
    missing = Beat(uuid4(), 1)
    async with seed.database.transaction() as holder:
        await holder.execute(text("SELECT 1 FROM job WHERE id = :id FOR UPDATE"), {"id": held.id})
        results = await beat(seed, *(of(j, succeeded=7) for j in jobs), missing)
    assert {r.job_id: r.status for r in results} == {
        free.id: BeatStatus.OK,
        taken.id: BeatStatus.LOST,
        held.id: BeatStatus.UNKNOWN,
        ended.id: BeatStatus.LOST,
        missing.job_id: BeatStatus.LOST,
    }
    assert [(await seed.read(j.id)).succeeded for j in jobs] == [7, 0, 0, 0]


@pytest.mark.guarantee(2)
async def test_g2_a_row_in_the_middle_of_a_takeover_is_unknown_then_lost(seed: Seed) -> None:
    job = await seed.running_job()
    await expire(seed, job)
    async with seed.database.transaction() as taker:
        await taker.execute(text("SELECT * FROM tenure_reclaim(10)"))
        (during,) = await beat(seed, of(job, succeeded=9))
        assert during.status is BeatStatus.UNKNOWN
    (after,) = await beat(seed, of(job, succeeded=9))
    assert after.status is BeatStatus.LOST
    assert (await seed.read(job.id)).succeeded == 0


@pytest.mark.guarantee(2)
async def test_g2_a_late_heartbeat_revives_a_lease_nobody_took(seed: Seed) -> None:
    job = await seed.running_job()
    await expire(seed, job)
    (result,) = await beat(seed, of(job))
    assert result.status is BeatStatus.OK
    assert await reclaim(seed) == []


@pytest.mark.guarantee(8)
async def test_g8_a_heartbeat_brings_the_cancel(seed: Seed) -> None:
    job = await seed.running_job()
    await seed.database.run(lambda c: cancel_job(c, job.id, seed.actor_id))
    (result,) = await beat(seed, of(job))
    assert result.is_cancel_requested
    async with seed.database.transaction() as holder:
        await holder.execute(text("SELECT 1 FROM job WHERE id = :id FOR UPDATE"), {"id": job.id})
        (unknown,) = await beat(seed, of(job))
    assert (unknown.status, unknown.is_cancel_requested) == (BeatStatus.UNKNOWN, True)


@pytest.mark.guarantee(8)
async def test_g8_a_cancel_is_not_lost_to_a_save(seed: Seed) -> None:
    job = await seed.running_job()
    async with seed.database.transaction() as saver:
        await heartbeat(saver, [of(job, succeeded=5)], 60)
        cancel = asyncio.create_task(seed.database.run(lambda c: cancel_job(c, job.id, seed.actor_id)))
        await seed.until_somebody_waits()
    cancelled = await cancel
    assert cancelled is not None
    assert cancelled.cancel_requested_at is not None
    assert cancelled.succeeded == 5
    async with seed.database.transaction() as canceller:
        await cancel_job(canceller, job.id, seed.actor_id)
    (result,) = await beat(seed, of(job, succeeded=6))
    after = await seed.read(job.id)
    assert result.is_cancel_requested
    assert (after.succeeded, after.cancel_requested_at) == (6, cancelled.cancel_requested_at)


async def test_heartbeats_are_updates_in_place(seed: Seed) -> None:
    """HOT: they touch no index."""
    job = await seed.running_job()
    for n in range(20):
        await beat(seed, of(job, succeeded=n))
    async with seed.database.statement() as connection:
        await connection.execute(text("SELECT pg_stat_force_next_flush()"))
    total, hot = await seed.scalar("SELECT ARRAY[n_tup_upd, n_tup_hot_upd] FROM pg_stat_user_tables WHERE relname = 'job'")
    assert hot >= total - 3
    assert await drift(seed.database) == 0


async def test_no_job_no_beat(seed: Seed) -> None:
    assert await beat(seed) == []
