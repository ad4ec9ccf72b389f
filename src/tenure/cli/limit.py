"""`tenure limit`."""

from typing import Annotated

import typer

from tenure.cli.database import administer
from tenure.cli.options import DatabaseUrl, DataDir, WorkspaceSlug, load_settings, say
from tenure.db.engine import Database
from tenure.db.limits import set_limit
from tenure.db.states import AdmissionLimit

app = typer.Typer(no_args_is_help=True)


@app.callback()
def limit() -> None:
    """Admission limits of a workspace."""


@app.command("set")
def set_(
    context: typer.Context,
    workspace: WorkspaceSlug,
    limit: Annotated[AdmissionLimit, typer.Option("--limit", case_sensitive=False, help="Which limit.")],
    maximum: Annotated[int, typer.Option("--max", metavar="N", help="At most so many; 0 means no limit.")],
    queue: Annotated[str | None, typer.Option("--queue", help="For one queue; without it, for the whole workspace.")] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Set a limit of one workspace, in place of the installation's setting."""

    async def run(database: Database) -> None:
        async with database.transaction() as session:
            await set_limit(session, workspace, limit, maximum, queue)

    administer(load_settings(context, data_dir, database_url), run)
    where = f"queue {queue} of {workspace}" if queue else workspace
    say(f"{limit} of {where} is {maximum or 'unlimited'}.")
