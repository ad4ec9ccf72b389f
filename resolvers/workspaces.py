"""Workspaces, members and who is calling."""

from tenure.db.people import MembershipRow, WorkspaceRow, workspace_by_slug
from tenure.resolvers.context import Context
from tenure.resolvers.values import is_storable


async def read_workspace(context: Context, slug: str) -> WorkspaceRow | None:
    """The workspace, where the caller is a member of it."""
    if context.principal is None or not is_storable(slug):
        return None
    found = await context.database.run(lambda connection: workspace_by_slug(connection, slug))
    return found if found is not None and context.may_see(found.id) else None


async def own_memberships(context: Context) -> list[MembershipRow]:
    """Those that the caller's credential speaks for: a bearer token is for one workspace."""
    found = await context.loaders.memberships.load(context.signed_in().membership_id)
    return [found] if found is not None else []
