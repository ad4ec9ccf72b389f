"""The kinds of jobs: the `@kind` decorator, and the registry that API and workers load alike.

A kind is a Python function with typed params. Its params model's JSON Schema is what clients see; params that do not fit
are refused when the job is enqueued, so that a handler never meets them.
"""

import importlib
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError

from tenure.db.errors import TenureError
from tenure.db.states import Role

ENTRY_POINT_GROUP = "tenure.kinds"
BUILT_IN = ("tenure.workers.kinds.tag_pages",)

Handler = Callable[[Any, Any], Awaitable[Any]] | Callable[[Any, Any], Any]
HandlerT = TypeVar("HandlerT", bound=Callable[..., Any])


class KindError(TenureError):
    """A kind that cannot be: a bad signature, two of one name, a module that cannot be imported."""

    code = "BAD_KIND"


class NoParams(BaseModel):
    """The params of a kind that takes none."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class ParamsProblem:
    """One violation of the schema, and where in the params it lies."""

    path: tuple[str, ...]
    message: str


@dataclass(frozen=True)
class Kind:
    """What a kind promises and who runs it."""

    name: str
    handler: Handler
    params_model: type[BaseModel]
    queue: str
    role: Role
    max_attempts: int | None
    """Null: the installation's TENURE_MAX_ATTEMPTS."""
    timeout: float | None
    """Seconds an attempt may take; null: no limit."""
    is_async: bool
    takes_params: bool = True

    @property
    def description(self) -> str:
        return inspect.getdoc(self.handler) or ""

    @cached_property
    def params_schema(self) -> dict[str, Any]:
        """JSON Schema, draft 2020-12."""
        schema = self.params_model.model_json_schema(mode="validation")
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}

    def check_params(self, params: Any) -> list[ParamsProblem]:
        """What is wrong with the params; empty where they fit."""
        try:
            self.parse_params(params)
        except ValidationError as error:
            return [
                ParamsProblem(tuple(str(part) for part in e["loc"]), e["msg"])
                for e in error.errors(include_url=False, include_context=False, include_input=False)
            ]
        return []

    def parse_params(self, params: Any) -> BaseModel:
        """The params as the handler gets them. Raises pydantic's ValidationError."""
        return self.params_model.model_validate(params)


KIND_ATTRIBUTE = "__tenure_kind__"


def kind(
    name: str,
    *,
    queue: str = "default",
    role: str = "admin",
    max_attempts: int | None = None,
    timeout: float | None = None,
) -> Callable[[HandlerT], HandlerT]:
    """Makes a function the handler of a kind of job.

    The function takes a context and params: `async def f(ctx: JobContext, params: Model) -> JSON`, or a plain `def` with a
    SyncJobContext, which runs in a thread. `role` is the least role that may enqueue it and in whose name it may run;
    `timeout` is in seconds for one attempt. Raises KindError for a signature or a value that cannot be.
    """

    def decorate(handler: HandlerT) -> HandlerT:
        found = Kind(
            name=name,
            handler=handler,
            params_model=_params_model(name, handler),
            queue=queue,
            role=_role(name, role),
            max_attempts=max_attempts,
            timeout=timeout,
            is_async=inspect.iscoroutinefunction(handler),
            takes_params=len(inspect.signature(handler).parameters) == 2,
        )
        _check(found)
        setattr(handler, KIND_ATTRIBUTE, found)
        return handler

    return decorate


def _role(name: str, role: str) -> Role:
    try:
        return Role(role.upper())
    except ValueError as error:
        raise KindError(f"Kind {name!r}: role is viewer, operator or admin, not {role!r}.") from error


def _check(found: Kind) -> None:
    words = found.name, found.queue
    if any(not 1 <= len(w) <= 100 or not w.isascii() or not w.isprintable() or " " in w or w == "*" for w in words):
        raise KindError(f"Kind {found.name!r}: name and queue are 1 to 100 printable ASCII characters without spaces.")
    if found.max_attempts is not None and not 1 <= found.max_attempts <= 100:
        raise KindError(f"Kind {found.name!r}: max_attempts is 1 to 100.")
    if found.timeout is not None and not found.timeout > 0:
        raise KindError(f"Kind {found.name!r}: timeout is more than 0 seconds.")


def _params_model(name: str, handler: Callable[..., Any]) -> type[BaseModel]:
    parameters = list(inspect.signature(handler).parameters.values())
    if len(parameters) == 1:
        return NoParams
    if len(parameters) != 2:
        raise KindError(f"Kind {name!r}: the handler takes a context and params.")
    model = get_type_hints(handler).get(parameters[1].name)
    if not (inspect.isclass(model) and issubclass(model, BaseModel)):
        raise KindError(f"Kind {name!r}: annotate params with a pydantic model.")
    return model


class Registry:
    """Kinds by name. What is registered twice under one name is an error, unless it is the same function."""

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._kinds: dict[str, Kind] = {}
        for one in kinds:
            self.add(one)

    def add(self, found: Kind) -> None:
        known = self._kinds.get(found.name)
        if known is not None and known.handler is not found.handler:
            raise KindError(f"Two handlers for kind {found.name!r}.")
        self._kinds[found.name] = found

    def add_handler(self, handler: Callable[..., Any]) -> None:
        """Registers a function that `@kind` decorated."""
        self.add(getattr(handler, KIND_ATTRIBUTE))

    def add_module(self, name: str) -> None:
        """Imports a module and registers the kinds among its names. Raises KindError."""
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            raise KindError(f"The module {name!r} of kinds cannot be imported: {error}") from error
        for value in vars(module).values():
            found = getattr(value, KIND_ATTRIBUTE, None) if callable(value) else None
            if isinstance(found, Kind):
                self.add(found)

    def get(self, name: str) -> Kind | None:
        return self._kinds.get(name)

    def __iter__(self) -> Iterator[Kind]:
        return iter(sorted(self._kinds.values(), key=lambda k: k.name))

    def __len__(self) -> int:
        return len(self._kinds)


def load_registry(modules: Iterable[str] = ()) -> Registry:
    """The built-in kinds, those of installed packages (entry point group `tenure.kinds`), and those of the modules named.

    An entry point names a module, or one decorated function. Raises KindError.
    """
    registry = Registry()
    for name in BUILT_IN:
        registry.add_module(name)
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        if entry.attr:
            registry.add_handler(entry.load())
        else:
            registry.add_module(entry.module)
    for name in modules:
        registry.add_module(name)
    return registry
