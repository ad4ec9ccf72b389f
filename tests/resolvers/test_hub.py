"""A watcher keeps one snapshot, the newest, and says what ends its stream."""

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest
from broadcaster import Broadcast

from tenure.resolvers.errors import Forbidden, ShuttingDown
from tenure.resolvers.hub import ProgressHub, Watcher
from tests.factories import Seed


async def test_only_the_newest_snapshot_waits(seed: Seed) -> None:
    job = await seed.job()
    watcher = Watcher(job.id, uuid4())
    versions = [2, 1, 4, 3, 4]
    assert [watcher.offer(replace(job, version=v)) for v in versions] == [True, False, True, False, False]
    assert (await watcher.take()).version == 4
    assert watcher.take_waiting() is None


async def test_a_failure_stays() -> None:
    watcher = Watcher(uuid4(), uuid4())
    waiting = asyncio.create_task(watcher.take())
    await asyncio.sleep(0)
    watcher.fail(Forbidden("gone"))
    with pytest.raises(Forbidden):
        await waiting
    with pytest.raises(Forbidden):
        await watcher.take()


async def test_a_closed_hub_takes_nobody(seed: Seed) -> None:
    hub = ProgressHub(seed.database, Broadcast("memory://"), poll_seconds=1)
    with hub.watch(uuid4(), uuid4()) as watcher:
        hub.close()
        with pytest.raises(ShuttingDown):
            await watcher.take()
    with pytest.raises(ShuttingDown), hub.watch(uuid4(), uuid4()):
        pass
    assert hub.watched == 0
