"""The reads. A nullable field answers null for what is not there or not the caller's."""

import strawberry

from tenure.db.courses import CourseRow, PageRow
from tenure.db.jobs import JobSnapshot
from tenure.db.people import ActorRow, MembershipRow, WorkspaceRow
from tenure.resolvers.jobs import list_kinds, read_visible_job
from tenure.resolvers.nodes import NodeRow, read_node
from tenure.resolvers.workspaces import read_workspace
from tenure.schema.courses import Course, Page
from tenure.schema.info import Info, described
from tenure.schema.jobs import Job, JobKind
from tenure.schema.paging import Node
from tenure.schema.people import Actor, Membership, Viewer
from tenure.schema.workspaces import Workspace


def as_node(row: NodeRow) -> Node:
    """The row as the type that shows it."""
    match row:
        case JobSnapshot():
            return Job.from_row(row)
        case CourseRow():
            return Course.from_row(row)
        case PageRow():
            return Page.from_row(row)
        case WorkspaceRow():
            return Workspace.from_row(row)
        case MembershipRow():
            return Membership.from_row(row)
        case ActorRow():
            return Actor.from_row(row)


@strawberry.type(description="What can be read.")
class Query:
    @described("Null where nobody is signed in.")
    def viewer(self, info: Info) -> Viewer | None:
        principal = info.context.principal
        return None if principal is None else Viewer(actor=Actor.from_row(principal.actor), csrf_token=None)

    @described("Anything in the caller's workspace, by its id.")
    async def node(self, info: Info, id: strawberry.ID) -> Node | None:  # noqa: A002 - the argument's name in the API
        row = await read_node(info.context, id)
        return None if row is None else as_node(row)

    @described("The workspace, where the caller is a member.")
    async def workspace(self, info: Info, slug: str) -> Workspace | None:
        row = await read_workspace(info.context, slug)
        return None if row is None else Workspace.from_row(row)

    @described("A job of the caller's workspace.")
    async def job(self, info: Info, id: strawberry.ID) -> Job | None:  # noqa: A002 - the argument's name in the API
        row = await read_visible_job(info.context, id)
        return None if row is None else Job.from_row(row)

    @described("All kinds of jobs that this installation knows, by name.")
    def job_kinds(self, info: Info) -> list[JobKind]:
        default = info.context.default_max_attempts
        return [JobKind.from_kind(kind, default) for kind in list_kinds(info.context)]
