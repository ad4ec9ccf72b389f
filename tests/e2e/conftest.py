"""API and worker processes, and a GraphQL client that is anybody's."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.processes import FAST, Api, Process

JOB = """
fragment J on Job { id kind state version attempt errorCount idempotencyKey result
  progress { total done succeeded skipped failed fraction } errors { code message } lease { owner fencingToken } }
"""
TAG = (
    "mutation ($input: TagCourseInput!) { tagCourse(input: $input) { __typename"
    " ... on EnqueueJobPayload { replayed job { ...J } } ... on Error { code message }"
    " ... on AdmissionRejected { limit queue used max } } }" + JOB
)
ENQUEUE = TAG.replace("TagCourseInput", "EnqueueJobInput").replace("tagCourse", "enqueueJob")
READ = "query ($id: ID!) { job(id: $id) { ...J } }" + JOB
CANCEL = "mutation ($id: ID!) { cancelJob(input: {id: $id}) { __typename ... on CancelJobPayload { job { ...J } } } }" + JOB
RETRY = "mutation ($id: ID!) { retryJob(input: {id: $id}) { __typename ... on RetryJobPayload { job { ...J } } } }" + JOB
PROGRESS = "subscription ($id: ID!) { jobProgress(id: $id) { ...J } }" + JOB


@dataclass(frozen=True)
class Client:
    """One person's token on one API."""

    http: httpx.AsyncClient
    api_url: str
    token: str

    async def ask(self, query: str, **variables: Any) -> Any:
        response = await self.http.post(
            f"{self.api_url}/graphql",
            json={"query": query, "variables": variables},
            headers={"Authorization": f"Bearer {self.token}"},
        )
        assert response.status_code == 200, response.text
        body = response.json()
        assert "errors" not in body, body
        (answer,) = body["data"].values()
        return answer

    async def tag(self, workspace_id: object, course_id: object, *tags: str, key: str | None = None) -> Any:
        given = {"workspaceId": str(workspace_id), "courseId": str(course_id), "tags": list(tags)}
        return await self.ask(TAG, input={**given, "idempotencyKey": key or str(uuid4())})

    async def enqueue(self, workspace_id: object, kind: str, params: Any, key: str | None = None) -> Any:
        given = {"workspaceId": str(workspace_id), "kind": kind, "params": params}
        return await self.ask(ENQUEUE, input={**given, "idempotencyKey": key or str(uuid4())})

    async def job(self, job_id: str) -> Any:
        return await self.ask(READ, id=job_id)


class Services:
    """Starts processes on one database."""

    def __init__(self, stack: ExitStack, database_url: str) -> None:
        self._stack = stack
        self._env = {**FAST, "TENURE_DATABASE_URL": database_url}

    async def api(self, **settings: str) -> Api:
        return await self._stack.enter_context(Api(env={**self._env, **settings})).until_ready()

    def worker(self, **settings: str) -> Process:
        return self._stack.enter_context(Process("worker", env={**self._env, **settings}))

    def command(self, *arguments: str, **settings: str) -> Process:
        return self._stack.enter_context(Process(*arguments, env={**self._env, **settings}))


@pytest.fixture
def services(database_url: str) -> Iterator[Services]:
    with ExitStack() as stack:
        yield Services(stack, database_url)
