"""The import of a course, on a real database: again and again, in batches, and with what cannot be imported."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import text

from tenure.cli import course_import
from tenure.cli.course_files import find_course_files
from tenure.cli.course_import import ImportedCourse, import_course
from tenure.db.courses import ImportCounts, PageRow, list_pages, set_page_tags
from tenure.db.errors import InvalidInput, NotFound
from tests.factories import Seed


@dataclass
class Importer:
    """Imports one directory into the course `guide`, and looks at it."""

    seed: Seed
    directory: Path

    def write(self, files: dict[str, bytes]) -> None:
        for name, content in files.items():
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    async def run(self, *, prune: bool = False, title: str | None = None) -> ImportedCourse:
        files = find_course_files(self.directory)
        return await import_course(self.seed.database, files, workspace=self.seed.slug, slug="guide", title=title, prune=prune)

    async def pages(self, course_id: UUID) -> Sequence[PageRow]:
        async with self.seed.database.statement() as connection:
            return await list_pages(connection, course_id, limit=100_000)

    async def course_count(self) -> int:
        async with self.seed.database.statement() as connection:
            return int(await connection.scalar(text("SELECT count(*) FROM course")) or 0)


@pytest.fixture
def importer(seed: Seed, tmp_path: Path) -> Importer:
    return Importer(seed, tmp_path)


async def test_a_real_course_comes_back_byte_for_byte(seed: Seed, course_directory: Path) -> None:
    importer = Importer(seed, course_directory)
    imported = await importer.run()
    pages = await importer.pages(imported.id)
    assert len(pages) == imported.counts.created > 0
    for page in pages:
        assert page.body.encode() == (course_directory / page.path).read_bytes()


async def test_again_is_an_update_that_leaves_the_unchanged_alone(importer: Importer) -> None:
    importer.write({"a.md": b"# A", "b.md": b"# B", "c.md": b"# C\r\n"})
    first = await importer.run(title="The guide")
    before = {page.path: page for page in await importer.pages(first.id)}
    async with importer.seed.database.statement() as connection:
        assert await set_page_tags(connection, before["b.md"].id, before["b.md"].etag, ["kept"])
    tagged = {page.path: page for page in await importer.pages(first.id)}

    importer.write({"c.md": b"# C\n", "d.md": b"# D"})
    second = await importer.run()

    after = {page.path: page for page in await importer.pages(second.id)}
    assert second.id == first.id
    assert second.counts == ImportCounts(created=1, updated=1, unchanged=2)
    assert after["a.md"] == before["a.md"]
    assert after["b.md"] == tagged["b.md"]
    assert after["c.md"].id == before["c.md"].id
    assert after["c.md"].etag != before["c.md"].etag
    assert list(after) == ["a.md", "b.md", "c.md", "d.md"]


async def test_an_updated_page_keeps_its_tags(importer: Importer) -> None:
    importer.write({"a.md": b"# A"})
    imported = await importer.run()
    (page,) = await importer.pages(imported.id)
    async with importer.seed.database.statement() as connection:
        assert await set_page_tags(connection, page.id, page.etag, ["kept"])
    importer.write({"a.md": b"# A changed"})
    await importer.run()
    (page,) = await importer.pages(imported.id)
    assert (page.title, page.tags) == ("A changed", ["kept"])


async def test_pages_whose_file_is_gone_stay_unless_pruned(importer: Importer) -> None:
    importer.write({"a.md": b"# A", "gone.md": b"# Gone", "broken.md": b"# Broken"})
    await importer.run()
    (importer.directory / "gone.md").unlink()
    importer.write({"broken.md": b"\xff"})

    kept = await importer.run()
    assert [page.path for page in await importer.pages(kept.id)] == ["a.md", "broken.md", "gone.md"]

    pruned = await importer.run(prune=True)
    assert pruned.deleted == 1
    assert [page.path for page in await importer.pages(pruned.id)] == ["a.md", "broken.md"]


async def test_nothing_is_pruned_when_a_folder_could_not_be_listed(importer: Importer) -> None:
    importer.write({"a.md": b"# A", "sub/b.md": b"# B"})
    await importer.run()
    (importer.directory / "sub/b.md").unlink()
    files = find_course_files(importer.directory)
    files.is_complete = False
    imported = await import_course(importer.seed.database, files, workspace="acme", slug="guide", prune=True)
    assert [page.path for page in await importer.pages(imported.id)] == ["a.md", "sub/b.md"]


async def test_batches_by_count_and_by_size_make_one_course(importer: Importer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(course_import, "BATCH_PAGES", 3)
    monkeypatch.setattr(course_import, "BATCH_CHARACTERS", 50)
    importer.write({f"{n:02}.md": b"# %d" % n + b"x" * (60 if n == 5 else 0) for n in range(10)})
    importer.write({"07.md": b"\xff"})
    steps: list[int] = []
    files = find_course_files(importer.directory)
    imported = await import_course(importer.seed.database, files, workspace="acme", slug="guide", advance=steps.append)
    assert steps == [3, 3, 4]
    positions = [(page.path, page.position) for page in await importer.pages(imported.id)]
    assert positions == [(f"{n:02}.md", n) for n in range(10) if n != 7]


async def test_the_order_of_the_summary_is_the_course_s(importer: Importer) -> None:
    importer.write({"SUMMARY.md": b"- [Z](z.md)\n- [A](a.md)\n", "a.md": b"", "m.md": b"", "z.md": b""})
    imported = await importer.run()
    assert [page.path for page in await importer.pages(imported.id)] == ["z.md", "a.md", "m.md"]


async def test_what_is_refused_leaves_no_course(importer: Importer) -> None:
    importer.write({"a.md": b"\xff"})
    with pytest.raises(InvalidInput, match="nothing was imported"):
        await importer.run()
    importer.write({"a.md": b"# A"})
    files = find_course_files(importer.directory)
    with pytest.raises(NotFound, match="no workspace"):
        await import_course(importer.seed.database, files, workspace="nobody", slug="guide")
    with pytest.raises(InvalidInput, match="no slug"):
        await import_course(importer.seed.database, files, workspace="acme", slug="No Slug")
    assert await importer.course_count() == 0
