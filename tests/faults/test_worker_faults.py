"""Worker processes that die, stop or are told to go in the middle of a course."""

import signal

import pytest

from tenure.db.states import AttemptOutcome, JobState, Role
from tests.faults.conftest import HELD_AT, PAGES, Course, StartProcess

pytestmark = pytest.mark.e2e
ALL_TAGGED = {"tagged": PAGES, "skipped": 0, "failed": 0}


async def test_a_killed_worker_costs_nothing_but_an_attempt(course: Course, start_worker_process: StartProcess) -> None:
    async with course.held():
        job = await course.tag("a")
        first = start_worker_process()
        before = await course.until_held(job.id)
        done = await course.tagged()
        first.kill()
        start_worker_process()
        await course.until(job.id, lambda j: j.fencing_token == 2)
    ended = await course.ended(job.id)
    assert (ended.state, ended.result, ended.attempt) == (JobState.SUCCEEDED, ALL_TAGGED, 2)
    assert [(a.outcome, a.is_counted) for a in ended.attempts] == [
        (AttemptOutcome.LOST, True),
        (AttemptOutcome.SUCCEEDED, True),
    ]
    assert len(done) == HELD_AT
    assert [p.etag for p in (await course.pages())[:HELD_AT]] == [p.etag for p in done]  # not done again
    assert ended.version > before.version
    assert await course.seed.scalar("SELECT count(*) FROM job_item") == 0


async def test_a_terminated_worker_spends_no_attempt(course: Course, start_worker_process: StartProcess) -> None:
    async with course.held():
        job = await course.tag("a")
        first = start_worker_process()
        await course.until_held(job.id)
        first.signal(signal.SIGTERM)
        assert await first.ended() == 0
        released = await course.seed.read(job.id)
        assert (released.state, released.attempt, released.fencing_token) == (JobState.QUEUED, 0, 1)
    start_worker_process()
    ended = await course.ended(job.id)
    assert (ended.state, ended.result, ended.attempt) == (JobState.SUCCEEDED, ALL_TAGGED, 1)
    assert [(a.outcome, a.is_counted) for a in ended.attempts] == [
        (AttemptOutcome.RELEASED, False),
        (AttemptOutcome.SUCCEEDED, True),
    ]


@pytest.mark.guarantee(2)
async def test_g2_a_stopped_worker_that_goes_on_changes_nothing(course: Course, start_worker_process: StartProcess) -> None:
    async with course.held():
        job = await course.tag("a")
        stopped = start_worker_process()
        await course.until_held(job.id)
        stopped.signal(signal.SIGSTOP)
        start_worker_process()
        await course.until(job.id, lambda j: j.fencing_token == 2)
    ended = await course.ended(job.id)
    pages = await course.pages()
    stopped.signal(signal.SIGCONT)
    await stopped.until_output("LeaseLost")
    stopped.signal(signal.SIGTERM)
    assert await stopped.ended() == 0
    assert (ended.state, ended.result, ended.attempt) == (JobState.SUCCEEDED, ALL_TAGGED, 2)
    assert await course.seed.read(ended.id) == ended
    assert await course.pages() == pages


async def test_cancel_in_mid_course_then_retry(course: Course, start_worker_process: StartProcess) -> None:
    async with course.held():
        job = await course.tag("a")
        start_worker_process()
        await course.until_held(job.id)
        await course.seed.cancel(job.id)
        await course.seed.cancel(job.id)  # writes nothing more
    cancelled = await course.ended(job.id)
    assert cancelled.state is JobState.CANCELLED
    assert cancelled.succeeded in (HELD_AT, HELD_AT + 1)  # it stops at the next page
    assert len(await course.tagged()) == cancelled.succeeded
    assert await course.seed.actions(job.id) == ["job.queued", "job.cancel_requested", "job.cancelled"]
    await course.seed.retry(job.id)
    ended = await course.ended(job.id)
    assert (ended.id, ended.state) == (job.id, JobState.SUCCEEDED)
    assert ended.result == {"tagged": PAGES - cancelled.succeeded, "skipped": cancelled.succeeded, "failed": 0}


@pytest.mark.guarantee(9)
async def test_g9_a_member_disabled_in_mid_course(course: Course, start_worker_process: StartProcess) -> None:
    async with course.held():
        job = await course.tag("a")
        start_worker_process()
        await course.until_held(job.id)
        await course.seed.set_member(course.seed.email, Role.ADMIN, is_enabled=False)
    ended = await course.ended(job.id)
    assert (ended.state, ended.errors[-1].code) == (JobState.FAILED, "actor_not_authorized")
    assert ended.succeeded == len(await course.tagged()) == HELD_AT + 1  # outcomes so far are kept


async def test_a_handler_that_kills_its_process_spends_attempts(
    course: Course, start_worker_process: StartProcess, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "deadly_kinds.py").write_text(
        "import os\nfrom tenure import JobContext, kind\n\n@kind('t.deadly')\nasync def deadly(ctx: JobContext) -> None:\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    job = await course.seed.job(kind="t.deadly", max_attempts=2)
    for token in (1, 2):
        worker = start_worker_process(TENURE_KINDS="deadly_kinds", PYTHONPATH=str(folder), TENURE_LEASE_SECONDS="1.5")
        await course.until(job.id, lambda j, t=token: j.fencing_token == t)  # type: ignore[misc]
        assert await worker.ended() == -signal.SIGKILL
    start_worker_process(TENURE_LEASE_SECONDS="1.5")
    ended = await course.ended(job.id)
    assert (ended.state, ended.attempt, ended.errors[-1].code) == (JobState.FAILED, 2, "lease_expired")
