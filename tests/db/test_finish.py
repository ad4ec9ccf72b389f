"""How attempts end: every ending, with and without attempts left, with and without a cancel."""

import asyncio
from dataclasses import dataclass
from uuid import uuid4

import pytest
from sqlalchemy import text

from tenure.db.commands import cancel_job
from tenure.db.jobs import JobSnapshot
from tenure.db.outcome import Ending, Finish, Finished, finish_jobs
from tenure.db.states import AttemptOutcome, JobState
from tests.db.steps import drift, expire, finish, reclaim, take_over
from tests.factories import Seed

OUTCOMES = {
    Ending.SUCCEEDED: AttemptOutcome.SUCCEEDED,
    Ending.FAILED: AttemptOutcome.FAILED,
    Ending.RETRY: AttemptOutcome.FAILED,
    Ending.CANCELLED: AttemptOutcome.CANCELLED,
    Ending.RELEASED: AttemptOutcome.RELEASED,
}


@dataclass(frozen=True)
class Case:
    ending: Ending
    last: bool
    cancel: bool
    state: JobState

    def __str__(self) -> str:
        return f"{self.ending}{'-last' * self.last}{'-cancelled' * self.cancel}"


CASES = [
    Case(ending, last, cancel, state)
    for ending, last, cancel, state in (
        *((Ending.SUCCEEDED, n, c, JobState.SUCCEEDED) for n in (False, True) for c in (False, True)),
        *((Ending.FAILED, n, c, JobState.FAILED) for n in (False, True) for c in (False, True)),
        *((Ending.CANCELLED, n, True, JobState.CANCELLED) for n in (False, True)),
        (Ending.RETRY, False, False, JobState.QUEUED),
        (Ending.RETRY, False, True, JobState.CANCELLED),
        (Ending.RETRY, True, False, JobState.FAILED),
        (Ending.RETRY, True, True, JobState.FAILED),  # it ended without having seen the cancel
        (Ending.RELEASED, False, False, JobState.QUEUED),
        (Ending.RELEASED, True, False, JobState.QUEUED),
        (Ending.RELEASED, False, True, JobState.CANCELLED),
        (Ending.RELEASED, True, True, JobState.CANCELLED),
    )
]


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_endings(seed: Seed, case: Case) -> None:
    job = await seed.running_job(max_attempts=1 if case.last else 3)
    if case.cancel:
        await seed.database.run(lambda c: cancel_job(c, job.id, seed.actor_id))
    before = await seed.read(job.id)
    done = await finish(seed, job, case.ending, delay_seconds=100.0)
    after = await seed.read(job.id)
    assert done == Finished(job.id, case.state, before.version + 1)
    assert (after.state, after.version, after.lease) == (case.state, before.version + 1, None)
    assert after.fencing_token == job.fencing_token
    assert after.attempt == (0 if case.ending is Ending.RELEASED else 1)
    (attempt,) = after.attempts
    assert attempt.outcome is OUTCOMES[case.ending]
    assert attempt.finished_at is not None
    assert (after.finished_at is not None) == case.state.is_terminal
    assert after.result == ({} if case.ending is Ending.SUCCEEDED else None)
    assert [e.code for e in after.errors] == (["broken"] if case.ending in (Ending.FAILED, Ending.RETRY) else [])
    assert after.cancel_requested_at == before.cancel_requested_at
    if case.state is JobState.QUEUED:
        delay = (after.run_at - attempt.finished_at).total_seconds()
        assert delay == pytest.approx(100) if case.ending is Ending.RETRY else delay <= 0
    ended = [f"job.{case.state.lower()}"] if case.state.is_terminal else []
    assert await seed.actions(job.id) == ["job.queued", *(["job.cancel_requested"] * case.cancel), *ended]
    assert await drift(seed.database) == 0


async def test_a_release_spends_the_token_and_not_the_attempt(seed: Seed) -> None:
    job = await seed.running_job(max_attempts=1)
    for token in range(1, 6):
        await finish(seed, job, Ending.RELEASED)
        (job,) = await seed.claim()
        assert (job.fencing_token, job.attempt) == (token + 1, 1)
    attempts = (await seed.read(job.id)).attempts
    assert [(a.fencing_token, a.is_counted) for a in attempts] == [(n, n == 6) for n in range(1, 7)]


async def test_attempts_run_out(seed: Seed) -> None:
    job = await seed.running_job(max_attempts=3)
    for _ in range(2):
        assert (await finish(seed, job, Ending.RETRY)).state is JobState.QUEUED
        (job,) = await seed.claim()
    assert (await finish(seed, job, Ending.RETRY)).state is JobState.FAILED
    after = await seed.read(job.id)
    assert ([e.attempt for e in after.errors], after.error_count) == ([1, 2, 3], 3)


async def test_the_newest_fifty_errors_and_attempts_are_kept(seed: Seed) -> None:
    job = await seed.running_job(max_attempts=100)
    for _ in range(54):
        await finish(seed, job, Ending.RETRY)
        (job,) = await seed.claim()
    after = await seed.read(job.id)
    assert [e.attempt for e in after.errors] == list(range(5, 55))
    assert [a.fencing_token for a in after.attempts] == list(range(6, 56))
    assert after.error_count == 54


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("ending", list(Ending))
async def test_g2_a_stale_token_ends_nothing(seed: Seed, ending: Ending) -> None:
    stale = await seed.running_job()
    current = await take_over(seed, stale)
    before = await seed.read(stale.id)
    assert await finish(seed, stale, ending) == Finished(stale.id, None, None)
    assert await seed.read(stale.id) == before
    assert (await finish(seed, current)).state is JobState.SUCCEEDED
    assert (await finish(seed, current)).state is None  # once only
    assert await drift(seed.database) == 0


@pytest.mark.guarantee(2)
async def test_g2_an_end_that_waits_for_a_takeover_changes_nothing(seed: Seed) -> None:
    job = await seed.running_job()
    await expire(seed, job)
    async with seed.database.transaction() as taker:
        await taker.execute(text("SELECT * FROM tenure_reclaim(10)"))
        ending = asyncio.create_task(finish(seed, job))
        await seed.until_somebody_waits()
    assert (await ending).state is None
    assert (await seed.read(job.id)).state is JobState.QUEUED


@pytest.mark.guarantee(2)
async def test_g2_an_end_that_waits_for_a_takeover_that_fails_holds(seed: Seed) -> None:
    job = await seed.running_job()
    await expire(seed, job)
    async with seed.database.transaction() as taker:
        await taker.execute(text("SELECT * FROM tenure_reclaim(10)"))
        ending = asyncio.create_task(finish(seed, job))
        await seed.until_somebody_waits()
        await taker.rollback()
    assert (await ending).state is JobState.SUCCEEDED


@pytest.mark.guarantee(2)
async def test_g2_reclaim_passes_over_a_job_that_is_being_ended(seed: Seed) -> None:
    job = await seed.running_job()
    await expire(seed, job)
    async with seed.database.transaction() as worker:
        await finish_jobs(worker, [Finish(job.id, job.fencing_token, Ending.SUCCEEDED, result="1")])
        assert await reclaim(seed) == []
    assert await reclaim(seed) == []
    assert (await seed.read(job.id)).result == 1


async def test_many_at_once_each_alone(seed: Seed) -> None:
    jobs: list[JobSnapshot] = [await seed.running_job(queue=f"q{n % 3}") for n in range(6)]
    await take_over(seed, jobs[2])
    finishes = [Finish(j.id, j.fencing_token, Ending.SUCCEEDED, result=f"{n}") for n, j in enumerate(jobs)]
    done = await seed.database.run(lambda c: finish_jobs(c, [*finishes, Finish(uuid4(), 1, Ending.FAILED)]))
    assert [d.state for d in done] == [*[JobState.SUCCEEDED] * 2, None, *[JobState.SUCCEEDED] * 3, None]
    assert [(await seed.read(j.id)).result for j in jobs] == [0, 1, None, 3, 4, 5]
    assert await drift(seed.database) == 0


@pytest.mark.guarantee(7)
@pytest.mark.parametrize("ending", [Ending.SUCCEEDED, Ending.FAILED])
async def test_g7_the_end_and_its_audit_event_commit_together(seed: Seed, ending: Ending) -> None:
    job = await seed.running_job()
    before = await seed.read(job.id)
    await seed.execute("ALTER TABLE audit_event ADD CONSTRAINT broken CHECK (action = 'job.queued') NOT VALID")
    with pytest.raises(Exception, match="broken"):
        await finish(seed, job, ending)
    assert await seed.read(job.id) == before
    assert await drift(seed.database) == 0


async def test_a_result_may_be_any_json(seed: Seed) -> None:
    for result, value in (('"text"', "text"), ('"123"', "123"), ("[1]", [1]), ("null", None), (f"{2**70}", 2**70)):
        job = await seed.running_job()
        await finish(seed, job, result=result)
        assert (await seed.read(job.id)).result == value
