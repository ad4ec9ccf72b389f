"""Fixtures over a real PostgreSQL: the embedded one, or the server that TENURE_TEST_DATABASE_URL names.

A template database is migrated once a session; every test gets a copy of its own, so that commits, locks and
notifications are real.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import asyncpg
import httpx
import pytest
from sqlalchemy import make_url

from tenure.db.embedded import EmbeddedServer
from tenure.db.engine import Database
from tenure.db.migrate import upgrade
from tests.factories import Seed, seed_workspace

for name in [n for n in os.environ if n.startswith("TENURE_") and not n.startswith("TENURE_TEST_")]:
    del os.environ[name]

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """A URL with the right to create databases."""
    given = os.environ.get("TENURE_TEST_DATABASE_URL")
    if given:
        yield given
        return
    server = EmbeddedServer.ephemeral()
    try:
        yield server.url
    finally:
        server.close()


def url_of(server_url: str, database: str) -> str:
    return make_url(server_url).set(database=database).render_as_string(hide_password=False)


async def execute(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


_numbers = count(1)


@pytest.fixture(scope="session")
def template(server_url: str) -> Iterator[str]:
    """The name of a migrated database that nobody is connected to."""
    name = f"tenure_template_{os.getpid()}"

    async def make() -> None:
        await execute(server_url, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
        await upgrade(url_of(server_url, name))

    asyncio.run(make())
    yield name
    asyncio.run(execute(server_url, f"DROP DATABASE {name}"))


@pytest.fixture
def database_url(server_url: str, template: str) -> Iterator[str]:
    """A fresh, migrated database of the test's own."""
    name = f"tenure_test_{os.getpid()}_{next(_numbers)}"
    asyncio.run(execute(server_url, f"CREATE DATABASE {name} TEMPLATE {template}"))
    yield url_of(server_url, name)
    asyncio.run(execute(server_url, f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = Database(database_url, pool_size=20, application_name="test", idle_in_transaction_seconds=600)
    yield database
    await database.dispose()


@pytest.fixture
async def seed(database: Database) -> Seed:
    """Workspace `acme` with an administrator."""
    return await seed_workspace(database, "acme")


@pytest.fixture(scope="session")
def course_directory() -> Path:
    """A real course: TENURE_TEST_COURSE, else the project's own docs."""
    return Path(os.environ.get("TENURE_TEST_COURSE", REPOSITORY / "docs"))


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    """For talking to real API processes."""
    async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=60)) as client:
        yield client
