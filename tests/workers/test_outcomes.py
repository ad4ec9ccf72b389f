"""What an attempt's end makes of a job."""

import asyncio
import threading
from typing import Any

import pytest
from pydantic import BaseModel

from tenure import JobContext, Permanent, RetryLater, SyncJobContext, kind
from tenure.db.people import SYSTEM_ACTOR_ID
from tenure.db.states import AttemptOutcome, JobState, Role
from tenure.workers.backoff import Backoff
from tests.factories import Seed
from tests.workers.conftest import StartWorker


class Params(BaseModel):
    n: int = 0


async def test_a_result_is_kept_digit_for_digit(seed: Seed, start_worker: StartWorker) -> None:
    @kind("t.echo")
    async def echo(ctx: JobContext, params: Params) -> dict[str, Any]:
        assert (ctx.workspace_id, ctx.actor_id, ctx.attempt) == (seed.workspace_id, seed.actor_id, 1)
        return {"n": params.n}

    worker = await start_worker(echo)
    job = await worker.ended((await seed.job(kind="t.echo", params={"n": 9007199254740993})).id)
    assert (job.state, job.result, job.lease) == (JobState.SUCCEEDED, {"n": 9007199254740993}, None)
    assert [a.outcome for a in job.attempts] == [AttemptOutcome.SUCCEEDED]
    assert await seed.actions(job.id) == ["job.queued", "job.succeeded"]


async def test_a_failure_is_retried_and_the_last_one_stays(seed: Seed, start_worker: StartWorker) -> None:
    @kind("t.fail")
    async def fail(ctx: JobContext) -> None:
        raise ValueError("secret \x00 text")

    worker = await start_worker(fail)
    job = await worker.ended((await seed.job(kind="t.fail")).id)
    assert (job.state, job.attempt, job.error_count, job.fencing_token) == (JobState.FAILED, 3, 3, 3)
    assert {(e.code, e.message) for e in job.errors} == {("handler_error", "The handler raised ValueError.")}
    assert [e.attempt for e in job.errors] == [1, 2, 3]


async def test_a_handlers_own_os_error_is_no_outage(seed: Seed, start_worker: StartWorker) -> None:
    @kind("t.file")
    async def read_file(ctx: JobContext) -> None:
        async with ctx.transaction():
            raise FileNotFoundError

    worker = await start_worker(read_file)
    job = await worker.ended((await seed.job(kind="t.file", max_attempts=1)).id)
    assert (job.errors[0].code, job.errors[0].message) == ("handler_error", "The handler raised FileNotFoundError.")


async def test_permanent_fails_at_once_with_a_storable_message(seed: Seed, start_worker: StartWorker) -> None:
    @kind("t.permanent")
    async def permanent(ctx: JobContext) -> None:
        raise Permanent("no_such_report", "nul \x00, lone \ud800, " + "x" * 1000)

    worker = await start_worker(permanent)
    job = await worker.ended((await seed.job(kind="t.permanent")).id)
    assert (job.state, job.attempt) == (JobState.FAILED, 1)
    (error,) = job.errors
    assert error.code == "no_such_report"
    assert error.message.startswith("nul \ufffd, lone \ufffd, xxx")
    assert len(error.message) == 500


async def test_retry_later_waits_and_spends_an_attempt(seed: Seed, start_worker: StartWorker) -> None:
    @kind("t.later")
    async def later(ctx: JobContext) -> None:
        raise RetryLater(3600)

    worker = await start_worker(later)
    job = await worker.until((await seed.job(kind="t.later")).id, lambda j: j.error_count == 1)
    assert (job.state, job.attempt, job.errors[0].code) == (JobState.QUEUED, 1, "retry_later")
    assert 3500 < (job.run_at - job.created_at).total_seconds() < 3700


@pytest.mark.parametrize("value", [object(), float("nan"), {"a": "\x00"}, {"a": "\ud800"}, "x" * 1024 * 1024])
async def test_a_result_that_cannot_be_stored_fails_the_job(seed: Seed, start_worker: StartWorker, value: object) -> None:
    @kind("t.bad")
    async def bad(ctx: JobContext) -> object:
        return value

    worker = await start_worker(bad)
    job = await worker.ended((await seed.job(kind="t.bad")).id)
    assert (job.state, job.attempt, job.errors[0].code) == (JobState.FAILED, 1, "invalid_result")


async def test_an_async_handler_is_cut_off_at_its_timeout(seed: Seed, start_worker: StartWorker) -> None:
    cancelled = []

    @kind("t.slow", timeout=0.05, max_attempts=1)
    async def slow(ctx: JobContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)

    worker = await start_worker(slow)
    job = await worker.ended((await seed.job(kind="t.slow", max_attempts=1)).id)
    assert (job.state, job.errors[0].code, cancelled) == (JobState.FAILED, "timeout", [True])


async def test_a_thread_that_timed_out_keeps_its_slot(seed: Seed, start_worker: StartWorker) -> None:
    release, raised = threading.Event(), threading.Event()

    @kind("t.thread", timeout=0.05)
    def thread(ctx: SyncJobContext) -> None:
        release.wait(30)
        try:
            ctx.checkpoint()
        except BaseException:
            raised.set()
            raise

    @kind("t.other")
    async def other(ctx: JobContext) -> None:
        return None

    worker = await start_worker(thread, other, concurrency=1)
    job = await worker.ended((await seed.job(kind="t.thread", max_attempts=1)).id)
    assert job.errors[0].code == "timeout"
    waiting = await seed.job(kind="t.other")
    for _ in range(20):  # some polls of the worker
        assert (await seed.read(waiting.id)).state is JobState.QUEUED
    release.set()
    await worker.ended(waiting.id)
    assert raised.is_set()


async def test_a_plain_function_has_the_same_context(seed: Seed, start_worker: StartWorker) -> None:
    @kind("t.sync")
    def sync(ctx: SyncJobContext, params: Params) -> dict[str, Any]:
        ctx.progress(message="going")
        for item in ctx.items(["a", "b", "c"]):
            match item.key:
                case "a":
                    item.succeed()
                case "b":
                    item.skip()
                case _:
                    with item.transaction() as session:
                        assert session.scalar(_text("SELECT 1")) == 1
                        item.fail("odd", "was odd")
        with ctx.transaction():
            ctx.succeed({"thread": threading.current_thread().name.startswith("handler-")})
        return {}

    worker = await start_worker(sync)
    job = await worker.ended((await seed.job(kind="t.sync")).id)
    assert (job.state, job.result) == (JobState.SUCCEEDED, {"thread": True})
    assert (job.succeeded, job.skipped, job.failed, job.progress_message) == (1, 1, 1, "going")


async def test_progress_is_saved_with_the_end(seed: Seed, start_worker: StartWorker) -> None:
    @kind("t.progress")
    async def progress(ctx: JobContext) -> None:
        for n in range(10):
            await ctx.progress(total=10, succeeded=n + 1, message=f"step {n}")

    worker = await start_worker(progress)
    job = await worker.ended((await seed.job(kind="t.progress")).id)
    assert (job.progress_total, job.succeeded, job.progress_message) == (10, 10, "step 9")
    assert job.version <= 6  # coalesced: claimed, a few saves, ended


async def test_progress_is_seen_while_the_handler_blocks_the_loop_no_longer(seed: Seed, start_worker: StartWorker) -> None:
    go = asyncio.Event()

    @kind("t.progress")
    async def progress(ctx: JobContext) -> None:
        await ctx.progress(total=2, succeeded=1)
        await go.wait()

    worker = await start_worker(progress)
    job = await seed.job(kind="t.progress")
    seen = await worker.until(job.id, lambda j: j.succeeded == 1)
    assert seen.state is JobState.RUNNING
    go.set()
    await worker.ended(job.id)


async def test_cancel_is_seen_at_a_checkpoint(seed: Seed, start_worker: StartWorker) -> None:
    started, go = asyncio.Event(), asyncio.Event()

    @kind("t.cancel")
    async def cancel(ctx: JobContext) -> None:
        started.set()
        await go.wait()  # not a checkpoint: a cancel does not cut in here
        await ctx.checkpoint()
        raise AssertionError

    worker = await start_worker(cancel)
    job = await seed.job(kind="t.cancel")
    await started.wait()
    await seed.cancel(job.id)
    assert (await seed.read(job.id)).state is JobState.RUNNING
    go.set()
    ended = await worker.ended(job.id)
    assert (ended.state, ended.attempts[0].outcome) == (JobState.CANCELLED, AttemptOutcome.CANCELLED)
    assert await seed.actions(job.id) == ["job.queued", "job.cancel_requested", "job.cancelled"]


@pytest.mark.guarantee(9)
@pytest.mark.parametrize("role", [Role.VIEWER, Role.ADMIN])
async def test_g9_an_actor_without_the_right_does_not_start(seed: Seed, start_worker: StartWorker, role: Role) -> None:
    ran = []

    @kind("t.admin")
    async def handler(ctx: JobContext) -> None:
        ran.append(ctx.job_id)

    job = await seed.job(kind="t.admin")
    await seed.set_member(seed.email, role, is_enabled=role is not Role.ADMIN)
    worker = await start_worker(handler)
    ended = await worker.ended(job.id)
    assert (ended.state, ended.errors[0].code, ran) == (JobState.FAILED, "actor_not_authorized", [])


async def test_the_system_actor_needs_no_membership(seed: Seed, start_worker: StartWorker) -> None:
    @kind("t.system")
    async def handler(ctx: JobContext) -> None:
        return None

    worker = await start_worker(handler)
    job = await seed.job(kind="t.system", actor_id=SYSTEM_ACTOR_ID)
    assert (await worker.ended(job.id)).state is JobState.SUCCEEDED


async def test_a_handler_that_exits_is_a_failure(seed: Seed, start_worker: StartWorker) -> None:
    @kind("t.exit")
    async def leave(ctx: JobContext) -> None:
        raise SystemExit(0)

    @kind("t.exit_thread")
    def leave_thread(ctx: SyncJobContext) -> None:
        raise SystemExit(0)

    worker = await start_worker(leave, leave_thread)
    for name in ("t.exit", "t.exit_thread"):
        job = await worker.ended((await seed.job(kind=name, max_attempts=1)).id)
        assert (job.state, job.errors[0].code) == (JobState.FAILED, "handler_error")


async def test_a_kind_without_a_worker_waits(seed: Seed, start_worker: StartWorker) -> None:
    @kind("t.known")
    async def known(ctx: JobContext) -> None:
        return None

    worker = await start_worker(known)
    unknown = await seed.job(kind="t.unknown")
    await worker.ended((await seed.job(kind="t.known")).id)
    assert (await seed.read(unknown.id)).state is JobState.QUEUED


async def test_no_more_is_leased_than_can_run(seed: Seed, start_worker: StartWorker) -> None:
    go = asyncio.Event()
    running = 0
    most = 0

    @kind("t.slot")
    async def slot(ctx: JobContext) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await go.wait()
        running -= 1

    jobs = [await seed.job(kind="t.slot") for _ in range(6)]
    worker = await start_worker(slot, concurrency=2)
    while running < 2:
        await asyncio.sleep(0)
    assert await seed.scalar("SELECT count(*) FROM job WHERE state = 'RUNNING'") == 2
    go.set()
    for job in jobs:
        await worker.ended(job.id)
    assert most == 2


def test_backoff_grows_jitters_and_is_capped() -> None:
    backoff = Backoff(2, 60)
    for attempt, ceiling in ((1, 2), (2, 4), (5, 32), (6, 60), (1000, 60)):
        delays = [backoff.delay_seconds(attempt) for _ in range(500)]
        assert 0 <= min(delays) < ceiling * 0.1 < ceiling * 0.9 < max(delays) <= ceiling


def _text(sql: str) -> Any:
    from sqlalchemy import text  # noqa: PLC0415

    return text(sql)
