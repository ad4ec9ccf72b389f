"""The root command. A noun's module is imported when its command is called, so that none loads what only another needs."""

from importlib import import_module
from typing import Annotated

import typer
from typer.core import TyperGroup
from typer.main import get_command

from tenure import __version__
from tenure.cli.options import DatabaseUrl, DataDir, Given

NOUNS = (
    "up",
    "api",
    "worker",
    "migrate",
    "workspace",
    "user",
    "member",
    "token",
    "limit",
    "course",
    "job",
    "schema",
)
"""Each is a module of this package with a Typer application `app`."""


class Nouns(TyperGroup):
    """The commands by name, found without importing the others."""

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002 - the same in every context
        return list(NOUNS)

    def get_command(self, ctx: object, cmd_name: str) -> object:  # type: ignore[override]  # noqa: ARG002 - typer's click
        if cmd_name not in NOUNS:
            return None
        command = get_command(import_module(f"tenure.cli.{cmd_name}").app)
        command.name = cmd_name
        return command


application = typer.Typer(
    cls=Nouns,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"tenure {__version__}")
        raise typer.Exit


@application.callback()
def root(
    context: typer.Context,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    version: Annotated[  # noqa: ARG001 - handled by its callback
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Durable background jobs on PostgreSQL, spoken to in GraphQL.

    Settings come from TENURE_* variables or a .env file; an option overrides them. A command without a database URL uses
    the embedded PostgreSQL of the data directory.
    """
    context.obj = Given(data_dir, database_url)
