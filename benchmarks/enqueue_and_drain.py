"""Enqueue and drain, each as a ratio to the least that PostgreSQL must do for it, measured in the same run.

    .venv/bin/python benchmarks/enqueue_and_drain.py [seconds a measurement]

Starts an ephemeral server of its own with durable defaults. `raw` writes one row a job, with no key, audit event, attempt
or counter; Tenure writes all of them. Read ratios: rates are the machine's.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from uuid import uuid4

import asyncpg
from broadcaster import Broadcast

from tenure import JobContext, kind
from tenure.db.embedded import EmbeddedServer
from tenure.db.engine import Database
from tenure.db.enqueue import AdmissionLimits, NewJob, enqueue_jobs, set_installation_limit
from tenure.db.migrate import upgrade
from tenure.db.notify import HintSender, ListenBackend
from tenure.db.people import create_user, create_workspace, set_member
from tenure.db.states import Role
from tenure.workers.registry import Registry
from tenure.workers.runtime import Worker, WorkerOptions

NO_LIMITS = AdmissionLimits(pending_per_workspace=0)
DRAINED = 3_000
CONCURRENCY = 100
RAW_TABLE = "CREATE TABLE raw (id bigserial PRIMARY KEY, done boolean NOT NULL DEFAULT false, params jsonb NOT NULL)"
RAW_INSERT = "INSERT INTO raw (params) SELECT p::jsonb FROM unnest($1::text[]) AS p"
RAW_CLAIM = (
    "UPDATE raw SET done = true WHERE id IN"
    " (SELECT id FROM raw WHERE NOT done ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED) RETURNING id"
)


@kind("bench.noop")
async def noop(ctx: JobContext) -> None:
    """Does nothing."""


async def rate(call: Callable[[], Awaitable[int]], seconds: float) -> float:
    """Jobs a second, over at least so many seconds."""
    await call()
    started, done = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        done += await call()
    return done / (time.perf_counter() - started)


async def measure(url: str, seconds: float) -> list[dict[str, object]]:
    await upgrade(url)
    database = Database(url)
    async with database.transaction() as session:
        workspace = await create_workspace(session, "bench")
        actor = await create_user(session, "bench@example.com")
        await set_member(session, "bench", "bench@example.com", Role.ADMIN)
    await database.run(lambda c: set_installation_limit(c, 0))
    raw = await asyncpg.connect(url)
    await raw.execute(RAW_TABLE)
    lines: list[dict[str, object]] = []

    def new_jobs(count: int, name: str = "bench.other") -> list[NewJob]:
        return [
            NewJob(workspace.id, actor.id, name, "default", {"n": n}, 3, idempotency_key=str(uuid4()), request_hash=b"x")
            for n in range(count)
        ]

    for batch in (1, 100, 1000):

        async def enqueue(batch: int = batch) -> int:
            await database.run(lambda c: enqueue_jobs(c, new_jobs(batch), NO_LIMITS))
            return batch

        async def insert(batch: int = batch) -> int:
            await raw.execute(RAW_INSERT, ['{"n": 1}'] * batch)
            return batch

        ours, theirs = await rate(enqueue, seconds), await rate(insert, seconds)
        lines.append({"what": f"enqueue {batch}", "per_second": round(ours), "of_raw": round(ours / theirs, 2)})

    await raw.execute("ANALYZE")
    for start in range(0, DRAINED, 1000):
        await database.run(lambda c: enqueue_jobs(c, new_jobs(min(1000, DRAINED - start), "bench.noop"), NO_LIMITS))  # noqa: B023
    ours = await drain(database)

    async def claim() -> int:
        return len(await raw.fetch(RAW_CLAIM, CONCURRENCY))

    theirs = await rate(claim, seconds)
    lines.append({"what": f"drain, {CONCURRENCY} at a time", "per_second": round(ours), "of_raw": round(ours / theirs, 2)})
    await raw.close()
    await database.dispose()
    return lines


async def drain(database: Database) -> float:
    """Jobs a second, from the worker's start to the last job's end."""
    registry = Registry()
    registry.add_handler(noop)
    hints = HintSender(database.url)
    hints.start()
    async with Broadcast(backend=ListenBackend(database.url)) as broadcast:
        worker = Worker(database, registry, WorkerOptions(concurrency=CONCURRENCY), hints=hints, broadcast=broadcast)
        started = time.perf_counter()
        running = asyncio.create_task(worker.run())
        watcher = await asyncpg.connect(database.url)
        left = "SELECT count(*) FROM job WHERE kind = 'bench.noop' AND state IN ('QUEUED', 'RUNNING')"
        while await watcher.fetchval(left):
            await asyncio.sleep(0.05)
        elapsed = time.perf_counter() - started
        await watcher.close()
        worker.stop()
        await running
    await hints.stop()
    return DRAINED / elapsed


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    with EmbeddedServer.ephemeral() as server:
        for line in asyncio.run(measure(server.url, seconds)):
            print(json.dumps(line))


if __name__ == "__main__":
    main()
