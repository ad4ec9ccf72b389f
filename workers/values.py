"""What a handler gives back, made fit to be stored."""

import json
from typing import Any

from pydantic import BaseModel

MAX_RESULT_BYTES = 1024 * 1024
MAX_MESSAGE_CHARACTERS = 500


class InvalidResult(ValueError):
    """A result that is no JSON, is too large, or holds a character that PostgreSQL cannot store."""


def clean_text(text: str) -> str:
    """Text that can be stored and shown: NUL and lone surrogates replaced, 500 characters at most."""
    storable = text.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return storable if len(storable) <= MAX_MESSAGE_CHARACTERS else storable[: MAX_MESSAGE_CHARACTERS - 1] + "…"


def result_text(result: Any) -> str:
    """A result as JSON text; integers keep all their digits. A pydantic model is dumped. Raises InvalidResult."""
    if isinstance(result, BaseModel):
        result = result.model_dump(mode="json")
    try:
        text = json.dumps(result, ensure_ascii=False, allow_nan=False)
        size = len(text.encode("utf-8"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidResult(f"The handler's result is no JSON: {type(error).__name__}.") from error
    if "\\u0000" in text and _has_nul(result):
        raise InvalidResult("The handler's result holds a NUL character.")
    if size > MAX_RESULT_BYTES:
        raise InvalidResult(f"The handler's result has {size} bytes of JSON; {MAX_RESULT_BYTES} are allowed.")
    return text


def _has_nul(value: Any) -> bool:
    match value:
        case str():
            return "\x00" in value
        case dict():
            return any(_has_nul(k) or _has_nul(v) for k, v in value.items())
        case list() | tuple():
            return any(_has_nul(v) for v in value)
        case _:
            return False
