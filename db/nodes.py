"""Which table a bare id belongs to. Ids are unique across tables, so an id has at most one answer."""

from enum import StrEnum
from uuid import UUID

from sqlalchemy import text

from tenure.db.engine import Executor


class NodeKind(StrEnum):
    JOB = "JOB"
    COURSE = "COURSE"
    PAGE = "PAGE"
    WORKSPACE = "WORKSPACE"
    MEMBERSHIP = "MEMBERSHIP"
    ACTOR = "ACTOR"


FIND_NODE = text("""
SELECT 'JOB' FROM job WHERE id = :id AND workspace_id = :workspace
UNION ALL SELECT 'COURSE' FROM course WHERE id = :id AND workspace_id = :workspace
UNION ALL SELECT 'PAGE' FROM page JOIN course ON course.id = page.course_id
  WHERE page.id = :id AND course.workspace_id = :workspace
UNION ALL SELECT 'WORKSPACE' FROM workspace WHERE id = :id AND id = :workspace
UNION ALL SELECT 'MEMBERSHIP' FROM membership WHERE id = :id AND workspace_id = :workspace
UNION ALL SELECT 'ACTOR' FROM actor WHERE id = :id
  AND (is_system OR EXISTS (SELECT 1 FROM membership WHERE actor_id = :id AND workspace_id = :workspace))
LIMIT 1
""")


async def find_node(executor: Executor, node_id: UUID, workspace_id: UUID) -> NodeKind | None:
    """What has this id in the workspace; an actor is there who is or was a member, and the service's own."""
    found = await executor.scalar(FIND_NODE, {"id": node_id, "workspace": workspace_id})
    return None if found is None else NodeKind(found)
