"""Admission under 200 concurrent requests over HTTP: exactly the limit, never one more or less."""

import asyncio
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tenure.db.states import Role
from tests.e2e.conftest import Client, Services
from tests.factories import Seed, seed_workspace

pytestmark = [pytest.mark.e2e, pytest.mark.guarantee(5)]
REQUESTS = 200


@pytest.fixture
def noop_kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder: Path = tmp_path_factory.mktemp("kinds")
    (folder / "noop_kinds.py").write_text(
        "from tenure import JobContext, kind\n\n@kind('t.noop')\nasync def noop(ctx: JobContext) -> None:\n    return None\n"
    )
    return {"TENURE_KINDS": "noop_kinds", "PYTHONPATH": str(folder)}


async def test_g5_four_actors_tagging(seed: Seed, services: Services, http: httpx.AsyncClient) -> None:
    api = await services.api()
    course_id = await seed.course("c", ["x"])
    emails = [f"actor{n}@acme.example" for n in range(4)]
    clients = [Client(http, api.url, await seed.token(Role.ADMIN, email)) for email in emails]
    answers = await asyncio.gather(*(clients[n % 4].tag(seed.workspace_id, course_id, "a") for n in range(REQUESTS)))
    kinds = Counter(a["__typename"] for a in answers)
    assert kinds == {"EnqueueJobPayload": 10, "AdmissionRejected": REQUESTS - 10}
    admitted = Counter(n % 4 for n, a in enumerate(answers) if a["__typename"] == "EnqueueJobPayload")
    assert max(admitted.values()) <= 3
    refusals = {(a["limit"], a["queue"], a["used"], a["max"]) for a in answers if a["__typename"] == "AdmissionRejected"}
    assert refusals <= {("PENDING_PER_ACTOR", "admin", 3, 3), ("PENDING_PER_WORKSPACE", "admin", 10, 10)}
    assert await seed.scalar("SELECT count(*) FROM job") == 10
    assert await seed.scalar("SELECT count(*) FROM idempotency_record") == 10


async def test_g5_ten_in_a_workspace(
    seed: Seed, services: Services, http: httpx.AsyncClient, noop_kinds: dict[str, str]
) -> None:
    api = await services.api(TENURE_MAX_PENDING_PER_WORKSPACE="10", **noop_kinds)
    client = Client(http, api.url, await seed.token())
    answers = await asyncio.gather(*(client.enqueue(seed.workspace_id, "t.noop", {}) for _ in range(REQUESTS)))
    assert Counter(a["__typename"] for a in answers) == {"EnqueueJobPayload": 10, "AdmissionRejected": REQUESTS - 10}
    assert {(a["limit"], a["queue"], a["max"]) for a in answers if "limit" in a} == {("PENDING_PER_WORKSPACE", None, 10)}


async def test_g5_ten_in_the_installation(
    seed: Seed, services: Services, http: httpx.AsyncClient, noop_kinds: dict[str, str]
) -> None:
    seeds = [seed, *[await seed_workspace(seed.database, f"w{n}") for n in range(4)]]
    # Two API processes, so that one process's batches do not serialize what the database must.
    apis = [await services.api(TENURE_MAX_PENDING="10", **noop_kinds) for _ in range(2)]
    tokens = [await s.token() for s in seeds]
    answers = await asyncio.gather(
        *(
            Client(http, apis[n % 2].url, tokens[n % 5]).enqueue(seeds[n % 5].workspace_id, "t.noop", {})
            for n in range(REQUESTS)
        )
    )
    assert Counter(a["__typename"] for a in answers) == {"EnqueueJobPayload": 10, "AdmissionRejected": REQUESTS - 10}
    assert {(a["limit"], a["queue"], a["max"]) for a in answers if "limit" in a} == {("PENDING_GLOBAL", None, 10)}
