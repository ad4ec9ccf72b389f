"""The scalars' forms, in and out."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from graphql import GraphQLError, parse_value

from tenure.schema.scalars import json_of_literal, parse_big_integer, parse_instant, write_instant


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31t12:00:00.5z", datetime(2026, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC)),
        ("2026-01-31T12:00:00.123456789+05:30", datetime(2026, 1, 31, 6, 30, 0, 123_456, tzinfo=UTC)),
    ],
)
def test_instants_that_are_read(text: str, instant: datetime) -> None:
    assert parse_instant(text) == instant


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        "",
        "2026-01-31",
        "2026-01-31T12:00:00",
        "2026-01-31 12:00:00Z",
        "2026-02-30T12:00:00Z",
        "9999-12-31T23:59:59-01:00",
    ],
)
def test_instants_that_are_refused(value: Any) -> None:
    with pytest.raises(GraphQLError):
        parse_instant(value)


def test_instants_are_written_in_utc() -> None:
    assert write_instant(datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=2)))) == "2025-12-31T23:00:00Z"


@pytest.mark.parametrize(("value", "number"), [("9007199254740993", 2**53 + 1), ("-1", -1), (5, 5)])
def test_big_integers(value: Any, number: int) -> None:
    assert parse_big_integer(value) == number


@pytest.mark.parametrize("value", ["", "1.0", "x", True, 1.0, None, "\u0661", "1" * 41])
def test_what_is_no_big_integer(value: Any) -> None:
    with pytest.raises(GraphQLError):
        parse_big_integer(value)


def test_json_in_a_document() -> None:
    literal = parse_value('{a: [1, -2.5, "x", true, null, $v, $gone], b: $gone, c: {}}')
    assert json_of_literal(literal, {"v": 2**60}) == {"a": [1, -2.5, "x", True, None, 2**60, None], "c": {}}
    with pytest.raises(GraphQLError, match="write texts in quotes"):
        json_of_literal(parse_value("{a: WORD}"))
