"""Enqueueing under one key: one job, whoever asks and however many at once."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from tenure.db.enqueue import AdmissionLimits, Conflict, Enqueued, EnqueueOutcome, NewJob, QueueLimits, Refused, enqueue_jobs
from tenure.db.outcome import Ending
from tenure.db.states import AdmissionLimit, JobState
from tests.db.steps import created, drift, finish, refused
from tests.factories import LIMITS, Seed

TIGHT = AdmissionLimits(pending_per_workspace=1)


async def together(seed: Seed, jobs: list[NewJob]) -> list[EnqueueOutcome]:
    outcomes = await asyncio.gather(*(seed.enqueue(j) for j in jobs))
    return [o for (o,) in outcomes]


@pytest.mark.guarantee(4)
@pytest.mark.parametrize("requests", [50, 200])
async def test_g4_same_key_at_once_makes_one_job(seed: Seed, requests: int) -> None:
    outcomes = await together(seed, [seed.new_job("key") for _ in range(requests)])
    jobs = [o.job for o in outcomes if isinstance(o, Enqueued)]
    assert len(jobs) == requests
    assert len({j.id for j in jobs}) == 1
    assert len(created(outcomes)) == 1
    assert await seed.actions(jobs[0].id) == ["job.queued"]
    assert await seed.scalar("SELECT count(*) FROM job") == 1
    assert await seed.scalar("SELECT count(*) FROM idempotency_record") == 1
    assert await drift(seed.database) == 0


@pytest.mark.guarantee(4)
async def test_g4_two_requests_under_one_key(seed: Seed) -> None:
    jobs = [seed.new_job("key", request_hash=b"a" if n % 2 else b"b") for n in range(100)]
    outcomes = await together(seed, jobs)
    kinds = Counter(type(o) for o in outcomes)
    assert kinds == {Enqueued: 50, Conflict: 50}
    assert len(created(outcomes)) == 1


@pytest.mark.guarantee(4)
async def test_g4_another_algorithm_conflicts(seed: Seed) -> None:
    await seed.job(idempotency_key="key")
    await seed.execute("UPDATE idempotency_record SET algorithm = 99")
    assert await seed.enqueue(seed.new_job("key")) == [Conflict()]


@pytest.mark.guarantee(4)
async def test_g4_key_belongs_to_actor_and_workspace(seed: Seed) -> None:
    other = await seed.member("other@acme.example")
    outcomes = await seed.enqueue(seed.new_job("key"), seed.new_job("key", actor_id=other))
    assert len(created(outcomes)) == 2


@pytest.mark.guarantee(4)
async def test_g4_waiter_creates_where_the_holder_rolls_back(seed: Seed) -> None:
    job = seed.new_job("key")
    async with seed.database.transaction() as holder:
        await enqueue_jobs(holder, [job], LIMITS)
        waiter = asyncio.create_task(seed.enqueue(job))
        await seed.until_somebody_waits()
        await holder.rollback()
    assert len(created(await waiter)) == 1
    assert await drift(seed.database) == 0


@pytest.mark.guarantee(4)
async def test_g4_waiter_replays_where_the_holder_commits(seed: Seed) -> None:
    job = seed.new_job("key")
    async with seed.database.transaction() as holder:
        (made,) = await enqueue_jobs(holder, [job], LIMITS)
        waiter = asyncio.create_task(seed.enqueue(job))
        await seed.until_somebody_waits()
    (outcome,) = await waiter
    assert isinstance(outcome, Enqueued)
    assert isinstance(made, Enqueued)
    assert outcome.replayed
    assert outcome.job == made.job


@pytest.mark.guarantee(4)
async def test_g4_waiter_creates_where_the_holder_is_refused(seed: Seed) -> None:
    await seed.job()
    job = seed.new_job("key")
    async with seed.database.transaction() as holder:
        assert refused(await enqueue_jobs(holder, [job], TIGHT))
        waiter = asyncio.create_task(seed.enqueue(job))
        await seed.until_somebody_waits()
    assert len(created(await waiter)) == 1


@pytest.mark.guarantee(4)
async def test_g4_replay_after_the_end_and_at_capacity(seed: Seed) -> None:
    request = seed.new_job("key")
    (first,) = await seed.enqueue(request)
    assert isinstance(first, Enqueued)
    (running,) = await seed.claim()
    await finish(seed, running)
    await seed.job()
    assert refused(await seed.enqueue(seed.new_job(), limits=TIGHT))
    (replay,) = await seed.enqueue(request, limits=TIGHT)
    assert isinstance(replay, Enqueued)
    assert replay.replayed
    assert replay.job.id == first.job.id
    assert replay.job.state is JobState.SUCCEEDED
    assert replay.job == await seed.read(first.job.id)


@pytest.mark.guarantee(4)
async def test_g4_record_without_a_hash_conflicts(seed: Seed) -> None:
    await seed.job(idempotency_key="key")
    await seed.execute("UPDATE idempotency_record SET request_hash = NULL")
    outcomes = await seed.enqueue(seed.new_job("key"), seed.new_job("key", request_hash=None))
    assert outcomes == [Conflict(), Conflict()]


@pytest.mark.guarantee(4)
async def test_g4_same_key_twice_in_one_batch(seed: Seed) -> None:
    batch = [seed.new_job("b"), seed.new_job("a"), seed.new_job("b"), seed.new_job("b", request_hash=b"other")]
    first, second, third, fourth = await seed.enqueue(*batch)
    assert isinstance(first, Enqueued)
    assert isinstance(second, Enqueued)
    assert isinstance(third, Enqueued)
    assert (first.replayed, second.replayed, third.replayed) == (False, False, True)
    assert third.job == first.job
    assert fourth == Conflict()


@pytest.mark.guarantee(4)
async def test_g4_refused_leaves_no_record(seed: Seed) -> None:
    await seed.job()
    outcomes = await seed.enqueue(seed.new_job("key"), seed.new_job("key"), limits=TIGHT)
    assert [type(o) for o in outcomes] == [Refused, Refused]
    assert outcomes[0] == outcomes[1]
    assert await seed.scalar("SELECT count(*) FROM idempotency_record WHERE key = 'key'") == 0
    assert await seed.scalar("SELECT count(*) FROM audit_event WHERE action = 'job.queued'") == 1
    assert len(created(await seed.enqueue(seed.new_job("key")))) == 1


@pytest.mark.guarantee(5)
async def test_g5_a_batch_is_admitted_in_order_and_each_stands_alone(seed: Seed) -> None:
    limits = AdmissionLimits(4, {"admin": QueueLimits(pending_per_workspace=3, pending_per_actor=1)})
    other = await seed.member("other@acme.example")
    admin = {"queue": "admin"}
    batch = [
        seed.new_job(**admin),
        seed.new_job(**admin),  # the actor's second
        seed.new_job(actor_id=other, **admin),
        seed.new_job(),
        seed.new_job(),
        seed.new_job(),  # the workspace's fifth
    ]
    outcomes = await seed.enqueue(*batch, limits=limits)
    assert [type(o) for o in outcomes] == [Enqueued, Refused, Enqueued, Enqueued, Enqueued, Refused]
    assert outcomes[1] == Refused(AdmissionLimit.PENDING_PER_ACTOR, "admin", 1, 1, None)
    assert outcomes[5] == Refused(AdmissionLimit.PENDING_PER_WORKSPACE, None, 4, 4, None)
    assert await drift(seed.database) == 0


async def test_the_job_is_as_it_was_asked_for(seed: Seed) -> None:
    params = {"big": 2**63 + 1, "text": "ä\u2028", "nested": {"null": None, "list": [1, "x", False]}, "float": 0.1}
    job = await seed.job(params=params, priority=-7, max_attempts=5)
    assert job == await seed.read(job.id)
    assert job.params == params
    assert (job.priority, job.max_attempts, job.state, job.version, job.attempt, job.fencing_token) == (
        -7, 5, JobState.QUEUED, 1, 0, 0,
    )  # fmt: skip
    assert job.run_at == job.created_at
    assert job.attempts == []


async def test_a_later_start_is_kept(seed: Seed) -> None:
    now = (await seed.job()).created_at
    later = now.replace(year=now.year + 1)
    assert (await seed.job(run_at=later)).run_at == later


async def test_nothing_to_enqueue(seed: Seed) -> None:
    assert await seed.enqueue() == []


async def test_ids_sort_by_time_and_batch_order(seed: Seed) -> None:
    outcomes = await seed.enqueue(*(seed.new_job() for _ in range(20)))
    ids = [j.id for j in created(outcomes)]
    assert ids == sorted(ids)
    assert all(i.version == 7 for i in ids)
    assert abs(ids[0].int >> 80) - int(created(outcomes)[0].created_at.timestamp() * 1000) < 60_000


@pytest.mark.guarantee(7)
async def test_g7_a_job_and_its_audit_event_commit_together(seed: Seed) -> None:
    await seed.execute("ALTER TABLE audit_event ADD CONSTRAINT broken CHECK (action <> 'job.queued') NOT VALID")
    with pytest.raises(Exception, match="broken"):
        await seed.enqueue(seed.new_job("key"))
    assert await seed.scalar("SELECT count(*) FROM job") == 0
    assert await seed.scalar("SELECT count(*) FROM idempotency_record") == 0
    assert await drift(seed.database) == 0


async def test_jobs_without_a_key_are_never_the_same(seed: Seed) -> None:
    job = replace(seed.new_job(), idempotency_key=None, request_hash=None)
    assert len(created(await seed.enqueue(job, job))) == 2


async def test_two_batches_in_opposite_orders_do_not_deadlock(seed: Seed) -> None:
    jobs = [seed.new_job(f"key {n}", queue=f"queue-{n % 3}") for n in range(30)]
    for _ in range(5):
        await asyncio.gather(seed.enqueue(*jobs), seed.enqueue(*reversed(jobs)))
    assert await seed.scalar("SELECT count(*) FROM job") == 30
    assert await seed.scalar("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == 0


async def test_an_ended_job_frees_its_place(seed: Seed) -> None:
    running = await seed.running_job()
    assert refused(await seed.enqueue(seed.new_job(), limits=TIGHT))
    await finish(seed, running, Ending.FAILED)
    assert created(await seed.enqueue(seed.new_job(), limits=TIGHT))
