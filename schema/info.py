"""What a field's resolver gets of the request, and decorators for fields that have a description."""

from collections.abc import Callable
from typing import Any, TypeVar

import strawberry

from tenure.resolvers.context import Context

Info = strawberry.Info[Context, Any]

Function = TypeVar("Function", bound=Callable[..., Any])


def described(description: str) -> Callable[[Function], Function]:
    """A field, or a mutation, that the function resolves."""
    decorate: Callable[[Function], Function] = strawberry.field(description=description)
    return decorate


def stream(description: str) -> Callable[[Function], Function]:
    """A subscription whose events the async generator function yields."""
    decorate: Callable[[Function], Function] = strawberry.subscription(description=description)
    return decorate
