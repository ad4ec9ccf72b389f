"""Brings the schema up to date under an advisory lock, and refuses software that is older than the schema allows."""

import asyncio
from importlib.resources import files

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.ext.asyncio import create_async_engine

from tenure.db.engine import Executor, async_url
from tenure.db.errors import SchemaMissing, SchemaTooNew, StorageUnavailable, TenureError

SCHEMA_VERSION = 1
"""The schema that this software is written for, and the number by which the database admits it."""

MIGRATION_LOCK = 0x54454E55  # "TENU"
LOCK_TIMEOUT_SECONDS = 30


def alembic_config(connection: Connection | None = None) -> Config:
    """Alembic's configuration without an ini file; revisions are read from the installed package."""
    config = Config()
    config.set_main_option("script_location", str(files("tenure").joinpath("migrations")))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


async def upgrade(url: str, revision: str = "head") -> None:
    """Runs the revisions that are missing, one process at a time.

    Raises TenureError when another migration holds the lock for longer than the timeout, StorageUnavailable.
    """
    await _run(url, lambda connection: command.upgrade(alembic_config(connection), revision))


async def downgrade(url: str, revision: str) -> None:
    """Undoes revisions. For tests and for operators who have read what is lost."""
    await _run(url, lambda connection: command.downgrade(alembic_config(connection), revision))


async def check(url: str) -> None:
    """Raises alembic's error where models and migrated schema differ."""
    await _run(url, lambda connection: command.check(alembic_config(connection)))


async def _run(url: str, step: object) -> None:
    engine = create_async_engine(
        async_url(url),
        connect_args={
            "timeout": 10,
            "server_settings": {
                "lock_timeout": "4000",
                "statement_timeout": "600000",
                "application_name": "tenure migrate",
            },
        },
    )
    try:
        async with engine.connect() as lock:
            await _take_lock(lock)
            async with engine.connect() as connection:
                await connection.run_sync(step)  # type: ignore[arg-type]
                await connection.commit()
    except OSError as error:
        raise StorageUnavailable("The database cannot be reached.") from error
    finally:
        await engine.dispose()


async def _take_lock(connection: Executor) -> None:
    for _ in range(LOCK_TIMEOUT_SECONDS * 10):
        taken = await connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
        await connection.rollback()
        if taken:
            return
        await asyncio.sleep(0.1)
    raise TenureError(f"Another migration has been running for {LOCK_TIMEOUT_SECONDS} seconds.")


async def check_compatible(executor: Executor) -> None:
    """Raises SchemaTooNew where the database shuts this software out, SchemaMissing where `tenure migrate` has to run first."""
    try:
        row = (await executor.execute(text("SELECT version, oldest_compatible FROM schema_info"))).one_or_none()
    except ProgrammingError as error:
        raise SchemaMissing("The database has no Tenure schema. Run `tenure migrate`.") from error
    if row is None or row.version < SCHEMA_VERSION:
        raise SchemaMissing("The database's schema is older than this software. Run `tenure migrate`.")
    if row.oldest_compatible > SCHEMA_VERSION:
        raise SchemaTooNew(
            f"The database's schema is of version {row.version} and needs software of at least {row.oldest_compatible}; "
            f"this is {SCHEMA_VERSION}. Upgrade Tenure."
        )
