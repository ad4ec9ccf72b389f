"""Anything by its id alone."""

from tenure.db.courses import CourseRow, PageRow
from tenure.db.jobs import JobSnapshot
from tenure.db.nodes import NodeKind, find_node
from tenure.db.people import ActorRow, MembershipRow, WorkspaceRow
from tenure.resolvers.context import Context
from tenure.resolvers.values import parse_id

NodeRow = JobSnapshot | CourseRow | PageRow | WorkspaceRow | ActorRow | MembershipRow


async def read_node(context: Context, node_id: str) -> NodeRow | None:
    """What has this id, where it is in the caller's workspace."""
    parsed, principal = parse_id(node_id), context.principal
    if parsed is None or principal is None:
        return None
    kind = await context.database.run(lambda connection: find_node(connection, parsed, principal.workspace_id))
    loaders = context.loaders
    match kind:
        case NodeKind.JOB:
            return await loaders.jobs.load(parsed)
        case NodeKind.COURSE:
            return await loaders.courses.load(parsed)
        case NodeKind.PAGE:
            return await loaders.pages.load(parsed)
        case NodeKind.WORKSPACE:
            return await loaders.workspaces.load(parsed)
        case NodeKind.MEMBERSHIP:
            return await loaders.memberships.load(parsed)
        case NodeKind.ACTOR:
            return await loaders.actors.load(parsed)
        case None:
            return None
