"""Durable background jobs on PostgreSQL: the public face for authors of job handlers.

The names are loaded when they are first asked for, so that a client command does not wait for SQLAlchemy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    "Item": "tenure.workers.items",
    "JobContext": "tenure.workers.context",
    "JobStopped": "tenure.workers.errors",
    "LeaseLost": "tenure.db.errors",
    "Permanent": "tenure.workers.errors",
    "RetryLater": "tenure.workers.errors",
    "SyncItem": "tenure.workers.blocking",
    "SyncJobContext": "tenure.workers.blocking",
    "kind": "tenure.workers.registry",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tenure' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
