"""Hints that a job has changed: who sends them, how they look on the wire, and the one LISTEN connection of a process.

A hint is never the truth: it says where to look. It is sent after the commit, many in one payload, from a connection of its
own, because a transaction that notifies holds one lock of the whole cluster until it has committed. A lost one costs
latency only; after a broken connection every listener gets RESYNC and reads again.
"""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

import asyncpg
from broadcaster import BroadcastBackend, Event

from tenure.db.engine import is_unavailable

logger = logging.getLogger(__name__)

CHANNEL = "tenure"
"""The one channel of an installation's database, and the topic under which broadcaster fans it out in the process."""

RESYNC = "resync"
"""The message that stands for "hints may have been missed": read again whatever you watch."""

COALESCE_SECONDS = 0.03
MAX_PAYLOAD_BYTES = 7_900
PING_SECONDS = 10.0
PING_TIMEOUT_SECONDS = 5.0
BACKOFF_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
MAX_UNSENT = 50_000
"""Above it, while the database is away, hints are dropped: the resync after the reconnect covers them."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A job has this version now. `is_ready`: it waits for a worker."""

    job_id: UUID
    version: int
    is_ready: bool = False


def encode_hints(hints: Iterable[Hint]) -> list[str]:
    """Payloads of less than 8,000 bytes: `<id in 32 hex digits>:<version>[:q]`, separated by commas."""
    payloads: list[str] = []
    current = ""
    for hint in hints:
        part = f"{hint.job_id.hex}:{hint.version}{':q' if hint.is_ready else ''}"
        if current and len(current) + 1 + len(part) > MAX_PAYLOAD_BYTES:
            payloads.append(current)
            current = part
        else:
            current = f"{current},{part}" if current else part
    return [*payloads, current] if current else payloads


def decode_hints(payload: str) -> list[Hint]:
    """The hints of one payload. What is malformed (another version's, a stranger's) is left out."""
    hints = []
    for part in payload.split(","):
        fields = part.split(":")
        with suppress(ValueError, IndexError):
            hints.append(Hint(UUID(hex=fields[0]), int(fields[1]), fields[2:] == ["q"]))
    return hints


class HintSender:
    """Sends hints, those of some 30 ms together, newest version of each job only. Sending never fails and never waits."""

    def __init__(self, url: str, *, coalesce_seconds: float = COALESCE_SECONDS) -> None:
        self._url = url
        self._coalesce_seconds = coalesce_seconds
        self._unsent: dict[UUID, Hint] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._connection: asyncpg.Connection | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="hint-sender")

    def send(self, hint: Hint) -> None:
        """Takes a hint along with the next payload. Call it after the commit."""
        known = self._unsent.get(hint.job_id)
        if (known is None or known.version <= hint.version) and len(self._unsent) < MAX_UNSENT:
            self._unsent[hint.job_id] = hint
            self._wake.set()

    async def stop(self) -> None:
        """Sends what is left, within a second, and closes the connection."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        with suppress(Exception):
            async with asyncio.timeout(1):
                await self._flush()
        await self._disconnect()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(self._coalesce_seconds)
            try:
                async with asyncio.timeout(PING_TIMEOUT_SECONDS):
                    await self._flush()
            except Exception as error:
                if not is_unavailable(error) and not isinstance(error, TimeoutError):
                    logger.exception("Sending hints failed", extra={"unsent": len(self._unsent)})
                await self._disconnect()
                await asyncio.sleep(1)

    async def _flush(self) -> None:
        if self._connection is None or self._connection.is_closed():
            # A hint need not survive a crash: the commit that it speaks of does.
            self._connection = await asyncpg.connect(
                self._url,
                timeout=PING_TIMEOUT_SECONDS,
                server_settings={"synchronous_commit": "off", "application_name": "tenure hints"},
            )
        self._wake.clear()
        hints, self._unsent = self._unsent, {}
        try:
            await self._connection.execute(
                "SELECT pg_notify($1, p) FROM unnest($2::text[]) AS p", CHANNEL, encode_hints(hints.values())
            )
        except BaseException:
            self._unsent = {**hints, **self._unsent}
            self._wake.set()
            raise

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()


class ListenBackend(BroadcastBackend):
    """broadcaster's backend over one LISTEN connection that is watched, reconnected and resynchronized.

    `subscribe` and `unsubscribe` never suspend (with one that does, broadcaster loses concurrent subscribers), and
    `next_published` never raises. Until the first connection stands, `connect` waits.
    """

    def __init__(self, url: str, *, ping_seconds: float = PING_SECONDS) -> None:
        self._url = url
        self._ping_seconds = ping_seconds
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._supervisor: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()
        self.reconnects = 0
        self.backend_pid: int | None = None

    @property
    def is_connected(self) -> bool:
        return self._connected.is_set()

    async def connect(self) -> None:
        self._supervisor = asyncio.create_task(self._supervise(), name="listener")
        connected = asyncio.create_task(self._connected.wait())
        with suppress(TimeoutError):  # a database that is away at the start is waited for in the background
            async with asyncio.timeout(PING_TIMEOUT_SECONDS):
                await connected

    async def disconnect(self) -> None:
        if self._supervisor is not None:
            self._supervisor.cancel()
            with suppress(asyncio.CancelledError):
                await self._supervisor

    async def subscribe(self, channel: str) -> None:
        """The one LISTEN stands for every topic."""

    async def unsubscribe(self, channel: str) -> None:
        """The one LISTEN stands for every topic."""

    async def publish(self, channel: str, message: str) -> None:
        """In this process only; other processes are told by HintSender."""
        self._events.put_nowait(Event(channel, message))

    async def next_published(self) -> Event:
        return await self._events.get()

    async def _supervise(self) -> None:
        failures = 0
        while True:
            try:
                await self._listen()
                failures = 0
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                was_connected = self._connected.is_set()
                self._connected.clear()
                failures = 1 if was_connected else failures + 1
                logger.warning("The listener lost its connection", extra={"error": type(error).__name__})
            await asyncio.sleep(BACKOFF_SECONDS[min(failures, len(BACKOFF_SECONDS)) - 1])

    async def _listen(self) -> None:
        connection = await asyncpg.connect(
            self._url, timeout=PING_TIMEOUT_SECONDS, server_settings={"application_name": "tenure listener"}
        )
        broken = asyncio.Event()
        connection.add_termination_listener(lambda _: broken.set())
        try:
            await connection.add_listener(CHANNEL, self._received)
            self.backend_pid = connection.get_server_pid()
            self.reconnects += 1
            self._connected.set()
            self._events.put_nowait(Event(CHANNEL, RESYNC))  # after LISTEN: what came before it was missed
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._ping_seconds):
                        await broken.wait()
                # A half-open socket is silent for ever; a query on it times out, and on a closed one it raises.
                await connection.fetchval("SELECT 1", timeout=PING_TIMEOUT_SECONDS)
        finally:
            connection.terminate()

    def _received(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        self._events.put_nowait(Event(CHANNEL, str(payload)))
