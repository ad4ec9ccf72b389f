"""The rules for values that come from outside: ids, keys, texts, instants and JSON.

What passes here can be stored: PostgreSQL's text and jsonb know neither NUL nor lone surrogates, and a number that JSON
allows may still be none that can be kept digit for digit.
"""

import json
import math
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from tenure.resolvers.errors import FieldProblem

MAX_JSON_BYTES = 1024 * 1024
MAX_JSON_DEPTH = 100
MAX_INTEGER_DIGITS = 1000
MAX_KEY_CHARACTERS = 200
MAX_PROBLEMS = 100
LATEST_INSTANT = datetime(9999, 1, 1, tzinfo=UTC)
"""A year below Python's and RFC 3339's last, so that zones and backoff never overflow."""

INTEGER_LIMIT = 10**MAX_INTEGER_DIGITS
BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols by their category that show as nothing."""
INVISIBLE_CATEGORIES = ("Z", "C", "Mn", "Me")


def parse_integer(digits: str) -> Any:
    """An integer of a JSON or GraphQL text; one with too many digits as a Decimal, which `json_problems` refuses by name.

    Python's own conversion of a very long one would raise, or take quadratic time.
    """
    return int(digits) if len(digits.lstrip("-")) <= MAX_INTEGER_DIGITS else Decimal(digits)


def parse_id(text: str) -> UUID | None:
    """The UUID that an ID stands for, in its canonical form alone; null for all else, which is the id of nothing."""
    try:
        parsed = UUID(text)
    except ValueError:
        return None
    return parsed if str(parsed) == text.lower() else None


def is_storable(text: str) -> bool:
    """False for text with NUL or a lone surrogate."""
    return "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)


def is_blank(text: str) -> bool:
    """True where nothing of it would be seen: blanks, control and zero-width characters alone."""
    return all(c in BLANK_LETTERS or unicodedata.category(c).startswith(INVISIBLE_CATEGORIES) for c in text)


def text_problem(text: str) -> str | None:
    """Why the text cannot be stored; null where it can."""
    if "\0" in text:
        return "must not contain the character NUL"
    return None if is_storable(text) else "must not contain a lone surrogate"


def key_problem(key: str) -> str | None:
    """Why this is no idempotency key; null where it is one."""
    if not 1 <= len(key) <= MAX_KEY_CHARACTERS:
        return f"must have 1 to {MAX_KEY_CHARACTERS} characters"
    return text_problem(key) or ("must not be blank" if is_blank(key) else None)


def instant_problem(instant: datetime) -> str | None:
    """Why the instant cannot be kept; null where it can. It has an offset: the scalar sees to that."""
    return None if instant < LATEST_INSTANT else f"must be before the year {LATEST_INSTANT.year}"


def range_problem(number: int, least: int, most: int) -> str | None:
    return None if least <= number <= most else f"must be {least} to {most}"


def json_problems(value: Any, path: tuple[str, ...]) -> list[FieldProblem]:
    """What keeps a JSON value from being stored and given back digit for digit; empty where nothing does."""
    problems: list[FieldProblem] = []
    for problem in _json_problems(value, path, 1):
        problems.append(problem)
        if len(problems) == MAX_PROBLEMS:
            return problems
    if not problems and json_bytes(value) > MAX_JSON_BYTES:
        problems.append(FieldProblem(path, f"must be at most {MAX_JSON_BYTES} bytes of JSON"))
    return problems


def json_bytes(value: Any) -> int:
    """How long its JSON text is, in UTF-8."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8"))


def _json_problems(value: Any, path: tuple[str, ...], depth: int) -> Iterator[FieldProblem]:
    if not isinstance(value, dict | list):
        message = _scalar_problem(value)
        if message is not None:
            yield FieldProblem(path, message)
    elif depth > MAX_JSON_DEPTH:
        yield FieldProblem(path, f"must not be nested deeper than {MAX_JSON_DEPTH}")
    elif isinstance(value, dict):
        yield from _object_problems(value, path, depth)
    else:
        for index, member in enumerate(value):
            yield from _json_problems(member, (*path, str(index)), depth + 1)


def _scalar_problem(value: Any) -> str | None:
    match value:
        case str():
            return text_problem(value)
        case bool() | None:
            return None
        case float():
            return _float_problem(value)
        case int() | Decimal():
            return (
                None
                if not isinstance(value, Decimal) and abs(value) < INTEGER_LIMIT
                else f"must not be an integer of more than {MAX_INTEGER_DIGITS} digits"
            )
        case _:
            return "is no JSON value"


def _object_problems(value: dict[str, Any], path: tuple[str, ...], depth: int) -> Iterator[FieldProblem]:
    for name, member in value.items():
        message = text_problem(name)
        if message is not None:
            yield FieldProblem(path, f"a name {message}")
        else:
            yield from _json_problems(member, (*path, name), depth + 1)


def _float_problem(value: float) -> str | None:
    if math.isnan(value):
        return "must not be NaN"
    if math.isinf(value):
        return "must not be Infinity or of a magnitude above 1.797e308"
    return None


def unique_texts(texts: Sequence[str]) -> list[tuple[int, str]]:
    """The trimmed texts without duplicates, each with its first place in the list."""
    seen: dict[str, int] = {}
    for index, text in enumerate(texts):
        seen.setdefault(text.strip(), index)
    return [(index, text) for text, index in seen.items()]
