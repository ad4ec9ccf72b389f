"""The revisions make what the models declare, can be undone, and run once however many ask."""

import asyncio

import pytest

from tenure.db import migrate
from tenure.db.engine import Database
from tenure.db.errors import SchemaMissing, SchemaTooNew
from tests.conftest import execute, url_of
from tests.factories import Seed


@pytest.fixture
def empty_url(server_url: str, database_url: str) -> str:
    """A database of the test's own with nothing in it."""
    name = database_url.rsplit("/", 1)[1]
    asyncio.run(execute(server_url, f"DROP DATABASE {name}", f"CREATE DATABASE {name}"))
    return url_of(server_url, name)


async def test_models_and_migrations_agree(database_url: str) -> None:
    """`alembic check`."""
    await migrate.check(database_url)


async def test_up_down_and_up_again(empty_url: str) -> None:
    await migrate.upgrade(empty_url)
    await migrate.downgrade(empty_url, "base")
    database = Database(empty_url)
    async with database.statement() as connection:
        left = await connection.exec_driver_sql(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname !~ 'alembic_version'"
            " UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
        )
        assert list(left.scalars()) == []
    await database.dispose()
    await migrate.upgrade(empty_url)
    await migrate.check(empty_url)


async def test_two_at_once_migrate_once(empty_url: str) -> None:
    await asyncio.gather(*(migrate.upgrade(empty_url) for _ in range(3)))
    await migrate.check(empty_url)


async def test_the_version_gate(seed: Seed) -> None:
    await seed.database.run(migrate.check_compatible)
    await seed.execute("UPDATE schema_info SET version = version + 1")  # newer, but this software may go on
    await seed.database.run(migrate.check_compatible)
    await seed.execute("UPDATE schema_info SET oldest_compatible = version")
    with pytest.raises(SchemaTooNew, match="Upgrade Tenure"):
        await seed.database.run(migrate.check_compatible)
    await seed.execute("UPDATE schema_info SET version = 0, oldest_compatible = 0")
    with pytest.raises(SchemaMissing, match="tenure migrate"):
        await seed.database.run(migrate.check_compatible)


async def test_a_database_without_a_schema(empty_url: str) -> None:
    database = Database(empty_url)
    with pytest.raises(SchemaMissing, match="tenure migrate"):
        await database.run(migrate.check_compatible)
    await database.dispose()
