"""`tenure course`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tenure.cli.course_files import find_course_files
from tenure.cli.course_import import ImportedCourse, import_course
from tenure.cli.database import administer
from tenure.cli.options import DatabaseUrl, DataDir, WorkspaceSlug, load_settings, say
from tenure.db.engine import Database
from tenure.db.people import check_slug

app = typer.Typer(no_args_is_help=True)


@app.callback()
def course() -> None:
    """Courses: trees of Markdown pages, with tags."""


@app.command("import")
def import_(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The folder whose Markdown files become pages.")],
    workspace: WorkspaceSlug,
    slug: Annotated[str, typer.Option("--slug", help="The course's name in addresses: a-z, 0-9 and '-'.")],
    title: Annotated[str | None, typer.Option("--title", help="Its name for people; the slug if never given.")] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Delete the pages whose file is gone.")] = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Import every Markdown file below DIR as a page of a course; again to update. Prints the course's id.

    Pages come in the order of DIR/SUMMARY.md if there is one, else by path. A page that has not changed keeps its etag and
    its tags. Files and folders whose name begins with a dot are passed over. A file that is not UTF-8 or holds a NUL is
    reported and left out, and the exit code is 1.
    """
    check_slug(slug)
    files = find_course_files(directory)

    async def run(database: Database) -> ImportedCourse:
        with _progress(len(files.paths)) as advance:
            return await import_course(
                database, files, workspace=workspace, slug=slug, title=title, prune=prune, advance=advance
            )

    try:
        imported = administer(load_settings(context, data_dir, database_url), run)
    finally:
        for problem in files.problems:
            say(f"Left out: {problem.path}: {problem.reason}.")
    counts = imported.counts
    deleted = f", {imported.deleted} deleted" if prune else ""
    say(f"{slug}: {counts.created} pages created, {counts.updated} updated, {counts.unchanged} unchanged{deleted}.")
    typer.echo(imported.id)
    if files.problems:
        raise typer.Exit(1)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error if that is a terminal; yields what moves it."""
    console = Console(stderr=True)
    columns = TextColumn("Importing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("Importing", total=total)
        yield lambda count: progress.advance(task, count)
