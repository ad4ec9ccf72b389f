"""Runs the revisions on the connection that `tenure.db.migrate` hands over: one transaction a revision."""

from alembic import context

from tenure.db.base import Base
from tenure.db.models import Job

assert Job.metadata is Base.metadata  # noqa: S101 - the import above fills the metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
