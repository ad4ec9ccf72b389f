"""The main job, end to end: a real course is imported and tagged by real processes while real clients watch."""

import asyncio
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from gql import Client as GqlClient
from gql import gql
from gql.transport.websockets import WebsocketsTransport

from tenure.db.courses import list_pages
from tests.e2e.conftest import CANCEL, PROGRESS, RETRY, Client, Services
from tests.factories import Seed, lock_page

pytestmark = pytest.mark.e2e


async def import_course(services: Services, directory: Path, slug: str = "book") -> UUID:
    command = services.command("course", "import", "--workspace", "acme", "--slug", slug, str(directory))
    assert await command.ended() == 0
    return UUID(command.output.splitlines()[-1])


async def pages_of(seed: Seed, course_id: UUID) -> list[Any]:
    async with seed.database.statement() as connection:
        return await list_pages(connection, course_id, limit=10_000)


async def watch(api_url: str, token: str, job_id: str) -> list[dict[str, Any]]:
    """Every snapshot of a job, until the stream completes."""
    transport = WebsocketsTransport(
        url=api_url.replace("http", "ws") + "/graphql", init_payload={"Authorization": f"Bearer {token}"}
    )
    async with GqlClient(transport=transport) as session:
        request = gql(PROGRESS)
        request.variable_values = {"id": job_id}
        return [snapshot["jobProgress"] async for snapshot in session.subscribe(request)]


def markdown(directory: Path) -> dict[str, bytes]:
    found = {p.relative_to(directory).as_posix(): p.read_bytes() for p in directory.rglob("*.md")}
    found.pop("SUMMARY.md", None)
    return found


async def test_a_course_is_imported_tagged_and_watched(
    seed: Seed, services: Services, http: httpx.AsyncClient, course_directory: Path
) -> None:
    files = markdown(course_directory)
    course_id = await import_course(services, course_directory)
    first = await pages_of(seed, course_id)
    assert {p.path: p.body.encode() for p in first} == files
    assert await import_course(services, course_directory) == course_id
    assert await pages_of(seed, course_id) == first  # the same pages, the same etags

    api = await services.api()
    client = Client(http, api.url, await seed.token())
    async with seed.database.transaction() as session:  # nobody is done before everybody watches
        await lock_page(session, first[-1].id)
        answer = await client.tag(seed.workspace_id, course_id, "read", key="once")
        assert (answer["__typename"], answer["replayed"], answer["job"]["state"]) == ("EnqueueJobPayload", False, "QUEUED")
        job_id = answer["job"]["id"]
        watching = asyncio.create_task(watch(api.url, client.token, job_id))
        command = services.command("job", "watch", job_id, "--json", TENURE_URL=api.url, TENURE_TOKEN=client.token)
        services.worker()
        while (await client.job(job_id))["progress"]["done"] < len(files) - 1:
            pass
        await command.until_output('"state":"RUNNING"')
    snapshots = await watching
    assert await command.ended() == 0

    by_command = [json.loads(line) for line in command.output.splitlines() if line.startswith("{")]
    for seen in (snapshots, by_command):
        versions = [s["version"] for s in seen]
        assert versions == sorted(set(versions))
        assert len(versions) >= 3
        assert seen[-1]["state"] == "SUCCEEDED"
    last = snapshots[-1]
    assert (last["state"], last["result"]) == ("SUCCEEDED", {"tagged": len(files), "skipped": 0, "failed": 0})
    assert last == await client.job(job_id)
    after = await pages_of(seed, course_id)
    assert {p.path: p.body.encode() for p in after} == files
    assert all(p.tags == ["read"] for p in after)

    replay = await client.tag(seed.workspace_id, course_id, "read", key="once")
    assert (replay["replayed"], replay["job"]["id"], replay["job"]["state"]) == (True, job_id, "SUCCEEDED")
    again = await client.tag(seed.workspace_id, course_id, "read")
    snapshots = await watch(api.url, client.token, again["job"]["id"])
    assert snapshots[-1]["result"] == {"tagged": 0, "skipped": len(files), "failed": 0}


@pytest.mark.guarantee(4)
async def test_g4_one_key_fifty_times_at_once(seed: Seed, services: Services, http: httpx.AsyncClient) -> None:
    api = await services.api(TENURE_ADMIN_MAX_PENDING_PER_WORKSPACE="1")
    client = Client(http, api.url, await seed.token())
    course_id = await seed.course("c", ["x"])
    answers = await asyncio.gather(*(client.tag(seed.workspace_id, course_id, "a", key="k") for _ in range(50)))
    (job_id,) = {a["job"]["id"] for a in answers}
    assert sorted(a["replayed"] for a in answers) == [False] + [True] * 49
    assert await seed.actions(UUID(job_id)) == ["job.queued"]
    conflict = await client.tag(seed.workspace_id, course_id, "b", key="k")
    assert (conflict["__typename"], conflict["code"]) == ("IdempotencyConflict", "IDEMPOTENCY_CONFLICT")
    full = await client.tag(seed.workspace_id, course_id, "b", key="other")
    assert (full["limit"], full["queue"], full["used"], full["max"]) == ("PENDING_PER_WORKSPACE", "admin", 1, 1)
    assert (await client.tag(seed.workspace_id, course_id, "a", key="k"))["job"]["id"] == job_id  # at capacity
    services.worker()
    await watch(api.url, client.token, job_id)
    ended = await client.tag(seed.workspace_id, course_id, "a", key="k")
    assert (ended["replayed"], ended["job"]["id"], ended["job"]["state"]) == (True, job_id, "SUCCEEDED")
    assert await seed.actions(UUID(job_id)) == ["job.queued", "job.succeeded"]


async def test_cancel_and_retry_by_an_operator(seed: Seed, services: Services, http: httpx.AsyncClient) -> None:
    api = await services.api()
    client = Client(http, api.url, await seed.token())
    course_id = await seed.course("c", [str(n) for n in range(8)])
    held = (await pages_of(seed, course_id))[3]
    async with seed.database.transaction() as session:
        await lock_page(session, held.id)
        job_id = (await client.tag(seed.workspace_id, course_id, "a"))["job"]["id"]
        watching = asyncio.create_task(watch(api.url, client.token, job_id))
        services.worker()
        while (await client.job(job_id))["progress"]["done"] < 3:
            pass
        assert (await client.ask(CANCEL, id=job_id))["job"]["state"] == "RUNNING"
    cancelled = (await watching)[-1]
    assert cancelled["state"] == "CANCELLED"
    assert cancelled["progress"]["done"] in (3, 4)
    retried = await client.ask(RETRY, id=job_id)
    assert (retried["__typename"], retried["job"]["id"]) == ("RetryJobPayload", job_id)
    ended = (await watch(api.url, client.token, job_id))[-1]
    done = cancelled["progress"]["done"]
    assert (ended["state"], ended["result"]) == ("SUCCEEDED", {"tagged": 8 - done, "skipped": done, "failed": 0})
