"""Cancel and retry: once each, audited, under the limits."""

import asyncio
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from tenure.db.commands import NotRetryable, Retried, cancel_job, retry_job
from tenure.db.enqueue import AdmissionLimits, QueueLimits, Refused, set_installation_limit
from tenure.db.jobs import JobSnapshot
from tenure.db.outcome import Ending, ItemOutcome, settle_item, snapshot_items
from tenure.db.states import AdmissionLimit, AttemptOutcome, JobState
from tests.db.steps import drift, expire, finish, reclaim
from tests.factories import LIMITS, Seed


async def retry(
    seed: Seed, job_id: UUID, *, version: int | None = None, limits: AdmissionLimits = LIMITS
) -> Retried | NotRetryable | Refused | None:
    return await seed.database.run(lambda c: retry_job(c, job_id, seed.actor_id, version, limits))


async def test_a_waiting_job_is_cancelled_at_once(seed: Seed) -> None:
    job = await seed.job()
    cancelled = await seed.cancel(job.id)
    assert cancelled is not None
    assert (cancelled.state, cancelled.version, cancelled.attempt) == (JobState.CANCELLED, 2, 0)
    assert cancelled.finished_at is not None
    assert await seed.actions(job.id) == ["job.queued", "job.cancel_requested", "job.cancelled"]
    assert await seed.claim() == []
    assert await drift(seed.database) == 0


async def test_a_running_job_is_asked_once(seed: Seed) -> None:
    job = await seed.running_job()
    first, second = await seed.cancel(job.id), await seed.cancel(job.id)
    assert first is not None
    assert (first.state, first.version) == (JobState.RUNNING, job.version + 1)
    assert second == first
    assert await seed.actions(job.id) == ["job.queued", "job.cancel_requested"]


@pytest.mark.guarantee(6)
@pytest.mark.parametrize("ending", [Ending.SUCCEEDED, Ending.FAILED])
async def test_g6_an_ended_job_stays_as_it_is(seed: Seed, ending: Ending) -> None:
    job = await seed.running_job()
    await finish(seed, job, ending)
    before = await seed.read(job.id)
    assert await seed.cancel(job.id) == before
    assert await seed.read(job.id) == before


async def test_a_job_that_is_none(seed: Seed) -> None:
    assert await seed.cancel(uuid4()) is None
    assert await retry(seed, uuid4()) is None


@pytest.mark.parametrize("ending", [Ending.RETRY, Ending.RELEASED])
async def test_what_would_be_queued_again_is_cancelled_instead(seed: Seed, ending: Ending) -> None:
    job = await seed.running_job()
    await seed.cancel(job.id)
    await finish(seed, job, ending)
    assert (await seed.read(job.id)).state is JobState.CANCELLED


@pytest.mark.parametrize("max_attempts", [1, 3])
async def test_a_lost_job_whose_cancel_was_asked_is_cancelled(seed: Seed, max_attempts: int) -> None:
    job = await seed.running_job(max_attempts=max_attempts)
    await seed.cancel(job.id)
    await expire(seed, job)
    await reclaim(seed)
    found = await seed.read(job.id)
    assert (found.state, found.attempts[0].outcome) == (JobState.CANCELLED, AttemptOutcome.LOST)


@pytest.mark.parametrize("ending", [Ending.SUCCEEDED, Ending.FAILED])
async def test_a_handler_that_did_not_see_the_cancel_ends_with_its_own_outcome(seed: Seed, ending: Ending) -> None:
    job = await seed.running_job()
    await seed.cancel(job.id)
    await finish(seed, job, ending)
    assert (await seed.read(job.id)).state == ending.value


async def test_the_last_attempts_failure_is_its_own_outcome_too(seed: Seed) -> None:
    job = await seed.running_job(max_attempts=1)
    await seed.cancel(job.id)
    await finish(seed, job, Ending.RETRY)
    assert (await seed.read(job.id)).state is JobState.FAILED


async def test_retry_keeps_what_it_must_and_clears_the_rest(seed: Seed) -> None:
    job = await seed.running_job(max_attempts=1, params={"n": 1})
    async with seed.database.transaction() as session:
        await snapshot_items(session, job.id, job.fencing_token, ["a", "b"])
    await seed.database.run(lambda c: settle_item(c, job.id, job.fencing_token, 1, ItemOutcome.FAILED, "odd", "It was odd."))
    await finish(seed, job, Ending.RETRY)
    failed = await seed.read(job.id)
    assert failed.state is JobState.FAILED
    assert await seed.scalar("SELECT string_agg(key, ',') FROM job_item") == "a"  # the failed one can be read
    retried = await retry(seed, job.id, version=failed.version)
    assert isinstance(retried, Retried)
    expected = replace(
        failed,
        state=JobState.QUEUED,
        version=failed.version + 1,
        attempt=0,
        finished_at=None,
        progress_total=None,
        items_total=None,
        failed=0,
        run_at=retried.job.run_at,
    )
    assert retried.job == expected
    assert retried.job.run_at > failed.run_at
    assert await seed.scalar("SELECT count(*) FROM job_item") == 0
    assert (await seed.actions(job.id))[-1] == "job.retried"
    (again,) = await seed.claim()
    assert (again.attempt, again.fencing_token) == (1, 2)
    assert await drift(seed.database) == 0


@pytest.mark.parametrize("ending", [None, Ending.SUCCEEDED])
async def test_only_failed_and_cancelled_jobs_are_retried(seed: Seed, ending: Ending | None) -> None:
    job = await seed.running_job()
    if ending is not None:
        await finish(seed, job, ending)
    before = await seed.read(job.id)
    assert await retry(seed, job.id) == NotRetryable(before)


async def test_a_retry_that_is_sent_twice_runs_it_once(seed: Seed) -> None:
    job = await seed.job()
    cancelled = await seed.cancel(job.id)
    assert cancelled is not None
    assert isinstance(await retry(seed, job.id, version=cancelled.version), Retried)
    await seed.cancel(job.id)
    assert isinstance(await retry(seed, job.id, version=cancelled.version), NotRetryable)


@pytest.mark.guarantee(5)
@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        (AdmissionLimits(1000, {"default": QueueLimits(pending_per_actor=1)}), AdmissionLimit.PENDING_PER_ACTOR),
        (AdmissionLimits(1000, {"default": QueueLimits(pending_per_workspace=1)}), AdmissionLimit.PENDING_PER_WORKSPACE),
        (AdmissionLimits(1), AdmissionLimit.PENDING_PER_WORKSPACE),
        (AdmissionLimits(1000), AdmissionLimit.PENDING_GLOBAL),
    ],
)
async def test_g5_retry_checks_the_pending_limits(seed: Seed, limits: AdmissionLimits, limit: AdmissionLimit) -> None:
    job = await seed.job()
    await seed.cancel(job.id)
    other = await seed.job()
    if limit is AdmissionLimit.PENDING_GLOBAL:
        await seed.database.run(lambda c: set_installation_limit(c, 1))
    refused = await retry(seed, job.id, limits=limits)
    assert isinstance(refused, Refused)
    assert (refused.limit, refused.used, refused.max) == (limit, 1, 1)
    assert (await seed.read(job.id)).state is JobState.CANCELLED
    await seed.cancel(other.id)
    assert isinstance(await retry(seed, job.id, limits=limits), Retried)
    assert await drift(seed.database) == 0


async def test_retry_is_not_held_up_by_the_daily_limit(seed: Seed) -> None:
    limits = AdmissionLimits(1000, {"default": QueueLimits(created_per_day=1)})
    job = await seed.job()
    await seed.cancel(job.id)
    assert isinstance((await seed.enqueue(seed.new_job(), limits=limits))[0], Refused)
    assert isinstance(await retry(seed, job.id, limits=limits), Retried)


async def act(seed: Seed, job: JobSnapshot, action: str) -> None:
    match action:
        case "job.queued":
            await seed.enqueue(seed.new_job("k"))
        case "job.cancel_requested":
            await seed.cancel(job.id)
        case "job.retried":
            await retry(seed, job.id)
        case _:
            await finish(seed, job)


@pytest.mark.guarantee(7)
@pytest.mark.parametrize("action", ["job.queued", "job.cancel_requested", "job.retried", "job.succeeded"])
async def test_g7_without_its_audit_event_nothing_is_committed(seed: Seed, action: str) -> None:
    job = await seed.running_job()
    if action == "job.retried":
        await finish(seed, job, Ending.FAILED)
    before = await seed.read(job.id)
    await seed.execute("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no audit'; END $$")
    await seed.execute("CREATE TRIGGER refuse BEFORE INSERT ON audit_event EXECUTE FUNCTION refuse()")
    with pytest.raises(Exception, match="no audit"):
        await act(seed, job, action)
    assert await seed.read(job.id) == before
    assert await seed.scalar("SELECT count(*) FROM job") == 1
    assert await seed.scalar("SELECT count(*) FROM idempotency_record") == 1
    assert await drift(seed.database) == 0


@pytest.mark.guarantee(8)
async def test_g8_a_cancel_is_not_lost_to_a_concurrent_save(seed: Seed) -> None:
    """The save has read the row before the cancel, and writes after it."""
    job = await seed.running_job()
    async with seed.database.transaction() as session:
        await cancel_job(session, job.id, seed.actor_id)
        save = settle_task(seed, job.id, job.fencing_token)
        await seed.until_somebody_waits()
    await save
    found = await seed.read(job.id)
    assert (found.cancel_requested_at is not None, found.succeeded) == (True, 1)


def settle_task(seed: Seed, job_id: UUID, token: int) -> asyncio.Task[None]:
    async def save() -> None:
        async with seed.database.transaction() as session:
            await snapshot_items(session, job_id, token, ["a"])
        await seed.database.run(lambda c: settle_item(c, job_id, token, 1, ItemOutcome.SUCCEEDED))

    return asyncio.create_task(save())
