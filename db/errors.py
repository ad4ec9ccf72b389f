"""Errors of the storage layer, and the root of all of Tenure's own. Driver errors are translated here and nowhere else."""


class TenureError(Exception):
    """The root. `code` is stable and machine-readable; `message` is safe to show."""

    code = "INTERNAL"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class StorageUnavailable(TenureError):
    """The database cannot be reached, or went away in mid-statement. What was asked may be asked again."""

    code = "UNAVAILABLE"


class RowBusy(StorageUnavailable):
    """Another transaction held a row for longer than the lock timeout. Nothing was written."""


class SchemaTooNew(TenureError):
    """The database demands newer software than this."""

    code = "SCHEMA_TOO_NEW"


class SchemaMissing(TenureError):
    """The database was never migrated, or is older than this software."""

    code = "SCHEMA_MISSING"


class LeaseLost(TenureError):
    """The fencing token is no longer the current one: another may hold the job, and nothing was written."""

    code = "LEASE_LOST"


class NotFound(TenureError):
    code = "NOT_FOUND"


class InvalidInput(TenureError):
    """What was given breaks a rule; `path` says where, from the input object down."""

    code = "INVALID_INPUT"

    def __init__(self, message: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.path = path


__all__ = [
    "InvalidInput",
    "LeaseLost",
    "NotFound",
    "RowBusy",
    "SchemaMissing",
    "SchemaTooNew",
    "StorageUnavailable",
    "TenureError",
]
