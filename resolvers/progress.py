"""The stream of one job's snapshots, as a client sees it."""

from collections.abc import AsyncIterator

from tenure.db.jobs import JobSnapshot
from tenure.resolvers.context import Context
from tenure.resolvers.errors import BadRequest, NotFound
from tenure.resolvers.hub import UNSEEN
from tenure.resolvers.jobs import NO_SUCH_JOB, read_visible_job
from tenure.resolvers.values import parse_id


async def job_progress(context: Context, job_id: str, since_version: int | None) -> AsyncIterator[JobSnapshot]:
    """The job's snapshot at once, then the newest after each change, versions rising; ends behind the terminal one.

    With `since_version`, snapshots that are not newer are left out, the terminal one excepted. Where a retry has overtaken
    the terminal one, the stream goes on. Raises Unauthenticated, BadRequest, NotFound; Forbidden when the right is lost
    later, ShuttingDown.
    """
    principal = context.signed_in()
    if since_version is not None and since_version < 0:
        raise BadRequest("sinceVersion is 0 or more.")
    parsed = parse_id(job_id)
    if parsed is None:
        raise NotFound(NO_SUCH_JOB)
    sent = UNSEEN if since_version is None else since_version
    with context.hub.watch(parsed, principal.token_id) as watcher:  # before the read: the other order loses a change
        current = await read_visible_job(context, job_id)
        if current is None:
            raise NotFound(NO_SUCH_JOB)
        watcher.offer(current)
        snapshot = watcher.take_waiting()
        while snapshot is not None:
            if snapshot.version > sent or snapshot.is_terminal:
                yield snapshot
                sent = snapshot.version
            snapshot = watcher.take_waiting() if snapshot.is_terminal else await watcher.take()
