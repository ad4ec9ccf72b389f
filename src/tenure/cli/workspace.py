"""`tenure workspace`."""

from typing import Annotated

import typer

from tenure.cli.database import administer
from tenure.cli.options import DatabaseUrl, DataDir, load_settings
from tenure.db.engine import Database
from tenure.db.people import create_workspace

app = typer.Typer(no_args_is_help=True)


@app.callback()
def workspace() -> None:
    """Workspaces: the tenants, each with its members, jobs and courses."""


@app.command()
def create(
    context: typer.Context,
    slug: Annotated[str, typer.Option("--slug", help="Its name in addresses: a-z, 0-9 and '-'.")],
    name: Annotated[str | None, typer.Option("--name", help="Its name for people; the slug if not given.")] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Create a workspace; prints its id."""

    async def run(database: Database) -> str:
        async with database.transaction() as session:
            return str((await create_workspace(session, slug, name)).id)

    typer.echo(administer(load_settings(context, data_dir, database_url), run))
