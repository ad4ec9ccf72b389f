"""`tenure schema`."""

import typer

from tenure.schema import build_schema

app = typer.Typer()


@app.command()
def schema() -> None:
    """Print the GraphQL schema as SDL."""
    typer.echo(build_schema().as_str(), nl=False)
