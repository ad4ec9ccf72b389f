"""Rows for tests, made by the same functions that production uses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from tenure.db.claim import ClaimCursor, claim_jobs
from tenure.db.commands import Retried, cancel_job, retry_job
from tenure.db.courses import SourcePage, put_course, put_pages
from tenure.db.engine import Database
from tenure.db.enqueue import AdmissionLimits, Enqueued, EnqueueOutcome, NewJob, QueueLimits, enqueue_jobs
from tenure.db.jobs import JobSnapshot, read_job
from tenure.db.people import create_token, create_user, create_workspace, set_member
from tenure.db.states import Role

ADMIN_LIMITS = QueueLimits(pending_per_workspace=10, pending_per_actor=3, created_per_day=100)
LIMITS = AdmissionLimits(pending_per_workspace=1000, queues={"admin": ADMIN_LIMITS})
LEASE_SECONDS = 60.0


@dataclass(frozen=True)
class Seed:
    """A workspace and its administrator."""

    database: Database
    workspace_id: UUID
    slug: str
    actor_id: UUID
    email: str

    def new_job(self, key: str | None = None, **changes: Any) -> NewJob:
        values: dict[str, Any] = {
            "workspace_id": self.workspace_id,
            "actor_id": self.actor_id,
            "kind": "test.noop",
            "queue": "default",
            "params": {},
            "max_attempts": 3,
            "idempotency_key": key or str(uuid4()),
            "request_hash": b"hash",
        }
        return NewJob(**{**values, **changes})

    async def enqueue(self, *jobs: NewJob, limits: AdmissionLimits = LIMITS) -> list[EnqueueOutcome]:
        return await self.database.run(lambda c: enqueue_jobs(c, jobs, limits))

    async def job(self, **changes: Any) -> JobSnapshot:
        """One job, enqueued."""
        (outcome,) = await self.enqueue(self.new_job(**changes))
        assert isinstance(outcome, Enqueued)
        return outcome.job

    async def claim(
        self, limit: int = 1, *, kinds: Sequence[str] = ("test.noop",), owner: str = "worker-1", lease: float = LEASE_SECONDS
    ) -> list[JobSnapshot]:
        jobs, _ = await self.database.run(
            lambda c: claim_jobs(c, owner=owner, kinds=kinds, limit=limit, lease_seconds=lease, cursor=ClaimCursor())
        )
        return jobs

    async def running_job(self, *, lease: float = LEASE_SECONDS, **changes: Any) -> JobSnapshot:
        """One job, enqueued and claimed."""
        job = await self.job(**changes)
        (claimed,) = await self.claim(kinds=[job.kind], lease=lease)
        assert claimed.id == job.id
        return claimed

    async def cancel(self, job_id: UUID) -> JobSnapshot | None:
        return await self.database.run(lambda c: cancel_job(c, job_id, self.actor_id))

    async def retry(self, job_id: UUID) -> None:
        outcome = await self.database.run(lambda c: retry_job(c, job_id, self.actor_id, None, LIMITS))
        assert isinstance(outcome, Retried), outcome

    async def read(self, job_id: UUID) -> JobSnapshot:
        job = await self.database.run(lambda c: read_job(c, job_id))
        assert job is not None
        return job

    async def scalar(self, sql: str, **values: Any) -> Any:
        async with self.database.statement() as connection:
            return await connection.scalar(text(sql), values)

    async def execute(self, sql: str, **values: Any) -> None:
        async with self.database.statement() as connection:
            await connection.execute(text(sql), values)

    async def until_somebody_waits(self, waiters: int = 1) -> None:
        """Until statements of this database wait for a lock."""
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        while await self.scalar(waiting) < waiters:
            pass

    async def actions(self, job_id: UUID) -> list[str]:
        """The audit trail of a job: its actions, oldest first."""
        async with self.database.statement() as connection:
            rows = await connection.execute(
                text("SELECT action FROM audit_event WHERE job_id = :job ORDER BY id"), {"job": job_id}
            )
            return list(rows.scalars())

    async def token(self, role: Role = Role.ADMIN, email: str | None = None) -> str:
        async with self.database.transaction() as session:
            return await create_token(session, self.slug, email or self.email, role)

    async def member(self, email: str, role: Role = Role.ADMIN) -> UUID:
        async with self.database.transaction() as session:
            user = await create_user(session, email)
            await set_member(session, self.slug, email, role)
            return user.id

    async def set_member(self, email: str, role: Role = Role.ADMIN, *, is_enabled: bool = True) -> None:
        async with self.database.transaction() as session:
            await set_member(session, self.slug, email, role, is_enabled=is_enabled)

    async def course(self, slug: str, bodies: Sequence[str]) -> UUID:
        """A course with a page for each body, `p0000.md` and so on."""
        async with self.database.transaction() as session:
            course = await put_course(session, self.workspace_id, slug, slug.title())
            pages = [SourcePage(f"p{n:04}.md", n, f"Page {n}", body) for n, body in enumerate(bodies)]
            await put_pages(session, course.id, pages)
        return course.id


async def seed_workspace(database: Database, slug: str, email: str | None = None) -> Seed:
    email = email or f"admin@{slug}.example"
    async with database.transaction() as session:
        workspace = await create_workspace(session, slug)
        actor = await create_user(session, email)
        await set_member(session, slug, email, Role.ADMIN)
    return Seed(database, workspace.id, slug, actor.id, email)


async def lock_page(session: AsyncSession, page_id: UUID) -> None:
    """Holds a page's row to the end of the transaction, and with it whoever wants to write it."""
    await session.execute(text("SELECT 1 FROM page WHERE id = :id FOR UPDATE"), {"id": page_id})
