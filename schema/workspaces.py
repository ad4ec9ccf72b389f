"""Workspaces and what is in them."""

import strawberry

from tenure.db.jobs import JobOrder
from tenure.db.people import WorkspaceRow
from tenure.resolvers import courses, jobs
from tenure.schema.courses import Course
from tenure.schema.info import Info
from tenure.schema.jobs import Job, JobCounts, JobFilter
from tenure.schema.paging import Connection, Node, connection, given, page_arguments


@strawberry.type(description="A tenant: its members, jobs, queues and courses are seen by its members alone.")
class Workspace(Node):
    row: strawberry.Private[WorkspaceRow]
    slug: str
    name: str

    @strawberry.field
    async def jobs(
        self,
        info: Info,
        first: int | None = strawberry.UNSET,
        after: str | None = strawberry.UNSET,
        last: int | None = strawberry.UNSET,
        before: str | None = strawberry.UNSET,
        filter: JobFilter | None = strawberry.UNSET,  # noqa: A002 - the argument's name in the API
        order_by: JobOrder | None = strawberry.UNSET,
    ) -> Connection[Job]:
        chosen = given(filter)
        found = await jobs.jobs_page(
            info.context,
            self.row.id,
            page_arguments(first, after, last, before),
            None if chosen is None else chosen.asked(),
            given(order_by) or JobOrder.CREATED_AT_DESC,
        )
        return connection(found, Job.from_row)

    @strawberry.field
    async def job_counts(
        self,
        info: Info,
        filter: JobFilter | None = strawberry.UNSET,  # noqa: A002 - the argument's name in the API
    ) -> JobCounts:
        chosen = given(filter)
        return JobCounts.from_row(await jobs.job_counts(info.context, self.row.id, None if chosen is None else chosen.asked()))

    @strawberry.field
    async def courses(
        self,
        info: Info,
        first: int | None = strawberry.UNSET,
        after: str | None = strawberry.UNSET,
        last: int | None = strawberry.UNSET,
        before: str | None = strawberry.UNSET,
    ) -> Connection[Course]:
        found = await courses.courses_page(info.context, self.row.id, page_arguments(first, after, last, before))
        return connection(found, Course.from_row)

    @classmethod
    def from_row(cls, row: WorkspaceRow) -> "Workspace":
        return cls(id=strawberry.ID(str(row.id)), row=row, slug=row.slug, name=row.name)
