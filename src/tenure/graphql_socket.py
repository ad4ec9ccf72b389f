"""graphql-transport-ws as its protocol has it: malformed frames close the socket, and rights are asked for again.

Each operation runs with the rights that its caller has when it begins. A stream whose right is lost later says FORBIDDEN,
and its socket closes with 4403.
"""

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any, cast

from graphql import GraphQLError
from strawberry.http.exceptions import WebSocketDisconnected
from strawberry.subscriptions.protocols.graphql_transport_ws.handlers import (
    BaseGraphQLTransportWSHandler,
    Operation,
    _OperationStreamClosed,
)
from strawberry.subscriptions.protocols.graphql_transport_ws.types import ConnectionInitMessage, Message, SubscribeMessage

from tenure.auth import InvalidToken
from tenure.db.errors import StorageUnavailable
from tenure.resolvers.context import Context
from tenure.schema.outcomes import presented

if TYPE_CHECKING:
    from tenure.graphql_http import GraphQLView

FORBIDDEN = 4403
MALFORMED = 4400
RESTART = 1012
TRY_AGAIN = 1013

OPTIONAL_PAYLOAD = {"payload": dict}
SHAPES: Mapping[str, tuple[Mapping[str, type], Mapping[str, type]]] = {
    "connection_init": ({}, OPTIONAL_PAYLOAD),
    "ping": ({}, OPTIONAL_PAYLOAD),
    "pong": ({}, OPTIONAL_PAYLOAD),
    "subscribe": ({"id": str, "payload": dict}, {}),
    "complete": ({"id": str}, {}),
}
"""For each type of message: the members that it must have, and those that it may have."""
REQUEST_SHAPE: tuple[Mapping[str, type], Mapping[str, type]] = (
    {"query": str},
    {"variables": dict, "operationName": str, "extensions": dict},
)


def malformation(message: object) -> str | None:
    """What is wrong with a frame; null where nothing is."""
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        return "A message is an object with a type"
    shape = SHAPES.get(message["type"])
    if shape is None:
        return "Unknown message type"
    if not _has_shape(message, shape):
        return f"Malformed {message['type']} message"
    if message["type"] == "subscribe" and not (message["id"] and _has_shape(message["payload"], REQUEST_SHAPE)):
        return "Malformed subscribe payload"
    return None


def _has_shape(value: dict[str, Any], shape: tuple[Mapping[str, type], Mapping[str, type]]) -> bool:
    required, optional = shape
    return all(isinstance(value.get(name), kind) for name, kind in required.items()) and all(
        value.get(name) is None or isinstance(value[name], kind) for name, kind in optional.items()
    )


class SocketHandler(BaseGraphQLTransportWSHandler[Any, None]):
    """One socket."""

    view: "GraphQLView"

    async def handle(self) -> None:
        if self.view.is_closing:
            await self._close(RESTART, "Service restart")
            return
        self.view.sockets.add(self)
        try:
            await super().handle()
        finally:
            self.view.sockets.discard(self)

    async def restart(self) -> None:
        """Ends all operations without a word, and closes so that the client comes back."""
        for operation_id in list(self.operations):
            await self.cleanup_operation(operation_id)
        await self._close(RESTART, "Service restart")

    async def _close(self, code: int, reason: str) -> None:
        try:
            await self.websocket.close(code, reason)
        except (RuntimeError, WebSocketDisconnected):
            return  # it was closing already

    async def handle_message(self, message: Message) -> None:
        problem = malformation(message)
        if problem is not None:
            await self._close(MALFORMED, problem)
            return
        members = {name: value for name, value in message.items() if value is not None}  # null and absent are equal
        await super().handle_message(cast("Message", members))

    async def handle_connection_init(self, message: ConnectionInitMessage) -> None:
        try:
            await super().handle_connection_init(message)
        except StorageUnavailable:
            await self._close(TRY_AGAIN, "Try again later")

    async def handle_subscribe(self, message: SubscribeMessage) -> None:
        limit = self.max_subscriptions_per_connection
        is_new = message["id"] not in self.operations
        if self.connection_acknowledged and is_new and limit is not None and len(self.operations) >= limit:
            error = GraphQLError(f"A socket runs {limit} operations at a time.", extensions={"code": "TOO_MANY_SUBSCRIPTIONS"})
            await self.send_message({"id": message["id"], "type": "error", "payload": [error.formatted]})
            return
        await super().handle_subscribe(message)

    async def run_operation(self, operation: Operation[Context, None]) -> None:
        try:
            self.context = await self.view.renewed(self.context)
        except InvalidToken:
            self.operations.pop(operation.id, None)
            await self._close(FORBIDDEN, "Forbidden")
            return
        except Exception as error:  # noqa: BLE001 - told to the client, masked where it is none of ours
            await operation.send_initial_errors([presented(GraphQLError("", original_error=error))])
            return
        # Takes the context before anything else can run, so that another operation's renewal does no harm.
        await super().run_operation(operation)

    async def _send_result_stream(self, operation: Operation[Context, None], result_source: AsyncGenerator[Any, None]) -> None:
        await super()._send_result_stream(operation, self._until_forbidden(operation, result_source))

    async def _until_forbidden(
        self, operation: Operation[Context, None], source: AsyncGenerator[Any, None]
    ) -> AsyncGenerator[Any, None]:
        async for result in source:
            yield result
            if any((error.extensions or {}).get("code") == "FORBIDDEN" for error in result.errors or ()):
                self.operations.pop(operation.id, None)
                await self._close(FORBIDDEN, "Forbidden")
                raise _OperationStreamClosed

    @staticmethod
    def _get_pre_execution_close_reason(error: GraphQLError) -> str | None:  # noqa: ARG004 - Strawberry's signature
        """A document that cannot be run is its operation's error, not the socket's."""
        return None
