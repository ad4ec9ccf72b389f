"""The tables. Constraint-like rules that hold under concurrency live in the functions of `migrations/sql`.

Job rows carry no foreign keys: workspaces and actors are never deleted, and a key share lock per insert costs a
busy workspace up to 40 % of its enqueue rate.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    CheckConstraint,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from tenure.db.base import Base

STATES = "'QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED'"
ROLES = "'VIEWER', 'OPERATOR', 'ADMIN'"
NOW = func.clock_timestamp()
NEW_ID = text("tenure_uuid7(clock_timestamp())")

C_TEXT = Text(collation="C")
"""Names that are sorted in lock order and in the claim's ring: bytewise, whatever the database's locale."""


class SchemaInfo(Base):
    """One row: the schema's version, and the oldest version of the software that may still run on it."""

    __tablename__ = "schema_info"
    __table_args__ = (CheckConstraint("one", name="one_row"),)
    one: Mapped[bool] = mapped_column(primary_key=True, server_default=text("true"))
    version: Mapped[int] = mapped_column(Integer)
    oldest_compatible: Mapped[int] = mapped_column(Integer)


class Actor(Base):
    __tablename__ = "actor"
    __table_args__ = (Index("actor_email_key", func.lower(text("email")), unique=True),)
    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=NEW_ID)
    name: Mapped[str]
    email: Mapped[str | None]
    password_hash: Mapped[str | None]
    is_enabled: Mapped[bool] = mapped_column(server_default=text("true"))
    is_system: Mapped[bool] = mapped_column(server_default=text("false"))
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)


class Workspace(Base):
    __tablename__ = "workspace"
    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=NEW_ID)
    slug: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)


class Membership(Base):
    __tablename__ = "membership"
    __table_args__ = (
        UniqueConstraint("workspace_id", "actor_id"),
        CheckConstraint(f"role IN ({ROLES})", name="role"),
    )
    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=NEW_ID)
    workspace_id: Mapped[UUID] = mapped_column(ForeignKey("workspace.id"))
    actor_id: Mapped[UUID] = mapped_column(ForeignKey("actor.id"), index=True)
    role: Mapped[str]
    is_enabled: Mapped[bool] = mapped_column(server_default=text("true"))
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)


class ApiToken(Base):
    """A bearer token, stored as its SHA-256; its role caps the membership's."""

    __tablename__ = "api_token"
    __table_args__ = (CheckConstraint(f"role IN ({ROLES})", name="role"),)
    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=NEW_ID)
    token_hash: Mapped[bytes] = mapped_column(unique=True)
    workspace_id: Mapped[UUID] = mapped_column(ForeignKey("workspace.id"))
    actor_id: Mapped[UUID] = mapped_column(ForeignKey("actor.id"))
    role: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class WorkspaceLimit(Base):
    """An admission limit set for one workspace; queue '*' is the workspace as a whole, max 0 means none."""

    __tablename__ = "workspace_limit"
    workspace_id: Mapped[UUID] = mapped_column(ForeignKey("workspace.id"), primary_key=True)
    queue: Mapped[str] = mapped_column(C_TEXT, primary_key=True)
    limit: Mapped[str] = mapped_column(primary_key=True)
    max: Mapped[int]


class Lane(Base):
    """What is pending in one queue of a workspace; queue '*' counts the workspace. Locking '*' serializes its admission."""

    __tablename__ = "lane"
    __table_args__ = ({"postgresql_with": {"fillfactor": 50}},)
    workspace_id: Mapped[UUID] = mapped_column(primary_key=True)
    queue: Mapped[str] = mapped_column(C_TEXT, primary_key=True)
    pending: Mapped[int] = mapped_column(server_default=text("0"))
    created: Mapped[int] = mapped_column(server_default=text("0"))
    is_paused: Mapped[bool] = mapped_column(server_default=text("false"))


class LaneActor(Base):
    __tablename__ = "lane_actor"
    __table_args__ = ({"postgresql_with": {"fillfactor": 50}},)
    workspace_id: Mapped[UUID] = mapped_column(primary_key=True)
    queue: Mapped[str] = mapped_column(C_TEXT, primary_key=True)
    actor_id: Mapped[UUID] = mapped_column(primary_key=True)
    pending: Mapped[int] = mapped_column(server_default=text("0"))


class AdmissionShard(Base):
    """A sixteenth of the installation's remaining capacity; the sum counts, a single shard may be negative."""

    __tablename__ = "admission_shard"
    __table_args__ = ({"postgresql_with": {"fillfactor": 10}},)
    shard: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    remaining: Mapped[int]


class Installation(Base):
    """One row: the limit that the shards share out; 0 means none."""

    __tablename__ = "installation"
    __table_args__ = (CheckConstraint("one", name="one_row"),)
    one: Mapped[bool] = mapped_column(primary_key=True, server_default=text("true"))
    max_pending: Mapped[int]


class Job(Base):
    __tablename__ = "job"
    __table_args__ = (
        CheckConstraint(f"state IN ({STATES})", name="state"),
        CheckConstraint("(state = 'RUNNING') = (lease_owner IS NOT NULL)", name="lease"),
        CheckConstraint("(state IN ('SUCCEEDED', 'FAILED', 'CANCELLED')) = (finished_at IS NOT NULL)", name="finished"),
        # The claim reads it in order; see tenure_claim.
        Index(
            "job_ready_idx",
            "workspace_id",
            "queue",
            "kind",
            text("priority DESC"),
            "run_at",
            "id",
            postgresql_where=text("state = 'QUEUED'"),
        ),
        Index("job_running_idx", "workspace_id", "queue", "id", postgresql_where=text("state = 'RUNNING'")),
        Index("job_list_idx", "workspace_id", "id"),
        Index("job_state_idx", "workspace_id", "state", "id"),
        Index("job_finished_idx", "workspace_id", "finished_at", "id", postgresql_where=text("finished_at IS NOT NULL")),
        Index("job_lane_number_key", "workspace_id", "queue", "lane_number", unique=True),
        {
            "postgresql_with": {
                "fillfactor": 80,
                "autovacuum_vacuum_scale_factor": 0,
                "autovacuum_vacuum_threshold": 5000,
                "vacuum_index_cleanup": "on",
            }
        },
    )
    id: Mapped[UUID] = mapped_column(primary_key=True)
    workspace_id: Mapped[UUID]
    actor_id: Mapped[UUID]
    kind: Mapped[str] = mapped_column(C_TEXT)
    queue: Mapped[str] = mapped_column(C_TEXT)
    lane_number: Mapped[int]
    priority: Mapped[int] = mapped_column(SmallInteger)
    state: Mapped[str]
    params: Mapped[dict[str, Any]]
    progress_total: Mapped[int | None] = mapped_column(Integer)
    succeeded: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    skipped: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    failed: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    progress_message: Mapped[str | None]
    items_total: Mapped[int | None] = mapped_column(Integer)
    result: Mapped[dict[str, Any] | None]
    errors: Mapped[list[Any]] = mapped_column(server_default=text("'[]'"))
    error_count: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    attempt: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    max_attempts: Mapped[int] = mapped_column(Integer)
    fencing_token: Mapped[int] = mapped_column(server_default=text("0"))
    lease_owner: Mapped[str | None]
    lease_expires_at: Mapped[datetime | None]
    heartbeat_at: Mapped[datetime | None]
    version: Mapped[int] = mapped_column(Integer, server_default=text("1"))
    idempotency_key: Mapped[str | None]
    cancel_requested_at: Mapped[datetime | None]
    run_at: Mapped[datetime]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class IdempotencyRecord(Base):
    """Who asked for what under which key. A null hash (imported from elsewhere) conflicts with every request."""

    __tablename__ = "idempotency_record"
    workspace_id: Mapped[UUID] = mapped_column(primary_key=True)
    actor_id: Mapped[UUID] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(C_TEXT, primary_key=True)
    algorithm: Mapped[int] = mapped_column(SmallInteger)
    request_hash: Mapped[bytes | None]
    job_id: Mapped[UUID]


class JobAttempt(Base):
    """One lease of a job. Its number in the API is its token."""

    __tablename__ = "job_attempt"
    __table_args__ = ({"postgresql_with": {"fillfactor": 80}},)
    job_id: Mapped[UUID] = mapped_column(primary_key=True)
    fencing_token: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    owner: Mapped[str]
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    outcome: Mapped[str | None]
    error: Mapped[dict[str, Any] | None]


class JobItem(Base):
    """One unit of a job's work; outcome null means still to do."""

    __tablename__ = "job_item"
    job_id: Mapped[UUID] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    key: Mapped[str]
    outcome: Mapped[str | None]
    code: Mapped[str | None]
    message: Mapped[str | None]


class AuditEvent(Base):
    __tablename__ = "audit_event"
    __table_args__ = (
        Index("audit_event_workspace_idx", "workspace_id", "id"),
        Index("audit_event_job_idx", "job_id", "id", postgresql_where=text("job_id IS NOT NULL")),
    )
    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=NEW_ID)
    workspace_id: Mapped[UUID]
    at: Mapped[datetime] = mapped_column(server_default=NOW)
    action: Mapped[str]
    actor_id: Mapped[UUID | None]
    job_id: Mapped[UUID | None]
    details: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"))


class Course(Base):
    __tablename__ = "course"
    __table_args__ = (UniqueConstraint("workspace_id", "slug"), Index("course_list_idx", "workspace_id", "id"))
    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=NEW_ID)
    workspace_id: Mapped[UUID] = mapped_column(ForeignKey("workspace.id"))
    slug: Mapped[str]
    title: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)


class Page(Base):
    """One Markdown file. The etag is random: new with every change, never computed from the content."""

    __tablename__ = "page"
    __table_args__ = (
        UniqueConstraint("course_id", "path"),
        Index("page_order_idx", "course_id", "position", "id"),
    )
    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=NEW_ID)
    course_id: Mapped[UUID] = mapped_column(ForeignKey("course.id"))
    path: Mapped[str]
    position: Mapped[int] = mapped_column(Integer)
    title: Mapped[str]
    body: Mapped[str]
    tags: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    etag: Mapped[str]
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)
