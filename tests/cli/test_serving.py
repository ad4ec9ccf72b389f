"""Serving processes: their start, what they print, and their end. Real processes and signals."""

import asyncio
import json
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from gql import Client as GraphQLClient
from gql import GraphQLRequest
from gql.client import AsyncClientSession
from gql.transport.exceptions import TransportError
from gql.transport.websockets import WebsocketsTransport

from tenure.cli.demo import demo_course_directory, invitation, prepare_demo
from tenure.db.states import JobState
from tests.factories import Seed
from tests.processes import FAST, TENURE, Api, Process

pytestmark = pytest.mark.e2e

KINDS = """
import asyncio
import threading
from tenure import JobContext, SyncJobContext, kind

@kind("t.patient")
async def patient(ctx: JobContext) -> None:
    while True:
        await ctx.checkpoint()
        await asyncio.sleep(0.01)

@kind("t.deaf")
def deaf(ctx: SyncJobContext) -> None:
    threading.Event().wait()
"""
ENQUEUE = """mutation ($input: EnqueueJobInput!) {
  enqueueJob(input: $input) { ... on EnqueueJobPayload { job { id } } ... on Error { code message } } }"""
CANCEL = "mutation ($id: ID!) { cancelJob(input: {id: $id}) { __typename } }"
PROGRESS = "subscription ($id: ID!) { jobProgress(id: $id) { version state } }"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def env(database_url: str, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "serving_kinds.py").write_text(KINDS)
    kinds = {"TENURE_KINDS": "serving_kinds", "PYTHONPATH": str(tmp_path)}
    return {**FAST, **kinds, "TENURE_DATABASE_URL": database_url}


async def ask(http: httpx.AsyncClient, api: Api, seed: Seed, query: str, **variables: Any) -> Any:
    headers = {"Authorization": f"Bearer {await seed.token()}"}
    answer = await http.post(f"{api.url}/graphql", json={"query": query, "variables": variables}, headers=headers)
    (data,) = answer.json()["data"].values()
    return data


async def enqueue(http: httpx.AsyncClient, api: Api, seed: Seed, kind: str) -> str:
    given = {"workspaceId": str(seed.workspace_id), "kind": kind, "params": {}, "idempotencyKey": str(uuid4())}
    job_id: str = (await ask(http, api, seed, ENQUEUE, input=given))["job"]["id"]
    return job_id


async def cancel(http: httpx.AsyncClient, api: Api, seed: Seed, job_id: str) -> None:
    assert (await ask(http, api, seed, CANCEL, id=job_id))["__typename"] == "CancelJobPayload"


async def until_state(seed: Seed, job_id: str, state: str) -> None:
    while await seed.scalar("SELECT state FROM job WHERE id = CAST(:id AS uuid)", id=job_id) != state:
        await asyncio.sleep(0.01)  # a poll of the row


async def test_ephemeral_serves_and_leaves_nothing(stack: ExitStack, http: httpx.AsyncClient) -> None:
    up = await stack.enter_context(Api("up", "--ephemeral", env=FAST)).until_ready()
    await up.until_output("Its database, thrown away at exit: postgresql://")
    assert f"Tenure is up at {up.url}" in up.output
    assert (await http.get(f"{up.url}/livez")).status_code == 200
    created = re.search(r"Creating the database in (\S+)", up.output)
    assert created is not None
    assert Path(created[1]).is_dir()
    up.signal(signal.SIGTERM)
    assert await up.ended() == 0, up.output
    assert not Path(created[1]).exists()
    assert "Traceback" not in up.output


async def test_a_port_in_use_is_told_before_anything_is_started(stack: ExitStack, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        up = stack.enter_context(Process("up", "--port", port, "--data-dir", str(tmp_path / "data"), env=FAST))
        assert await up.ended() == 1
    assert up.output == f"tenure: Port {port} of 127.0.0.1 is in use. Choose another with --port, or 0 for a free one.\n"
    assert not (tmp_path / "data").exists()


async def test_api_and_worker_do_not_migrate(stack: ExitStack, unmigrated_url: str) -> None:
    env = {**FAST, "TENURE_DATABASE_URL": unmigrated_url}
    processes = [stack.enter_context(Process(*role, env=env)) for role in (("api", "--port", "0"), ("worker",))]
    for process in processes:
        assert await process.ended() == 1
        assert process.output == "tenure: The database has no Tenure schema. Run `tenure migrate`.\n"


async def test_a_schema_too_new_ends_what_runs(stack: ExitStack, seed: Seed, env: dict[str, str]) -> None:
    api = await stack.enter_context(Api(env=env)).until_ready()
    worker = stack.enter_context(Process("worker", env=env))
    await worker.until_output("Worker started")
    await seed.execute("UPDATE schema_info SET version = 99, oldest_compatible = 99")
    for process in (api, worker):
        assert await process.ended() == 1, process.output
        assert "Upgrade Tenure." in process.output
        assert "Traceback" not in process.output


async def test_the_end_releases_jobs_and_sends_clients_back(
    stack: ExitStack, seed: Seed, env: dict[str, str], http: httpx.AsyncClient
) -> None:
    up = await stack.enter_context(Api("up", env=env)).until_ready()
    job_id = await enqueue(http, up, seed, "t.patient")
    await until_state(seed, job_id, "RUNNING")
    transport = WebsocketsTransport(
        f"ws{up.url.removeprefix('http')}/graphql",
        init_payload={"Authorization": f"Bearer {await seed.token()}"},
        subprotocols=[WebsocketsTransport.GRAPHQLWS_SUBPROTOCOL],
    )
    states: list[str] = []

    async def watch(session: AsyncClientSession) -> None:
        async for answer in session.subscribe(GraphQLRequest(PROGRESS, variable_values={"id": job_id})):
            if not states:
                up.signal(signal.SIGTERM)
            states.append(answer["jobProgress"]["state"])

    async with GraphQLClient(transport=transport) as session:
        with pytest.raises(TransportError) as closed:
            await watch(session)
    assert await up.ended() == 0, up.output
    assert "1012" in str(closed.value.__cause__ or closed.value)
    job = await seed.read(UUID(job_id))
    assert (job.state, job.attempt) == (JobState.QUEUED, 0)


async def test_the_api_serves_while_the_worker_finishes(
    stack: ExitStack, seed: Seed, env: dict[str, str], http: httpx.AsyncClient
) -> None:
    up = await stack.enter_context(Api("up", env={**env, "TENURE_SHUTDOWN_GRACE_SECONDS": "3600"})).until_ready()
    job_id = await enqueue(http, up, seed, "t.patient")
    await until_state(seed, job_id, "RUNNING")
    up.signal(signal.SIGTERM)
    await up.until_output("Stopping signal=SIGTERM")
    await cancel(http, up, seed, job_id)
    assert await up.ended() == 0, up.output
    assert (await seed.read(UUID(job_id))).state is JobState.CANCELLED


async def test_a_second_signal_does_not_wait_for_handlers(
    stack: ExitStack, seed: Seed, env: dict[str, str], http: httpx.AsyncClient
) -> None:
    up = await stack.enter_context(Api("up", env={**env, "TENURE_SHUTDOWN_GRACE_SECONDS": "3600"})).until_ready()
    await until_state(seed, await enqueue(http, up, seed, "t.patient"), "RUNNING")
    up.signal(signal.SIGINT)
    await up.until_output("Stopping signal=SIGINT")
    up.signal(signal.SIGINT)
    assert await up.ended() == 0
    assert "Stopping at once" in up.output


async def test_a_thread_that_never_ends_keeps_no_process(
    stack: ExitStack, seed: Seed, env: dict[str, str], http: httpx.AsyncClient
) -> None:
    up = await stack.enter_context(Api("up", env=env)).until_ready()
    await until_state(seed, await enqueue(http, up, seed, "t.deaf"), "RUNNING")
    up.signal(signal.SIGTERM)
    assert await up.ended() == 0, up.output


async def test_a_watched_job_is_told_as_json_lines(
    stack: ExitStack, seed: Seed, env: dict[str, str], http: httpx.AsyncClient
) -> None:
    up = await stack.enter_context(Api("up", env=env)).until_ready()
    job_id = await enqueue(http, up, seed, "t.patient")
    client = {"TENURE_URL": up.url, "TENURE_TOKEN": await seed.token()}
    watch = stack.enter_context(Process("job", "watch", job_id, "--json", env=client))
    await watch.until_output('"state":"RUNNING"')
    await cancel(http, up, seed, job_id)
    assert await watch.ended() == 3, watch.output
    lines = [json.loads(line) for line in watch.output.splitlines()]
    assert lines[-1]["state"] == "CANCELLED"
    assert [line["version"] for line in lines] == sorted({line["version"] for line in lines})

    for job, token, said in ((str(uuid4()), client["TENURE_TOKEN"], "no job"), (job_id, "tnr_wrong", "tenure: ")):
        refused = stack.enter_context(Process("job", "watch", job, env={**client, "TENURE_TOKEN": token}))
        assert await refused.ended() == 4
        assert said in refused.output
        assert "Traceback" not in refused.output


async def test_the_demo_s_first_command_works_as_printed(
    stack: ExitStack, seed: Seed, env: dict[str, str], tmp_path: Path
) -> None:
    course = tmp_path / "course"
    course.mkdir()
    (course / "a.md").write_bytes(b"# A")
    first = await prepare_demo(env["TENURE_DATABASE_URL"], course)
    again = await prepare_demo(env["TENURE_DATABASE_URL"], course)
    assert (again.workspace_id, again.course_id, again.pages) == (first.workspace_id, first.course_id, 1)

    up = await stack.enter_context(Api("up", env=env)).until_ready()
    shown = invitation(again, up.url)
    assert f"{up.url}/#token={again.token}" in shown
    script = shown[shown.index("export ") :]
    script = re.sub(r"^\S+ job watch", f"{TENURE} job watch", script, flags=re.MULTILINE)
    shell = await asyncio.create_subprocess_exec("sh", "-c", script, stdout=asyncio.subprocess.PIPE, cwd=tmp_path)
    output, _ = await shell.communicate()
    assert shell.returncode == 0, output
    assert json.loads(output.splitlines()[-1]) == {"tagged": 1, "skipped": 0, "failed": 0}


def test_the_demo_s_course_is_packaged() -> None:
    assert demo_course_directory().is_dir()


async def test_a_foreign_server_is_never_stopped(stack: ExitStack, env: dict[str, str], seed: Seed) -> None:
    worker = stack.enter_context(Process("worker", env=env))
    await worker.until_output("Worker started")
    worker.signal(signal.SIGINT)
    assert await worker.ended() == 0
    assert await seed.scalar("SELECT 1") == 1
