"""Top-level errors: which keep their words, which are masked, and the code that each carries."""

import logging
from collections.abc import Iterator
from uuid import uuid4

from graphql import GraphQLError
from strawberry.extensions import SchemaExtension

from tenure.db.errors import StorageUnavailable
from tenure.resolvers import errors

logger = logging.getLogger(__name__)

BAD_REQUEST = "BAD_REQUEST"
INTERNAL = "INTERNAL"

SHOWN = (
    errors.Unauthenticated,
    errors.BadRequest,
    errors.Forbidden,
    errors.NotFound,
    errors.ShuttingDown,
    StorageUnavailable,
)
"""Errors of ours that are written for the client, with a code of the API."""


def presented(error: GraphQLError) -> GraphQLError:
    """The error as a client may see it: our own and GraphQL's keep their words, anything else becomes INTERNAL."""
    cause = _cause(error)
    if isinstance(cause, SHOWN):
        return _like(error, cause.message, {"code": cause.code})
    if cause is None:
        return _like(error, error.message, {"code": BAD_REQUEST, **(error.extensions or {})})
    return masked(error, cause)


def masked(error: GraphQLError, cause: BaseException) -> GraphQLError:
    """Logs the cause under a new correlation id, and tells the client that id alone."""
    correlation_id = str(uuid4())
    logger.error(
        "An operation failed unexpectedly",
        exc_info=cause,
        extra={"correlation_id": correlation_id, "path": error.path},
    )
    message = "Something went wrong on the server."
    return _like(error, message, {"code": INTERNAL, "correlationId": correlation_id})


def _cause(error: GraphQLError) -> BaseException | None:
    """What a resolver raised; null where GraphQL itself found fault with the request."""
    cause: BaseException | None = error
    while isinstance(cause, GraphQLError):
        cause = cause.original_error
    return cause


def _like(error: GraphQLError, message: str, extensions: dict[str, object]) -> GraphQLError:
    return GraphQLError(
        message, nodes=error.nodes, source=error.source, positions=error.positions, path=error.path, extensions=extensions
    )


class ErrorCodes(SchemaExtension):
    """Presents the errors of each result, streamed ones one by one."""

    _is_streamed = False

    def on_operation(self) -> Iterator[None]:
        yield
        if not self._is_streamed:
            self._present(self.execution_context.result)

    def on_stream_result(self, result: object) -> Iterator[None]:
        self._is_streamed = True
        self._present(result)
        yield

    def _present(self, result: object) -> None:
        found = getattr(result, "errors", None)
        if found:
            result.errors = [presented(error) for error in found]  # type: ignore[attr-defined]  # it has some
