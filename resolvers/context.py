"""What a request can reach: the process's services and who is asking. It holds no connection: each read takes its own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from tenure.db.batching import Batcher
from tenure.db.engine import Database
from tenure.db.enqueue import AdmissionLimits, EnqueueOutcome, NewJob
from tenure.db.notify import HintSender
from tenure.db.people import PrincipalRow
from tenure.db.states import Role
from tenure.resolvers.errors import Forbidden, NotFound, Unauthenticated
from tenure.resolvers.hub import ProgressHub
from tenure.resolvers.loaders import Loaders


class ParamsProblem(Protocol):
    """One violation of a params schema, and where in the params it lies."""

    @property
    def path(self) -> tuple[str, ...]: ...
    @property
    def message(self) -> str: ...


class Kind(Protocol):
    """What may be enqueued, as far as a client sees it."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def queue(self) -> str: ...
    @property
    def role(self) -> Role: ...
    @property
    def max_attempts(self) -> int | None: ...
    @property
    def params_schema(self) -> dict[str, Any]: ...
    def check_params(self, params: Any) -> Sequence[ParamsProblem]: ...


class KindCatalogue(Protocol):
    """The kinds by name, in the order of their names. The workers' registry is one."""

    def get(self, name: str) -> Kind | None: ...
    def __iter__(self) -> Iterator[Kind]: ...


@dataclass
class Context:
    """One request's, or one operation's of a socket. Everything but who is asking is the process's own."""

    database: Database
    hints: HintSender
    hub: ProgressHub
    kinds: KindCatalogue
    limits: AdmissionLimits
    default_max_attempts: int
    loaders: Loaders
    enqueuing: Batcher[NewJob, EnqueueOutcome]
    principal: PrincipalRow | None = None
    connection_params: dict[str, Any] = field(default_factory=dict)
    """What a socket's first message brought along."""

    def signed_in(self) -> PrincipalRow:
        """Raises Unauthenticated where nobody is."""
        if self.principal is None:
            raise Unauthenticated("Send a bearer token.")
        return self.principal

    def may_see(self, workspace_id: UUID) -> bool:
        """Whether the caller is a member there. To others, all that is in a workspace is as if it did not exist."""
        return self.principal is not None and self.principal.workspace_id == workspace_id

    def member_of(self, workspace_id: UUID | None) -> PrincipalRow:
        """Raises Unauthenticated, or NotFound for a workspace that is not the caller's."""
        principal = self.signed_in()
        if workspace_id is None or principal.workspace_id != workspace_id:
            raise NotFound("There is no such workspace.")
        return principal


def require_role(principal: PrincipalRow, role: Role) -> None:
    """Raises Forbidden."""
    if not principal.role.includes(role):
        raise Forbidden(f"This takes the role {role.value}.", role)
