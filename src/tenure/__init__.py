"""Durable background jobs on PostgreSQL: the public face for authors of job handlers."""

from tenure.db.errors import LeaseLost
from tenure.workers.blocking import SyncItem, SyncJobContext
from tenure.workers.context import JobContext
from tenure.workers.errors import JobStopped, Permanent, RetryLater
from tenure.workers.items import Item
from tenure.workers.registry import kind

__version__ = "0.1.0"

__all__ = [
    "Item",
    "JobContext",
    "JobStopped",
    "LeaseLost",
    "Permanent",
    "RetryLater",
    "SyncItem",
    "SyncJobContext",
    "kind",
]
