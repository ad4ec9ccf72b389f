"""course.tag_pages against a real course in a real database."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest
from pydantic import ValidationError
from sqlalchemy import text

from tenure.db.courses import PageRow, list_pages
from tenure.db.jobs import JobSnapshot
from tenure.db.states import JobState
from tenure.workers.context import HandlerOptions
from tenure.workers.kinds.tag_pages import TagPagesParams, tag_pages
from tests.factories import Seed, lock_page
from tests.workers.conftest import StartWorker

BODIES = ["crlf\r\n", "cr\rcr\r", "\ufeffbom", "nfd e\u0301\n", "no final newline", "", "\t x \x0b\x0c\u2028"]


async def tag(seed: Seed, course_id: UUID, *tags: str) -> JobSnapshot:
    params = {"courseId": str(course_id), "tags": list(tags)}
    return await seed.job(kind="course.tag_pages", queue="admin", params=params)


async def pages(seed: Seed, course_id: UUID) -> list[PageRow]:
    async with seed.database.statement() as connection:
        return await list_pages(connection, course_id, limit=10_000)


async def test_every_page_is_tagged_and_no_body_touched(seed: Seed, start_worker: StartWorker) -> None:
    course = await seed.course("odd", BODIES)
    worker = await start_worker(tag_pages)
    job = await worker.ended((await tag(seed, course, "a", "b")).id)
    assert (job.state, job.result) == (JobState.SUCCEEDED, {"tagged": 7, "skipped": 0, "failed": 0})
    assert (job.progress_total, job.succeeded) == (7, 7)
    found = await pages(seed, course)
    assert [p.body for p in found] == BODIES
    assert all(p.tags == ["a", "b"] for p in found)
    again = await worker.ended((await tag(seed, course, "b", "a")).id)
    assert again.result == {"tagged": 0, "skipped": 7, "failed": 0}
    assert [p.etag for p in await pages(seed, course)] == [p.etag for p in found]


async def test_tags_are_added_to_those_that_are_there(seed: Seed, start_worker: StartWorker) -> None:
    course = await seed.course("c", ["x"])
    worker = await start_worker(tag_pages)
    for tags in (["one"], ["two", "one"], ["three"]):
        await worker.ended((await tag(seed, course, *tags)).id)
    (page,) = await pages(seed, course)
    assert page.tags == ["one", "two", "three"]


async def test_a_page_that_is_gone_fails_alone(seed: Seed, start_worker: StartWorker) -> None:
    course = await seed.course("c", ["x", "y", "z"])
    first, second, _ = await pages(seed, course)
    async with seed.database.transaction() as blocker:  # holds the worker at the first page
        await lock_page(blocker, first.id)
        worker = await start_worker(tag_pages)
        job = await tag(seed, course, "a")
        await worker.until(job.id, lambda j: j.progress_total == 3)
        await seed.execute("DELETE FROM page WHERE id = :id", id=second.id)
    ended = await worker.ended(job.id)
    assert ended.result == {"tagged": 2, "skipped": 0, "failed": 1}
    (error,) = ended.errors
    assert (error.code, error.item_key) == ("page_gone", str(second.id))
    assert await seed.scalar("SELECT count(*) FROM job_item WHERE job_id = :id", id=job.id) == 1


async def test_a_conflict_is_read_again(seed: Seed, start_worker: StartWorker) -> None:
    course = await seed.course("c", ["x"])
    (page,) = await pages(seed, course)
    async with seed.database.transaction() as editor:
        await lock_page(editor, page.id)
        worker = await start_worker(tag_pages)
        job = await tag(seed, course, "mine")
        await seed.until_somebody_waits()
        edit = text("UPDATE page SET tags = '{theirs}', etag = 'other', body = 'new' WHERE id = :id")
        await editor.execute(edit, {"id": page.id})
    ended = await worker.ended(job.id)
    assert ended.result == {"tagged": 1, "skipped": 0, "failed": 0}
    (now,) = await pages(seed, course)
    assert (now.tags, now.body) == (["theirs", "mine"], "new")


async def test_too_large_a_course_fails_untouched(seed: Seed, start_worker: StartWorker) -> None:
    course = await seed.course("c", ["x", "y", "z"])
    worker = await start_worker(tag_pages, handler=HandlerOptions(max_course_pages=2))
    job = await worker.ended((await tag(seed, course, "a")).id)
    assert (job.state, job.errors[0].code, job.attempt) == (JobState.FAILED, "course_too_large", 1)
    assert all(p.tags == [] for p in await pages(seed, course))


async def test_another_workspaces_course_is_none(seed: Seed, start_worker: StartWorker) -> None:
    worker = await start_worker(tag_pages)
    job = await worker.ended((await tag(seed, uuid4(), "a")).id)
    assert (job.state, job.errors[0].code) == (JobState.FAILED, "course_not_found")


@pytest.mark.parametrize("tags", [[], [""], ["  "], ["x" * 101], [str(n) for n in range(51)], [1], "a"])
def test_bad_tags_are_refused(tags: object) -> None:
    with pytest.raises(ValidationError):
        TagPagesParams.model_validate({"courseId": str(uuid4()), "tags": tags})


def test_tags_are_trimmed_and_without_duplicates() -> None:
    found = TagPagesParams.model_validate({"courseId": str(uuid4()), "tags": [" a ", "a", "b"] * 50})
    assert found.tags == ["a", "b"]


async def test_a_real_course(seed: Seed, start_worker: StartWorker, course_directory: Path) -> None:
    bodies = [path.read_bytes().decode() for path in sorted(course_directory.rglob("*.md"))]
    course = await seed.course("real", bodies)
    worker = await start_worker(tag_pages)
    job = await worker.ended((await tag(seed, course, "real")).id)
    assert job.result == {"tagged": len(bodies), "skipped": 0, "failed": 0}
    assert [p.body for p in await pages(seed, course)] == bodies
