"""Actors, workspaces, memberships and bearer tokens. Changes are audited in the same transaction."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from tenure.db.engine import Executor
from tenure.db.errors import InvalidInput, NotFound
from tenure.db.models import Actor, ApiToken, AuditEvent, Membership, Workspace
from tenure.db.states import Role

SYSTEM_ACTOR_ID = UUID("00000000-0000-7000-8000-000000000000")
TOKEN_PREFIX = "tnr_"  # noqa: S105 - what a token begins with, so that scanners of leaked secrets know it


@dataclass(frozen=True, slots=True)
class ActorRow:
    id: UUID
    name: str
    email: str | None
    is_enabled: bool


@dataclass(frozen=True, slots=True)
class WorkspaceRow:
    id: UUID
    slug: str
    name: str


@dataclass(frozen=True, slots=True)
class MembershipRow:
    id: UUID
    workspace_id: UUID
    actor_id: UUID
    role: Role
    is_enabled: bool


@dataclass(frozen=True, slots=True)
class PrincipalRow:
    """Whom a bearer token speaks for, where, and with which role: the lesser of the token's and the membership's."""

    token_id: UUID
    actor: ActorRow
    workspace_id: UUID
    membership_id: UUID
    role: Role


def _workspace(row: Workspace) -> WorkspaceRow:
    return WorkspaceRow(row.id, row.slug, row.name)


def _actor(row: Actor) -> ActorRow:
    return ActorRow(row.id, row.name, row.email, row.is_enabled)


def _membership(row: Membership) -> MembershipRow:
    return MembershipRow(row.id, row.workspace_id, row.actor_id, Role(row.role), row.is_enabled)


# ---------------------------------------------------------------- reads


async def workspace_by_slug(executor: Executor, slug: str) -> WorkspaceRow | None:
    row = (
        await executor.execute(select(Workspace.id, Workspace.slug, Workspace.name).where(Workspace.slug == slug))
    ).one_or_none()
    return None if row is None else WorkspaceRow(*row)


async def workspaces_by_ids(executor: Executor, ids: Sequence[UUID]) -> dict[UUID, WorkspaceRow]:
    rows = await executor.execute(select(Workspace.id, Workspace.slug, Workspace.name).where(Workspace.id.in_(ids)))
    return {row.id: WorkspaceRow(*row) for row in rows}


async def actors_by_ids(executor: Executor, ids: Sequence[UUID]) -> dict[UUID, ActorRow]:
    rows = await executor.execute(select(Actor.id, Actor.name, Actor.email, Actor.is_enabled).where(Actor.id.in_(ids)))
    return {row.id: ActorRow(*row) for row in rows}


async def memberships_by_ids(executor: Executor, ids: Sequence[UUID]) -> dict[UUID, MembershipRow]:
    rows = await executor.execute(
        select(Membership.id, Membership.workspace_id, Membership.actor_id, Membership.role, Membership.is_enabled).where(
            Membership.id.in_(ids)
        )
    )
    return {r.id: MembershipRow(r.id, r.workspace_id, r.actor_id, Role(r.role), r.is_enabled) for r in rows}


LIVE_TOKENS = """
SELECT t.id AS token_id, t.workspace_id, t.role AS token_role, m.id AS membership_id, m.role AS member_role,
  a.id AS actor_id, a.name, a.email, a.is_enabled
FROM api_token AS t
JOIN membership AS m ON m.workspace_id = t.workspace_id AND m.actor_id = t.actor_id AND m.is_enabled
JOIN actor AS a ON a.id = t.actor_id AND a.is_enabled
WHERE t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())
"""


async def principal_of_token(executor: Executor, token: str) -> PrincipalRow | None:
    """Whom the token speaks for; null for one that is unknown, revoked, expired, or whose actor or membership is disabled."""
    row = (await executor.execute(text(LIVE_TOKENS + " AND t.token_hash = :hash"), {"hash": hash_token(token)})).one_or_none()
    if row is None:
        return None
    return PrincipalRow(
        token_id=row.token_id,
        actor=ActorRow(row.actor_id, row.name, row.email, row.is_enabled),
        workspace_id=row.workspace_id,
        membership_id=row.membership_id,
        role=Role.least(Role(row.token_role), Role(row.member_role)),
    )


async def live_tokens(executor: Executor, token_ids: Sequence[UUID]) -> set[UUID]:
    """Those of the tokens that still let their bearer in. For streams, which outlive the look at their beginning."""
    rows = await executor.execute(text(LIVE_TOKENS + " AND t.id = ANY(CAST(:ids AS uuid[]))"), {"ids": list(token_ids)})
    return {row.token_id for row in rows}


# ---------------------------------------------------------------- administration


def _audit(session: AsyncSession, workspace_id: UUID, action: str, details: dict[str, object]) -> None:
    session.add(AuditEvent(workspace_id=workspace_id, action=action, details=details))


async def create_workspace(session: AsyncSession, slug: str, name: str | None = None) -> WorkspaceRow:
    """Raises InvalidInput for a slug that is malformed or taken."""
    check_slug(slug)
    statement = insert(Workspace).values(slug=slug, name=name or slug).on_conflict_do_nothing().returning(Workspace)
    row = (await session.execute(statement)).scalar_one_or_none()
    if row is None:
        raise InvalidInput(f"There is a workspace {slug!r} already.", ("slug",))
    _audit(session, row.id, "workspace.created", {"slug": slug})
    return _workspace(row)


async def create_user(session: AsyncSession, email: str, name: str | None = None, password_hash: str | None = None) -> ActorRow:
    """Raises InvalidInput for an address that is malformed or taken."""
    check_email(email)
    statement = (
        insert(Actor)
        .values(email=email, name=name or email.partition("@")[0], password_hash=password_hash)
        .on_conflict_do_nothing()
        .returning(Actor)
    )
    row = (await session.execute(statement)).scalar_one_or_none()
    if row is None:
        raise InvalidInput(f"There is a user {email!r} already.", ("email",))
    return _actor(row)


async def set_member(
    session: AsyncSession, workspace_slug: str, email: str, role: Role, *, is_enabled: bool = True
) -> MembershipRow:
    """Makes the user a member with this role, or changes the membership. Raises NotFound."""
    workspace = await workspace_by_slug(session, workspace_slug)
    if workspace is None:
        raise NotFound(f"There is no workspace {workspace_slug!r}.")
    actor = await _user_by_email(session, email)
    if actor is None:
        raise NotFound(f"There is no user {email!r}.")
    return await _put_member(session, workspace, actor, role, is_enabled)


async def _put_member(
    session: AsyncSession, workspace: WorkspaceRow, actor: Actor, role: Role, is_enabled: bool
) -> MembershipRow:
    statement = insert(Membership).values(workspace_id=workspace.id, actor_id=actor.id, role=role.value, is_enabled=is_enabled)
    statement = statement.on_conflict_do_update(
        index_elements=["workspace_id", "actor_id"],
        set_={"role": statement.excluded.role, "is_enabled": statement.excluded.is_enabled},
    )
    row = (await session.execute(statement.returning(Membership))).scalar_one()
    _audit(session, workspace.id, "member.set", {"email": actor.email, "role": role.value, "isEnabled": is_enabled})
    return _membership(row)


async def _user_by_email(session: AsyncSession, email: str) -> Actor | None:
    return (await session.execute(select(Actor).where(func.lower(Actor.email) == func.lower(email)))).scalar_one_or_none()


async def create_token(session: AsyncSession, workspace_slug: str, email: str, role: Role) -> str:
    """A new bearer token; makes the user and the membership where they are missing. Returns the token, which is stored hashed.

    Never raises an existing membership: InvalidInput where the membership's role is less, or it or its user is disabled.
    NotFound where there is no such workspace.
    """
    workspace = await workspace_by_slug(session, workspace_slug)
    if workspace is None:
        raise NotFound(f"There is no workspace {workspace_slug!r}.")
    actor = await _user_by_email(session, email)
    if actor is None:
        await create_user(session, email)
        actor = await _user_by_email(session, email)
        assert actor is not None  # noqa: S101 - made in this transaction
    member = (
        await session.execute(
            select(Membership).where(Membership.workspace_id == workspace.id, Membership.actor_id == actor.id)
        )
    ).scalar_one_or_none()
    if member is None:
        await _put_member(session, workspace, actor, role, is_enabled=True)
    elif not member.is_enabled or not actor.is_enabled:
        raise InvalidInput(f"{email} is disabled in {workspace_slug}.", ("email",))
    elif not Role(member.role).includes(role):
        raise InvalidInput(
            f"{email} is {member.role.lower()} in {workspace_slug}; a token cannot raise that to {role.value.lower()}."
            " Use `tenure member set` first.",
            ("role",),
        )
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    session.add(ApiToken(workspace_id=workspace.id, actor_id=actor.id, role=role.value, token_hash=hash_token(token)))
    _audit(session, workspace.id, "token.created", {"email": actor.email, "role": role.value})
    await session.flush()
    return token


def hash_token(token: str) -> bytes:
    """SHA-256: a token has 256 random bits, so that a slow hash would protect nothing more."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def check_slug(slug: str) -> None:
    """Raises InvalidInput unless it is 1 to 63 of a-z, 0-9 and '-', beginning with a letter or digit."""
    allowed = set("abcdefghijklmnopqrstuvwxyz0123456789-")
    if not 1 <= len(slug) <= 63 or slug[0] == "-" or not set(slug) <= allowed:
        raise InvalidInput(f"{slug!r} is no slug: 1 to 63 characters of a-z, 0-9 and '-', not beginning with '-'.", ("slug",))


def check_email(email: str) -> None:
    """Raises InvalidInput for what cannot be an address. Whether mail arrives there is not checked."""
    local, at, domain = email.rpartition("@")
    if not (at and local and domain) or len(email) > 254 or not email.isprintable() or " " in email:
        raise InvalidInput(f"{email!r} is no e-mail address.", ("email",))


__all__ = [
    "SYSTEM_ACTOR_ID",
    "ActorRow",
    "MembershipRow",
    "PrincipalRow",
    "WorkspaceRow",
    "actors_by_ids",
    "create_token",
    "create_user",
    "create_workspace",
    "live_tokens",
    "memberships_by_ids",
    "principal_of_token",
    "set_member",
    "workspace_by_slug",
    "workspaces_by_ids",
]
