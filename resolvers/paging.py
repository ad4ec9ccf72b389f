"""Pages by key: a cursor is the place of one row in one list, so nothing is skipped or repeated while rows come and go."""

import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

from tenure.resolvers.errors import BadRequest

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
CURSOR_VERSION = 1
MAX_CURSOR_CHARACTERS = 1000

Row = TypeVar("Row")
Position = TypeVar("Position")
RowT_co = TypeVar("RowT_co", covariant=True)
PositionT_contra = TypeVar("PositionT_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class PageArguments:
    """As the client gave them."""

    first: int | None = None
    after: str | None = None
    last: int | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class Slice(Generic[Row]):
    """One page of a list: its rows, a cursor for each, and whether there is more."""

    rows: Sequence[Row]
    cursors: Sequence[str]
    has_next: bool
    has_previous: bool


@dataclass(frozen=True)
class Listing(Generic[Row, Position]):
    """A list that can be paged. Its name holds all that orders it, so that no other list takes its cursors."""

    name: str
    position_of: Callable[[Row], Position]
    encode: Callable[[Position], list[Any]]
    decode: Callable[[list[Any]], Position]
    """Raises ValueError, TypeError or KeyError for what `encode` never made."""

    def cursor(self, row: Row) -> str:
        parts = [CURSOR_VERSION, self.name, *self.encode(self.position_of(row))]
        return base64.urlsafe_b64encode(json.dumps(parts, separators=(",", ":")).encode()).decode().rstrip("=")

    def position(self, cursor: str | None) -> Position | None:
        """Raises BadRequest for a cursor that is none, or of another list."""
        if cursor is None:
            return None
        try:
            return self.decode(self._parts(cursor))
        except (ValueError, TypeError, KeyError, RecursionError, binascii.Error) as error:
            raise BadRequest("This is no cursor of this list.") from error

    def _parts(self, cursor: str) -> list[Any]:
        if len(cursor) > MAX_CURSOR_CHARACTERS:
            raise ValueError
        text = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        values: list[Any]
        version, name, *values = json.loads(text)
        if version != CURSOR_VERSION or name != self.name:
            raise ValueError
        return values


class Fetch(Protocol[RowT_co, PositionT_contra]):
    """Up to `limit` rows between two positions in the list's order; with `backward` the last ones, not the first."""

    def __call__(
        self, *, limit: int, after: PositionT_contra | None, before: PositionT_contra | None, backward: bool
    ) -> Awaitable[Sequence[RowT_co]]: ...


async def paginate(listing: Listing[Row, Position], arguments: PageArguments, fetch: Fetch[Row, Position]) -> Slice[Row]:
    """Reads one row more than asked for, to know whether there is more. Raises BadRequest."""
    limit, backward = _limit(arguments)
    after, before = listing.position(arguments.after), listing.position(arguments.before)
    rows = list(await fetch(limit=limit + 1, after=after, before=before, backward=backward))
    is_more = len(rows) > limit
    rows = rows[-limit:] if backward else rows[:limit]
    return Slice(
        rows=rows,
        cursors=[listing.cursor(row) for row in rows],
        has_next=before is not None if backward else is_more,
        has_previous=is_more if backward else after is not None,
    )


def _limit(arguments: PageArguments) -> tuple[int, bool]:
    if arguments.first is not None and arguments.last is not None:
        raise BadRequest("Give first or last, not both.")
    backward = arguments.last is not None
    limit = arguments.last if backward else arguments.first
    if limit is None:
        return DEFAULT_LIMIT, False
    if not 1 <= limit <= MAX_LIMIT:
        raise BadRequest(f"{'last' if backward else 'first'} is 1 to {MAX_LIMIT}.")
    return limit, backward


def decode_id(value: Any) -> UUID:
    """For `Listing.decode`: the UUID of a cursor's part. Raises ValueError."""
    if not isinstance(value, str):
        raise TypeError
    return UUID(value)


def decode_instant(value: Any) -> datetime:
    """For `Listing.decode`: the instant of a cursor's part. Raises ValueError."""
    instant = datetime.fromisoformat(value)
    if instant.tzinfo is None:
        raise ValueError
    return instant
