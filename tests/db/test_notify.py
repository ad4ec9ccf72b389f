"""Hints: their form, their sender, and the one listener of a process."""

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import asyncpg
import pytest
from broadcaster import Broadcast

from tenure.db.notify import CHANNEL, RESYNC, Hint, HintSender, ListenBackend, decode_hints, encode_hints
from tests.factories import Seed


@pytest.fixture
async def sender(database_url: str) -> AsyncIterator[HintSender]:
    sender = HintSender(database_url)
    sender.start()
    yield sender
    await sender.stop()


@pytest.fixture
async def backend(database_url: str) -> ListenBackend:
    return ListenBackend(database_url, ping_seconds=0.1)


def test_a_thousand_hints_fit_into_payloads_below_8000_bytes() -> None:
    hints = [Hint(uuid4(), 2**31 - 1, is_ready=n % 2 == 0) for n in range(1000)]
    payloads = encode_hints(hints)
    assert all(len(p.encode()) < 8000 for p in payloads)
    assert len(payloads) < 10
    assert [h for p in payloads for h in decode_hints(p)] == hints
    assert encode_hints([]) == []


@pytest.mark.parametrize("payload", ["", "nonsense", f"{UUID(int=1).hex}", f"{UUID(int=1).hex}:x", ":::", "1:2"])
def test_what_is_malformed_is_left_out(payload: str) -> None:
    good = Hint(UUID(int=7), 3)
    assert decode_hints(",".join([payload, *encode_hints([good])])) == [good]


async def test_hints_are_coalesced_and_the_newest_version_stays(sender: HintSender, backend: ListenBackend) -> None:
    job, other = uuid4(), uuid4()
    async with Broadcast(backend=backend) as broadcast, broadcast.subscribe(CHANNEL) as events:
        assert (await events.get()).message == RESYNC
        for version in (1, 3, 2):
            sender.send(Hint(job, version))
        sender.send(Hint(other, 1, is_ready=True))
        assert decode_hints((await events.get()).message) == [Hint(job, 3), Hint(other, 1, is_ready=True)]


async def test_a_killed_listener_comes_back_and_resynchronizes(seed: Seed, sender: HintSender, backend: ListenBackend) -> None:
    async with Broadcast(backend=backend) as broadcast, broadcast.subscribe(CHANNEL) as events:
        await events.get()
        first = backend.backend_pid
        await seed.execute("SELECT pg_terminate_backend(:pid)", pid=first)
        assert (await events.get()).message == RESYNC
        assert (backend.backend_pid != first, backend.reconnects) == (True, 2)
        sender.send(Hint(UUID(int=5), 1))
        assert decode_hints((await events.get()).message) == [Hint(UUID(int=5), 1)]


async def test_a_killed_sender_sends_again(seed: Seed, sender: HintSender, backend: ListenBackend) -> None:
    async with Broadcast(backend=backend) as broadcast, broadcast.subscribe(CHANNEL) as events:
        await events.get()
        sender.send(Hint(UUID(int=1), 1))
        await events.get()
        await seed.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tenure hints'"
            " AND datname = current_database()"
        )
        sender.send(Hint(UUID(int=2), 1))
        assert decode_hints((await events.get()).message) == [Hint(UUID(int=2), 1)]


async def test_what_is_left_is_sent_at_the_stop(database_url: str) -> None:
    listening = await asyncpg.connect(database_url)
    received: asyncio.Queue[str] = asyncio.Queue()
    await listening.add_listener(CHANNEL, lambda *args: received.put_nowait(str(args[3])))
    sender = HintSender(database_url, coalesce_seconds=3600)
    sender.start()
    sender.send(Hint(UUID(int=9), 4))
    await sender.stop()
    assert decode_hints(await received.get()) == [Hint(UUID(int=9), 4)]
    await listening.close()
