"""When two requests are the same: one canonical form, hashed.

RFC 8785's member order, strings and numbers, but integers keep all their digits (its own form is doubles, in which two
neighbours above 2^53 are one). Null and absent are equal, at every depth of an object; a null in a list stays.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import rfc8785

HASH_ALGORITHM = 1
"""Stored beside each hash; rises when the canonical form changes, so that old hashes are never compared with new ones."""


def request_hash(operation: str, request: Mapping[str, Any]) -> bytes:
    """SHA-256 of the operation's name and its input, without the idempotency key and with no default filled in."""
    return hashlib.sha256(canonical_json({"input": request, "operation": operation}).encode("utf-8")).digest()


def canonical_json(value: Any) -> str:
    """The canonical text. Raises TypeError for what is no JSON value, instant or id."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() | str():
            return rfc8785.dumps(value).decode("utf-8")
        case datetime():
            return canonical_json(value.astimezone(UTC).isoformat())
        case UUID():
            return canonical_json(str(value))
        case Mapping():
            members = sorted(((k, v) for k, v in value.items() if v is not None), key=lambda m: m[0].encode("utf-16-be"))
            return "{" + ",".join(f"{canonical_json(k)}:{canonical_json(v)}" for k, v in members) + "}"
        case Sequence():
            return "[" + ",".join(canonical_json(v) for v in value) + "]"
        case _:
            raise TypeError(f"{type(value).__name__} has no canonical form")
