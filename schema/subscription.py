"""The streams."""

from collections.abc import AsyncGenerator

import strawberry

from tenure.resolvers.progress import job_progress
from tenure.schema.info import Info, stream
from tenure.schema.jobs import Job
from tenure.schema.paging import given


@strawberry.type(description="What can be watched.")
class Subscription:
    @stream(
        "Snapshots of one job: the current one at once, then the newest after each change, versions rising;"
        " several quick\nchanges may arrive as one. The terminal snapshot always arrives, and the stream then completes."
        " With sinceVersion,\nsnapshots that are not newer are left out, the terminal one excepted."
    )
    async def job_progress(
        self,
        info: Info,
        id: strawberry.ID,  # noqa: A002 - the argument's name in the API
        since_version: int | None = strawberry.UNSET,
    ) -> AsyncGenerator[Job, None]:
        async for snapshot in job_progress(info.context, id, given(since_version)):
            yield Job.from_row(snapshot)
