"""Loads by id, gathered: what the fields of one answer ask for in the same moment is read in one statement.

A loader remembers nothing: a key that is asked for after its batch has left is read anew. So loaders may be shared by all
requests and sockets of a process, and a read that begins after a subscription is never older than it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from tenure.db.courses import CourseRow, PageRow, courses_by_ids, page_counts, pages_by_ids
from tenure.db.engine import Database, Executor
from tenure.db.jobs import JobSnapshot, read_jobs
from tenure.db.people import ActorRow, MembershipRow, WorkspaceRow, actors_by_ids, memberships_by_ids, workspaces_by_ids

Row = TypeVar("Row")
Read = Callable[[Executor, Sequence[UUID]], Awaitable[Mapping[UUID, Row]]]

MAX_BATCH = 500


class Loader(Generic[Row]):
    """`load` gives the row of an id, or null where there is none."""

    def __init__(self, database: Database, read: Read[Row]) -> None:
        self._database = database
        self._read = read
        self._asked: dict[UUID, asyncio.Future[Row | None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def load(self, key: UUID) -> Row | None:
        """Raises StorageUnavailable."""
        future = self._asked.get(key)
        if future is None:
            loop = asyncio.get_running_loop()
            if not self._asked:
                loop.call_soon(self._dispatch)
            future = self._asked[key] = loop.create_future()
        return await asyncio.shield(future)  # one asker's cancellation is not the others'

    def _dispatch(self) -> None:
        asked, self._asked = list(self._asked.items()), {}
        for start in range(0, len(asked), MAX_BATCH):
            task = asyncio.create_task(self._load(dict(asked[start : start + MAX_BATCH])), name="loader")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _load(self, asked: dict[UUID, asyncio.Future[Row | None]]) -> None:
        try:
            rows = await self._database.run(lambda connection: self._read(connection, list(asked)))
        except Exception as error:  # noqa: BLE001 - each asker gets it
            for future in asked.values():
                future.set_exception(error)
                future.exception()  # retrieved, should its asker be gone
        else:
            for key, future in asked.items():
                future.set_result(rows.get(key))


@dataclass(frozen=True)
class Loaders:
    """One loader for each thing that others refer to."""

    jobs: Loader[JobSnapshot]
    actors: Loader[ActorRow]
    workspaces: Loader[WorkspaceRow]
    memberships: Loader[MembershipRow]
    courses: Loader[CourseRow]
    pages: Loader[PageRow]
    page_counts: Loader[int]

    @classmethod
    def over(cls, database: Database) -> "Loaders":
        return cls(
            jobs=Loader(database, read_jobs),
            actors=Loader(database, actors_by_ids),
            workspaces=Loader(database, workspaces_by_ids),
            memberships=Loader(database, memberships_by_ids),
            courses=Loader(database, courses_by_ids),
            pages=Loader(database, pages_by_ids),
            page_counts=Loader(database, page_counts),
        )
