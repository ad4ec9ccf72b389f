"""enqueueJob and tagCourse: what is refused and how it is told, replays, and many at once."""

import asyncio
import json
from typing import Any

import pytest

from tenure.db.states import Role
from tenure.workers.registry import Registry
from tests.app.conftest import ENQUEUE, Api, Serve

TAG = """
mutation ($input: TagCourseInput!) { tagCourse(input: $input) {
  __typename
  ... on EnqueueJobPayload { replayed job { kind queue params } }
  ... on InvalidInput { fields { path message } }
  ... on Error { code }
} }
"""


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


async def test_an_enqueued_job_is_what_was_asked_for(api: Api) -> None:
    answer = await api.enqueue(
        kind="test.any", params={"a": [1, None, "ü"]}, priority=-3, maxAttempts=5, runAt="2030-01-01T00:00:00.5+02:00"
    )
    job = answer["job"]
    assert not answer["replayed"]
    assert (job["kind"], job["queue"], job["priority"], job["maxAttempts"]) == ("test.any", "default", -3, 5)
    assert job["params"] == {"a": [1, None, "ü"]}
    assert job["runAt"] == "2029-12-31T22:00:00.500000Z"
    assert (job["state"], job["version"], job["idempotencyKey"]) == ("QUEUED", 1, "key")


async def test_attempts_come_from_the_request_the_kind_or_the_setting(serve: Serve) -> None:
    async with serve(max_attempts=4) as api:
        attempts = [
            (await api.enqueue(idempotencyKey="1"))["job"]["maxAttempts"],
            (await api.enqueue(idempotencyKey="2", kind="test.any"))["job"]["maxAttempts"],
            (await api.enqueue(idempotencyKey="3", kind="test.any", maxAttempts=1))["job"]["maxAttempts"],
        ]
    assert attempts == [4, 7, 1]


BIG = 2**53 + 1
HUGE = 10**999


@pytest.mark.parametrize("value", [BIG, -BIG, HUGE, 10**30 + 7, 1.5, 1e15, True, "\U0001f600", {}, {"": None}, nested(100)])
async def test_json_comes_back_digit_for_digit(api: Api, value: Any) -> None:
    answer = await api.enqueue(kind="test.any", params=value)
    assert answer["job"]["params"] == value
    literal = json.dumps(value).replace('{"": null}', "{}")
    inline = ENQUEUE.replace("($input: EnqueueJobInput!)", "").replace(
        "input: $input",
        f'input: {{workspaceId: "{api.seed.workspace_id}", kind: "test.any", idempotencyKey: "2", params: {literal}}}',
    )
    assert (await api.data(inline))["enqueueJob"]["job"]["params"] == ({} if value == {"": None} else value)


async def test_a_variable_inside_a_json_literal(api: Api) -> None:
    query = """
      mutation ($w: ID!, $n: JSON, $absent: JSON) {
        enqueueJob(input: {workspaceId: $w, kind: "test.any", idempotencyKey: "k",
          params: {n: $n, gone: $absent, list: [$n, $absent]}}) {
          ... on EnqueueJobPayload { job { params } } } }"""
    data = await api.data(query, w=str(api.seed.workspace_id), n=BIG)
    assert data["enqueueJob"]["job"]["params"] == {"n": BIG, "list": [BIG, None]}


BAD_INPUTS = [
    ({"kind": "test.unknown"}, ["kind"], "no kind"),
    ({"kind": "\0"}, ["kind"], "no kind"),
    ({"kind": "\ud800"}, ["kind"], "no kind"),
    ({"idempotencyKey": ""}, ["idempotencyKey"], "1 to 200"),
    ({"idempotencyKey": "x" * 201}, ["idempotencyKey"], "1 to 200"),
    ({"idempotencyKey": " \t\n"}, ["idempotencyKey"], "blank"),
    ({"idempotencyKey": "\u200b\u2060\ufeff"}, ["idempotencyKey"], "blank"),
    ({"idempotencyKey": "\u3164\u2800"}, ["idempotencyKey"], "blank"),
    ({"idempotencyKey": "a\0"}, ["idempotencyKey"], "NUL"),
    ({"idempotencyKey": "a\udfff"}, ["idempotencyKey"], "surrogate"),
    ({"priority": 101}, ["priority"], "-100 to 100"),
    ({"priority": -101}, ["priority"], "-100 to 100"),
    ({"maxAttempts": 0}, ["maxAttempts"], "1 to 100"),
    ({"maxAttempts": 101}, ["maxAttempts"], "1 to 100"),
    ({"runAt": "9999-06-01T00:00:00Z"}, ["runAt"], "before the year 9999"),
    ({"kind": "test.any", "params": {"a": [{"b": "\0"}]}}, ["params", "a", "0", "b"], "NUL"),
    ({"kind": "test.any", "params": {"a": "\ud800x"}}, ["params", "a"], "surrogate"),
    ({"kind": "test.any", "params": {"\0": 1}}, ["params"], "NUL"),
    ({"kind": "test.any", "params": [10**1000]}, ["params", "0"], "1000 digits"),
    ({"kind": "test.any", "params": nested(101)}, ["params"] + ["0"] * 100, "deeper"),
    ({"kind": "test.any", "params": "x" * 2**20}, ["params"], "1048576 bytes"),
    ({"kind": "test.typed", "params": {"count": 0}}, ["params", "count"], "greater than or equal"),
    ({"kind": "test.typed", "params": {"count": 1, "tags": ["a", 1]}}, ["params", "tags", "1"], "string"),
    ({"kind": "test.typed", "params": {"count": 1, "more": 1}}, ["params", "more"], "not permitted"),
    ({"params": {"more": 1}}, ["params", "more"], "not permitted"),
]


@pytest.mark.parametrize(("changes", "path", "message"), BAD_INPUTS)
async def test_bad_input_is_told_with_its_place(api: Api, changes: dict[str, Any], path: list[str], message: str) -> None:
    answer = await api.enqueue(**changes)
    assert answer["__typename"] == "InvalidInput", answer
    assert answer["code"] == "INVALID_INPUT"
    assert [f["path"] for f in answer["fields"]] == [path]
    assert message in answer["fields"][0]["message"]
    assert await api.seed.scalar("SELECT count(*) FROM job") == 0
    assert await api.seed.scalar("SELECT count(*) FROM idempotency_record") == 0


@pytest.mark.parametrize(("number", "name"), [("1e400", "Infinity"), ("-1e999", "Infinity"), ("9" * 5000, "1000 digits")])
async def test_numbers_that_cannot_be_kept_are_refused_by_name(api: Api, number: str, name: str) -> None:
    variables = json.dumps({"input": {"workspaceId": str(api.seed.workspace_id), "kind": "test.any", "idempotencyKey": "k"}})
    body = f'{{"query": {json.dumps(ENQUEUE)}, "variables": {variables[:-2]}, "params": {{"n": {number}}}}}}}}}'
    answer = (await api.send(body)).json()["data"]["enqueueJob"]
    assert [f["path"] for f in answer["fields"]] == [["params", "n"]]
    assert name in answer["fields"][0]["message"]
    inline = f"""mutation {{ enqueueJob(input: {{workspaceId: "{api.seed.workspace_id}", kind: "test.any",
      idempotencyKey: "k", params: {{n: {number}}}}}) {{ ... on InvalidInput {{ fields {{ path message }} }} }} }}"""
    assert name in (await api.data(inline))["enqueueJob"]["fields"][0]["message"]


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
async def test_what_is_no_json_is_refused_by_name(api: Api, name: str) -> None:
    response = await api.send(f'{{"query": "{{__typename}}", "variables": {{"a": {name}}}}}')
    (error,) = response.json()["errors"]
    assert (response.status_code, error["extensions"]["code"]) == (400, "BAD_REQUEST")
    assert name in error["message"]


async def test_all_problems_are_told_at_once(api: Api) -> None:
    answer = await api.enqueue(
        kind="test.typed", params={"count": "x", "y": 1}, idempotencyKey="", priority=1000, maxAttempts=0
    )
    assert {tuple(f["path"]) for f in answer["fields"]} == {
        ("idempotencyKey",),
        ("priority",),
        ("maxAttempts",),
        ("params", "count"),
        ("params", "y"),
    }


@pytest.mark.parametrize(
    "value", ["2030-01-01", "2030-01-01T00:00:00", "now", 5, "2030-13-01T00:00:00Z", "0001-01-01T00:00:00+10:00"]
)
async def test_an_instant_needs_an_offset(api: Api, value: Any) -> None:
    variables = {"workspaceId": str(api.seed.workspace_id), "kind": "test.noop", "params": {}, "idempotencyKey": "k"}
    assert await api.error_code(ENQUEUE, input={**variables, "runAt": value}) == "BAD_REQUEST"


@pytest.mark.parametrize("workspace", ["nonsense", "", "0198c0de-0000-7000-8000-00000000cafe", "\0", "\ud800"])
async def test_a_workspace_that_is_none_is_not_found(api: Api, workspace: str) -> None:
    answer = await api.enqueue(workspaceId=workspace, kind="test.unknown")
    assert (answer["__typename"], answer["code"]) == ("NotFound", "NOT_FOUND")


ROLES = [
    ("test.noop", Role.VIEWER, "ADMIN"),
    ("test.noop", Role.OPERATOR, "ADMIN"),
    ("test.noop", Role.ADMIN, None),
    ("test.operator", Role.VIEWER, "OPERATOR"),
    ("test.operator", Role.OPERATOR, None),
    ("test.operator", Role.ADMIN, None),
    ("test.typed", Role.VIEWER, None),
]


@pytest.mark.parametrize(("kind", "role", "required"), ROLES)
async def test_enqueueing_takes_the_kinds_role(api: Api, kind: str, role: Role, required: str | None) -> None:
    params = {"count": 1} if kind == "test.typed" else {}
    answer = await api.enqueue(await api.role(role), kind=kind, params=params)
    if required is None:
        assert answer["__typename"] == "EnqueueJobPayload"
    else:
        assert (answer["__typename"], answer["code"], answer["requiredRole"]) == ("Forbidden", "FORBIDDEN", required)


async def test_the_same_request_is_a_replay_and_another_one_a_conflict(api: Api) -> None:
    first = await api.enqueue(kind="test.any", params={"a": 1, "b": None})
    again = await api.enqueue(kind="test.any", params={"a": 1}, priority=None, workspaceId=str(api.seed.workspace_id).upper())
    other = await api.enqueue(kind="test.any", params={"a": 2})
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert again["job"] == first["job"]
    assert (other["__typename"], other["code"]) == ("IdempotencyConflict", "IDEMPOTENCY_CONFLICT")


@pytest.mark.guarantee(4)
async def test_g4_what_a_deploy_no_longer_lets_in_still_finds_its_job(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await api.enqueue(kind="test.any", params={"a": 1})
    monkeypatch.setattr(Registry, "get", lambda _registry, _name: None)  # the kind is gone
    again = await api.enqueue(kind="test.any", params={"a": 1})
    assert (again["replayed"], again["job"]["id"]) == (True, first["job"]["id"])
    assert (await api.enqueue(kind="test.any", params={"a": 2}))["__typename"] == "InvalidInput"
    assert (await api.enqueue(kind="test.any", params={"a": 1}, idempotencyKey="other"))["__typename"] == "InvalidInput"


@pytest.mark.guarantee(4)
async def test_fifty_requests_with_one_key_make_one_job(api: Api) -> None:
    answers = await asyncio.gather(*(api.enqueue() for _ in range(50)))
    assert len({a["job"]["id"] for a in answers}) == 1
    assert sorted(a["replayed"] for a in answers) == [False] + [True] * 49
    assert await api.seed.scalar("SELECT count(*) FROM job") == 1
    assert await api.seed.scalar("SELECT count(*) FROM audit_event WHERE action = 'job.queued'") == 1


async def test_many_at_once_each_get_their_own_answer(api: Api) -> None:
    answers = await asyncio.gather(
        *(api.enqueue(kind="test.any", params={"n": n}, idempotencyKey=f"key {n}") for n in range(200))
    )
    assert [a["job"]["params"]["n"] for a in answers] == list(range(200))
    assert len({a["job"]["id"] for a in answers}) == 200


async def test_a_refusal_names_the_limit(api: Api) -> None:
    answers = [await api.enqueue(kind="test.admin", idempotencyKey=str(n)) for n in range(4)]
    refused = answers[-1]
    assert {k: refused[k] for k in ("__typename", "limit", "queue", "used", "max", "retryAfterSeconds")} == {
        "__typename": "AdmissionRejected",
        "limit": "PENDING_PER_ACTOR",
        "queue": "admin",
        "used": 3,
        "max": 3,
        "retryAfterSeconds": None,
    }
    assert (await api.enqueue(kind="test.admin", idempotencyKey="0"))["replayed"]


async def test_the_daily_limit_says_when_to_try_again(serve: Serve) -> None:
    async with serve(admin_max_created_per_day=1) as api:
        await api.enqueue(kind="test.admin", idempotencyKey="1")
        refused = await api.enqueue(kind="test.admin", idempotencyKey="2")
    assert refused["limit"] == "CREATED_PER_DAY"
    assert 86_300 < refused["retryAfterSeconds"] <= 86_400


async def test_nobody_may_enqueue(api: Api) -> None:
    variables = {"workspaceId": str(api.seed.workspace_id), "kind": "test.noop", "params": {}, "idempotencyKey": "k"}
    answer = await api.post(ENQUEUE, "", input=variables)
    assert answer["data"] == {"enqueueJob": None}
    assert answer["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"


# ---------------------------------------------------------------- tagCourse


async def tag(api: Api, course: object, *tags: str, token: str | None = None, key: str = "tag") -> Any:
    variables = {
        "workspaceId": str(api.seed.workspace_id),
        "courseId": str(course),
        "tags": list(tags),
        "idempotencyKey": key,
    }
    return (await api.data(TAG, token, input=variables))["tagCourse"]


async def test_tagging_enqueues_the_trimmed_tags(api: Api) -> None:
    course = await api.seed.course("intro", ["a"])
    answer = await tag(api, course, " new ", "new", "old")
    assert answer["job"] == {
        "kind": "course.tag_pages",
        "queue": "admin",
        "params": {"courseId": str(course), "tags": ["new", "old"]},
    }
    assert (await tag(api, course, " new ", "new", "old"))["replayed"]
    assert (await tag(api, course, "new", "old"))["code"] == "IDEMPOTENCY_CONFLICT"


@pytest.mark.parametrize(
    ("tags", "path"),
    [
        ([], ["tags"]),
        ([str(n) for n in range(51)], ["tags"]),
        (["a", " "], ["tags", "1"]),
        (["a", "x" * 101], ["tags", "1"]),
        (["a\0"], ["tags", "0"]),
        (["\ud800"], ["tags", "0"]),
        (["\u200b"], ["tags", "0"]),
    ],
)
async def test_bad_tags(api: Api, tags: list[str], path: list[str]) -> None:
    answer = await tag(api, await api.seed.course("intro", ["a"]), *tags)
    assert answer["__typename"] == "InvalidInput"
    assert [f["path"] for f in answer["fields"]] == [path]


async def test_fifty_tags_are_allowed(api: Api) -> None:
    course = await api.seed.course("intro", ["a"])
    assert (await tag(api, course, *[str(n) for n in range(50)], "0", " 1"))["__typename"] == "EnqueueJobPayload"


@pytest.mark.parametrize("course", ["nonsense", "0198c0de-0000-7000-8000-00000000cafe", "\0"])
async def test_a_course_that_is_none(api: Api, course: str) -> None:
    assert (await tag(api, course, "a"))["__typename"] == "NotFound"


async def test_tagging_takes_an_administrator(api: Api) -> None:
    course = await api.seed.course("intro", ["a"])
    assert (await tag(api, course, "a", token=await api.role(Role.OPERATOR)))["__typename"] == "Forbidden"
