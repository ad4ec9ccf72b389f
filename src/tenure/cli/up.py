"""`tenure up`: everything in one process."""

import asyncio
from typing import Annotated

import typer

from tenure.cli.database import database_server, url_of
from tenure.cli.demo import Demo, demo_course_directory, invitation, prepare_demo
from tenure.cli.listening import bind
from tenure.cli.logs import configure_logging
from tenure.cli.options import DEFAULT_HOST, DEFAULT_PORT, DatabaseUrl, DataDir, Host, Port, load_settings, say
from tenure.cli.process import leave_after, run_serving
from tenure.cli.serve import Roles
from tenure.db.migrate import upgrade

app = typer.Typer()


@app.command()
def up(
    context: typer.Context,
    demo: Annotated[bool, typer.Option("--demo", help="With a workspace `demo`, a course, and a first job to try.")] = False,
    ephemeral: Annotated[bool, typer.Option("--ephemeral", help="On a database that is thrown away at exit.")] = False,
    host: Host = DEFAULT_HOST,
    port: Port = DEFAULT_PORT,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Run everything in one process: the database if none is given, migrations, API, UI, and a worker."""
    if ephemeral and (data_dir or database_url or context.find_root().obj.is_any):
        raise typer.BadParameter("goes with neither --data-dir nor --database-url.", param_hint="--ephemeral")
    settings = load_settings(context, data_dir, database_url)
    configure_logging(settings.log_level)

    def run() -> None:
        sockets = bind(host, port)
        with database_server(settings, adopt=True, ephemeral=ephemeral) as served:
            url = url_of(served)
            say("Bringing the schema up to date")
            asyncio.run(upgrade(url))
            shown = asyncio.run(_prepare(url)) if demo else None

            def tell(address: str) -> None:
                typer.echo(f"Tenure is up at {address} (Ctrl-C stops it)")
                if ephemeral:
                    typer.echo(f"Its database, thrown away at exit: {url}")
                if shown is not None:
                    typer.echo(invitation(shown, address))

            run_serving(served, Roles("tenure up", sockets, has_worker=True, on_ready=tell))

    leave_after(run)


async def _prepare(url: str) -> Demo:
    say("Preparing the demo")
    return await prepare_demo(url, demo_course_directory())
