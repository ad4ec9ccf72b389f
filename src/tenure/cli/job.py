"""`tenure job`: a client of the API."""

import asyncio
import sys
from contextlib import aclosing
from typing import Annotated

import typer

from tenure.cli.client import ClientSettings, Job, JobApi
from tenure.cli.job_view import Bar, JobView, Lines, tell_end
from tenure.cli.options import say
from tenure.cli.watch import watch as follow
from tenure.db.errors import TenureError

EXIT_CODES = {"SUCCEEDED": 0, "FAILED": 1, "CANCELLED": 3}
CANNOT_WATCH = 4

app = typer.Typer(no_args_is_help=True)


@app.callback()
def job() -> None:
    """Jobs, through the API at TENURE_URL [http://127.0.0.1:8000] with the token in TENURE_TOKEN."""


@app.command()
def watch(
    job_id: Annotated[str, typer.Argument(metavar="ID", help="The job's id.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print each snapshot as a line of JSON.")] = False,
) -> None:
    """Show a job's progress until it ends.

    The exit code tells how: 0 SUCCEEDED, 1 FAILED, 3 CANCELLED; 4 if it cannot be watched (2 is wrong usage).
    """
    settings = ClientSettings()
    if not settings.token:
        say("tenure: TENURE_TOKEN is not set. `tenure token create` makes one.")
        raise typer.Exit(2)
    view: JobView = Lines(as_json=as_json) if as_json or not sys.stdout.isatty() else Bar()
    try:
        with view:
            last = asyncio.run(_watch(JobApi(settings.url, settings.token), job_id, view))
    except TenureError as error:
        say(f"tenure: {error.message}")
        raise typer.Exit(CANNOT_WATCH) from None
    if not as_json:
        tell_end(last)
    raise typer.Exit(EXIT_CODES[last["state"]])


async def _watch(api: JobApi, job_id: str, view: JobView) -> Job:
    async with aclosing(follow(api, job_id, on_trouble=view.trouble)) as snapshots:
        async for snapshot in snapshots:
            view.show(snapshot)
    return snapshot
