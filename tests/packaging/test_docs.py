"""The documentation against the code: links, commands, settings, and the guarantees' tests."""

import ast
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tenure.cli.client import ClientSettings
from tenure.cli.commands import application
from tenure.settings import Settings

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND = re.compile(r"(?:\.venv/bin/|`|\$\(|^)tenure +([a-z][^`)\n]*)", re.MULTILINE)
GUARANTEES = range(1, 14)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def setting_names(model: type[Any]) -> set[str]:
    return {f"TENURE_{name.upper()}" for name in model.model_fields}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_relative_links_resolve(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_summary_names_every_page() -> None:
    linked = set(re.findall(r"\]\(([^)]+)\)", read("docs/SUMMARY.md")))
    assert linked == {p.relative_to(ROOT / "docs").as_posix() for p in PAGES[2:]} - {"SUMMARY.md"}


def commands(text: str) -> list[list[str]]:
    lines = (re.split(r"[#|;&>]", line)[0] for line in COMMAND.findall(text))
    return [line.replace("[", " ").replace("]", " ").split() for line in lines]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_and_their_options_exist(page: Path) -> None:
    for words in commands(page.read_text(encoding="utf-8")):
        command: Any = get_command(application)
        rest = iter(words)
        while hasattr(command, "get_command") and not (word := next(rest, "-")).startswith("-"):
            command = command.get_command(None, word)
            assert command is not None, words
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, (command.name, words)


def test_every_setting_is_listed_and_no_other() -> None:
    named = set(re.findall(r"TENURE_[A-Z][A-Z_]*[A-Z]", read("docs/operations.md")))
    assert named == setting_names(Settings) | setting_names(ClientSettings)


def test_no_page_names_a_setting_that_is_none() -> None:
    known = setting_names(Settings) | setting_names(ClientSettings) | {"TENURE_TEST_DATABASE_URL"}
    for page in PAGES:
        assert set(re.findall(r"TENURE_[A-Z][A-Z_]*[A-Z]", page.read_text(encoding="utf-8"))) <= known, page


def test_the_defaults_are_those_of_the_settings() -> None:
    rows = dict(re.findall(r"^\| (TENURE_\w+) \| `?([\w.]+)`? \|", read("docs/operations.md"), re.MULTILINE))
    for name, field in Settings.model_fields.items():
        listed = rows.get(f"TENURE_{name.upper()}")
        if listed not in (None, "none"):
            assert listed == str(field.default), name


def numbered() -> dict[int, set[str]]:
    """The tests by the number of the guarantee that they bear, by their own mark or by their module's; under 0, all."""
    found: dict[int, set[str]] = defaultdict(set)
    for path in (ROOT / "tests").rglob("test_*.py"):
        module = ast.parse(path.read_text(encoding="utf-8"))
        inherited = [n for s in module.body if isinstance(s, ast.Assign) and "pytestmark" in ast.unparse(s) for n in numbers(s)]
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for number in [0, *inherited] + [n for d in node.decorator_list for n in numbers(d)]:
                    found[number].add(f"{path.relative_to(ROOT / 'tests').as_posix()}::{node.name}")
    return found


def numbers(node: ast.AST) -> list[int]:
    return [int(n) for n in re.findall(r"mark\.guarantee\((\d+)\)", ast.unparse(node))]


def test_every_guarantee_has_tests_and_the_page_names_only_those_that_exist() -> None:
    listed: dict[int, set[str]] = defaultdict(set)
    for number, test in re.findall(r"^\| (\d+) \| `([\w/.]+::\w+)` \|$", read("docs/guarantees.md"), re.MULTILINE):
        listed[int(number)].add(test)
    found = numbered()
    assert set(listed) == set(GUARANTEES)
    for number in GUARANTEES:
        assert listed[number] <= found[0], number


@pytest.mark.guarantee(11)
def test_g11_no_statement_asks_for_the_transactions_start() -> None:
    """`now()` and its like are the clock as it was before the locks were waited for."""
    stale = re.compile(r"\b(now\s*\(|current_timestamp\b|localtimestamp\b|transaction_timestamp\b)", re.IGNORECASE)
    files = [*(ROOT / "migrations/sql").rglob("*.sql"), *(ROOT / "db").glob("*.py")]
    assert len(files) > 20
    for path in files:
        assert not stale.search(path.read_text(encoding="utf-8")), path
