"""The database of a command: the one whose URL is given, else the embedded server of the data directory."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tenure.cli.options import say
from tenure.db.embedded import EmbeddedServer
from tenure.db.engine import Database
from tenure.db.errors import SchemaMissing
from tenure.db.migrate import check_compatible, upgrade
from tenure.settings import Settings

Result = TypeVar("Result")


@contextmanager
def database_server(settings: Settings, *, adopt: bool = False, ephemeral: bool = False) -> Iterator[Settings]:
    """The settings with the URL of a database that runs until the end of the block. Raises EmbeddedError."""
    if settings.database_url is not None and not ephemeral:
        yield settings
        return
    server = EmbeddedServer.ephemeral(say=say) if ephemeral else EmbeddedServer.open(settings.data_dir, adopt=adopt, say=say)
    with server:
        yield settings.model_copy(update={"database_url": server.url, "listen_url": None})


def url_of(settings: Settings) -> str:
    """The URL of settings that came from `database_server`."""
    if settings.database_url is None:
        raise AssertionError
    return settings.database_url


def administer(settings: Settings, call: Callable[[Database], Awaitable[Result]]) -> Result:
    """Runs an administrative command on the database.

    An embedded one is migrated if it must be, since nobody does that by hand for a data directory; on any other
    SchemaMissing says what to do.
    """
    may_migrate = settings.database_url is None
    with database_server(settings) as served:
        return asyncio.run(_administer(url_of(served), call, may_migrate=may_migrate))


async def _administer(url: str, call: Callable[[Database], Awaitable[Result]], *, may_migrate: bool) -> Result:
    database = Database(url, pool_size=2, application_name="tenure admin")
    try:
        try:
            await _check(database)
        except SchemaMissing:
            if not may_migrate:
                raise
            await upgrade(url)
            await _check(database)
        return await call(database)
    finally:
        await database.dispose()


async def _check(database: Database) -> None:
    async with database.statement() as connection:
        await check_compatible(connection)
