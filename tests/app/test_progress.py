"""jobProgress on a real socket: what arrives, in which order, and what ends it."""

import asyncio
import json
from uuid import UUID

import pytest
from gql import Client, gql
from gql.transport.websockets import WebsocketsTransport

from tenure.db.commands import Retried, cancel_job, retry_job
from tenure.db.notify import Hint
from tenure.db.states import JobState
from tests.app.conftest import WAIT_SECONDS, Api, Serve
from tests.factories import LIMITS, Seed, seed_workspace

FAST = 0.05
"""Seconds between polls, for what only the poll can tell."""


async def cancel_silently(seed: Seed, job_id: UUID) -> None:
    """Commits a change of which no hint tells."""
    job = await seed.database.run(lambda c: cancel_job(c, job_id, seed.actor_id))
    assert job is not None


async def retry_silently(seed: Seed, job_id: UUID) -> None:
    outcome = await seed.database.run(lambda c: retry_job(c, job_id, seed.actor_id, None, LIMITS))
    assert isinstance(outcome, Retried)


async def cancel(api: Api, job_id: UUID) -> None:
    await api.data("mutation ($id: ID!) { cancelJob(input: {id: $id}) { __typename } }", id=str(job_id))


@pytest.mark.guarantee(6)
async def test_a_change_arrives_by_its_hint_and_the_stream_completes(api: Api) -> None:
    job = await api.seed.job()
    async with api.socket() as socket:
        await socket.watch(job.id)
        first = await socket.snapshot()
        await cancel(api, job.id)
        last = await socket.snapshot()
        assert (await socket.receive())["type"] == "complete"
    assert (first["version"], first["state"], first["isTerminal"]) == (1, "QUEUED", False)
    assert (last["version"], last["state"], last["isTerminal"]) == (2, "CANCELLED", True)


@pytest.mark.guarantee(12)
async def test_with_every_hint_lost_the_poll_delivers(serve: Serve) -> None:
    async with serve(poll_seconds=FAST) as api:
        job = await api.seed.job()
        async with api.socket() as socket:
            await socket.watch(job.id)
            await socket.snapshot()
            await cancel_silently(api.seed, job.id)
            assert (await socket.snapshot())["state"] == "CANCELLED"
            assert (await socket.receive())["type"] == "complete"


async def test_after_a_broken_listener_everything_is_read_again(api: Api) -> None:
    job = await api.seed.job()
    async with api.socket() as socket:
        await socket.watch(job.id)
        await socket.snapshot()
        await cancel_silently(api.seed, job.id)
        await api.seed.scalar("SELECT pg_terminate_backend(:pid)", pid=api.services.listener.backend_pid)
        assert (await socket.snapshot())["state"] == "CANCELLED"


async def test_a_stream_outlives_an_outage_of_the_database(serve: Serve) -> None:
    async with serve(poll_seconds=FAST) as api:
        job = await api.seed.job()
        async with api.socket() as socket:
            await socket.watch(job.id)
            await socket.snapshot()
            await api.seed.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            await cancel_silently(api.seed, job.id)
            assert (await socket.snapshot())["state"] == "CANCELLED"


async def test_an_ended_job_answers_at_once_and_completes(api: Api) -> None:
    job = await api.seed.job()
    await cancel_silently(api.seed, job.id)
    async with api.socket() as socket:
        for since in (None, 1, 2, 99):
            await socket.watch(job.id, operation=str(since), since=since)
            assert (await socket.snapshot())["version"] == 2
            assert (await socket.receive())["type"] == "complete"


async def test_snapshots_that_are_known_are_left_out(api: Api) -> None:
    job = await api.seed.job()
    async with api.socket() as socket:
        await socket.watch(job.id, "known", since=1)
        await socket.watch(job.id, "unknown", since=0)
        message = await socket.receive()
        assert message["id"] == "unknown"
        await cancel(api, job.id)
        messages = [await socket.receive() for _ in range(4)]
    known = [m for m in messages if m["id"] == "known"]
    assert [m["type"] for m in known] == ["next", "complete"]
    assert known[0]["payload"]["data"]["jobProgress"]["version"] == 2


@pytest.mark.guarantee(6)
async def test_a_retry_that_overtakes_the_end_keeps_the_stream_going(api: Api) -> None:
    job = await api.seed.job()
    async with api.socket() as socket:
        await socket.watch(job.id)
        await socket.snapshot()
        await cancel_silently(api.seed, job.id)
        await retry_silently(api.seed, job.id)
        api.services.hints.send(Hint(job.id, 3))
        again = await socket.snapshot()
        assert (again["version"], again["state"]) == (3, "QUEUED")
        await cancel(api, job.id)
        assert (await socket.snapshot())["state"] == "CANCELLED"
        assert (await socket.receive())["type"] == "complete"


@pytest.mark.guarantee(6)
async def test_many_watch_one_job_and_each_sees_it_end(api: Api) -> None:
    job = await api.seed.job()
    async with api.socket() as socket:
        for n in range(50):
            await socket.watch(job.id, str(n))
        for _ in range(50):
            await socket.receive()
        await cancel(api, job.id)
        messages = [await socket.receive() for _ in range(100)]
    assert {m["id"] for m in messages if m["type"] == "complete"} == {str(n) for n in range(50)}


async def test_between_events_no_connection_is_held(api: Api) -> None:
    jobs = [await api.seed.job() for _ in range(30)]
    async with api.socket() as socket:
        for job in jobs:
            await socket.watch(job.id, str(job.id))
        for _ in jobs:
            await socket.receive()
        assert api.app.state.hub.watched == 30
        assert api.services.database.usage()["checked_out"] == 0


async def test_what_is_no_longer_watched_is_forgotten(api: Api) -> None:
    job = await api.seed.job()
    async with api.socket() as socket:
        await socket.watch(job.id)
        await socket.snapshot()
        await socket.send({"id": "1", "type": "complete"})
        await socket.subscribe("{ __typename }", "2")
        assert (await socket.receive())["id"] == "2"
        assert api.app.state.hub.watched == 0


REVOCATIONS = [
    "UPDATE api_token SET revoked_at = clock_timestamp()",
    "UPDATE membership SET is_enabled = false",
    "UPDATE actor SET is_enabled = false",
]


@pytest.mark.guarantee(13)
@pytest.mark.parametrize("revoke", REVOCATIONS)
async def test_a_stream_ends_with_the_right_to_it(serve: Serve, revoke: str) -> None:
    async with serve(poll_seconds=FAST) as api:
        job = await api.seed.job()
        async with api.socket() as socket:
            await socket.watch(job.id)
            await socket.snapshot()
            await api.seed.execute(revoke)
            assert (await socket.error())["extensions"]["code"] == "FORBIDDEN"
            assert await socket.close_code() == 4403


async def test_an_open_socket_starts_nothing_with_a_revoked_token(api: Api) -> None:
    async with api.socket() as socket:
        await api.seed.execute(REVOCATIONS[0])
        await socket.subscribe("{ viewer { actor { name } } }")
        assert await socket.close_code() == 4403


async def test_a_lowered_role_holds_for_the_next_operation_of_a_socket(api: Api) -> None:
    async with api.socket() as socket:
        await api.seed.execute("UPDATE membership SET role = 'VIEWER'")
        job = await api.seed.job()
        await socket.subscribe("mutation ($id: ID!) { cancelJob(input: {id: $id}) { __typename } }", id=str(job.id))
        assert (await socket.receive())["payload"]["data"]["cancelJob"]["__typename"] == "Forbidden"


@pytest.mark.parametrize("job_id", ["nonsense", "0198c0de-0000-7000-8000-00000000cafe", "\0"])
async def test_a_job_that_is_none_is_not_found(api: Api, job_id: str) -> None:
    async with api.socket() as socket:
        await socket.watch(job_id)
        assert (await socket.error())["extensions"]["code"] == "NOT_FOUND"
        assert (await socket.receive())["type"] == "complete"


async def test_another_workspaces_job_is_not_found(api: Api) -> None:
    other = await seed_workspace(api.seed.database, "other")
    job = await other.job()
    async with api.socket() as socket:
        await socket.watch(job.id)
        assert (await socket.error())["extensions"]["code"] == "NOT_FOUND"
    assert api.app.state.hub.watched == 0


async def test_nobody_watches(api: Api) -> None:
    job = await api.seed.job()
    async with api.socket("") as socket:
        await socket.watch(job.id)
        assert (await socket.error())["extensions"]["code"] == "UNAUTHENTICATED"


async def test_a_negative_version_is_a_bad_request(api: Api) -> None:
    job = await api.seed.job()
    async with api.socket() as socket:
        await socket.watch(job.id, since=-1)
        assert (await socket.error())["extensions"]["code"] == "BAD_REQUEST"


async def test_a_shutdown_makes_clients_come_back(api: Api) -> None:
    job = await api.seed.job()
    async with api.socket() as socket:
        await socket.watch(job.id)
        await socket.snapshot()
        closing = asyncio.create_task(socket.close_code())
        await api.app.state.shutdown()
        assert await closing == 1012
        assert api.app.state.hub.watched == 0
    async with api.open_socket() as late:
        await late.wait_closed()
        assert late.close_code == 1012


async def test_a_real_client(api: Api) -> None:
    job = await api.seed.job()
    transport = WebsocketsTransport(f"ws://{api.address}/graphql", init_payload=api.headers())
    query = gql("subscription ($id: ID!) { jobProgress(id: $id) { state version progress { done fraction } } }")
    states = []
    async with asyncio.timeout(WAIT_SECONDS), Client(transport=transport) as session:
        query.variable_values = {"id": str(job.id)}
        async for event in session.subscribe(query):
            states.append(event["jobProgress"]["state"])
            if len(states) == 1:
                await cancel(api, job.id)
    assert states == [JobState.QUEUED, JobState.CANCELLED]


async def test_large_integers_pass_a_socket_unharmed(api: Api) -> None:
    answer = await api.enqueue(kind="test.any", params={"n": 2**70 + 1})
    async with api.socket() as socket:
        await socket.subscribe("query ($id: ID!) { job(id: $id) { params } }", id=answer["job"]["id"])
        message = json.dumps(await socket.receive())
    assert str(2**70 + 1) in message
