"""The context of a plain function, which runs in a thread: the names of JobContext, blocking.

A thread is never killed. Once the handler has to end, its next call here raises.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar
from uuid import UUID

from tenure.db.engine import Session
from tenure.db.outcome import ItemCounts
from tenure.workers.context import HandlerOptions, JobContext
from tenure.workers.errors import JobStopped, StopReason
from tenure.workers.items import Item

Result = TypeVar("Result")


class Blocking:
    """Runs coroutines on the worker's loop from a handler's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def wait(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """The coroutine's result or exception. Raises JobStopped where the worker's loop has gone."""
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError as error:
            coroutine.close()
            raise JobStopped(StopReason.SHUTDOWN) from error
        return future.result()

    @contextmanager
    def entered(self, manager: AbstractAsyncContextManager[Result]) -> Iterator[Result]:
        """An async context manager, entered and left from the thread."""
        value = self.wait(_enter(manager))
        try:
            yield value
        except BaseException as error:
            if not self.wait(_leave(manager, error)):
                raise
        else:
            self.wait(_leave(manager, None))


async def _enter(manager: AbstractAsyncContextManager[Result]) -> Result:
    return await manager.__aenter__()


async def _leave(manager: AbstractAsyncContextManager[Any], error: BaseException | None) -> bool:
    if error is None:
        return bool(await manager.__aexit__(None, None, None))
    return bool(await manager.__aexit__(type(error), error, error.__traceback__))


class BlockingSession:
    """A session's statements, from a thread."""

    def __init__(self, session: Session, blocking: Blocking) -> None:
        self._session = session
        self._blocking = blocking

    def execute(self, statement: Any, values: Any = None) -> Any:
        """All of SQLAlchemy's AsyncSession.execute; the result is buffered."""
        return self._blocking.wait(self._session.execute(statement, values))

    def scalar(self, statement: Any, values: Any = None) -> Any:
        """The first column of the first row, or None."""
        return self._blocking.wait(self._session.scalar(statement, values))


class SyncItem:
    """An Item, blocking."""

    def __init__(self, item: Item, blocking: Blocking) -> None:
        self._item = item
        self._blocking = blocking

    @property
    def key(self) -> str:
        return self._item.key

    def succeed(self) -> None:
        """The item is done. Raises LeaseLost."""
        self._blocking.wait(self._item.succeed())

    def skip(self) -> None:
        """There was nothing to do. Raises LeaseLost."""
        self._blocking.wait(self._item.skip())

    def fail(self, code: str, message: str) -> None:
        """The item failed; the job goes on. Raises LeaseLost."""
        self._blocking.wait(self._item.fail(code, message))

    @contextmanager
    def transaction(self) -> Iterator[BlockingSession]:
        """As Item.transaction."""
        with self._blocking.entered(self._item.transaction()) as session:
            yield BlockingSession(session, self._blocking)


class SyncJobContext:
    """A JobContext whose methods block: for handlers that are plain functions."""

    def __init__(self, context: JobContext, loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._blocking = Blocking(loop)

    @property
    def job_id(self) -> UUID:
        return self._context.job_id

    @property
    def workspace_id(self) -> UUID:
        return self._context.workspace_id

    @property
    def actor_id(self) -> UUID:
        """In whose name the job runs."""
        return self._context.actor_id

    @property
    def attempt(self) -> int:
        """Attempts spent since the last retry, this one included; from 1."""
        return self._context.attempt

    @property
    def log(self) -> "logging.LoggerAdapter[logging.Logger]":
        return self._context.log

    @property
    def options(self) -> HandlerOptions:
        return self._context.options

    def progress(
        self,
        *,
        total: int | None = None,
        succeeded: int | None = None,
        skipped: int | None = None,
        failed: int | None = None,
        message: str | None = None,
    ) -> None:
        """As JobContext.progress."""
        self._blocking.wait(
            self._context.progress(total=total, succeeded=succeeded, skipped=skipped, failed=failed, message=message)
        )

    @property
    def is_cancel_requested(self) -> bool:
        """As JobContext.is_cancel_requested."""
        return self._context.is_cancel_requested

    def counts(self) -> ItemCounts:
        """As JobContext.counts."""
        return self._blocking.wait(self._context.counts())

    def checkpoint(self) -> None:
        """As JobContext.checkpoint."""
        self._blocking.wait(self._context.checkpoint())

    @contextmanager
    def transaction(self) -> Iterator[BlockingSession]:
        """As JobContext.transaction."""
        with self._blocking.entered(self._context.transaction()) as session:
            yield BlockingSession(session, self._blocking)

    def succeed(self, result: Any = None) -> None:
        """As JobContext.succeed."""
        self._blocking.wait(self._context.succeed(result))

    def items(self, keys: Iterable[str]) -> Iterator[SyncItem]:
        """As JobContext.items."""
        walk = self._context.items(keys)
        while (item := self._blocking.wait(_next(walk))) is not None:
            yield SyncItem(item, self._blocking)


async def _next(walk: Any) -> Item | None:
    item: Item | None = await anext(walk, None)
    return item
