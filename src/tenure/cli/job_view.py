"""How a watched job looks: a live bar on a terminal, a line for each change elsewhere, or JSON Lines."""

import json
from types import TracebackType
from typing import Protocol, Self

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tenure.cli.client import Job
from tenure.cli.options import say

SHOWN_ERRORS = 5
COLOURS = {"SUCCEEDED": "green", "FAILED": "red", "CANCELLED": "yellow", "RUNNING": "blue"}


class JobView(Protocol):
    """Shows snapshots as they come, and troubles with the connection."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    def show(self, job: Job) -> None: ...

    def trouble(self, message: str | None) -> None: ...


class Lines:
    """One line for each snapshot that looks different from the one before; troubles go to standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._last: str | None = None
        self._trouble: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left open."""

    def show(self, job: Job) -> None:
        line = json.dumps(job, ensure_ascii=False, separators=(",", ":")) if self._as_json else plain(job)
        if line != self._last:
            typer.echo(line)
        self._last = line

    def trouble(self, message: str | None) -> None:
        if message != self._trouble and message is not None:
            say(message)
        self._trouble = message


class Bar:
    """A live bar, which stays on the terminal as it ended."""

    def __init__(self) -> None:
        columns = (
            TextColumn("{task.fields[state]}"),
            BarColumn(complete_style="blue", finished_style="green"),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
        )
        self._progress = Progress(*columns, console=Console())
        self._task = self._progress.add_task("", total=None, state="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, job: Job) -> None:
        progress, state = job["progress"], job["state"]
        total = progress["total"] or (1 if job["isTerminal"] else None)
        completed = total if state == "SUCCEEDED" and not progress["total"] else progress["done"]
        self._progress.update(
            self._task,
            total=total,
            completed=completed,
            description=escape(_counts(job)),
            state=f"[{COLOURS.get(state, 'dim')}]{state}",
        )
        if job["isTerminal"]:
            self._progress.stop_task(self._task)

    def trouble(self, message: str | None) -> None:
        if message is not None:
            self._progress.update(self._task, description="(connection lost; polling)")


def plain(job: Job) -> str:
    """A snapshot as a line of text."""
    words = [job["state"], _counts(job)]
    if job["cancelRequestedAt"] and not job["isTerminal"]:
        words.append("(cancel requested)")
    if job["attempt"] > 1:
        words.append(f"(attempt {job['attempt']} of {job['maxAttempts']})")
    return " ".join(filter(None, words))


def _counts(job: Job) -> str:
    progress = job["progress"]
    words = []
    if progress["total"] is not None or progress["done"]:
        words.append(f"{progress['done']} of {'?' if progress['total'] is None else progress['total']}")
    words += [f"{progress[name]} {name}" for name in ("skipped", "failed") if progress[name]]
    if progress["message"]:
        words.append(progress["message"])
    return ", ".join(words)


def tell_end(job: Job) -> None:
    """The result on standard output, the newest errors on standard error."""
    if job["result"] is not None:
        typer.echo(json.dumps(job["result"], ensure_ascii=False))
    for error in job["errors"][-SHOWN_ERRORS:]:
        item = f"{error['itemKey']}: " if error["itemKey"] else ""
        say(f"{error['code']}: {item}{error['message']}")
    if job["errorCount"] > SHOWN_ERRORS:
        say(f"({job['errorCount']} errors in all)")
