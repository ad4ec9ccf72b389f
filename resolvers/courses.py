"""Courses and their pages, as lists and by id."""

from typing import Any
from uuid import UUID

from tenure.db.courses import CourseRow, PageRow, list_courses, list_pages
from tenure.resolvers.context import Context
from tenure.resolvers.paging import Listing, PageArguments, Slice, decode_id, paginate


def _page_position(values: list[Any]) -> tuple[int, UUID]:
    position, page_id = values
    if not isinstance(position, int) or not -(2**31) <= position < 2**31:
        raise ValueError
    return position, decode_id(page_id)


async def courses_page(context: Context, workspace_id: UUID, arguments: PageArguments) -> Slice[CourseRow]:
    """The workspace's courses, oldest first. Raises BadRequest."""
    listing: Listing[CourseRow, UUID] = Listing(
        name=f"courses.{workspace_id.hex}",
        position_of=lambda row: row.id,
        encode=lambda course_id: [course_id.hex],
        decode=_single_id,
    )

    async def fetch(*, limit: int, after: UUID | None, before: UUID | None, backward: bool) -> list[CourseRow]:
        return await context.database.run(
            lambda c: list_courses(c, workspace_id, limit=limit, after=after, before=before, backward=backward)
        )

    return await paginate(listing, arguments, fetch)


def _single_id(values: list[Any]) -> UUID:
    (only,) = values
    return decode_id(only)


async def pages_page(context: Context, course_id: UUID, arguments: PageArguments) -> Slice[PageRow]:
    """The course's pages in its order. Raises BadRequest."""
    listing: Listing[PageRow, tuple[int, UUID]] = Listing(
        name=f"pages.{course_id.hex}",
        position_of=lambda row: (row.position, row.id),
        encode=lambda place: [place[0], place[1].hex],
        decode=_page_position,
    )

    async def fetch(
        *, limit: int, after: tuple[int, UUID] | None, before: tuple[int, UUID] | None, backward: bool
    ) -> list[PageRow]:
        return await context.database.run(
            lambda c: list_pages(c, course_id, limit=limit, after=after, before=before, backward=backward)
        )

    return await paginate(listing, arguments, fetch)
