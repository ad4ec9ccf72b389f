"""Gathers concurrent calls into one: while a batch is under way, what comes in waits for the next.

A lone caller waits for nobody; under load the batches grow by themselves. Enqueueing many jobs in one statement is several
times faster than in as many.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from tenure.db.errors import StorageUnavailable

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_BATCH = 500
MAX_WEIGHT = 8 * 1024 * 1024
MAX_IN_FLIGHT = 2


class Batcher(Generic[Item, Result]):
    """`submit` gives an item's own result of `call`, which takes items and returns as many results, in order."""

    def __init__(self, call: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]], *, max_batch: int = MAX_BATCH) -> None:
        self._call = call
        self._max_batch = max_batch
        self._waiting: deque[tuple[Item, int, asyncio.Future[Result]]] = deque()
        self._working = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, item: Item, weight: int = 1) -> Result:
        """Raises what the call raised. `weight` is about the item's bytes, which bound a batch beside its count."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, weight, future))
        if self._working < MAX_IN_FLIGHT:
            self._working += 1
            task = asyncio.create_task(self._work(), name="batch")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def _work(self) -> None:
        try:
            while batch := self._take():
                await self._run(batch)
        finally:
            self._working -= 1  # in the very step that found nothing waiting, so that nothing is left to wait

    def _take(self) -> list[tuple[Item, asyncio.Future[Result]]]:
        batch: list[tuple[Item, asyncio.Future[Result]]] = []
        total = 0
        while self._waiting and len(batch) < self._max_batch:
            item, weight, future = self._waiting[0]
            if batch and total + weight > MAX_WEIGHT:
                break
            self._waiting.popleft()
            if not future.cancelled():
                batch.append((item, future))
                total += weight
        return batch

    async def _run(self, batch: list[tuple[Item, asyncio.Future[Result]]]) -> None:
        try:
            results = await self._call([item for item, _ in batch])
        except Exception as error:  # noqa: BLE001 - each submitter gets it
            if len(batch) > 1 and not isinstance(error, StorageUnavailable):
                for one in batch:  # one item at fault must not cost the others their answer
                    await self._run([one])
                return
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
        else:
            for (_, future), result in zip(batch, results, strict=True):
                if not future.done():
                    future.set_result(result)
