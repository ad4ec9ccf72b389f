"""The database server is killed and started in the middle of a course: API, worker and watcher go on by themselves."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from uuid import UUID

import httpx
import pytest

from tenure.db.embedded import EmbeddedServer
from tenure.db.engine import Database
from tenure.db.migrate import upgrade
from tests.e2e.conftest import Client
from tests.factories import lock_page, seed_workspace
from tests.faults.conftest import Course
from tests.processes import FAST, Api, Process

pytestmark = [pytest.mark.e2e, pytest.mark.guarantee(1)]
PAGES = 20


@pytest.fixture
def own_server() -> Iterator[EmbeddedServer]:
    """A server that may be killed; it is durable like any."""
    server = EmbeddedServer.ephemeral()
    try:
        yield server
    finally:
        server.close()


async def test_g1_a_killed_database_server_loses_nothing(own_server: EmbeddedServer, http: httpx.AsyncClient) -> None:
    await upgrade(own_server.url)
    database = Database(own_server.url)
    seed = await seed_workspace(database, "acme")
    course = Course(seed, await seed.course("book", [f"# {n}\n" for n in range(PAGES)]))
    env = {**FAST, "TENURE_DATABASE_URL": own_server.url}
    with ExitStack() as stack:
        api = await stack.enter_context(Api(env=env)).until_ready()
        client = Client(http, api.url, await seed.token())
        pages = await course.pages()
        lock = await hold_page(database, pages[7].id)
        answer = await client.tag(seed.workspace_id, course.id, "a", key="k")
        job_id = UUID(answer["job"]["id"])
        watch = stack.enter_context(
            Process("job", "watch", str(job_id), env={**env, "TENURE_URL": api.url, "TENURE_TOKEN": client.token})
        )
        worker = stack.enter_context(Process("worker", env=env))
        await course.until(job_id, lambda j: j.succeeded == 7)
        await asyncio.to_thread(own_server.kill)
        lock.cancel()  # its connection died with the server
        await asyncio.gather(lock, return_exceptions=True)
        await asyncio.to_thread(own_server.restart)
        while (await read_again(client, job_id))["state"] not in ("SUCCEEDED", "FAILED"):
            pass
        ended = await client.job(str(job_id))
        assert (ended["state"], ended["result"]) == ("SUCCEEDED", {"tagged": PAGES, "skipped": 0, "failed": 0})
        assert all(p.tags == ["a"] for p in await course.pages())
        assert await watch.ended() == 0
        assert worker.popen.poll() is None
        assert api.popen.poll() is None
        replay = await client.tag(seed.workspace_id, course.id, "a", key="k")
        assert (replay["replayed"], replay["job"]["id"]) == (True, str(job_id))
    await database.dispose()


async def hold_page(database: Database, page_id: UUID) -> asyncio.Task[None]:
    """Holds a page until it is cancelled."""
    held = asyncio.Event()

    async def hold() -> None:
        async with database.transaction() as session:
            await lock_page(session, page_id)
            held.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(hold())
    await held.wait()
    return task


async def read_again(client: Client, job_id: UUID) -> dict[str, str]:
    """The job, as soon as the API reaches its database again."""
    while True:
        response = await client.http.post(
            f"{client.api_url}/graphql",
            json={"query": "query ($id: ID!) { job(id: $id) { state } }", "variables": {"id": str(job_id)}},
            headers={"Authorization": f"Bearer {client.token}"},
        )
        body = response.json()
        if "errors" not in body:
            job: dict[str, str] = body["data"]["job"]
            return job
        assert body["errors"][0]["extensions"]["code"] == "UNAVAILABLE", body
