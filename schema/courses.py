"""Courses and their pages."""

from datetime import datetime

import strawberry

from tenure.db.courses import CourseRow, PageRow
from tenure.resolvers.courses import pages_page
from tenure.schema.info import Info
from tenure.schema.loading import present
from tenure.schema.paging import Connection, Node, connection, page_arguments


@strawberry.type(description="An ordered set of Markdown pages.")
class Course(Node):
    row: strawberry.Private[CourseRow]
    slug: str
    title: str

    @strawberry.field
    async def page_count(self, info: Info) -> int:
        return await info.context.loaders.page_counts.load(self.row.id) or 0

    @strawberry.field
    async def pages(
        self,
        info: Info,
        first: int | None = strawberry.UNSET,
        after: str | None = strawberry.UNSET,
        last: int | None = strawberry.UNSET,
        before: str | None = strawberry.UNSET,
    ) -> Connection["Page"]:
        found = await pages_page(info.context, self.row.id, page_arguments(first, after, last, before))
        return connection(found, Page.from_row)

    @classmethod
    def from_row(cls, row: CourseRow) -> "Course":
        return cls(id=strawberry.ID(str(row.id)), row=row, slug=row.slug, title=row.title)


@strawberry.type(description="One Markdown file of a course.")
class Page(Node):
    row: strawberry.Private[PageRow]
    path: str
    position: int = strawberry.field(description="Its place in the course; pages come in this order.")
    title: str
    body: str
    tags: list[str]
    etag: str = strawberry.field(description="Changes with every change of the page; a write must name the one it read.")
    updated_at: datetime

    @strawberry.field
    async def course(self, info: Info) -> Course:
        return Course.from_row(present(await info.context.loaders.courses.load(self.row.course_id)))

    @classmethod
    def from_row(cls, row: PageRow) -> "Page":
        return cls(
            id=strawberry.ID(str(row.id)),
            row=row,
            path=row.path,
            position=row.position,
            title=row.title,
            body=row.body,
            tags=row.tags,
            etag=row.etag,
            updated_at=row.updated_at,
        )
