"""Options that several commands take, and the settings that follow from them: an option overrides the environment."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

if TYPE_CHECKING:
    from tenure.settings import Settings

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="DIR", help="Where the embedded PostgreSQL lives [TENURE_DATA_DIR; default .tenure]."),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option("--database-url", metavar="URL", help="postgresql://... [TENURE_DATABASE_URL; default the data directory's]."),
]
WorkspaceSlug = Annotated[str, typer.Option("--workspace", metavar="SLUG", help="The workspace's slug.")]
Email = Annotated[str, typer.Option("--email", metavar="EMAIL", help="The user's e-mail address.")]
Host = Annotated[str, typer.Option("--host", metavar="HOST", help="The address to listen on.")]
Port = Annotated[int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="The port; 0 takes a free one.")]

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000


class RoleName(StrEnum):
    """Roles as they are written on the command line."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


RoleOption = Annotated[RoleName, typer.Option("--role", case_sensitive=False, help="What it may do.")]


@dataclass(frozen=True, slots=True)
class Given:
    """What was written before the command's name."""

    data_dir: Path | None = None
    database_url: str | None = None

    @property
    def is_any(self) -> bool:
        return self.data_dir is not None or self.database_url is not None


def load_settings(context: typer.Context, data_dir: Path | None = None, database_url: str | None = None) -> "Settings":
    """The settings of this process. Ends it with exit code 2 and a line for each setting that is wrong."""
    from tenure.settings import Settings  # noqa: PLC0415 - `tenure --version` and `tenure job` need none of it

    before = context.find_root().obj or Given()
    given: dict[str, Any] = {"data_dir": data_dir or before.data_dir, "database_url": database_url or before.database_url}
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False, include_context=False):
            typer.echo(f"tenure: {_setting_name(problem['loc'])}{problem['msg'].removeprefix('Value error, ')}", err=True)
        raise typer.Exit(2) from None


def _setting_name(location: tuple[int | str, ...]) -> str:
    return f"TENURE_{str(location[0]).upper()}: " if location else ""


def say(message: str) -> None:
    """A line of progress or of notice: on standard error, so that standard output holds results alone."""
    typer.echo(message, err=True)
