"""`tenure user`."""

from typing import Annotated

import typer

from tenure.cli.database import administer
from tenure.cli.options import DatabaseUrl, DataDir, Email, load_settings
from tenure.db.engine import Database
from tenure.db.people import create_user

app = typer.Typer(no_args_is_help=True)


@app.callback()
def user() -> None:
    """Users: people and service accounts."""


@app.command()
def create(
    context: typer.Context,
    email: Email,
    name: Annotated[str | None, typer.Option("--name", help="The name for people; the part before the @ if not given.")] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Create a user; prints its id."""

    async def run(database: Database) -> str:
        async with database.transaction() as session:
            return str((await create_user(session, email, name)).id)

    typer.echo(administer(load_settings(context, data_dir, database_url), run))
