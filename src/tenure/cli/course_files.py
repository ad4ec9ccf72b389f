"""The Markdown files below a directory: which become pages, in what order, and what each holds.

A file that cannot become a page is a `Problem` that is told and passed over. Bodies are read one at a time, byte for byte.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tenure.cli.markdown import in_order, summary_links, title_of
from tenure.db.courses import SourcePage
from tenure.db.errors import InvalidInput

SUFFIXES = (".md", ".markdown")
SUMMARY = "SUMMARY.md"
MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_PATH_BYTES = 2_000
"""What an index entry of PostgreSQL can hold, less some room."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A file or folder that was left out, and why. The path is fit for a terminal."""

    path: str
    reason: str


@dataclass(slots=True)
class CourseFiles:
    """What was found below a directory. `paths` is in the course's order; a position is an index into it."""

    directory: Path
    paths: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    """Grows while pages are read."""
    refused: list[str] = field(default_factory=list)
    """Paths of files that are there, but are never read."""
    is_complete: bool = True
    """False if a folder could not be listed, so that a file may be there although it was not found."""

    def pages(self) -> Iterator[SourcePage | None]:
        """Each file as a page; null for one that cannot be, which `problems` then names."""
        for position, path in enumerate(self.paths):
            text = self._read(path)
            if text is None:
                yield None
                continue
            yield SourcePage(path, position, title_of(text) or PurePosixPath(path).stem, text)

    def _read(self, path: str) -> str | None:
        try:
            return read_text(self.directory / path)
        except UnreadableFile as error:
            self.problems.append(Problem(printable(path), str(error)))
            return None


class UnreadableFile(Exception):
    """Why a file's bytes are no page."""


def find_course_files(directory: Path) -> CourseFiles:
    """The files that become pages: those with a Markdown suffix at any depth, but for SUMMARY.md at the top.

    Names that begin with a dot are passed over, folders and files. A link to a folder is not followed, and one to a file
    only if that lies in the directory too. Raises InvalidInput if there is no such directory, or no such file in it.
    """
    if not directory.is_dir():
        raise InvalidInput(f"There is no directory {directory}.")
    found = CourseFiles(directory)
    for path in _walk(found):
        if path == SUMMARY:
            continue
        if (reason := _why_not(directory, path)) is None:
            found.paths.append(path)
        else:
            found.problems.append(Problem(printable(path), reason))
            found.refused.append(path)
    if not found.paths and not found.problems:
        raise InvalidInput(f"There is no Markdown file below {directory}.")
    found.paths = in_order(found.paths, _read_summary(found))
    return found


def _walk(found: CourseFiles) -> Iterator[str]:
    def failed(error: OSError) -> None:
        found.problems.append(Problem(printable(str(error.filename)), error.strerror or "it cannot be read"))
        found.is_complete = False

    for folder, folders, files in os.walk(found.directory, onerror=failed):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in files:
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield Path(folder, name).relative_to(found.directory).as_posix()


def _why_not(directory: Path, path: str) -> str | None:
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    if len(encoded) > MAX_PATH_BYTES:
        return f"its path is longer than {MAX_PATH_BYTES} bytes"
    file = directory / path
    try:
        if file.is_symlink() and not file.resolve().is_relative_to(directory.resolve()):
            return "it links to a file outside the directory"
    except (OSError, RuntimeError):
        return "it links in a circle"
    return None


def _read_summary(found: CourseFiles) -> list[str]:
    file = found.directory / SUMMARY
    if not file.exists():
        return []
    try:
        return summary_links(read_text(file))
    except UnreadableFile as error:
        found.problems.append(Problem(SUMMARY, str(error)))
        return []


def read_text(file: Path) -> str:
    """The file's text with every byte of it: line ends, byte order mark, combining characters. Raises UnreadableFile."""
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableFile("it is no regular file")
        if status.st_size > MAX_FILE_BYTES:
            raise UnreadableFile(f"it is larger than {MAX_FILE_BYTES // 1024 // 1024} MiB")
        text = file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"it is not UTF-8 (byte {error.start})") from error
    except OSError as error:
        raise UnreadableFile(error.strerror or "it cannot be read") from error
    if "\0" in text:
        raise UnreadableFile(f"it holds a NUL (character {text.index(chr(0))})")
    return text


def printable(path: str) -> str:
    """The path as one line of text, whatever bytes are in it."""
    clean = path.encode(errors="backslashreplace").decode()
    return clean if clean.isprintable() else ascii(clean)
