"""Following a job over a connection that breaks: a scripted source, so that every break comes at its place."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from tenure.cli.client import ApiRefused, ApiUnreachable, Job
from tenure.cli.job_view import plain
from tenure.cli.watch import watch
from tenure.db.errors import NotFound

BROKEN = ApiUnreachable("broken")


def snapshot(version: int, state: str = "RUNNING", **changes: Any) -> Job:
    progress = {"total": 10, "done": version, "succeeded": version, "skipped": 0, "failed": 0, "message": None}
    return {
        "id": "job",
        "version": version,
        "state": state,
        "isTerminal": state not in ("QUEUED", "RUNNING"),
        "progress": progress,
        "attempt": 1,
        "maxAttempts": 3,
        "cancelRequestedAt": None,
        **changes,
    }


class Script:
    """Answers reads and streams in the order given; an exception is raised in its place."""

    def __init__(self, reads: Sequence[Job | Exception], streams: Sequence[Sequence[Job | Exception]]) -> None:
        self._reads = list(reads)
        self._streams = list(streams)
        self.since: list[int] = []

    async def read(self, job_id: str) -> Job:
        answer = self._reads.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def stream(self, job_id: str, since_version: int) -> AsyncGenerator[Job, None]:
        self.since.append(since_version)
        for answer in self._streams.pop(0) if self._streams else [BROKEN]:
            if isinstance(answer, Exception):
                raise answer
            yield answer


async def versions(script: Script) -> tuple[list[int], list[str | None]]:
    troubles: list[str | None] = []
    seen = [job["version"] async for job in watch(script, "job", on_trouble=troubles.append, poll_seconds=0)]
    return seen, troubles


async def test_a_stream_ends_with_the_terminal_snapshot() -> None:
    script = Script([snapshot(1)], [[snapshot(2), snapshot(3, "SUCCEEDED"), snapshot(4)]])
    assert await versions(script) == ([1, 2, 3], [None, None])


async def test_an_ended_job_needs_no_stream() -> None:
    script = Script([snapshot(9, "FAILED")], [])
    assert await versions(script) == ([9], [])


async def test_a_broken_stream_goes_on_behind_the_last_version() -> None:
    script = Script([snapshot(1), snapshot(2)], [[snapshot(2), BROKEN], [snapshot(3), snapshot(4, "CANCELLED")]])
    assert (await versions(script))[0] == [1, 2, 3, 4]
    assert script.since == [1, 2]


async def test_polling_alone_arrives() -> None:
    script = Script([snapshot(1), snapshot(1), BROKEN, snapshot(5), snapshot(6, "SUCCEEDED")], [])
    assert (await versions(script))[0] == [1, 5, 6]


async def test_a_stream_that_ends_early_is_no_end() -> None:
    script = Script([snapshot(1), snapshot(2)], [[], [snapshot(3, "SUCCEEDED")]])
    assert (await versions(script))[0] == [1, 2, 3]


async def test_what_a_stream_says_twice_is_left_out() -> None:
    script = Script([snapshot(3)], [[snapshot(2), snapshot(3), snapshot(4), snapshot(4), snapshot(5, "FAILED")]])
    assert (await versions(script))[0] == [3, 4, 5]


@pytest.mark.parametrize("error", [BROKEN, NotFound("none"), ApiRefused("no")])
async def test_the_first_answer_must_come(error: Exception) -> None:
    with pytest.raises(type(error)):
        await versions(Script([error], []))


@pytest.mark.parametrize("error", [NotFound("gone"), ApiRefused("no right any more")])
async def test_a_right_that_is_lost_ends_the_watch(error: Exception) -> None:
    with pytest.raises(type(error)):
        await versions(Script([snapshot(1), error], [[BROKEN]]))


def test_a_line_says_what_matters() -> None:
    assert plain(snapshot(4)) == "RUNNING 4 of 10"
    progress = {"total": None, "done": 3, "succeeded": 1, "skipped": 1, "failed": 1, "message": "halfway"}
    asked = snapshot(1, progress=progress, attempt=2, cancelRequestedAt="2026-01-01T00:00:00Z")
    assert plain(asked) == "RUNNING 3 of ?, 1 skipped, 1 failed, halfway (cancel requested) (attempt 2 of 3)"
