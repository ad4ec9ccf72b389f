"""The first schema: tables, the functions that carry the guarantees, and the rows that are always there.

The functions stand one a file in migrations/sql/0001, in the order of FUNCTIONS.
"""

from importlib.resources import files

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

FUNCTIONS = (
    "append_error",
    "attempts",
    "share_capacity",
    "take_capacity",
    "set_installation_limit",
    "effective_limits",
    "lock_lanes",
    "count_pending",
    "enqueue",
    "claim",
    "heartbeat",
    "close_jobs",
    "settle",
    "finish",
    "reclaim",
    "cancel",
    "retry",
    "checkpoint",
    "fence",
    "settle_item",
)
DEFAULT_MAX_PENDING = 10_000
TABLES = (
    "admission_shard",
    "audit_event",
    "idempotency_record",
    "installation",
    "job",
    "job_attempt",
    "job_item",
    "lane",
    "lane_actor",
    "schema_info",
    "page",
    "course",
    "workspace_limit",
    "api_token",
    "membership",
    "workspace",
    "actor",
)
"""In the order in which they can be dropped."""


def _sql(name: str) -> str:
    return files("tenure").joinpath("migrations", "sql", revision, f"{name}.sql").read_text(encoding="utf-8")


def upgrade() -> None:
    connection = op.get_bind()
    connection.exec_driver_sql(_sql("uuid7"))
    _create_tables()
    for name in FUNCTIONS:
        connection.exec_driver_sql(_sql(name))
    op.execute("INSERT INTO schema_info (version, oldest_compatible) VALUES (1, 1)")
    op.execute(f"INSERT INTO installation (max_pending) VALUES ({DEFAULT_MAX_PENDING})")  # noqa: S608 - a constant
    share = DEFAULT_MAX_PENDING // 16
    op.execute(f"INSERT INTO admission_shard SELECT n, {share} FROM generate_series(0, 15) AS n")  # noqa: S608 - a constant
    op.execute("INSERT INTO actor (id, name, is_system) VALUES ('00000000-0000-7000-8000-000000000000', 'system', true)")


def downgrade() -> None:
    for name in (*reversed(FUNCTIONS), "uuid7"):
        op.execute(f"DROP FUNCTION tenure_{name} CASCADE")
    for table in TABLES:
        op.drop_table(table)


def _create_tables() -> None:
    op.create_table(
        "actor",
        sa.Column("id", sa.Uuid(), server_default=sa.text("tenure_uuid7(clock_timestamp())"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("password_hash", sa.Text(), nullable=True),
        sa.Column("is_enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("is_system", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("actor_pkey")),
    )
    op.create_index("actor_email_key", "actor", [sa.literal_column("lower(email)")], unique=True)
    op.create_table(
        "admission_shard",
        sa.Column("shard", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("remaining", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("shard", name=op.f("admission_shard_pkey")),
        postgresql_with={"fillfactor": 10},
    )
    op.create_table(
        "audit_event",
        sa.Column("id", sa.Uuid(), server_default=sa.text("tenure_uuid7(clock_timestamp())"), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.Uuid(), nullable=True),
        sa.Column("job_id", sa.Uuid(), nullable=True),
        sa.Column("details", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("audit_event_pkey")),
    )
    op.create_index(
        "audit_event_job_idx",
        "audit_event",
        ["job_id", "id"],
        unique=False,
        postgresql_where=sa.text("job_id IS NOT NULL"),
    )
    op.create_index("audit_event_workspace_idx", "audit_event", ["workspace_id", "id"], unique=False)
    op.create_table(
        "idempotency_record",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("actor_id", sa.Uuid(), nullable=False),
        sa.Column("key", sa.Text(collation="C"), nullable=False),
        sa.Column("algorithm", sa.SmallInteger(), nullable=False),
        sa.Column("request_hash", sa.LargeBinary(), nullable=True),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.PrimaryKeyConstraint("workspace_id", "actor_id", "key", name=op.f("idempotency_record_pkey")),
    )
    op.create_table(
        "installation",
        sa.Column("one", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("max_pending", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("one", name=op.f("installation_one_row_check")),
        sa.PrimaryKeyConstraint("one", name=op.f("installation_pkey")),
    )
    op.create_table(
        "job",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("actor_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(collation="C"), nullable=False),
        sa.Column("queue", sa.Text(collation="C"), nullable=False),
        sa.Column("lane_number", sa.BigInteger(), nullable=False),
        sa.Column("priority", sa.SmallInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("params", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("progress_total", sa.Integer(), nullable=True),
        sa.Column("succeeded", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("skipped", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("progress_message", sa.Text(), nullable=True),
        sa.Column("items_total", sa.Integer(), nullable=True),
        sa.Column("result", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("errors", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("error_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("fencing_token", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("cancel_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("run_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("(state = 'RUNNING') = (lease_owner IS NOT NULL)", name=op.f("job_lease_check")),
        sa.CheckConstraint(
            "(state IN ('SUCCEEDED', 'FAILED', 'CANCELLED')) = (finished_at IS NOT NULL)",
            name=op.f("job_finished_check"),
        ),
        sa.CheckConstraint("state IN ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')", name=op.f("job_state_check")),
        sa.PrimaryKeyConstraint("id", name=op.f("job_pkey")),
        postgresql_with={
            "fillfactor": 80,
            "autovacuum_vacuum_scale_factor": 0,
            "autovacuum_vacuum_threshold": 5000,
            "vacuum_index_cleanup": "on",
        },
    )
    op.create_index(
        "job_finished_idx",
        "job",
        ["workspace_id", "finished_at", "id"],
        unique=False,
        postgresql_where=sa.text("finished_at IS NOT NULL"),
    )
    op.create_index("job_lane_number_key", "job", ["workspace_id", "queue", "lane_number"], unique=True)
    op.create_index("job_list_idx", "job", ["workspace_id", "id"], unique=False)
    op.create_index(
        "job_ready_idx",
        "job",
        ["workspace_id", "queue", "kind", sa.literal_column("priority DESC"), "run_at", "id"],
        unique=False,
        postgresql_where=sa.text("state = 'QUEUED'"),
    )
    op.create_index(
        "job_running_idx",
        "job",
        ["workspace_id", "queue", "id"],
        unique=False,
        postgresql_where=sa.text("state = 'RUNNING'"),
    )
    op.create_index("job_state_idx", "job", ["workspace_id", "state", "id"], unique=False)
    op.create_table(
        "job_attempt",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("fencing_token", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("error", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.PrimaryKeyConstraint("job_id", "fencing_token", name=op.f("job_attempt_pkey")),
        postgresql_with={"fillfactor": 80},
    )
    op.create_table(
        "job_item",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("job_id", "position", name=op.f("job_item_pkey")),
    )
    op.create_table(
        "lane",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("queue", sa.Text(collation="C"), nullable=False),
        sa.Column("pending", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("created", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("is_paused", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.PrimaryKeyConstraint("workspace_id", "queue", name=op.f("lane_pkey")),
        postgresql_with={"fillfactor": 50},
    )
    op.create_table(
        "lane_actor",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("queue", sa.Text(collation="C"), nullable=False),
        sa.Column("actor_id", sa.Uuid(), nullable=False),
        sa.Column("pending", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("workspace_id", "queue", "actor_id", name=op.f("lane_actor_pkey")),
        postgresql_with={"fillfactor": 50},
    )
    op.create_table(
        "schema_info",
        sa.Column("one", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("oldest_compatible", sa.Integer(), nullable=False),
        sa.CheckConstraint("one", name=op.f("schema_info_one_row_check")),
        sa.PrimaryKeyConstraint("one", name=op.f("schema_info_pkey")),
    )
    op.create_table(
        "workspace",
        sa.Column("id", sa.Uuid(), server_default=sa.text("tenure_uuid7(clock_timestamp())"), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("workspace_pkey")),
        sa.UniqueConstraint("slug", name=op.f("workspace_slug_key")),
    )
    op.create_table(
        "api_token",
        sa.Column("id", sa.Uuid(), server_default=sa.text("tenure_uuid7(clock_timestamp())"), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("actor_id", sa.Uuid(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("role IN ('VIEWER', 'OPERATOR', 'ADMIN')", name=op.f("api_token_role_check")),
        sa.ForeignKeyConstraint(["actor_id"], ["actor.id"], name=op.f("api_token_actor_id_fkey")),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"], name=op.f("api_token_workspace_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("api_token_pkey")),
        sa.UniqueConstraint("token_hash", name=op.f("api_token_token_hash_key")),
    )
    op.create_table(
        "course",
        sa.Column("id", sa.Uuid(), server_default=sa.text("tenure_uuid7(clock_timestamp())"), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"], name=op.f("course_workspace_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("course_pkey")),
        sa.UniqueConstraint("workspace_id", "slug", name=op.f("course_workspace_id_slug_key")),
    )
    op.create_index("course_list_idx", "course", ["workspace_id", "id"], unique=False)
    op.create_table(
        "membership",
        sa.Column("id", sa.Uuid(), server_default=sa.text("tenure_uuid7(clock_timestamp())"), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("actor_id", sa.Uuid(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("is_enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.CheckConstraint("role IN ('VIEWER', 'OPERATOR', 'ADMIN')", name=op.f("membership_role_check")),
        sa.ForeignKeyConstraint(["actor_id"], ["actor.id"], name=op.f("membership_actor_id_fkey")),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"], name=op.f("membership_workspace_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("membership_pkey")),
        sa.UniqueConstraint("workspace_id", "actor_id", name=op.f("membership_workspace_id_actor_id_key")),
    )
    op.create_index(op.f("membership_actor_id_idx"), "membership", ["actor_id"], unique=False)
    op.create_table(
        "workspace_limit",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("queue", sa.Text(collation="C"), nullable=False),
        sa.Column("limit", sa.Text(), nullable=False),
        sa.Column("max", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"], name=op.f("workspace_limit_workspace_id_fkey")),
        sa.PrimaryKeyConstraint("workspace_id", "queue", "limit", name=op.f("workspace_limit_pkey")),
    )
    op.create_table(
        "page",
        sa.Column("id", sa.Uuid(), server_default=sa.text("tenure_uuid7(clock_timestamp())"), nullable=False),
        sa.Column("course_id", sa.Uuid(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("tags", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("etag", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.ForeignKeyConstraint(["course_id"], ["course.id"], name=op.f("page_course_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("page_pkey")),
        sa.UniqueConstraint("course_id", "path", name=op.f("page_course_id_path_key")),
    )
    op.create_index("page_order_idx", "page", ["course_id", "position", "id"], unique=False)
