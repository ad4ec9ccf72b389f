"""Follows a job to its end, whatever happens to the connection."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Protocol

from tenure.cli.client import ApiUnreachable, Job

POLL_SECONDS = 2.0
MAX_STREAM_PAUSE_SECONDS = 30.0


class Source(Protocol):
    """What a job is watched through; JobApi, but for tests."""

    async def read(self, job_id: str) -> Job: ...

    def stream(self, job_id: str, since_version: int) -> AsyncGenerator[Job, None]: ...


async def watch(
    source: Source, job_id: str, *, on_trouble: Callable[[str | None], None], poll_seconds: float = POLL_SECONDS
) -> AsyncGenerator[Job, None]:
    """Snapshots of the job: the present one, then newer ones, versions rising; ends after the terminal one.

    While the stream is broken the job is polled, and the stream is tried again, less and less often; it goes on behind the
    version last seen. `on_trouble` is told what is wrong, and null when it is over. Raises NotFound and ApiRefused at any
    time, ApiUnreachable only at the start: a server that has once answered is waited for.
    """
    job = await source.read(job_id)
    yield job
    stream_at, pause = 0.0, poll_seconds
    while not job["isTerminal"]:
        if time.monotonic() >= stream_at:
            try:
                async with aclosing(_stream(source, job)) as newer:
                    async for job in newer:
                        pause = poll_seconds
                        on_trouble(None)
                        yield job
            except ApiUnreachable as error:
                on_trouble(error.message)
            if job["isTerminal"]:
                return
            stream_at, pause = time.monotonic() + pause, min(2 * pause, MAX_STREAM_PAUSE_SECONDS)
        try:
            found = await source.read(job_id)
        except ApiUnreachable as error:
            on_trouble(error.message)
        else:
            if found["version"] > job["version"]:
                job = found
                yield job
        if not job["isTerminal"]:
            await asyncio.sleep(poll_seconds)


async def _stream(source: Source, job: Job) -> AsyncGenerator[Job, None]:
    """Newer snapshots only, to the terminal one: what a stream says twice is left out."""
    version = job["version"]
    async for newer in source.stream(job["id"], version):
        if newer["version"] > version or newer["isTerminal"]:
            version = newer["version"]
            yield newer
            if newer["isTerminal"]:
                return
