"""Queries: who sees what, by id and as lists, and commands on jobs that exist."""

import base64
import json
from typing import Any
from uuid import UUID, uuid4

import pytest

from tenure.db.people import SYSTEM_ACTOR_ID
from tenure.db.states import Role
from tests.app.conftest import Api
from tests.factories import seed_workspace

JOBS = """
query ($first: Int, $after: String, $last: Int, $before: String, $filter: JobFilter, $orderBy: JobOrder) {
  workspace(slug: "acme") {
    jobs(first: $first, after: $after, last: $last, before: $before, filter: $filter, orderBy: $orderBy) {
      edges { cursor node { id } } nodes { id }
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } } }
"""
CANCEL = """mutation ($id: ID!) { cancelJob(input: {id: $id}) {
  __typename ... on CancelJobPayload { job { id state version cancelRequestedAt } }
  ... on Forbidden { requiredRole } ... on Error { code } } }"""
RETRY = """mutation ($id: ID!, $version: Int) { retryJob(input: {id: $id, expectedVersion: $version}) {
  __typename ... on RetryJobPayload { job { id state version } }
  ... on NotRetryable { job { version } } ... on AdmissionRejected { limit used max }
  ... on Forbidden { requiredRole } ... on Error { code } } }"""
READS = """{ viewer { actor { id } } node(id: "%(id)s") { id } job(id: "%(id)s") { id } workspace(slug: "acme") { id } }"""


async def page(api: Api, **arguments: Any) -> Any:
    return (await api.data(JOBS, **arguments))["workspace"]["jobs"]


async def test_the_viewer_and_the_own_membership(api: Api) -> None:
    viewer = (
        await api.data(
            "{ viewer { csrfToken actor { id name email isEnabled }"
            " memberships { role isEnabled actor { id } workspace { slug } } } }",
            await api.seed.token(Role.OPERATOR),
        )
    )["viewer"]
    assert viewer["csrfToken"] is None
    assert viewer["actor"] == {"id": str(api.seed.actor_id), "name": "admin", "email": api.seed.email, "isEnabled": True}
    assert viewer["memberships"] == [
        {"role": "ADMIN", "isEnabled": True, "actor": {"id": str(api.seed.actor_id)}, "workspace": {"slug": "acme"}}
    ]


async def test_to_nobody_all_is_null(api: Api) -> None:
    job = await api.seed.job()
    assert await api.data(READS % {"id": job.id}, "") == {"viewer": None, "node": None, "job": None, "workspace": None}
    assert await api.error_code("{ jobKinds { name } }", "") == "UNAUTHENTICATED"


async def test_another_workspace_is_as_if_it_did_not_exist(api: Api) -> None:
    other = await seed_workspace(api.seed.database, "other")
    job, course = await other.job(), await other.course("secret", ["a"])
    ids = [job.id, course, other.workspace_id, other.actor_id]
    ids.append(await other.scalar("SELECT id FROM page"))
    ids.append(await other.scalar("SELECT id FROM membership WHERE actor_id = :a", a=other.actor_id))
    for one in ids:
        answer = await api.data(
            'query ($id: ID!) { node(id: $id) { id } job(id: $id) { id } workspace(slug: "other") { id } }', id=str(one)
        )
        assert answer == {"node": None, "job": None, "workspace": None}
    for mutation in (CANCEL, RETRY):
        assert await api.data(mutation, id=str(job.id)) == await api.data(mutation, id=str(uuid4()))
    answer = await api.enqueue(workspaceId=str(other.workspace_id))
    assert answer["code"] == "NOT_FOUND"


@pytest.mark.parametrize("text", ["\0", "\ud800", "nonsense", "", "'", "x" * 10_000])
async def test_texts_that_are_nothing(api: Api, text: str) -> None:
    query = "query ($id: ID!, $slug: String!) { node(id: $id) { id } job(id: $id) { id } workspace(slug: $slug) { id } }"
    assert await api.data(query, id=text, slug=text) == {"node": None, "job": None, "workspace": None}
    assert (await api.data(CANCEL, id=text))["cancelJob"] == {"__typename": "NotFound", "code": "NOT_FOUND"}
    assert (await api.data(RETRY, id=text))["retryJob"] == {"__typename": "NotFound", "code": "NOT_FOUND"}
    filtered = await page(api, filter={"kinds": [text], "queues": [text], "actorIds": [text]})
    assert filtered["nodes"] == []


async def test_every_node_is_found_by_its_id(api: Api) -> None:
    job, course = await api.seed.job(), await api.seed.course("intro", ["a"])
    ids = {
        "Job": job.id,
        "Course": course,
        "Page": await api.seed.scalar("SELECT id FROM page"),
        "Workspace": api.seed.workspace_id,
        "Membership": await api.seed.scalar("SELECT id FROM membership"),
        "Actor": api.seed.actor_id,
    }
    for name, one in ids.items():
        assert await api.data("query ($id: ID!) { node(id: $id) { __typename id } }", id=str(one)) == {
            "node": {"__typename": name, "id": str(one)}
        }
    system = await api.data("query ($id: ID!) { node(id: $id) { ... on Actor { email } } }", id=str(SYSTEM_ACTOR_ID))
    assert system == {"node": {"email": None}}


async def test_a_job_in_full(api: Api) -> None:
    job = await api.seed.running_job()
    await api.seed.execute("UPDATE job SET progress_total = 4, succeeded = 1, skipped = 1, failed = 1, result = '{}'")
    query = """query ($id: ID!) { job(id: $id) {
      workspace { slug } actor { email } state isTerminal errorCount errors { code } result
      progress { total done succeeded skipped failed fraction message }
      lease { owner fencingToken expiresAt } attempt
      attempts { number fencingToken isCounted owner outcome finishedAt error { code } } } }"""
    found = (await api.data(query, id=str(job.id)))["job"]
    assert found["workspace"] == {"slug": "acme"}
    assert found["actor"] == {"email": api.seed.email}
    assert found["progress"] == {
        "total": 4,
        "done": 3,
        "succeeded": 1,
        "skipped": 1,
        "failed": 1,
        "fraction": 0.75,
        "message": None,
    }
    assert found["lease"]["fencingToken"] == str(job.fencing_token)
    (attempt,) = found["attempts"]
    assert (attempt["number"], attempt["fencingToken"]) == (job.fencing_token, str(job.fencing_token))
    assert (attempt["isCounted"], attempt["outcome"]) == (True, None)
    assert found["result"] == {}


async def test_jobs_page_by_page(api: Api) -> None:
    ids = [str((await api.seed.job()).id) for _ in range(7)][::-1]
    first = await page(api, first=3)
    second = await page(api, first=3, after=first["pageInfo"]["endCursor"])
    third = await page(api, first=3, after=second["pageInfo"]["endCursor"])
    assert [n["id"] for p in (first, second, third) for n in p["nodes"]] == ids
    assert [(p["pageInfo"]["hasPreviousPage"], p["pageInfo"]["hasNextPage"]) for p in (first, second, third)] == [
        (False, True),
        (True, True),
        (True, False),
    ]
    assert [e["node"] for e in first["edges"]] == first["nodes"]
    back = await page(api, last=3, before=third["pageInfo"]["startCursor"])
    assert back["nodes"] == second["nodes"]
    assert back["pageInfo"]["hasPreviousPage"]
    assert [n["id"] for n in (await page(api, last=2))["nodes"]] == ids[-2:]
    assert [n["id"] for n in (await page(api, orderBy="CREATED_AT_ASC"))["nodes"]] == ids[::-1]
    empty = await page(api, filter={"states": ["FAILED"]})
    assert empty["pageInfo"] == {"hasNextPage": False, "hasPreviousPage": False, "startCursor": None, "endCursor": None}


async def test_ended_jobs_by_their_end(api: Api) -> None:
    jobs = [await api.seed.job() for _ in range(3)]
    for job in jobs:
        await api.data(CANCEL, id=str(job.id))
    await api.seed.job()
    first = await page(api, first=2, orderBy="FINISHED_AT_DESC")
    rest = await page(api, orderBy="FINISHED_AT_DESC", after=first["pageInfo"]["endCursor"])
    assert [n["id"] for n in first["nodes"] + rest["nodes"]] == [str(j.id) for j in jobs[::-1]]


async def test_filters(api: Api) -> None:
    one = await api.seed.job(kind="one")
    two = await api.seed.job(queue="two")
    await api.data(CANCEL, id=str(two.id))

    async def found(**chosen: Any) -> set[str]:
        return {n["id"] for n in (await page(api, filter=chosen))["nodes"]}

    both = {str(one.id), str(two.id)}
    assert await found() == both
    assert await found(kinds=["one"]) == {str(one.id)}
    assert await found(queues=["two"]) == {str(two.id)}
    assert await found(states=["CANCELLED"]) == {str(two.id)}
    assert await found(states=[]) == set()
    assert await found(actorIds=[str(api.seed.actor_id)], kinds=None) == both
    assert await found(createdAfter="2020-01-01T00:00:00Z", createdBefore="2100-01-01T00:00:00+01:00") == both
    assert await found(createdBefore="2020-01-01T00:00:00Z") == set()


@pytest.mark.parametrize(
    "arguments",
    [
        {"first": 0},
        {"first": 101},
        {"first": -1},
        {"last": 0},
        {"last": 101},
        {"first": 1, "last": 1},
        {"after": ""},
        {"after": "nonsense"},
        {"before": "\0"},
        {"before": "\ud800"},
        {"after": "x" * 5000},
        {"after": base64.urlsafe_b64encode(b"[1]").decode()},
        {"after": base64.urlsafe_b64encode(b"{}").decode()},
    ],
)
async def test_bad_paging_is_a_bad_request(api: Api, arguments: dict[str, Any]) -> None:
    assert await api.error_code(JOBS, **arguments) == "BAD_REQUEST"


async def test_a_cursor_is_of_one_list(api: Api) -> None:
    await api.seed.job()
    await api.seed.course("intro", ["a"])
    cursor = (await page(api))["pageInfo"]["endCursor"]
    assert await api.error_code(JOBS, after=cursor, orderBy="CREATED_AT_ASC") == "BAD_REQUEST"
    courses = '{ workspace(slug: "acme") { courses(%s) { nodes { id } pageInfo { endCursor } } } }'
    assert await api.error_code(courses % f'after: "{cursor}"') == "BAD_REQUEST"
    decoded = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    decoded[2] = "nonsense"
    forged = base64.urlsafe_b64encode(json.dumps(decoded).encode()).decode().rstrip("=")
    assert await api.error_code(JOBS, after=forged) == "BAD_REQUEST"


async def test_courses_and_pages(api: Api) -> None:
    await api.seed.course("one", ["body"] * 5)
    await api.seed.course("two", [])
    query = """query ($first: Int, $after: String) { workspace(slug: "acme") { courses { nodes { slug title pageCount
      pages(first: $first, after: $after) { nodes { path position title body tags etag updatedAt course { slug } }
        pageInfo { hasNextPage endCursor } } } } } }"""
    one, two = (await api.data(query, first=3))["workspace"]["courses"]["nodes"]
    assert (one["slug"], one["pageCount"], two["pageCount"]) == ("one", 5, 0)
    assert [p["position"] for p in one["pages"]["nodes"]] == [0, 1, 2]
    assert one["pages"]["nodes"][0]["course"] == {"slug": "one"}
    assert one["pages"]["pageInfo"]["hasNextPage"]
    assert two["pages"]["nodes"] == []


async def test_counts(api: Api) -> None:
    await api.seed.job()
    await api.data(CANCEL, id=str((await api.seed.job()).id))
    query = """query ($filter: JobFilter) { workspace(slug: "acme") {
      jobCounts(filter: $filter) { queued running succeeded failed cancelled isCapped } } }"""
    counts = (await api.data(query))["workspace"]["jobCounts"]
    assert counts == {"queued": 1, "running": 0, "succeeded": 0, "failed": 0, "cancelled": 1, "isCapped": False}
    assert (await api.data(query, filter={"kinds": []}))["workspace"]["jobCounts"]["queued"] == 0


async def test_the_kinds_that_there_are(api: Api) -> None:
    kinds = {
        k["name"]: k for k in (await api.data("{ jobKinds { name description queue maxAttempts paramsSchema } }"))["jobKinds"]
    }
    assert list(kinds) == sorted(kinds)
    assert kinds["course.tag_pages"]["queue"] == "admin"
    assert (kinds["test.noop"]["description"], kinds["test.noop"]["maxAttempts"]) == ("Does nothing.", 3)
    assert kinds["test.any"]["maxAttempts"] == 7
    assert kinds["test.typed"]["paramsSchema"]["$schema"] == "https://json-schema.org/draft/2020-12/schema"


async def test_twenty_jobs_share_their_reads(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(20):
        await api.seed.job()
    calls = 0
    run = api.services.database.run

    async def counted(call: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        return await run(call, **options)

    monkeypatch.setattr(api.services.database, "run", counted)
    await api.data('{ workspace(slug: "acme") { jobs { nodes { actor { name } workspace { name } attempts { number } } } } }')
    assert calls == 5  # token, workspace, jobs, actors, workspaces


# ---------------------------------------------------------------- commands


@pytest.mark.parametrize(("role", "is_allowed"), [(Role.VIEWER, False), (Role.OPERATOR, True), (Role.ADMIN, True)])
async def test_cancel_and_retry_take_an_operator(api: Api, role: Role, is_allowed: bool) -> None:
    job, token = await api.seed.job(), await api.role(role)
    cancelled = (await api.data(CANCEL, token, id=str(job.id)))["cancelJob"]
    retried = (await api.data(RETRY, token, id=str(job.id)))["retryJob"]
    if is_allowed:
        assert (cancelled["job"]["state"], cancelled["job"]["version"]) == ("CANCELLED", 2)
        assert (retried["job"]["state"], retried["job"]["version"]) == ("QUEUED", 3)
        assert await api.seed.actions(job.id) == ["job.queued", "job.cancel_requested", "job.cancelled", "job.retried"]
    else:
        for answer in (cancelled, retried):
            assert answer == {"__typename": "Forbidden", "requiredRole": "OPERATOR", "code": "FORBIDDEN"}


async def test_cancelling_twice_changes_nothing(api: Api) -> None:
    job = await api.seed.running_job()
    first = (await api.data(CANCEL, id=str(job.id)))["cancelJob"]["job"]
    again = (await api.data(CANCEL, id=str(job.id)))["cancelJob"]["job"]
    assert first["state"] == "RUNNING"
    assert first["cancelRequestedAt"] is not None
    assert again == first


async def test_a_job_that_moved_on_is_not_retried(api: Api) -> None:
    job = await api.seed.job()
    assert (await api.data(RETRY, id=str(job.id)))["retryJob"] == {
        "__typename": "NotRetryable",
        "job": {"version": 1},
        "code": "NOT_RETRYABLE",
    }
    await api.data(CANCEL, id=str(job.id))
    assert (await api.data(RETRY, id=str(job.id), version=1))["retryJob"]["__typename"] == "NotRetryable"
    assert (await api.data(RETRY, id=str(job.id), version=2))["retryJob"]["job"]["version"] == 3
    assert (await api.data(RETRY, id=str(job.id), version=2))["retryJob"]["job"]["version"] == 3


async def test_a_retry_is_admitted_or_not(api: Api) -> None:
    ids: list[UUID] = []
    for _ in range(4):
        job = await api.seed.job(queue="admin")
        ids.append(job.id)
        await api.data(CANCEL, id=str(job.id))
    answers = [(await api.data(RETRY, id=str(i)))["retryJob"] for i in ids]
    assert [a["__typename"] for a in answers] == ["RetryJobPayload"] * 3 + ["AdmissionRejected"]
    assert (answers[3]["limit"], answers[3]["used"], answers[3]["max"]) == ("PENDING_PER_ACTOR", 3, 3)
