"""GraphQL over HTTP as its specification has it, and the door to the sockets: Strawberry's view with its gaps closed."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from cross_web import AsyncHTTPRequestAdapter, HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket
from strawberry.asgi import GraphQL
from strawberry.exceptions import ConnectionRejectionError, MissingQueryError
from strawberry.http import GraphQLHTTPResponse, GraphQLRequestData
from strawberry.http.base import BaseRequestProtocol
from strawberry.http.types import QueryParams
from strawberry.schema import BaseSchema
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError
from strawberry.subscriptions import GRAPHQL_TRANSPORT_WS_PROTOCOL
from strawberry.types import ExecutionResult
from strawberry.types.execution import PreExecutionError
from strawberry.types.graphql import OperationType
from strawberry.types.unset import UNSET, UnsetType

from tenure.auth import InvalidToken, authenticate, authorization_of
from tenure.db.errors import StorageUnavailable
from tenure.graphql_socket import SocketHandler
from tenure.resolvers.context import Context
from tenure.resolvers.values import parse_integer
from tenure.schema.outcomes import BAD_REQUEST, presented

GRAPHQL_RESPONSE = "application/graphql-response+json"
MAX_BODY_BYTES = 4 * 1024 * 1024
INIT_SECONDS = 10
ALLOWED_OPERATIONS = {
    "GET": frozenset({OperationType.QUERY}),
    "POST": frozenset({OperationType.QUERY, OperationType.MUTATION}),
}
"""A subscription takes a transport that streams."""
STATUS_CODES = {401: "UNAUTHENTICATED", 503: "UNAVAILABLE"}
RESPONSE_HEADERS = {
    401: {"WWW-Authenticate": "Bearer"},
    405: {"Allow": "GET, POST"},
    503: {"Retry-After": "1"},
}


@dataclass
class RequestContext(Context):
    """A request's or a socket's context, with the credentials that it came with."""

    authorization: str | None = None

    def credentials(self) -> str | None:
        """A socket's first message may bring its own, which then count. Raises InvalidToken."""
        return authorization_of(self.connection_params) or self.authorization


class GraphQLView(GraphQL[RequestContext, None]):
    """POST, GET and WebSocket on one path. `new_context` gives the context of a request with these credentials."""

    graphql_transport_ws_handler_class = SocketHandler

    def __init__(self, schema: BaseSchema, new_context: Callable[[str | None], RequestContext], page: str) -> None:
        super().__init__(
            schema,
            subscription_protocols=(GRAPHQL_TRANSPORT_WS_PROTOCOL,),
            connection_init_wait_timeout=timedelta(seconds=INIT_SECONDS),
        )
        self._new_context = new_context
        self._page = page
        self.sockets: set[SocketHandler] = set()
        self.is_closing = False

    async def close_sockets(self) -> None:
        """Closes every socket with 1012, which makes its client come back, to another process."""
        self.is_closing = True
        await asyncio.gather(*(socket.restart() for socket in list(self.sockets)))

    # ---------------------------------------------------------------- who is calling

    async def get_context(
        self,
        request: Request | WebSocket,
        response: Response | WebSocket,  # noqa: ARG002 - Strawberry's signature
    ) -> RequestContext:
        context = self._new_context(request.headers.get("authorization"))
        if isinstance(request, WebSocket):
            return context  # a socket says who it is in its first message
        try:
            return await self.renewed(context)
        except InvalidToken as error:
            raise HTTPException(401, error.message) from error
        except StorageUnavailable as error:
            raise HTTPException(503, error.message) from error

    async def renewed(self, context: RequestContext) -> RequestContext:
        """The context with the rights that its credentials have now. Raises InvalidToken, StorageUnavailable."""
        return replace(context, principal=await authenticate(context.database, context.credentials()))

    async def on_ws_connect(self, context: RequestContext) -> UnsetType | dict[str, object] | None:
        try:
            await self.renewed(context)
        except InvalidToken as error:
            raise ConnectionRejectionError from error
        no_payload: UnsetType = UNSET
        return no_payload

    # ---------------------------------------------------------------- requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self.run(WebSocket(scope, receive=receive, send=send))
            return
        request = Request(scope, receive)
        try:
            response = await self.run(request)
        except HTTPException as error:
            response = refusal(error.status_code, error.reason)
        if accepts_graphql_response(request):
            response.headers["content-type"] = f"{GRAPHQL_RESPONSE}; charset=utf-8"
            if getattr(request.state, "is_refused", False):
                response.status_code = 400
        response.headers.add_vary_header("Accept")
        response.headers["Cache-Control"] = "no-store"
        await response(scope, receive, send)

    def should_render_graphql_ide(self, request: BaseRequestProtocol) -> bool:
        is_asking = request.query_params.get("query") is not None
        return request.method == "GET" and not is_asking and "text/html" in request.headers.get("accept", "")

    async def render_graphql_ide(self, request: Request) -> Response:  # noqa: ARG002 - Strawberry's signature
        return HTMLResponse(self._page)

    async def parse_http_body(self, request: AsyncHTTPRequestAdapter) -> GraphQLRequestData | list[GraphQLRequestData]:
        media_type = (request.content_type or "").partition(";")[0].strip().lower()
        if request.method == "POST" and media_type != "application/json":
            raise HTTPException(415, "Send the request as application/json.")
        data = await super().parse_http_body(request)
        if isinstance(data, GraphQLRequestData):
            if not isinstance(data.operation_name, str | None):
                raise HTTPException(400, "operationName is a string.")
            data.operation_name = data.operation_name or None
        return data

    def parse_query_params(self, params: QueryParams) -> dict[str, Any]:
        return super().parse_query_params({name: value for name, value in params.items() if value != "null"})

    def parse_json(self, data: str | bytes) -> Any:
        try:
            parsed = self.decode_json(data)
        except json.JSONDecodeError as error:
            raise HTTPException(400, f"This is no JSON: {error.msg}.") from error
        if not all(isinstance(item, dict) for item in (parsed if isinstance(parsed, list) else [parsed])):
            raise HTTPException(400, "This is to be a JSON object.")
        return parsed

    def decode_json(self, data: str | bytes) -> object:
        """JSON as RFC 8259 has it: no NaN, and integers with all their digits. Raises JSONDecodeError for all else."""
        if len(data) > MAX_BODY_BYTES:
            raise json.JSONDecodeError(f"more than {MAX_BODY_BYTES} characters", "", 0)
        try:
            return json.loads(data, parse_int=parse_integer, parse_constant=_refuse_constant)
        except UnicodeDecodeError as error:
            raise json.JSONDecodeError("it is not encoded in UTF-8", "", 0) from error
        except RecursionError as error:
            raise json.JSONDecodeError("it is nested too deeply", "", 0) from error

    async def execute_single(
        self,
        request: Request,  # noqa: ARG002 - Strawberry's signature
        request_adapter: AsyncHTTPRequestAdapter,
        sub_response: Response,  # noqa: ARG002
        context: RequestContext,
        root_value: None,
        request_data: GraphQLRequestData,
    ) -> ExecutionResult:
        try:
            return await self.schema.execute(
                request_data.query,
                root_value=root_value,
                variable_values=request_data.variables,
                context_value=context,
                operation_name=request_data.operation_name,
                allowed_operation_types=ALLOWED_OPERATIONS[request_adapter.method],
                operation_extensions=request_data.extensions,
            )
        except CannotGetOperationTypeError as error:
            raise HTTPException(400, error.as_http_error_reason()) from error
        except InvalidOperationTypeError as error:
            reason = error.as_http_error_reason(request_adapter.method)
            raise HTTPException(405 if request_adapter.method == "GET" else 400, reason) from error
        except MissingQueryError as error:
            raise HTTPException(400, "The request has no query.") from error

    # ---------------------------------------------------------------- answers

    async def process_result(self, request: Request, result: ExecutionResult) -> GraphQLHTTPResponse:
        if result.errors:  # what broke outside the extensions' reach is masked here
            result.errors = [e if e.extensions and "code" in e.extensions else presented(e) for e in result.errors]
        answer = await super().process_result(request, result)
        if isinstance(result, PreExecutionError):
            request.state.is_refused = True
            answer.pop("data", None)  # nothing was executed, so there is none
        return answer


def _refuse_constant(name: str) -> object:
    raise json.JSONDecodeError(f"{name} is no number", "", 0)


def accepts_graphql_response(request: Request) -> bool:
    return GRAPHQL_RESPONSE in request.headers.get("accept", "")


def refusal(status: int, message: str) -> Response:
    """An answer to a request that never became an operation."""
    error = {"message": message, "extensions": {"code": STATUS_CODES.get(status, BAD_REQUEST)}}
    return JSONResponse({"errors": [error]}, status, headers=RESPONSE_HEADERS.get(status))
