"""Leases: heartbeats that hold them, takeovers that end them, shutdowns that give them back."""

import asyncio
import threading
import time
from typing import Any

import pytest
from sqlalchemy import text

from tenure import JobContext, LeaseLost, SyncJobContext, kind
from tenure.db.states import AttemptOutcome, JobState
from tests.factories import Seed
from tests.workers.conftest import StartWorker

SHORT: dict[str, Any] = {"lease_seconds": 1.5, "heartbeat_seconds": 0.2}
TAKE_OVER = "UPDATE job SET fencing_token = fencing_token + 1, version = version + 1 WHERE id = :id"


async def test_a_handler_that_blocks_the_loop_keeps_its_lease(seed: Seed, start_worker: StartWorker) -> None:
    @kind("t.block")
    async def block(ctx: JobContext) -> None:
        deadline = time.monotonic() + 2.5
        while time.monotonic() < deadline:
            pass

    worker = await start_worker(block, **SHORT)
    job = await worker.ended((await seed.job(kind="t.block")).id)
    assert (job.state, job.fencing_token) == (JobState.SUCCEEDED, 1)


@pytest.mark.guarantee(2)
async def test_g2_a_worker_whose_lease_was_taken_over_writes_nothing(seed: Seed, start_worker: StartWorker) -> None:
    started, refused = asyncio.Event(), asyncio.Event()

    @kind("t.taken")
    async def taken(ctx: JobContext) -> dict[str, str]:
        async for item in ctx.items(["a", "b"]):
            started.set()
            try:
                await go.wait()
                await item.succeed()
            except LeaseLost:
                refused.set()
                raise
        return {"stale": "result"}

    go = asyncio.Event()
    worker = await start_worker(taken)
    job = await seed.job(kind="t.taken")
    await started.wait()
    await seed.execute(TAKE_OVER, id=job.id)
    before = await seed.read(job.id)
    go.set()
    await refused.wait()
    await worker.stop()
    after = await seed.read(job.id)
    assert after == before  # not even the graceful release touches what is another's


@pytest.mark.guarantee(2)
async def test_g2_a_heartbeat_that_is_refused_stops_the_handler(seed: Seed, start_worker: StartWorker) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    @kind("t.stopped")
    async def handler(ctx: JobContext) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    await start_worker(handler, **SHORT)
    job = await seed.job(kind="t.stopped")
    await started.wait()
    await seed.execute(TAKE_OVER, id=job.id)
    await stopped.wait()
    assert (await seed.read(job.id)).state is JobState.RUNNING  # the one who took it over


@pytest.mark.guarantee(2)
async def test_g2_handlers_stop_by_themselves_when_heartbeats_fail_for_a_lease(
    seed: Seed, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    @kind("t.partitioned")
    async def handler(ctx: JobContext) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    job = await seed.job(kind="t.partitioned")
    worker = await start_worker(handler, **{**SHORT, "poll_seconds": 60})  # nobody reclaims it
    await started.wait()
    assert worker.worker._heartbeat is not None
    monkeypatch.setattr(worker.worker._heartbeat, "_url", "postgresql://nobody@127.0.0.1:1/none")
    await seed.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tenure heartbeat'"
        " AND datname = current_database()"
    )
    await stopped.wait()
    found = await seed.read(job.id)
    assert (found.state, found.attempts[0].outcome) == (JobState.RUNNING, None)  # nothing was written


@pytest.mark.guarantee(10)
async def test_g10_a_transaction_commits_only_under_the_lease(seed: Seed, start_worker: StartWorker) -> None:
    outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @kind("t.transaction")
    async def handler(ctx: JobContext) -> None:
        try:
            async with ctx.transaction() as session:
                await session.execute(
                    text("INSERT INTO course (workspace_id, slug, title) VALUES (:w, 'x', 'x')"), {"w": seed.workspace_id}
                )
                await seed.execute(TAKE_OVER, id=ctx.job_id)
        except LeaseLost:
            outcome.set_result("lost")
            raise
        outcome.set_result("committed")

    await start_worker(handler)
    await seed.job(kind="t.transaction")
    assert await outcome == "lost"
    assert await seed.scalar("SELECT count(*) FROM course") == 0


@pytest.mark.guarantee(10)
async def test_g10_succeed_ends_the_job_in_the_same_commit(seed: Seed, start_worker: StartWorker) -> None:
    @kind("t.succeed")
    async def handler(ctx: JobContext) -> None:
        async with ctx.transaction() as session:
            await session.execute(
                text("INSERT INTO course (workspace_id, slug, title) VALUES (:w, 'x', 'x')"), {"w": seed.workspace_id}
            )
            await ctx.progress(message="last words")
            await ctx.succeed({"made": 1})
        raise RuntimeError("after the end")  # changes nothing any more

    worker = await start_worker(handler)
    job = await worker.ended((await seed.job(kind="t.succeed")).id)
    assert (job.state, job.result, job.progress_message) == (JobState.SUCCEEDED, {"made": 1}, "last words")
    await worker.stop()
    assert await seed.read(job.id) == job
    assert await seed.scalar("SELECT count(*) FROM course") == 1


async def test_an_exception_rolls_back_transaction_and_item(seed: Seed, start_worker: StartWorker) -> None:
    seen: list[str] = []

    @kind("t.rollback")
    async def handler(ctx: JobContext) -> dict[str, int]:
        async for item in ctx.items(["a", "b", "c"]):
            seen.append(item.key)
            async with item.transaction() as session:
                await session.execute(
                    text("INSERT INTO course (workspace_id, slug, title) VALUES (:w, :s, 'x')"),
                    {"w": seed.workspace_id, "s": item.key},
                )
                if seen == ["a", "b"]:
                    raise OSError
        return {"done": (await ctx.counts()).succeeded}

    worker = await start_worker(handler)
    job = await worker.ended((await seed.job(kind="t.rollback")).id)
    assert (job.state, job.result, job.attempt) == (JobState.SUCCEEDED, {"done": 3}, 2)
    assert seen == ["a", "b", "b", "c"]
    assert await seed.scalar("SELECT count(*) FROM course") == 3
    assert await seed.scalar("SELECT count(*) FROM job_item") == 0


async def test_a_graceful_stop_lets_handlers_finish(seed: Seed, start_worker: StartWorker) -> None:
    started, go = asyncio.Event(), asyncio.Event()

    @kind("t.finish")
    async def handler(ctx: JobContext) -> None:
        started.set()
        await go.wait()

    worker = await start_worker(handler)
    job = await seed.job(kind="t.finish")
    await started.wait()
    worker.worker.stop()
    go.set()
    await worker.task
    assert (await seed.read(job.id)).state is JobState.SUCCEEDED


async def test_a_stop_releases_what_does_not_finish_and_costs_no_attempt(seed: Seed, start_worker: StartWorker) -> None:
    started = asyncio.Event()

    @kind("t.release")
    async def handler(ctx: JobContext) -> None:
        started.set()
        await asyncio.Event().wait()

    worker = await start_worker(handler, shutdown_grace_seconds=0)
    job = await seed.job(kind="t.release")
    await started.wait()
    await worker.stop()
    released = await seed.read(job.id)
    assert (released.state, released.attempt, released.fencing_token) == (JobState.QUEUED, 0, 1)
    assert [(a.outcome, a.is_counted) for a in released.attempts] == [(AttemptOutcome.RELEASED, False)]
    assert released.run_at == job.run_at


async def test_a_thread_that_hangs_does_not_hold_up_the_stop(seed: Seed, start_worker: StartWorker) -> None:
    started, release = threading.Event(), threading.Event()

    @kind("t.hang")
    def handler(ctx: SyncJobContext) -> None:
        started.set()
        release.wait(60)

    worker = await start_worker(handler, shutdown_grace_seconds=0)
    job = await seed.job(kind="t.hang")
    await asyncio.to_thread(started.wait)
    try:
        await worker.stop()
        assert (await seed.read(job.id)).state is JobState.QUEUED
    finally:
        release.set()


@pytest.mark.guarantee(8)
async def test_g8_a_cancel_is_seen_within_a_heartbeat_without_any_hint(seed: Seed, start_worker: StartWorker) -> None:
    seen = asyncio.Event()

    @kind("t.watch")
    async def handler(ctx: JobContext) -> None:
        while not ctx.is_cancel_requested:
            await asyncio.sleep(0)
        seen.set()
        await ctx.checkpoint()

    worker = await start_worker(handler, **SHORT)
    job = await seed.job(kind="t.watch")
    await worker.until(job.id, lambda j: j.state is JobState.RUNNING)
    await seed.cancel(job.id)  # straight in the database: nobody sends a hint
    await seen.wait()
    assert (await worker.ended(job.id)).state is JobState.CANCELLED


@pytest.mark.guarantee(12)
async def test_g12_jobs_are_found_and_cancels_seen_with_every_hint_lost(
    seed: Seed, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    @kind("t.deaf")
    async def handler(ctx: JobContext) -> None:
        while True:
            await ctx.checkpoint()

    monkeypatch.setattr("tenure.workers.runtime.decode_hints", lambda _: [])
    worker = await start_worker(handler)
    job = await seed.job(kind="t.deaf")
    await worker.until(job.id, lambda j: j.state is JobState.RUNNING)
    await seed.cancel(job.id)
    assert (await worker.ended(job.id)).state is JobState.CANCELLED


async def test_an_expired_lease_is_reclaimed_and_the_job_run_again(seed: Seed, start_worker: StartWorker) -> None:
    @kind("t.again")
    async def handler(ctx: JobContext) -> dict[str, int]:
        return {"attempt": ctx.attempt}

    job = await seed.running_job(kind="t.again", lease=0.0)
    worker = await start_worker(handler)
    ended = await worker.ended(job.id)
    assert (ended.state, ended.result, ended.fencing_token) == (JobState.SUCCEEDED, {"attempt": 2}, 2)
    assert [a.outcome for a in ended.attempts] == [AttemptOutcome.LOST, AttemptOutcome.SUCCEEDED]
    assert ended.errors[0].code == "lease_expired"
