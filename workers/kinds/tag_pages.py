"""`course.tag_pages`: adds tags to each page of a course, one page at a time, content untouched."""

from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from tenure.db.courses import courses_by_ids, page_ids, read_page_tags, set_page_tags
from tenure.db.errors import LeaseLost, RowBusy, StorageUnavailable
from tenure.workers.context import JobContext
from tenure.workers.errors import Permanent
from tenure.workers.items import Item
from tenure.workers.registry import kind

CONFLICT_TRIES = 5

Tag = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]


def _without_duplicates(tags: list[str]) -> list[str]:
    unique = list(dict.fromkeys(tags))
    if not 1 <= len(unique) <= 50:
        raise ValueError(f"1 to 50 tags are allowed, not {len(unique)}")
    return unique


class TagPagesParams(BaseModel):
    """Which course, and 1 to 50 tags of 1 to 100 characters, trimmed and without duplicates."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    course_id: UUID = Field(alias="courseId")
    tags: Annotated[list[Tag], AfterValidator(_without_duplicates)]


@kind("course.tag_pages", queue="admin", role="admin")
async def tag_pages(ctx: JobContext, params: TagPagesParams) -> dict[str, int]:
    """Adds tags to each page of a course. Result: {tagged, skipped, failed}."""

    async def keys() -> list[str]:
        limit = ctx.options.max_course_pages
        async with ctx.transaction() as session:
            course = (await courses_by_ids(session, [params.course_id])).get(params.course_id)
            if course is None or course.workspace_id != ctx.workspace_id:
                raise Permanent("course_not_found", "The course does not exist.")
            found = await page_ids(session, params.course_id, limit + 1)
        if len(found) > limit:
            raise Permanent("course_too_large", f"The course has more than {limit} pages.")
        return [str(page_id) for page_id in found]

    async for item in ctx.items(keys):
        await _tag_page(ctx, item, params)
    counts = await ctx.counts()
    return {"tagged": counts.succeeded, "skipped": counts.skipped, "failed": counts.failed}


class _PageChanged(Exception):
    pass


async def _tag_page(ctx: JobContext, item: Item, params: TagPagesParams) -> None:
    """One page: its outcome commits with its tags. A page that others keep changing fails, and the job goes on."""
    for _ in range(CONFLICT_TRIES):
        try:
            await _try_page(item, params)
        except (_PageChanged, RowBusy):
            continue
        except StorageUnavailable:
            await ctx.checkpoint()  # waits for the database; whether the page was written shows in the next try
            continue
        except LeaseLost:
            raise
        except Exception:
            ctx.log.exception("A page could not be tagged", extra={"page": item.key})
            await item.fail("page_failed", "The page could not be written.")
        return
    await item.fail("page_conflict", f"The page was changed by others {CONFLICT_TRIES} times in a row.")


async def _try_page(item: Item, params: TagPagesParams) -> None:
    async with item.transaction() as session:
        page = await read_page_tags(session, UUID(item.key))
        if page is None or page.course_id != params.course_id:
            await item.fail("page_gone", "The page does not exist any more.")
            return
        missing = [tag for tag in params.tags if tag not in page.tags]
        if not missing:
            await item.skip()
        elif not await set_page_tags(session, page.id, page.etag, [*page.tags, *missing]):
            raise _PageChanged
