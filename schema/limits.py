"""What a document may be: so many tokens, so deep, so many aliases, and one operation that is meant.

The rules walk each fragment once, however often it is spread, so that checking is never dearer than parsing.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache, partial

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    parse,
)
from strawberry.extensions import MaxTokensLimiter, ValidationCache

MAX_TOKENS = 5000
MAX_DEPTH = 15
MAX_ALIASES = 50
MAX_REMEMBERED_CHARACTERS = 20_000
"""Longer documents are parsed and validated each time, so that the caches stay small."""
TOO_COMPLEX = "TOO_COMPLEX"

TokenLimit = partial(MaxTokensLimiter, MAX_TOKENS)


class DocumentShape:
    """Depth and aliases of a document, each fragment measured once. One that spreads itself is left to validation."""

    def __init__(self, document: DocumentNode) -> None:
        self._fragments = {d.name.value: d for d in document.definitions if isinstance(d, FragmentDefinitionNode)}
        self._known: dict[str, tuple[int, int]] = {}

    def measure(self, selections: SelectionSetNode | None) -> tuple[int, int]:
        """(levels of fields, fields with an alias) below a selection; aliases of introspection count too."""
        depth = aliases = 0
        for selection in selections.selections if selections is not None else ():
            match selection:
                case FieldNode():
                    below, inner = self.measure(selection.selection_set)
                    levels = 0 if selection.name.value.startswith("__") else 1 + below
                    inner += selection.alias is not None
                case InlineFragmentNode():
                    levels, inner = self.measure(selection.selection_set)
                case FragmentSpreadNode():
                    levels, inner = self._fragment(selection.name.value)
                case _:
                    continue
            depth, aliases = max(depth, levels), aliases + inner
        return depth, aliases

    def _fragment(self, name: str) -> tuple[int, int]:
        if name not in self._known:
            self._known[name] = (0, 0)  # for one that spreads itself
            fragment = self._fragments.get(name)
            if fragment is not None:
                self._known[name] = self.measure(fragment.selection_set)
        return self._known[name]


def document_errors(document: DocumentNode, operation_name: str | None) -> list[GraphQLError]:
    """Why the document is not run, before it is even validated; empty where it may be."""
    operations = [d for d in document.definitions if isinstance(d, OperationDefinitionNode)]
    if len(operations) > 1 and operation_name is None:
        return [GraphQLError("Say by operationName which of the document's operations to run.")]
    shape = DocumentShape(document)
    try:
        measured = [shape.measure(operation.selection_set) for operation in operations]
    except RecursionError:  # a chain of hundreds of fragments
        return [_too_complex("The document's fragments are nested too deeply.")]
    depth = max((d for d, _ in measured), default=0)
    aliases = sum(a for _, a in measured)
    if depth > MAX_DEPTH:
        return [_too_complex(f"The document is {depth} levels deep; at most {MAX_DEPTH} are allowed.")]
    if aliases > MAX_ALIASES:
        return [_too_complex(f"The document has {aliases} aliases; at most {MAX_ALIASES} are allowed.")]
    return []


def _too_complex(message: str) -> GraphQLError:
    return GraphQLError(message, extensions={"code": TOO_COMPLEX})


@lru_cache(maxsize=128)
def _parsed(query: str) -> DocumentNode:
    return parse(query, max_tokens=MAX_TOKENS)


class DocumentCheck(ValidationCache):
    """Parses a document, refuses it by its shape, and validates it, on every transport; once while it is remembered."""

    def on_parse(self) -> Iterator[None]:
        context = self.execution_context
        query = context.query
        if query and len(query) <= MAX_REMEMBERED_CHARACTERS:
            with suppress(GraphQLError):  # which Strawberry finds again, and reports on each transport as it should
                context.graphql_document = _parsed(query)
        yield

    def on_validate(self) -> Iterator[None]:
        context = self.execution_context
        document = context.graphql_document
        assert document is not None  # noqa: S101 - it was parsed before
        found = document_errors(document, context._provided_operation_name)  # noqa: SLF001 - `operation_name` guesses
        if found:
            context.pre_execution_errors = found
        elif len(context.query or "") <= MAX_REMEMBERED_CHARACTERS:
            yield from super().on_validate()
            return
        yield
