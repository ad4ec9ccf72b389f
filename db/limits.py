"""Admission limits set for one workspace."""

from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from tenure.db.errors import InvalidInput, NotFound
from tenure.db.models import AuditEvent, WorkspaceLimit
from tenure.db.people import workspace_by_slug
from tenure.db.states import AdmissionLimit

WHOLE_WORKSPACE = "*"
MAX_LIMIT = 2**31 - 1


async def set_limit(
    session: AsyncSession, workspace_slug: str, limit: AdmissionLimit, maximum: int, queue: str | None = None
) -> None:
    """Sets a limit for the workspace, or for one of its queues; 0 means none. Takes effect with the next enqueue.

    Raises NotFound, and InvalidInput for a limit that cannot be set there.
    """
    if limit is AdmissionLimit.PENDING_GLOBAL:
        raise InvalidInput("PENDING_GLOBAL holds for the installation: set TENURE_MAX_PENDING.", ("limit",))
    if queue is None and limit is not AdmissionLimit.PENDING_PER_WORKSPACE:
        raise InvalidInput(f"{limit.value} holds for a queue: name one.", ("queue",))
    if queue in ("", WHOLE_WORKSPACE):
        raise InvalidInput("That is no name of a queue.", ("queue",))
    if not 0 <= maximum <= MAX_LIMIT:
        raise InvalidInput(f"The maximum is 0 (none) to {MAX_LIMIT}.", ("max",))
    workspace = await workspace_by_slug(session, workspace_slug)
    if workspace is None:
        raise NotFound(f"There is no workspace {workspace_slug!r}.")
    statement = insert(WorkspaceLimit).values(
        workspace_id=workspace.id, queue=queue or WHOLE_WORKSPACE, limit=limit.value, max=maximum
    )
    await session.execute(
        statement.on_conflict_do_update(index_elements=["workspace_id", "queue", "limit"], set_={"max": statement.excluded.max})
    )
    session.add(
        AuditEvent(
            workspace_id=workspace.id,
            action="limit.set",
            details={"limit": limit.value, "queue": queue, "max": maximum},
        )
    )
