"""The scalars beyond GraphQL's own. What they parse is a value of the right shape; rules about it are the resolvers'."""

import re
from datetime import UTC, datetime
from typing import Any, NewType

import strawberry
from graphql import (
    BooleanValueNode,
    EnumValueNode,
    FloatValueNode,
    GraphQLError,
    IntValueNode,
    ListValueNode,
    NullValueNode,
    ObjectValueNode,
    StringValueNode,
    Undefined,
    ValueNode,
    VariableNode,
)
from strawberry.scalars import JSON
from strawberry.types.scalar import ScalarDefinition

from tenure.resolvers.values import parse_integer

BigInt = NewType("BigInt", int)

RFC_3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)
DECIMAL = re.compile(r"-?\d{1,40}", re.ASCII)


def parse_instant(value: Any) -> datetime:
    """Demands an offset. Raises GraphQLError."""
    if not isinstance(value, str) or not RFC_3339.fullmatch(value):
        raise GraphQLError("DateTime must be an instant of RFC 3339 with an offset, such as 2026-01-31T12:00:00Z.")
    try:
        return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise GraphQLError("DateTime must be an instant that exists.") from None


def write_instant(value: datetime) -> str:
    """In UTC, written Z."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_big_integer(value: Any) -> int:
    """A decimal string, or an integer. Raises GraphQLError."""
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise GraphQLError("BigInt must be an integer, written as a decimal string.")


def json_of_literal(node: ValueNode, variables: dict[str, Any] | None = None) -> Any:
    """The JSON value that a literal in a document stands for, integers with all their digits.

    A variable that was not given is no member of an object, and null in a list. Raises GraphQLError for an enum value.
    """
    match node:
        case NullValueNode():
            return None
        case BooleanValueNode() | StringValueNode():
            return node.value
        case IntValueNode():
            return parse_integer(node.value)
        case FloatValueNode():
            return float(node.value)
        case VariableNode():
            return (variables or {}).get(node.name.value, Undefined)
        case ListValueNode():
            members = [json_of_literal(v, variables) for v in node.values]
            return [None if m is Undefined else m for m in members]
        case ObjectValueNode():
            named = {f.name.value: json_of_literal(f.value, variables) for f in node.fields}
            return {name: member for name, member in named.items() if member is not Undefined}
        case EnumValueNode():
            raise GraphQLError(f"{node.value} is no JSON value; write texts in quotes.", node)
        case _:
            raise GraphQLError("This is no JSON value.", node)


def _same(value: Any) -> Any:
    return value


SCALARS: dict[object, ScalarDefinition] = {
    datetime: strawberry.scalar(
        name="DateTime",
        description="An instant, RFC 3339 with an explicit offset, always UTC on output.",
        specified_by_url="https://scalars.graphql.org/andimarek/date-time",
        serialize=write_instant,
        parse_value=parse_instant,
    ),
    JSON: strawberry.scalar(
        name="JSON",
        description="Any JSON value (RFC 8259).",
        specified_by_url="https://www.rfc-editor.org/rfc/rfc8259",
        serialize=_same,
        parse_value=_same,
        parse_literal=json_of_literal,
    ),
    BigInt: strawberry.scalar(
        name="BigInt",
        description="An integer that may exceed 32 bits, written as a decimal string.",
        serialize=str,
        parse_value=parse_big_integer,
    ),
}
