"""Imports a directory of Markdown files as a course, batch by batch, so that memory does not grow with the course."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

from tenure.cli.course_files import CourseFiles, printable
from tenure.db.courses import ImportCounts, SourcePage, prune_pages, put_course, put_pages
from tenure.db.engine import Database
from tenure.db.errors import InvalidInput, NotFound
from tenure.db.people import check_slug, workspace_by_slug

BATCH_PAGES = 200
BATCH_CHARACTERS = 4_000_000

Advance = Callable[[int], object]
"""Is told after each batch how many more files are done."""


@dataclass(frozen=True, slots=True)
class ImportedCourse:
    id: UUID
    counts: ImportCounts
    deleted: int


async def import_course(
    database: Database,
    files: CourseFiles,
    *,
    workspace: str,
    slug: str,
    title: str | None = None,
    prune: bool = False,
    advance: Advance = lambda _: None,
) -> ImportedCourse:
    """Creates or updates the course and its pages; each batch is a transaction. May be repeated, and cut off anywhere.

    With `prune`, pages whose file is gone are deleted at the end. A file that is there but cannot be a page is not gone, and
    nothing is deleted if a folder could not be listed.
    Raises NotFound for the workspace, InvalidInput for the slug or if no file can be a page; nothing is created then.
    """
    check_slug(slug)
    workspace_id = await _workspace_id(database, workspace)
    course_id: UUID | None = None
    counts = ImportCounts()
    for pages, done in _batches(files):
        async with database.transaction() as session:
            if course_id is None:
                course_id = (await put_course(session, workspace_id, slug, title)).id
            counts += await put_pages(session, course_id, pages)
        advance(done)
    if course_id is None:
        raise InvalidInput(f"No file below {files.directory} can be a page; nothing was imported.")
    deleted = 0
    if prune and files.is_complete:
        async with database.transaction() as session:
            deleted = await prune_pages(session, course_id, [*files.paths, *map(printable, files.refused)])
    return ImportedCourse(course_id, counts, deleted)


async def _workspace_id(database: Database, slug: str) -> UUID:
    async with database.statement() as connection:
        workspace = await workspace_by_slug(connection, slug)
    if workspace is None:
        raise NotFound(f"There is no workspace {slug!r}.")
    return workspace.id


def _batches(files: CourseFiles) -> Iterator[tuple[list[SourcePage], int]]:
    """Pages enough for one statement, and how many files they were made of."""
    batch: list[SourcePage] = []
    characters = done = 0
    for page in files.pages():
        done += 1
        if page is not None:
            batch.append(page)
            characters += len(page.body)
        if len(batch) >= BATCH_PAGES or characters >= BATCH_CHARACTERS:
            yield batch, done
            batch, characters, done = [], 0, 0
    if batch:
        yield batch, done
