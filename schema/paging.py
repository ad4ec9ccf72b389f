"""Relay's connections over a slice of a list, and the two interfaces' smallest parts."""

from collections.abc import Callable
from typing import Generic, TypeVar

import strawberry

from tenure.resolvers.paging import PageArguments, Slice

Item = TypeVar("Item")
Row = TypeVar("Row")


@strawberry.interface(description="Anything that can be read again by its id alone.")
class Node:
    id: strawberry.ID


@strawberry.type(description="Where a page lies in its list.")
class PageInfo:
    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None


@strawberry.type(description="One row of a list and its place there.")
class Edge(Generic[Item]):
    cursor: str
    node: Item


@strawberry.type(description="A page of a list.")
class Connection(Generic[Item]):
    edges: list[Edge[Item]]
    nodes: list[Item]
    page_info: PageInfo


def connection(found: Slice[Row], convert: Callable[[Row], Item]) -> Connection[Item]:
    """The slice as GraphQL shows it."""
    nodes = [convert(row) for row in found.rows]
    return Connection(
        edges=[Edge(cursor=cursor, node=node) for cursor, node in zip(found.cursors, nodes, strict=True)],
        nodes=nodes,
        page_info=PageInfo(
            has_next_page=found.has_next,
            has_previous_page=found.has_previous,
            start_cursor=found.cursors[0] if found.cursors else None,
            end_cursor=found.cursors[-1] if found.cursors else None,
        ),
    )


def given(value: Item | None) -> Item | None:
    """Null for an argument that is absent: the two are equal everywhere in this API."""
    return None if value is strawberry.UNSET else value


def page_arguments(first: int | None, after: str | None, last: int | None, before: str | None) -> PageArguments:
    return PageArguments(given(first), given(after), given(last), given(before))
