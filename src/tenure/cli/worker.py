"""`tenure worker`."""

import typer

from tenure.cli.database import database_server
from tenure.cli.logs import configure_logging
from tenure.cli.options import DatabaseUrl, DataDir, load_settings
from tenure.cli.process import leave_after, run_serving
from tenure.cli.serve import Roles

app = typer.Typer()


@app.command()
def worker(context: typer.Context, data_dir: DataDir = None, database_url: DatabaseUrl = None) -> None:
    """Run jobs, without the API and without migrating.

    SIGTERM lets the jobs that run finish within TENURE_SHUTDOWN_GRACE_SECONDS and gives the rest back, which costs them no
    attempt.
    """
    settings = load_settings(context, data_dir, database_url)
    configure_logging(settings.log_level)

    def run() -> None:
        with database_server(settings) as served:
            run_serving(served, Roles("tenure worker", has_worker=True))

    leave_after(run)
