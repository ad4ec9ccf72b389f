"""The served schema keeps the contract: only what is not served yet is missing."""

from pathlib import Path

from graphql import GraphQLNamedType, GraphQLSchema, build_schema
from graphql.utilities import find_breaking_changes

from tenure import schema

DIRECTORY = Path(schema.__file__).resolve().parent
NOT_YET_TYPES = {
    "AdmissionUsage",
    "AuditEvent",
    "AuditEventConnection",
    "AuditEventEdge",
    "AuditFilter",
    "CreateBackupInput",
    "EnqueueJobsInput",
    "EnqueueJobsItem",
    "EnqueueJobsPayload",
    "EnqueueJobsResult",
    "EtagMismatch",
    "JobChange",
    "MembershipConnection",
    "MembershipEdge",
    "Queue",
    "RefreshOutcome",
    "RefreshStatus",
    "UpdatePageInput",
    "UpdatePagePayload",
    "UpdatePageResult",
}
NOT_YET_FIELDS = {
    "Job.auditEvents",
    "Mutation.createBackup",
    "Mutation.enqueueJobs",
    "Mutation.updatePage",
    "Subscription.workspaceJobs",
    "Workspace.admission",
    "Workspace.auditEvents",
    "Workspace.members",
    "Workspace.queues",
}
"""Both only ever shrink."""


def contract() -> GraphQLSchema:
    return build_schema((DIRECTORY / "contract.graphql").read_text())


def served() -> GraphQLSchema:
    return build_schema(schema.build_schema().as_str())


def test_the_committed_schema_is_the_served_one() -> None:
    assert (DIRECTORY / "schema.graphql").read_text() == schema.build_schema().as_str()


def test_nothing_of_the_contract_is_broken_but_what_is_not_served_yet() -> None:
    expected = {f"{name} was removed." for name in NOT_YET_TYPES} | {f"Field {name} was removed." for name in NOT_YET_FIELDS}
    found = {change.description for change in find_breaking_changes(contract(), served())}
    assert found == expected


def described(found: GraphQLNamedType) -> dict[str, str | None]:
    """The description of a type and of each of its members."""
    members = getattr(found, "fields", None) or getattr(found, "values", None) or {}
    return {"": found.description, **{name: member.description for name, member in members.items()}}


def test_descriptions_are_the_contracts() -> None:
    ours = served().type_map
    for name, theirs in contract().type_map.items():
        if name in ours and not name.startswith("__"):
            own = described(ours[name])
            for member, text in described(theirs).items():
                if text is not None and member in own:
                    assert own[member] == text, f"{name}.{member}"


def test_every_type_and_every_operation_is_described() -> None:
    schema_ = served()
    undescribed = [name for name, found in schema_.type_map.items() if found.description is None]
    for root in (schema_.query_type, schema_.mutation_type, schema_.subscription_type):
        assert root is not None
        undescribed += [name for name, field in root.fields.items() if field.description is None]
    assert undescribed == []
