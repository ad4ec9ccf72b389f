"""What a row refers to is there: nothing that others refer to is ever deleted."""

from typing import TypeVar

Row = TypeVar("Row")


class MissingRow(LookupError):
    """A row that another refers to is gone. A fault of the installation, never of the caller."""


def present(row: Row | None) -> Row:
    """The row. Raises MissingRow."""
    if row is None:
        raise MissingRow
    return row
