"""Items: the durable snapshot of what a job works through, one outcome each, exact after any number of crashes."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace

from tenure.db.engine import Connection, Session
from tenure.db.outcome import ItemOutcome, ItemRow, pending_items, settle_item, snapshot_items
from tenure.workers.attempt import Attempt
from tenure.workers.errors import Permanent
from tenure.workers.values import clean_text

Keys = Iterable[str] | Callable[[], Awaitable[Iterable[str]]]
"""Strings, or an async function that returns them, which is called only where no snapshot was taken yet."""

READ_AHEAD = 200


@dataclass(frozen=True, slots=True)
class _Outcome:
    outcome: ItemOutcome
    code: str | None = None
    message: str | None = None


class Item:
    """One unit of the job's work, by its key. `succeed`, `skip` or `fail` commits its outcome with the job's counters.

    Inside `async with item.transaction() as session` the outcome commits with what the session did; success, if none is
    named there. An exception rolls both back.
    """

    def __init__(self, attempt: Attempt, row: ItemRow) -> None:
        self._attempt = attempt
        self._row = row
        self._chosen: _Outcome | None = None
        self._is_open = False
        self.is_settled = False

    @property
    def key(self) -> str:
        return self._row.key

    async def succeed(self) -> None:
        """The item is done. Raises LeaseLost."""
        await self._choose(_Outcome(ItemOutcome.SUCCEEDED))

    async def skip(self) -> None:
        """There was nothing to do. Raises LeaseLost."""
        await self._choose(_Outcome(ItemOutcome.SKIPPED))

    async def fail(self, code: str, message: str) -> None:
        """The item failed; the job goes on. `message` is shown to people, 500 characters of it. Raises LeaseLost."""
        await self._choose(_Outcome(ItemOutcome.FAILED, clean_text(code), clean_text(message)))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        """A transaction whose commit holds the item's outcome too, and happens only under the lease. Raises LeaseLost."""
        self._refuse_second_outcome()
        self._is_open, self._chosen = True, None
        try:
            async with self._fenced() as session:
                yield session
        finally:
            self._is_open = False
        self.is_settled = True

    def _fenced(self) -> AbstractAsyncContextManager[Session]:
        return self._attempt.transaction(lambda s: self._write(s, self._chosen or _Outcome(ItemOutcome.SUCCEEDED)))

    async def _choose(self, outcome: _Outcome) -> None:
        self._refuse_second_outcome()
        if self._is_open:
            self._chosen = outcome
            return
        version = await self._attempt.patiently(lambda c: self._write(c, outcome))
        self.is_settled = True
        self._attempt.saved(version)

    async def _write(self, executor: Connection | Session, chosen: _Outcome) -> int:
        held = self._attempt.held
        return await settle_item(executor, held.id, held.token, self._row.position, chosen.outcome, chosen.code, chosen.message)

    def _refuse_second_outcome(self) -> None:
        if self.is_settled:
            raise RuntimeError(f"Item {self.key!r} has its outcome already.")


async def walk_items(attempt: Attempt, keys: Keys) -> AsyncIterator[Item]:
    """The items that are still to do, in order, with a checkpoint before each."""
    if attempt.held.job.items_total is None:
        await attempt.check()
        await _take_snapshot(attempt, keys)
    position = -1
    while rows := await _next_rows(attempt, position):
        for row in rows:
            await attempt.check()
            item = Item(attempt, row)
            yield item
            if not item.is_settled:
                raise Permanent("item_without_outcome", f"The handler left item {clean_text(item.key)!r} without an outcome.")
        position = rows[-1].position


async def _take_snapshot(attempt: Attempt, keys: Keys) -> None:
    held = attempt.held
    found = await keys() if callable(keys) else keys

    total = 0

    async def close(session: Session) -> int:
        nonlocal total
        total, version = await snapshot_items(session, held.id, held.token, found)
        return version

    async with attempt.transaction(close):
        pass  # writing the snapshot is all there is to do, and its last statement is the fence
    held.job = replace(held.job, items_total=total)  # only now that it is committed


async def _next_rows(attempt: Attempt, position: int) -> list[ItemRow]:
    job_id = attempt.held.id
    return await attempt.patiently(lambda c: pending_items(c, job_id, after=position, limit=READ_AHEAD))
