"""Items and fenced transactions: counted once, gone at the end unless they failed, and closed to a stale token."""

import asyncio

import pytest
from sqlalchemy import text

from tenure.db.claim import Moved
from tenure.db.commands import cancel_job
from tenure.db.errors import LeaseLost
from tenure.db.jobs import JobSnapshot
from tenure.db.outcome import Ending, ItemOutcome, fence, pending_items, settle_item, snapshot_items
from tenure.db.states import JobState
from tests.db.steps import expire, finish, reclaim, take_over
from tests.factories import Seed


async def snapshot(seed: Seed, job: JobSnapshot, keys: list[str]) -> int:
    async with seed.database.transaction() as session:
        total, _ = await snapshot_items(session, job.id, job.fencing_token, keys)
    return total


async def settle(seed: Seed, job: JobSnapshot, position: int, outcome: ItemOutcome) -> int:
    code = "bad" if outcome is ItemOutcome.FAILED else None
    return await seed.database.run(lambda c: settle_item(c, job.id, job.fencing_token, position, outcome, code, "It is bad."))


async def rows(seed: Seed, job: JobSnapshot) -> int:
    return int(await seed.scalar("SELECT count(*) FROM job_item WHERE job_id = :job", job=job.id))


@pytest.mark.guarantee(10)
async def test_g10_an_item_counts_once_and_the_walk_resumes_behind_it(seed: Seed) -> None:
    job = await seed.running_job()
    assert await snapshot(seed, job, ["a", "b", "c", "d"]) == 4
    await settle(seed, job, 1, ItemOutcome.SUCCEEDED)
    await settle(seed, job, 2, ItemOutcome.SKIPPED)
    version = await settle(seed, job, 3, ItemOutcome.FAILED)
    assert await settle(seed, job, 3, ItemOutcome.SUCCEEDED) == version  # it has its outcome, and keeps it
    after = await seed.read(job.id)
    assert (after.progress_total, after.succeeded, after.skipped, after.failed) == (4, 1, 1, 1)
    assert after.version == version
    assert [(e.code, e.item_key) for e in after.errors] == [("bad", "c")]
    taken = await take_over(seed, job)
    rest = await seed.database.run(lambda c: pending_items(c, taken.id, after=0, limit=10))
    assert [(i.position, i.key) for i in rest] == [(4, "d")]
    assert (await seed.read(job.id)).succeeded == 1


@pytest.mark.parametrize("ending", [Ending.SUCCEEDED, Ending.FAILED, Ending.CANCELLED])
async def test_an_end_deletes_the_items_that_did_not_fail(seed: Seed, ending: Ending) -> None:
    job = await seed.running_job()
    await snapshot(seed, job, ["a", "b", "c"])
    await settle(seed, job, 1, ItemOutcome.SUCCEEDED)
    await settle(seed, job, 2, ItemOutcome.FAILED)
    await finish(seed, job, ending)
    assert await rows(seed, job) == 1
    after = await seed.read(job.id)
    assert (after.succeeded, after.failed) == (1, 1)


async def test_a_cancel_of_a_waiting_job_deletes_its_items_too(seed: Seed) -> None:
    job = await seed.running_job()
    await snapshot(seed, job, ["a", "b"])
    await finish(seed, job, Ending.RELEASED)
    assert await rows(seed, job) == 2
    await seed.database.run(lambda c: cancel_job(c, job.id, seed.actor_id))
    assert await rows(seed, job) == 0


async def test_a_thousand_failed_items_are_kept(seed: Seed) -> None:
    job = await seed.running_job()
    await snapshot(seed, job, [f"key {n}" for n in range(1003)])
    async with seed.database.transaction() as session:
        for position in range(1, 1004):
            await settle_item(session, job.id, job.fencing_token, position, ItemOutcome.FAILED, "bad", "It is bad.")
    await finish(seed, job)
    after = await seed.read(job.id)
    assert (await rows(seed, job), after.failed, after.error_count, len(after.errors)) == (1000, 1003, 1003, 50)


@pytest.mark.guarantee(2)
async def test_g2_a_stale_token_changes_no_item(seed: Seed) -> None:
    stale = await seed.running_job()
    await snapshot(seed, stale, ["a"])
    await take_over(seed, stale)
    before = await seed.read(stale.id)
    with pytest.raises(LeaseLost):
        await settle(seed, stale, 1, ItemOutcome.SUCCEEDED)
    with pytest.raises(LeaseLost):
        await snapshot(seed, stale, ["x", "y"])
    with pytest.raises(LeaseLost):
        async with seed.database.transaction() as session:
            await fence(session, stale.id, stale.fencing_token)
    assert await seed.read(stale.id) == before
    assert await seed.scalar("SELECT key FROM job_item WHERE job_id = :job AND outcome IS NULL", job=stale.id) == "a"


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("write", ["item", "snapshot", "fence"])
async def test_g2_a_write_that_waits_for_a_takeover_changes_nothing(seed: Seed, write: str) -> None:
    job = await seed.running_job()
    await snapshot(seed, job, ["a"])
    await expire(seed, job)

    async def stale() -> None:
        async with seed.database.transaction() as session:
            match write:
                case "item":
                    await settle_item(session, job.id, job.fencing_token, 1, ItemOutcome.SUCCEEDED)
                case "snapshot":
                    await snapshot_items(session, job.id, job.fencing_token, ["x"])
                case _:
                    await fence(session, job.id, job.fencing_token)

    async with seed.database.transaction() as taker:
        await taker.execute(text("SELECT * FROM tenure_reclaim(10)"))
        writing = asyncio.create_task(stale())
        await seed.until_somebody_waits()
    with pytest.raises(LeaseLost):
        await writing
    after = await seed.read(job.id)
    assert (after.state, after.succeeded, await rows(seed, job)) == (JobState.QUEUED, 0, 1)


@pytest.mark.guarantee(2)
async def test_g2_a_fence_holds_off_the_takeover_until_the_commit(seed: Seed) -> None:
    job = await seed.running_job()
    await expire(seed, job)
    async with seed.database.transaction() as session:
        await session.execute(text("UPDATE workspace SET name = 'fenced'"))
        await fence(session, job.id, job.fencing_token)
        assert await reclaim(seed) == []
    (moved,) = await reclaim(seed)
    assert moved == Moved(job.id, JobState.QUEUED, job.version + 1)
    assert await seed.scalar("SELECT name FROM workspace") == "fenced"
