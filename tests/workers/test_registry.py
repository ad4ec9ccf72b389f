"""Kinds: what may be one, what clients see of it, and how modules of kinds are found."""

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from tenure import JobContext, SyncJobContext, kind
from tenure.db.states import Role
from tenure.workers.registry import Kind, KindError, Registry, load_registry


class Params(BaseModel):
    name: str
    count: int = Field(1, ge=1, le=3)


def found(handler: Any) -> Kind:
    registry = Registry()
    registry.add_handler(handler)
    (one,) = registry
    return one


def test_what_is_said_of_a_kind_is_kept() -> None:
    @kind("report.build", queue="reports", role="operator", max_attempts=5, timeout=600)
    async def build(ctx: JobContext, params: Params) -> dict[str, int]:
        """Builds a report."""
        return {}

    one = found(build)
    assert (one.name, one.queue, one.role, one.max_attempts, one.timeout) == ("report.build", "reports", Role.OPERATOR, 5, 600)
    assert (one.description, one.is_async) == ("Builds a report.", True)
    assert one.params_schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert one.params_schema["required"] == ["name"]


def test_a_plain_function_is_one_and_params_are_optional() -> None:
    @kind("t.plain")
    def plain(ctx: SyncJobContext) -> None:
        return None

    one = found(plain)
    assert (one.is_async, one.queue, one.role) == (False, "default", Role.ADMIN)
    assert one.check_params({}) == []
    assert [p.path for p in one.check_params({"x": 1})] == [("x",)]


def test_each_violation_has_its_path() -> None:
    @kind("t.params")
    async def handler(ctx: JobContext, params: Params) -> None:
        return None

    problems = found(handler).check_params({"count": 9})
    assert {p.path for p in problems} == {("name",), ("count",)}
    assert [p.path for p in found(handler).check_params("text")] == [()]


def test_what_cannot_be_a_kind_is_refused() -> None:
    async def no_annotation(ctx, params):  # type: ignore[no-untyped-def]
        return None

    async def three(ctx: JobContext, params: Params, more: int) -> None:
        return None

    async def good(ctx: JobContext) -> None:
        return None

    with pytest.raises(KindError, match="annotate params"):
        kind("t.bad")(no_annotation)
    with pytest.raises(KindError, match="a context and params"):
        kind("t.bad")(three)
    for options in (
        {"role": "owner"},
        {"max_attempts": 0},
        {"max_attempts": 101},
        {"timeout": 0},
        {"queue": "*"},
        {"queue": ""},
    ):
        with pytest.raises(KindError):
            kind("t.bad", **options)(good)
    for name in ("", "x" * 101, "two words", "\u00e4"):
        with pytest.raises(KindError):
            kind(name)(good)


def test_one_name_has_one_handler() -> None:
    @kind("t.same")
    async def first(ctx: JobContext) -> None:
        return None

    @kind("t.same")
    async def second(ctx: JobContext) -> None:
        return None

    registry = Registry()
    registry.add_handler(first)
    registry.add_handler(first)
    with pytest.raises(KindError, match="Two handlers"):
        registry.add_handler(second)


def test_modules_and_built_in_kinds_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_test_kinds.py").write_text(
        "from tenure import JobContext, kind\n\n@kind('t.mine')\nasync def mine(ctx: JobContext) -> None: ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    registry = load_registry(["my_test_kinds"])
    assert {"t.mine", "course.tag_pages"} <= {one.name for one in registry}
    with pytest.raises(KindError, match="no_such_module"):
        load_registry(["no_such_module"])
    sys.modules.pop("my_test_kinds")
