"""graphql-transport-ws: close codes, malformed frames, and who may open a socket."""

import asyncio
import json
from typing import Any

import pytest
import websockets

from tests.app.conftest import WAIT_SECONDS, Api, Socket

MALFORMED: list[str | bytes] = [
    "[]",
    "1",
    "null",
    '"x"',
    "{",
    "NaN",
    "[" * 100_000,
    b"{}",
    "{}",
    '{"type": 1}',
    '{"type": "nonsense"}',
    '{"type": "ping", "payload": "x"}',
    '{"type": "complete"}',
    '{"type": "complete", "id": {}}',
    '{"type": "subscribe", "payload": {"query": "{__typename}"}}',
    '{"type": "subscribe", "id": "", "payload": {"query": "{__typename}"}}',
    '{"type": "subscribe", "id": {}, "payload": {"query": "{__typename}"}}',
    '{"type": "subscribe", "id": "1"}',
    '{"type": "subscribe", "id": "1", "payload": "x"}',
    '{"type": "subscribe", "id": "1", "payload": {"query": 5}}',
    '{"type": "subscribe", "id": "1", "payload": {"query": "{__typename}", "variables": [1]}}',
    '{"type": "subscribe", "id": "1", "payload": {"query": "{__typename}", "operationName": 1}}',
]


@pytest.mark.parametrize("frame", MALFORMED, ids=range(len(MALFORMED)))
async def test_a_malformed_frame_closes_with_4400(api: Api, frame: str | bytes) -> None:
    async with api.socket() as socket:
        await socket.send(frame)
        assert await socket.close_code() == 4400


async def raw(api: Api, *messages: Any) -> int:
    """The close code that the messages lead to on a fresh socket."""
    async with api.open_socket() as connection:
        socket = Socket(connection)
        for message in messages:
            await socket.send(message)
        return await socket.close_code()


INIT = {"type": "connection_init"}
SUBSCRIBE = {"id": "1", "type": "subscribe", "payload": {"query": "{ __typename }"}}


async def test_a_second_init_closes_with_4429(api: Api) -> None:
    assert await raw(api, INIT, INIT) == 4429


async def test_an_operation_before_the_init_closes_with_4401(api: Api) -> None:
    assert await raw(api, SUBSCRIBE) == 4401


@pytest.mark.parametrize("payload", [{"Authorization": "Bearer wrong"}, {"authorization": "Basic x"}, {"Authorization": 5}])
async def test_an_invalid_token_closes_with_4403(api: Api, payload: dict[str, Any]) -> None:
    assert await raw(api, {**INIT, "payload": payload}) == 4403


async def test_the_token_may_come_in_the_header(api: Api) -> None:
    async with api.open_socket(**api.headers()) as connection:
        socket = Socket(connection)
        await socket.send({**INIT, "payload": None})
        await socket.receive()
        await socket.subscribe("{ viewer { actor { email } } }")
        data = (await socket.receive())["payload"]["data"]
    assert data["viewer"]["actor"]["email"] == api.seed.email


async def test_an_invalid_header_closes_with_4403(api: Api) -> None:
    async with api.open_socket(Authorization="Bearer wrong") as connection:
        socket = Socket(connection)
        await socket.send(INIT)
        assert await socket.close_code() == 4403


async def test_the_same_id_twice_closes_with_4409(api: Api) -> None:
    job = await api.seed.job()
    async with api.socket() as socket:
        await socket.watch(job.id)
        await socket.snapshot()
        await socket.watch(job.id)
        assert await socket.close_code() == 4409


async def test_another_protocol_closes_with_4406(api: Api) -> None:
    async with websockets.connect(
        f"ws://{api.address}/graphql", subprotocols=[websockets.Subprotocol("graphql-ws")]
    ) as connection:
        assert await Socket(connection).close_code() == 4406


async def test_another_origin_is_refused(api: Api) -> None:
    with pytest.raises(websockets.InvalidStatus) as refused:
        async with api.open_socket(Origin="https://elsewhere.example"):
            pass
    assert refused.value.response.status_code == 403


async def test_pings_are_answered(api: Api) -> None:
    async with api.socket() as socket:
        await socket.send({"type": "ping"})
        assert (await socket.receive())["type"] == "pong"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("{", "BAD_REQUEST"),
        ("{ nonsense }", "BAD_REQUEST"),
        ("query A { __typename } query B { __typename }", "BAD_REQUEST"),
        ("{ jobKinds { name } }", "UNAUTHENTICATED"),
        ("{ a0: __typename " + " ".join(f"a{n}: __typename" for n in range(1, 60)) + "}", "TOO_COMPLEX"),
    ],
)
async def test_an_operations_error_leaves_the_socket_open(api: Api, query: str, code: str) -> None:
    async with api.socket("") as socket:
        await socket.subscribe(query)
        assert (await socket.error())["extensions"]["code"] == code
        await socket.subscribe("{ __typename }", "2")
        while (message := await socket.receive())["id"] != "2":
            pass
        assert message["payload"]["data"] == {"__typename": "Query"}


async def test_a_socket_runs_so_many_operations(api: Api) -> None:
    job = await api.seed.job()
    async with api.socket() as socket:
        for n in range(101):
            await socket.watch(job.id, str(n))
        messages = [await socket.receive() for _ in range(101)]
    (error,) = [m for m in messages if m["type"] == "error"]
    assert error["id"] == "100"
    assert error["payload"][0]["extensions"]["code"] == "TOO_MANY_SUBSCRIPTIONS"


async def test_a_document_of_two_operations_needs_a_name(api: Api) -> None:
    query = "query A { a: __typename } query B { b: __typename }"
    async with api.socket() as socket:
        await socket.send({"id": "1", "type": "subscribe", "payload": {"query": query, "operationName": "B"}})
        assert (await socket.receive())["payload"]["data"] == {"b": "Query"}


async def test_frames_are_text(api: Api) -> None:
    async with api.open_socket() as connection:
        await connection.send(json.dumps(INIT))
        async with asyncio.timeout(WAIT_SECONDS):
            assert isinstance(await connection.recv(), str)
