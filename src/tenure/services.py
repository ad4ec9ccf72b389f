"""What every serving process shares: pool, hints and fan-out, opened in order and closed in the opposite one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from broadcaster import Broadcast

from tenure.db.engine import Database
from tenure.db.enqueue import AdmissionLimits, QueueLimits
from tenure.db.migrate import check_compatible
from tenure.db.notify import HintSender, ListenBackend
from tenure.settings import Settings


@dataclass(frozen=True, slots=True)
class Services:
    database: Database
    hints: HintSender
    listener: ListenBackend
    broadcast: Broadcast


@asynccontextmanager
async def open_services(settings: Settings, database_url: str, *, name: str) -> AsyncIterator[Services]:
    """Opens them on a database whose schema admits this software; `name` is what the database sees of the process.

    Raises SchemaMissing, SchemaTooNew, StorageUnavailable.
    """
    database = Database(
        database_url,
        pool_size=settings.pool_size,
        application_name=name,
        idle_in_transaction_seconds=settings.lease_seconds,
    )
    try:
        async with database.statement() as connection:
            await check_compatible(connection)
        listen_url = settings.listen_url or database_url
        hints = HintSender(listen_url)
        listener = ListenBackend(listen_url)
        hints.start()
        try:
            async with Broadcast(backend=listener) as broadcast:
                yield Services(database, hints, listener, broadcast)
        finally:
            await hints.stop()
    finally:
        await database.dispose()


def admission_limits(settings: Settings) -> AdmissionLimits:
    """The defaults that hold where no limit is set for the workspace."""
    return AdmissionLimits(
        pending_per_workspace=settings.max_pending_per_workspace,
        queues={
            "admin": QueueLimits(
                pending_per_workspace=settings.admin_max_pending_per_workspace,
                pending_per_actor=settings.admin_max_pending_per_actor,
                created_per_day=settings.admin_max_created_per_day,
            )
        },
    )
