"""The one way to the database: a pool of connections, handed out for a statement or for a transaction.

Nothing here is held between events: take a connection, use it, give it back. Driver errors that mean "the database went
away" become `StorageUnavailable`; other driver errors pass, and are never shown to a client.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import asyncpg
from sqlalchemy import URL, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_sessionmaker, create_async_engine

from tenure.db.errors import RowBusy, StorageUnavailable

Connection = AsyncConnection
Session = AsyncSession
Executor = Connection | Session
"""What a statement function runs on: a connection, each statement by itself, or a session in a transaction."""

Result = TypeVar("Result")

STATEMENT_TIMEOUT_SECONDS = 30
LOCK_TIMEOUT_SECONDS = 15
LOCK_NOT_AVAILABLE = "55P03"
DEADLOCK_DETECTED = "40P01"
SERIALIZATION_FAILURE = "40001"
UNAVAILABLE_STATES = ("57P01", "25P03", "57P02", "57P03", "53300", "08")
"""Shutdown, a transaction idle for too long, crash, starting up, too many connections; 08 is the class of lost connections."""


def async_url(url: str) -> URL:
    """A plain `postgresql://` URL for SQLAlchemy's asyncpg dialect."""
    return make_url(url).set(drivername="postgresql+asyncpg")


def _sqlstate(error: DBAPIError) -> str:
    return getattr(error.orig, "sqlstate", None) or ""


def is_unavailable(error: BaseException) -> bool:
    """True where the database could not be reached or went away, so that the same call may succeed later."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or _sqlstate(error).startswith(UNAVAILABLE_STATES)
    return isinstance(
        error, (PoolTimeoutError, StorageUnavailable, OSError, asyncpg.InterfaceError, asyncpg.PostgresConnectionError)
    ) or (isinstance(error, asyncpg.PostgresError) and (error.sqlstate or "").startswith(UNAVAILABLE_STATES))


class Database:
    """A pool of connections to one PostgreSQL.

    Every connection has a statement and a lock timeout; parameters never appear in an error's text. A transaction that is
    idle for `idle_in_transaction_seconds` is ended by the server: a stopped or cut-off process must not keep its row locks
    for longer than its leases.
    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        application_name: str = "tenure",
        idle_in_transaction_seconds: float = 60,
    ) -> None:
        self.url = url
        self._engine = create_async_engine(
            async_url(url),
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=10,
            hide_parameters=True,
            connect_args={
                "timeout": 10,
                "server_settings": {
                    "application_name": application_name,
                    "statement_timeout": str(STATEMENT_TIMEOUT_SECONDS * 1000),
                    "lock_timeout": str(LOCK_TIMEOUT_SECONDS * 1000),
                    "idle_in_transaction_session_timeout": str(int(idle_in_transaction_seconds * 1000)),
                    "timezone": "UTC",
                    "jit": "off",
                },
            },
        )
        self._autocommit = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self._sessions = async_sessionmaker(self._engine, expire_on_commit=False)

    @asynccontextmanager
    async def statement(self) -> AsyncIterator[AsyncConnection]:
        """A connection on which each statement is a transaction of its own, so one round trip.

        Raises StorageUnavailable.
        """
        with _translated():
            async with self._autocommit.connect() as connection:
                yield connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncSession]:
        """A session in one transaction: committed at the end, rolled back on any exception. Raises StorageUnavailable."""
        async with self._sessions() as session:  # leaving it without a commit rolls back
            with _translated():
                await session.connection()
            with _translated(os_errors=False):  # one of the body's own is the body's affair
                yield session
                await session.commit()

    async def run(self, call: Callable[[AsyncConnection], Awaitable[Result]], *, tries: int = 3) -> Result:
        """Runs one statement function, again where a deadlock or a lost connection ate it.

        Only for statements that do no harm when they run twice: those that decide by a key, a token or a version.
        Raises StorageUnavailable when the last try fails too.
        """
        for left in range(tries - 1, -1, -1):
            try:
                async with self.statement() as connection:
                    return await call(connection)
            except RowBusy:  # it has waited long enough
                raise
            except StorageUnavailable:
                if left == 0:
                    raise
                await asyncio.sleep(0.05 * (tries - left))
            except DBAPIError as error:
                if left == 0 or _sqlstate(error) not in (DEADLOCK_DETECTED, SERIALIZATION_FAILURE):
                    raise
        raise AssertionError  # the loop returns or raises

    def usage(self) -> dict[str, Any]:
        """How many connections are out, for tests and metrics."""
        pool = self._engine.pool
        return {"checked_out": pool.checkedout()}  # type: ignore[attr-defined]  # QueuePool's, not Pool's

    async def dispose(self) -> None:
        await self._engine.dispose()


class _translated:  # noqa: N801 - reads as a statement
    def __init__(self, *, os_errors: bool = True) -> None:
        self._os_errors = os_errors

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and not self._os_errors:
            return
        if isinstance(error, DBAPIError) and _sqlstate(error) == LOCK_NOT_AVAILABLE:
            raise RowBusy("Another transaction holds what this one needs; try again.") from error
        if error is not None and not isinstance(error, StorageUnavailable) and is_unavailable(error):
            raise StorageUnavailable("The database cannot be reached at the moment; try again.") from error
