"""Which files of a directory become pages, and with which bytes."""

import os
from pathlib import Path

import pytest

from tenure.cli.course_files import CourseFiles, find_course_files
from tenure.db.courses import SourcePage
from tenure.db.errors import InvalidInput


def write(directory: Path, **files: bytes) -> None:
    for name, content in files.items():
        path = directory / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def pages(found: CourseFiles) -> list[SourcePage]:
    return [page for page in found.pages() if page is not None]


BODIES = {
    "crlf": b"# A\r\ntext\r\n",
    "lone cr": b"# A\rtext\r",
    "mixed": b"a\r\nb\nc\rd",
    "mark": b"\xef\xbb\xbf# A\n",
    "decomposed": b"# Cafe\xcc\x81\n",
    "no final newline": b"# A",
    "empty": b"",
    "only newlines": b"\n\r\n\n",
    "other line separators": "a\u2028b\u0085c\x0bd\x0ce".encode(),
    "astral": "\U0001f600".encode(),
    "control": bytes(range(1, 32)),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_is_the_file_byte_for_byte(tmp_path: Path, body: bytes) -> None:
    write(tmp_path, a_md=body)
    (page,) = pages(find_course_files(tmp_path))
    assert page.body.encode() == body


@pytest.mark.parametrize("body", [b"\xff", b"# A\n\xc3", b"\xed\xa0\x80", b"a\0b", "# A".encode("utf-16")])
def test_a_file_that_is_no_text_is_named_and_passed_over(tmp_path: Path, body: bytes) -> None:
    write(tmp_path, a_md=b"# A", bad_md=body, c_md=b"# C")
    found = find_course_files(tmp_path)
    assert [(page.path, page.position) for page in pages(found)] == [("a.md", 0), ("c.md", 2)]
    assert [problem.path for problem in found.problems] == ["bad.md"]
    assert "bad.md" in found.paths, "a file that is there is not pruned"


def test_paths_are_relative_and_in_order(tmp_path: Path) -> None:
    write(tmp_path, b_md=b"", a__z_md=b"", a__b__c_md=b"", README_MD=b"", x_markdown=b"", notes_txt=b"")
    assert find_course_files(tmp_path).paths == ["README.MD", "a/b/c.md", "a/z.md", "b.md", "x.markdown"]


def test_names_with_a_dot_in_front_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, a_md=b"")
    for name in (".git/x.md", ".hidden.md", "sub/.obsidian/y.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    found = find_course_files(tmp_path)
    assert (found.paths, found.problems) == (["a.md"], [])


def test_the_top_summary_orders_and_is_no_page(tmp_path: Path) -> None:
    write(tmp_path, SUMMARY_md=b"- [B](b.md)\n- [Gone](gone.md)\n- [A](a.md)\n", a_md=b"", b_md=b"", sub__SUMMARY_md=b"")
    found = find_course_files(tmp_path)
    assert (found.paths, found.problems) == (["b.md", "a.md", "sub/SUMMARY.md"], [])


def test_a_summary_that_is_no_text_is_named(tmp_path: Path) -> None:
    write(tmp_path, SUMMARY_md=b"\xff", b_md=b"", a_md=b"")
    found = find_course_files(tmp_path)
    assert found.paths == ["a.md", "b.md"]
    assert [problem.path for problem in found.problems] == ["SUMMARY.md"]


def test_the_title_of_a_page_without_heading_is_its_name(tmp_path: Path) -> None:
    write(tmp_path, part__intro_md=b"text")
    (page,) = pages(find_course_files(tmp_path))
    assert page.title == "intro"


def test_links_stay_in_the_directory(tmp_path: Path) -> None:
    course = tmp_path / "course"
    write(course, a_md=b"# A", sub__b_md=b"# B")
    write(tmp_path, secret_md=b"# Secret")
    (course / "inside.md").symlink_to("sub/b.md")
    (course / "outside.md").symlink_to("../secret.md")
    (course / "circle.md").symlink_to("circle.md")
    (course / "dangling.md").symlink_to("nothing.md")
    (course / "loop").symlink_to(course)
    (course / "elsewhere").symlink_to(tmp_path)
    found = find_course_files(course)
    assert [(page.path, page.title) for page in pages(found)] == [("a.md", "A"), ("inside.md", "B"), ("sub/b.md", "B")]
    assert {problem.path for problem in found.problems} == {"outside.md", "circle.md", "dangling.md"}


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    write(tmp_path, a_md=b"# A")
    os.mkfifo(tmp_path / "pipe.md")
    found = find_course_files(tmp_path)
    assert [page.path for page in pages(found)] == ["a.md"]
    assert [problem.path for problem in found.problems] == ["pipe.md"]


def test_a_name_that_is_not_utf8_is_told_legibly(tmp_path: Path) -> None:
    write(tmp_path, a_md=b"# A")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md")).write_bytes(b"# C")
    found = find_course_files(tmp_path)
    assert found.paths == ["a.md"]
    assert [problem.path for problem in found.problems] == ["caf\\udce9.md"]


def test_a_name_in_decomposed_form_stays_so(tmp_path: Path) -> None:
    (tmp_path / "cafe\u0301.md").write_bytes(b"# C")
    assert find_course_files(tmp_path).paths == ["cafe\u0301.md"]


def test_nothing_to_import_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, notes_txt=b"# No")
    with pytest.raises(InvalidInput, match="no Markdown file"):
        find_course_files(tmp_path)
    with pytest.raises(InvalidInput, match="no directory"):
        find_course_files(tmp_path / "missing")
    with pytest.raises(InvalidInput, match="no directory"):
        find_course_files(tmp_path / "notes.txt")
