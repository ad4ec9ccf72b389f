"""Gathering: batches form while one is under way, and each caller gets its own."""

import asyncio
from collections.abc import Sequence

import pytest

from tenure.db.batching import MAX_WEIGHT, Batcher
from tenure.db.engine import Database
from tenure.db.errors import StorageUnavailable
from tenure.resolvers.loaders import Loaders
from tests.factories import Seed


class Call:
    """Doubles numbers, once it may."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.go = asyncio.Event()
        self.in_flight = 0
        self.most_in_flight = 0

    async def __call__(self, items: Sequence[int]) -> list[int]:
        self.batches.append(list(items))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await self.go.wait()
            if 666 in items:
                raise ValueError("unlucky")
            if 99 in items:
                raise StorageUnavailable("away")
            return [2 * n for n in items]
        finally:
            self.in_flight -= 1


async def submitted(batcher: Batcher[int, int], numbers: Sequence[int], weight: int = 1) -> list[asyncio.Task[int]]:
    tasks = [asyncio.create_task(batcher.submit(n, weight)) for n in numbers]
    await asyncio.sleep(0)
    return tasks


async def test_what_comes_while_a_batch_is_under_way_goes_together() -> None:
    call = Call()
    batcher = Batcher(call, max_batch=10)
    tasks = await submitted(batcher, [1]) + await submitted(batcher, [2]) + await submitted(batcher, range(3, 28))
    await asyncio.sleep(0)
    call.go.set()
    assert await asyncio.gather(*tasks) == [2 * n for n in range(1, 28)]
    assert max(map(len, call.batches)) == 10
    assert len(call.batches) < 8
    assert call.most_in_flight <= 2


async def test_nothing_is_left_waiting_when_a_batch_ends() -> None:
    call = Call()
    call.go.set()
    batcher = Batcher(call, max_batch=3)

    async def one_after_another(number: int) -> None:
        for _ in range(50):
            assert await batcher.submit(number) == 2 * number

    async with asyncio.timeout(10):
        await asyncio.gather(*(one_after_another(n) for n in range(20)))


async def test_a_batch_is_bounded_by_its_weight() -> None:
    call = Call()
    call.go.set()
    batcher = Batcher(call)
    await asyncio.gather(*await submitted(batcher, range(6), MAX_WEIGHT // 2))
    assert max(map(len, call.batches)) == 2


async def test_one_items_fault_is_not_the_others() -> None:
    call = Call()
    call.go.set()
    results = await asyncio.gather(*await submitted(Batcher(call), [1, 666, 3]), return_exceptions=True)
    assert results[0] == 2
    assert isinstance(results[1], ValueError)
    assert results[2] == 6


async def test_an_outage_is_everybodys() -> None:
    call = Call()
    call.go.set()
    results = await asyncio.gather(*await submitted(Batcher(call), [1, 99]), return_exceptions=True)
    assert [type(r) for r in results] == [StorageUnavailable] * 2
    assert len(call.batches) == 1


async def test_who_gives_up_does_not_disturb_the_others() -> None:
    call = Call()
    batcher = Batcher(call)
    first, second = await submitted(batcher, [1, 2])
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    call.go.set()
    assert await second == 4
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_loader_reads_what_is_asked_for_together_once(seed: Seed, monkeypatch: pytest.MonkeyPatch) -> None:
    loaders = Loaders.over(seed.database)
    jobs = [await seed.job() for _ in range(3)]
    calls = 0
    run = Database.run

    async def counted(self: Database, *arguments: object) -> object:
        nonlocal calls
        calls += 1
        return await run(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Database, "run", counted)
    found = await asyncio.gather(*(loaders.jobs.load(j.id) for j in jobs * 2), loaders.jobs.load(seed.workspace_id))
    assert found == [*jobs, *jobs, None]
    assert calls == 1
    assert await loaders.jobs.load(jobs[0].id) == jobs[0]
    assert calls == 2


async def test_a_loaders_failure_is_each_askers(seed: Seed, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: object) -> None:
        raise StorageUnavailable("away")

    monkeypatch.setattr(Database, "run", away)
    loaders = Loaders.over(seed.database)
    both = await asyncio.gather(*(loaders.jobs.load(seed.workspace_id) for _ in range(2)), return_exceptions=True)
    assert [type(e) for e in both] == [StorageUnavailable] * 2
