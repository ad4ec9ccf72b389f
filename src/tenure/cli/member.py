"""`tenure member`."""

from typing import Annotated

import typer

from tenure.cli.database import administer
from tenure.cli.options import DatabaseUrl, DataDir, Email, RoleOption, WorkspaceSlug, load_settings, say
from tenure.db.engine import Database
from tenure.db.people import set_member
from tenure.db.states import Role

app = typer.Typer(no_args_is_help=True)


@app.callback()
def member() -> None:
    """Memberships: a user's role in a workspace."""


@app.command("set")
def set_(
    context: typer.Context,
    workspace: WorkspaceSlug,
    email: Email,
    role: RoleOption,
    is_disabled: Annotated[bool, typer.Option("--disabled", help="Keep the membership, but shut the user out.")] = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Make a user a member with this role, or change the membership; without --disabled it is enabled."""

    async def run(database: Database) -> None:
        async with database.transaction() as session:
            await set_member(session, workspace, email, Role(role.upper()), is_enabled=not is_disabled)

    administer(load_settings(context, data_dir, database_url), run)
    say(f"{email} is {role} in {workspace}{', disabled' if is_disabled else ''}.")
