"""Courses and their pages: reads, the import of one batch of files, and writes guarded by the etag."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, select, text, tuple_

from tenure.db.engine import Executor
from tenure.db.models import Course, Page


@dataclass(frozen=True, slots=True)
class CourseRow:
    id: UUID
    workspace_id: UUID
    slug: str
    title: str


@dataclass(frozen=True, slots=True)
class PageRow:
    id: UUID
    course_id: UUID
    path: str
    position: int
    title: str
    body: str
    tags: list[str]
    etag: str
    updated_at: datetime


COURSE_COLUMNS = (Course.id, Course.workspace_id, Course.slug, Course.title)
PAGE_COLUMNS = (
    Page.id,
    Page.course_id,
    Page.path,
    Page.position,
    Page.title,
    Page.body,
    Page.tags,
    Page.etag,
    Page.updated_at,
)


def _page(row: Row[*tuple[Any, ...]]) -> PageRow:
    return PageRow(*tuple(row))


# ---------------------------------------------------------------- reads


async def courses_by_ids(executor: Executor, ids: Sequence[UUID]) -> dict[UUID, CourseRow]:
    rows = await executor.execute(select(*COURSE_COLUMNS).where(Course.id.in_(ids)))
    return {row.id: CourseRow(*row) for row in rows}


async def page_counts(executor: Executor, course_ids: Sequence[UUID]) -> dict[UUID, int]:
    rows = await executor.execute(
        select(Page.course_id, func.count()).where(Page.course_id.in_(course_ids)).group_by(Page.course_id)
    )
    return {row[0]: row[1] for row in rows}


async def list_courses(
    executor: Executor,
    workspace_id: UUID,
    *,
    limit: int,
    after: UUID | None = None,
    before: UUID | None = None,
    backward: bool = False,
) -> list[CourseRow]:
    """Up to `limit` courses by age between two ids; with `backward` the last ones instead of the first."""
    statement = select(*COURSE_COLUMNS).where(Course.workspace_id == workspace_id)
    if after is not None:
        statement = statement.where(Course.id > after)
    if before is not None:
        statement = statement.where(Course.id < before)
    statement = statement.order_by(Course.id.desc() if backward else Course.id.asc()).limit(limit)
    rows = [CourseRow(*row) for row in await executor.execute(statement)]
    return rows[::-1] if backward else rows


async def list_pages(
    executor: Executor,
    course_id: UUID,
    *,
    limit: int,
    after: tuple[int, UUID] | None = None,
    before: tuple[int, UUID] | None = None,
    backward: bool = False,
) -> list[PageRow]:
    """Up to `limit` pages in the course's order between two (position, id) keys."""
    keys = (Page.position, Page.id)
    statement = select(*PAGE_COLUMNS).where(Page.course_id == course_id)
    if after is not None:
        statement = statement.where(tuple_(*keys) > tuple_(*after))
    if before is not None:
        statement = statement.where(tuple_(*keys) < tuple_(*before))
    statement = statement.order_by(*(k.desc() if backward else k.asc() for k in keys)).limit(limit)
    rows = [_page(row) for row in await executor.execute(statement)]
    return rows[::-1] if backward else rows


async def pages_by_ids(executor: Executor, ids: Sequence[UUID]) -> dict[UUID, PageRow]:
    rows = await executor.execute(select(*PAGE_COLUMNS).where(Page.id.in_(ids)))
    return {row.id: _page(row) for row in rows}


async def read_page(executor: Executor, page_id: UUID) -> PageRow | None:
    return (await pages_by_ids(executor, [page_id])).get(page_id)


@dataclass(frozen=True, slots=True)
class PageTagsRow:
    id: UUID
    course_id: UUID
    tags: list[str]
    etag: str


async def read_page_tags(executor: Executor, page_id: UUID) -> PageTagsRow | None:
    """What tagging needs of a page, without its body."""
    row = (
        await executor.execute(select(Page.id, Page.course_id, Page.tags, Page.etag).where(Page.id == page_id))
    ).one_or_none()
    return None if row is None else PageTagsRow(*row)


async def page_ids(executor: Executor, course_id: UUID, limit: int) -> list[UUID]:
    """The ids of the course's pages in order, at most `limit`."""
    statement = select(Page.id).where(Page.course_id == course_id).order_by(Page.position, Page.id).limit(limit)
    return list((await executor.execute(statement)).scalars())


# ---------------------------------------------------------------- writes


async def set_page_tags(executor: Executor, page_id: UUID, etag: str, tags: Sequence[str]) -> bool:
    """Writes the tags of a page that still has this etag, and gives it a new one; false where it has changed or gone.

    Title and body are not named in the statement: they stay byte for byte what they are.
    """
    found = await executor.scalar(
        text(
            "UPDATE page SET tags = CAST(:tags AS text[]), etag = gen_random_uuid()::text, updated_at = clock_timestamp()"
            " WHERE id = :id AND etag = :etag RETURNING true"
        ),
        {"id": page_id, "etag": etag, "tags": list(tags)},
    )
    return bool(found)


async def put_course(executor: Executor, workspace_id: UUID, slug: str, title: str | None) -> CourseRow:
    """The workspace's course of that slug, made if it is missing; a title that is given replaces the old one."""
    row = (
        await executor.execute(
            text(
                "INSERT INTO course (workspace_id, slug, title) VALUES (:workspace, :slug, :title)"
                " ON CONFLICT (workspace_id, slug) DO UPDATE SET title = coalesce(:given, course.title)"
                " RETURNING id, workspace_id, slug, title"
            ),
            {"workspace": workspace_id, "slug": slug, "title": title or slug, "given": title},
        )
    ).one()
    return CourseRow(*row)


@dataclass(frozen=True, slots=True)
class SourcePage:
    """One file to import. `path` is relative, with '/'; `position` its place in the course, from 0."""

    path: str
    position: int
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class ImportCounts:
    created: int = 0
    updated: int = 0
    unchanged: int = 0

    def __add__(self, other: "ImportCounts") -> "ImportCounts":
        return ImportCounts(self.created + other.created, self.updated + other.updated, self.unchanged + other.unchanged)


PUT_PAGES = text("""
WITH given AS (
  SELECT *, gen_random_uuid()::text AS etag
  FROM unnest(CAST(:paths AS text[]), CAST(:positions AS int[]), CAST(:titles AS text[]), CAST(:bodies AS text[]))
    AS u(path, position, title, body)
), put AS (
  INSERT INTO page AS p (course_id, path, position, title, body, etag)
  SELECT CAST(:course AS uuid), g.path, g.position, g.title, g.body, g.etag FROM given AS g
  ORDER BY g.path
  ON CONFLICT (course_id, path) DO UPDATE
    SET position = excluded.position, title = excluded.title, body = excluded.body,
        etag = CASE WHEN (p.title, p.body) IS DISTINCT FROM (excluded.title, excluded.body) THEN excluded.etag ELSE p.etag END,
        updated_at = CASE
          WHEN (p.title, p.body) IS DISTINCT FROM (excluded.title, excluded.body) THEN clock_timestamp() ELSE p.updated_at END
    WHERE (p.position, p.title, p.body) IS DISTINCT FROM (excluded.position, excluded.title, excluded.body)
  RETURNING p.path, p.etag, xmax = 0 AS is_new
)
SELECT count(*) FILTER (WHERE put.is_new) AS created,
  count(*) FILTER (WHERE NOT put.is_new AND put.etag = given.etag) AS updated
FROM put JOIN given ON given.path = put.path
""")


async def put_pages(executor: Executor, course_id: UUID, pages: Sequence[SourcePage]) -> ImportCounts:
    """Creates or updates the pages by path, in one statement. An unchanged page keeps etag and tags, also one
    that only moved to another place.
    """
    values = {
        "course": course_id,
        "paths": [p.path for p in pages],
        "positions": [p.position for p in pages],
        "titles": [p.title for p in pages],
        "bodies": [p.body for p in pages],
    }
    row = (await executor.execute(PUT_PAGES, values)).one()
    return ImportCounts(row.created, row.updated, len(pages) - row.created - row.updated)


async def prune_pages(executor: Executor, course_id: UUID, keep: Sequence[str]) -> int:
    """Deletes the course's pages whose path is not among these; returns how many."""
    rows = await executor.execute(
        text(
            "DELETE FROM page WHERE course_id = :course"
            " AND NOT EXISTS (SELECT 1 FROM unnest(CAST(:keep AS text[])) AS k(path) WHERE k.path = page.path) RETURNING 1"
        ),
        {"course": course_id, "keep": list(keep)},
    )
    return len(rows.all())
