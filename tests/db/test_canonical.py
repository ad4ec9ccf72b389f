"""When two requests are the same."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.db.canonical import canonical_json, request_hash

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: shuffled(value[k]) for k in reversed(list(value))}
    return [shuffled(v) for v in value] if isinstance(value, list) else value


@pytest.mark.guarantee(4)
@given(JSON)
def test_g4_the_order_of_members_does_not_matter(value: Any) -> None:
    assert canonical_json(value) == canonical_json(shuffled(value))


@given(JSON)
def test_the_canonical_text_is_json_of_the_same_value(value: Any) -> None:
    assert canonical_json(json.loads(canonical_json(value))) == canonical_json(value)


@pytest.mark.guarantee(4)
@given(st.integers(min_value=2**53), st.integers(min_value=1, max_value=3))
def test_g4_neighbours_above_two_to_the_53_differ(number: int, step: int) -> None:
    assert canonical_json({"n": number}) != canonical_json({"n": number + step})


@pytest.mark.guarantee(4)
def test_g4_null_is_absent_but_not_in_a_list() -> None:
    assert canonical_json({"a": None, "b": {"c": None}}) == canonical_json({"b": {}})
    assert canonical_json([None]) != canonical_json([])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": 1.5}, '{"a":1.5,"b":1}'),
        (1.0, "1"),  # one number, as RFC 8785 has it
        (-0.0, "0"),
        (1e21, "1e+21"),
        (9007199254740993, "9007199254740993"),
        ('\u20ac\x0f\n"\\/', '"\u20ac\\u000f\\n\\"\\\\/"'),
        ({"\ufb33": 1, "\U0001f600": 2}, '{"\U0001f600":2,"\ufb33":1}'),  # by UTF-16 code units
        ([True, False, None], "[true,false,null]"),
    ],
)
def test_the_form_is_that_of_rfc_8785(value: Any, text: str) -> None:
    assert canonical_json(value) == text


def test_instants_are_compared_in_utc() -> None:
    at = datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert canonical_json(at) == canonical_json(at.astimezone(timezone(timedelta(hours=5, minutes=30))))


def test_operation_and_input_both_count() -> None:
    assert request_hash("enqueueJob", {"a": 1}) != request_hash("tagCourse", {"a": 1})
    assert request_hash("enqueueJob", {"a": 1}) != request_hash("enqueueJob", {"a": 2})
    assert len(request_hash("enqueueJob", {"id": UUID(int=1)})) == 32
    with pytest.raises(TypeError):
        canonical_json(object())
