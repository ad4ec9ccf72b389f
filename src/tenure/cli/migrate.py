"""`tenure migrate`."""

import asyncio

import typer

from tenure.cli.database import database_server, url_of
from tenure.cli.options import DatabaseUrl, DataDir, load_settings, say
from tenure.db.migrate import SCHEMA_VERSION, upgrade

app = typer.Typer()


@app.command()
def migrate(context: typer.Context, data_dir: DataDir = None, database_url: DatabaseUrl = None) -> None:
    """Bring the database's schema up to date, one process at a time."""
    with database_server(load_settings(context, data_dir, database_url)) as settings:
        asyncio.run(upgrade(url_of(settings)))
    say(f"The schema is at version {SCHEMA_VERSION}.")
