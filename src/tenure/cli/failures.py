"""Which exceptions a user may meet without a traceback, and what they are told."""

from collections.abc import Iterator

from tenure.db.errors import TenureError

REFUSALS = ("28", "3D", "42501")
"""SQLSTATE of a wrong password, no such database, no right to it."""


def describe(error: BaseException) -> str | None:
    """One line for an error that is expected; null for one that is a fault of the software."""
    for cause in _causes(error):
        if isinstance(cause, TenureError):
            return cause.message
        if isinstance(cause, UnicodeEncodeError):
            return "An argument is not valid UTF-8."
        if str(getattr(cause, "sqlstate", None) or "").startswith(REFUSALS):
            return f"The database refuses: {cause}"
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and what it wraps or followed from. SQLAlchemy keeps the driver's under `orig`."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or getattr(cause, "orig", None)
