"""What an import reads out of Markdown text: a page's title, and the order that a SUMMARY.md gives.

Pure functions on text as it was decoded, with whatever line ends and byte order mark it has.
"""

import posixpath
import re
from functools import cache
from itertools import pairwise
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt

HEADS = (256, 4096)
"""How many characters to look at first: parsing whole pages for a heading would take most of an import's time."""
MAX_TITLE_CHARACTERS = 500
BYTE_ORDER_MARK = "\ufeff"
FRONT_MATTER = re.compile(
    r"\A(?P<fence>---|\+\+\+)[ \t]*\r?\n(?=[\w\"'-]+[ \t]*[:=]).*?\r?\n(?P=fence)[ \t]*(?:\r?\n|\Z)", re.DOTALL
)
"""Metadata in YAML or TOML before the text, which Markdown would take for a heading."""


@cache
def _block_parser() -> MarkdownIt:
    return MarkdownIt("commonmark").disable("inline")


def title_of(text: str) -> str | None:
    """The first heading, as it is written; null if there is none. What stands in code or in comments is no heading."""
    text = FRONT_MATTER.sub("", text.removeprefix(BYTE_ORDER_MARK))
    for length in HEADS:
        if len(text) > length:
            head = text[:length]
            # The last lines may go on behind the cut.
            if (title := _first_heading(head, before_line=head.count("\n") - 1)) is not None:
                return title
    return _first_heading(text)


def _first_heading(text: str, before_line: int | None = None) -> str | None:
    tokens = _block_parser().parse(text)
    for token, content in pairwise(tokens):
        if token.type != "heading_open" or token.level > 0:
            continue
        if before_line is not None and token.map is not None and token.map[1] > before_line:
            return None
        if title := " ".join(content.content.split()):
            return title[:MAX_TITLE_CHARACTERS]
    return None


def summary_links(text: str) -> list[str]:
    """The files that a SUMMARY.md links to, in order and once each; their paths as written, but without "./" and anchor.

    Links to other sites, to nothing (a draft chapter) and out of the book are left out.
    """
    links: dict[str, None] = {}
    for block in MarkdownIt("commonmark").parse(text.removeprefix(BYTE_ORDER_MARK)):
        for token in block.children or ():
            if token.type == "link_open" and (path := _local_path(str(token.attrs["href"]))):
                links.setdefault(path)
    return list(links)


def _local_path(href: str) -> str | None:
    try:
        parts = urlsplit(href)
    except ValueError:
        return None
    if parts.scheme or parts.netloc or not parts.path or parts.path.startswith("/"):
        return None
    path = posixpath.normpath(parts.path)
    return None if path == "." or path.startswith("../") else path


def in_order(paths: list[str], links: list[str]) -> list[str]:
    """The paths in the order of the links, then those that no link names, by path.

    A link may be percent-encoded; a file whose name really has the percent sign goes first.
    """
    left = set(paths)
    ordered: list[str] = []
    for link in links:
        for path in (link, unquote(link)):
            if path in left:
                left.remove(path)
                ordered.append(path)
                break
    return ordered + sorted(left)
