"""Actors, memberships and who is calling."""

from typing import TYPE_CHECKING, Annotated

import strawberry

from tenure.db.people import ActorRow, MembershipRow
from tenure.db.states import Role
from tenure.resolvers.workspaces import own_memberships
from tenure.schema.info import Info
from tenure.schema.loading import present
from tenure.schema.paging import Node

if TYPE_CHECKING:
    from tenure.schema.workspaces import Workspace


@strawberry.type(description="A person or a service account.")
class Actor(Node):
    name: str
    email: str | None
    is_enabled: bool

    @classmethod
    def from_row(cls, row: ActorRow) -> "Actor":
        return cls(id=strawberry.ID(str(row.id)), name=row.name, email=row.email, is_enabled=row.is_enabled)


@strawberry.type(description="An actor's role in a workspace.")
class Membership(Node):
    row: strawberry.Private[MembershipRow]
    role: Role
    is_enabled: bool

    @strawberry.field
    async def workspace(self, info: Info) -> Annotated["Workspace", strawberry.lazy("tenure.schema.workspaces")]:
        from tenure.schema.workspaces import Workspace  # noqa: PLC0415 - the two types refer to each other

        return Workspace.from_row(present(await info.context.loaders.workspaces.load(self.row.workspace_id)))

    @strawberry.field
    async def actor(self, info: Info) -> Actor:
        return Actor.from_row(present(await info.context.loaders.actors.load(self.row.actor_id)))

    @classmethod
    def from_row(cls, row: MembershipRow) -> "Membership":
        return cls(id=strawberry.ID(str(row.id)), row=row, role=row.role, is_enabled=row.is_enabled)


@strawberry.type(description="Who is calling.")
class Viewer:
    actor: Actor
    csrf_token: str | None = strawberry.field(
        description="The token to send as X-CSRF-Token with cookie-authenticated requests; null for bearer tokens."
    )

    @strawberry.field
    async def memberships(self, info: Info) -> list[Membership]:
        return [Membership.from_row(row) for row in await own_memberships(info.context)]
