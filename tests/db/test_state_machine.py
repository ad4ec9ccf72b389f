"""A random walk over everything that moves a job: only allowed transitions, and the counters are always what the rows say."""

import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from tenure.db.claim import Beat, heartbeat
from tenure.db.commands import retry_job
from tenure.db.jobs import JobSnapshot
from tenure.db.outcome import Ending
from tenure.db.states import ALLOWED, TERMINAL_STATES, JobState
from tests.db.steps import drift, expire, finish, reclaim
from tests.factories import LIMITS, Seed

STEPS = 80
NAMES = {JobState.SUCCEEDED: "job.succeeded", JobState.FAILED: "job.failed", JobState.CANCELLED: "job.cancelled"}


class Walk:
    """Jobs, and a random move at a time."""

    def __init__(self, seed: Seed, source: random.Random) -> None:
        self.seed = seed
        self.source = source
        self.stale: list[JobSnapshot] = []

    async def jobs(self) -> dict[UUID, JobSnapshot]:
        async with self.seed.database.statement() as connection:
            ids = [row[0] for row in await connection.exec_driver_sql("SELECT id FROM job ORDER BY id")]
        return {job_id: await self.seed.read(job_id) for job_id in ids}

    async def move(self, jobs: dict[UUID, JobSnapshot]) -> None:
        moves: list[Callable[[JobSnapshot], Awaitable[Any]]] = [
            self.enqueue,
            self.claim,
            self.claim,
            self.end,
            self.end,
            self.end_stale,
            self.beat,
            self.lose,
            lambda job: self.seed.cancel(job.id),
            self.retry,
        ]
        job = self.source.choice(list(jobs.values())) if jobs else await self.seed.job()
        await self.source.choice(moves)(job)

    async def enqueue(self, _job: JobSnapshot) -> None:
        queue = self.source.choice(["default", "other"])
        await self.seed.enqueue(self.seed.new_job(self.source.choice("abcdefgh"), queue=queue, request_hash=queue.encode()))

    async def claim(self, _job: JobSnapshot) -> None:
        self.stale += await self.seed.claim(self.source.randint(1, 3))

    async def end(self, job: JobSnapshot) -> None:
        await finish(self.seed, job, self.source.choice(list(Ending)))

    async def end_stale(self, job: JobSnapshot) -> None:
        if self.stale:
            await finish(self.seed, self.source.choice(self.stale), self.source.choice(list(Ending)))

    async def beat(self, job: JobSnapshot) -> None:
        progress = self.source.choice([None, {"message": "x"}])
        await self.seed.database.run(lambda c: heartbeat(c, [Beat(job.id, job.fencing_token, progress)], 60))

    async def lose(self, job: JobSnapshot) -> None:
        if job.state is JobState.RUNNING:
            await expire(self.seed, job)
        await reclaim(self.seed)

    async def retry(self, job: JobSnapshot) -> None:
        version = self.source.choice([None, job.version, job.version - 1])
        await self.seed.database.run(lambda c: retry_job(c, job.id, self.seed.actor_id, version, LIMITS))


def without_lease(job: JobSnapshot) -> JobSnapshot:
    return replace(job, lease=None)


@pytest.mark.guarantee(3)
@pytest.mark.guarantee(6)
@pytest.mark.parametrize("number", range(4))
async def test_g3_only_allowed_transitions_each_with_a_new_version(seed: Seed, number: int) -> None:
    walk = Walk(seed, random.Random(number))
    before: dict[UUID, JobSnapshot] = {}
    for _ in range(STEPS):
        await walk.move(before)
        after = await walk.jobs()
        for job_id, job in after.items():
            if job_id in before:
                check_step(before[job_id], job)
            check_shape(job)
        assert await drift(seed.database) == 0
        before = after
    assert {job.state for job in before.values()} & TERMINAL_STATES
    for job in before.values():  # every end has its audit event, in order
        ends = [a for a in await seed.actions(job.id) if a in NAMES.values()]
        assert (ends[-1] == NAMES[job.state]) if job.is_terminal else True


def check_step(before: JobSnapshot, after: JobSnapshot) -> None:
    if after.state is not before.state:
        # One move may be two transitions: an expired lease that is taken again at once is not among them here.
        assert after.state in ALLOWED[before.state], (before.state, after.state)
    assert after.fencing_token >= before.fencing_token
    assert after.version >= before.version
    if after.version == before.version:
        assert without_lease(after) == without_lease(before)
    else:
        assert without_lease(after) != without_lease(before)


def check_shape(job: JobSnapshot) -> None:
    assert (job.lease is not None) == (job.state is JobState.RUNNING)
    assert (job.finished_at is not None) == job.is_terminal
    assert 0 <= job.attempt <= job.max_attempts
    assert len(job.attempts) == job.fencing_token
    assert [a.outcome for a in job.attempts].count(None) == (1 if job.state is JobState.RUNNING else 0)
