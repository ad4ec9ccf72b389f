"""`tenure api`."""

import typer

from tenure.cli.database import database_server
from tenure.cli.listening import bind
from tenure.cli.logs import configure_logging
from tenure.cli.options import DEFAULT_HOST, DEFAULT_PORT, DatabaseUrl, DataDir, Host, Port, load_settings, say
from tenure.cli.process import leave_after, run_serving
from tenure.cli.serve import Roles

app = typer.Typer()


@app.command()
def api(
    context: typer.Context,
    host: Host = DEFAULT_HOST,
    port: Port = DEFAULT_PORT,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Serve the API and the UI, without a worker and without migrating."""
    settings = load_settings(context, data_dir, database_url)
    configure_logging(settings.log_level)

    def run() -> None:
        sockets = bind(host, port)
        with database_server(settings) as served:
            run_serving(served, Roles("tenure api", sockets, on_ready=lambda address: say(f"Tenure's API is at {address}")))

    leave_after(run)
