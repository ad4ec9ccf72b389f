"""The GraphQL API: types over the resolvers' rows, and the schema built of them."""

from functools import cache

import strawberry
from graphql import GraphQLError, lexicographic_sort_schema, print_schema
from strawberry.schema.config import StrawberryConfig
from strawberry.types import ExecutionContext

from tenure.schema import enums  # noqa: F401 - registers the enums before the types name them
from tenure.schema.courses import Course, Page
from tenure.schema.jobs import Job
from tenure.schema.limits import DocumentCheck, TokenLimit
from tenure.schema.mutation import Mutation
from tenure.schema.outcomes import ErrorCodes
from tenure.schema.people import Actor, Membership
from tenure.schema.query import Query
from tenure.schema.scalars import SCALARS
from tenure.schema.subscription import Subscription
from tenure.schema.workspaces import Workspace


class TenureSchema(strawberry.Schema):
    """Leaves logging to the extension that masks errors: what is the client's fault is no news to the operator."""

    def process_errors(self, errors: list[GraphQLError], execution_context: ExecutionContext | None = None) -> None:
        pass

    def as_str(self) -> str:
        """Sorted, so that a diff shows what has changed. Strawberry's own `sort_schema` breaks the unions' types."""
        return print_schema(lexicographic_sort_schema(self._schema)).rstrip() + "\n"


@cache
def build_schema() -> TenureSchema:
    """The schema, built once a process: Strawberry's types belong to one schema."""
    return TenureSchema(
        query=Query,
        mutation=Mutation,
        subscription=Subscription,
        types=[Actor, Course, Job, Membership, Page, Workspace],
        extensions=[ErrorCodes, TokenLimit, DocumentCheck],
        config=StrawberryConfig(scalar_map=SCALARS),
    )
