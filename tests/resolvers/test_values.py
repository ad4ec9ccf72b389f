"""The rules for values from outside, and what the hub does with snapshots; no server needed."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.db.canonical import canonical_json
from tenure.resolvers.values import is_storable, json_problems, key_problem, parse_id, parse_integer, unique_texts

JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON_VALUES)
def test_what_passes_has_a_canonical_form_and_can_be_stored(value: Any) -> None:
    if not json_problems(value, ("params",)):
        assert is_storable(canonical_json(value))


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "\0", "\udc00", {"\ud800": 1}, [10**1000], -(10**1000), Decimal(1), object()]
)
def test_what_cannot_be_stored(value: Any) -> None:
    assert json_problems(value, ("params",))


def test_problems_are_not_counted_without_end() -> None:
    assert len(json_problems(["\0"] * 10_000, ())) == 100


def test_integers_keep_their_digits() -> None:
    assert parse_integer("-" + "9" * 1000) == -(10**1000 - 1)
    assert isinstance(parse_integer("9" * 1001), Decimal)
    assert isinstance(parse_integer("9" * 1_000_000), Decimal)


@pytest.mark.parametrize(
    ("text", "is_id"),
    [
        ("01a22ea7-9edb-796c-a487-eeade2975d93", True),
        ("01A22EA7-9EDB-796C-A487-EEADE2975D93", True),
        ("01a22ea79edb796ca487eeade2975d93", False),
        ("{01a22ea7-9edb-796c-a487-eeade2975d93}", False),
        ("urn:uuid:01a22ea7-9edb-796c-a487-eeade2975d93", False),
        ("", False),
    ],
)
def test_an_id_is_a_uuid_in_its_canonical_form(text: str, is_id: bool) -> None:
    assert parse_id(text) == (UUID(text) if is_id else None)


@pytest.mark.parametrize("key", ["x", "a b", "ключ", "\U0001f600", "x" * 200, "\u200bx"])
def test_keys(key: str) -> None:
    assert key_problem(key) is None


@pytest.mark.parametrize("key", ["", "x" * 201, " ", "\u00a0", "\u2028", "\u00ad", "\u0301", "\x07", "a\0", "\ud800"])
def test_what_is_no_key(key: str) -> None:
    assert key_problem(key) is not None


def test_texts_are_trimmed_and_single() -> None:
    assert unique_texts([" a", "b", "a ", ""]) == [(0, "a"), (1, "b"), (3, "")]
