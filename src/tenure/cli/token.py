"""`tenure token`."""

import typer

from tenure.cli.database import administer
from tenure.cli.options import DatabaseUrl, DataDir, Email, RoleOption, WorkspaceSlug, load_settings
from tenure.db.engine import Database
from tenure.db.people import create_token
from tenure.db.states import Role

app = typer.Typer(no_args_is_help=True)


@app.callback()
def token() -> None:
    """Bearer tokens for the API."""


@app.command()
def create(
    context: typer.Context,
    workspace: WorkspaceSlug,
    email: Email,
    role: RoleOption,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Create a token; prints it, alone, on standard output. It is stored hashed and cannot be shown again.

    A user or membership that is missing is made. One that exists is never raised: the token's role may not exceed it.
    """

    async def run(database: Database) -> str:
        async with database.transaction() as session:
            return await create_token(session, workspace, email, Role(role.upper()))

    typer.echo(administer(load_settings(context, data_dir, database_url), run))
