"""Titles and order, as read out of Markdown text."""

import pytest

from tenure.cli.markdown import HEADS, in_order, summary_links, title_of


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# One\n\n# Two\n", "One"),
        ("intro\n\n### Deep\n", "Deep"),
        ("Set\n===\n", "Set"),
        ("Set\ntext\n---\n", "Set text"),
        ("# Closed ##\n", "Closed"),
        ("#hashtag\n\n# Real\n", "Real"),
        ("#\n\n# After an empty one\n", "After an empty one"),
        ("```\n# code\n```\n# Real\n", "Real"),
        ("~~~~ sh\n# code\n~~~\n# code\n~~~~\n# Real\n", "Real"),
        ("    # indented code\n\n# Real\n", "Real"),
        ("<!--\n# comment\n-->\n\n# Real\n", "Real"),
        ("> # quoted\n\n# Real\n", "Real"),
        ("- # in a list\n\n# Real\n", "Real"),
        ("# The `match` *thing*\n", "The `match` *thing*"),
        ("\ufeff# After a mark\n", "After a mark"),
        ("\r\n# Windows\r\ntext", "Windows"),
        ("# Old Mac\rtext", "Old Mac"),
        ("# Cafe\u0301\n", "Cafe\u0301"),
        ("---\ntitle: Meta\n---\n# Real\n", "Real"),
        ('+++\ntitle = "Meta"\n+++\n# Real\n', "Real"),
        ("---\n# Not metadata\n---\n", "Not metadata"),
        ("# No end", "No end"),
        ("no heading\n", None),
        ("```\n# never closed\n", None),
        ("", None),
    ],
)
def test_title_is_the_first_heading(text: str, title: str | None) -> None:
    assert title_of(text) == title


@pytest.mark.parametrize("offset", range(-24, 3))
@pytest.mark.parametrize("length", HEADS)
def test_a_title_across_the_end_of_a_head_is_whole(length: int, offset: int) -> None:
    filler = "x" * (length + offset - 2) + "\n\n"
    assert title_of(f"{filler}# A title\n\n# Another\n") == "A title"
    assert title_of(f"{filler}A title\nof two lines\n===\n") == "A title of two lines"


def test_title_far_down_is_found() -> None:
    assert title_of("text\n" * 10_000 + "\n# Late\n") == "Late"


def test_title_is_bounded() -> None:
    assert len(title_of("# " + "x" * 10_000) or "") == 500


SUMMARY = """\
# Summary

[Preface](preface.md)

- [One](./one.md)
    - [Nested](part/nested.md#anchor)
    - [Again, elsewhere](part/nested.md#other)
- [With `code` and \\[brackets\\]](part/code.md "a title")
- [Spaces](<with spaces.md>)
- [Encoded](encoded%20name.md)
- [Draft]()
- [Elsewhere](https://example.com/x.md)
- [Out](../out.md)
- [Absolute](/etc/x.md)
<!-- [Hidden](hidden.md) -->

```
[Code](code.md)
```

---

[Ünïcode](ünïcode.md)
"""


def test_summary_gives_its_links_in_order_and_once() -> None:
    paths = ["preface.md", "one.md", "part/nested.md", "part/code.md", "with spaces.md", "encoded name.md", "ünïcode.md"]
    assert in_order(sorted(paths), summary_links(SUMMARY)) == paths


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_summary_has_any_line_end_and_a_mark(end: str) -> None:
    assert summary_links(f"\ufeff- [A](a.md){end}- [B](b.md){end}") == ["a.md", "b.md"]


def test_files_that_no_link_names_come_last_by_path() -> None:
    assert in_order(["z.md", "b.md", "a/c.md", "a-b.md"], ["z.md", "gone.md"]) == ["z.md", "a-b.md", "a/c.md", "b.md"]


def test_a_percent_sign_in_a_name_goes_before_its_meaning() -> None:
    assert in_order(["a b.md", "a%20b.md"], ["a%20b.md"]) == ["a%20b.md", "a b.md"]
