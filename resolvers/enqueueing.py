"""Enqueueing: who may, whether the input fits, and the request's identity. All problems of an input are told at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from tenure.db.canonical import request_hash
from tenure.db.enqueue import Conflict, Enqueued, NewJob, Refused, find_replay
from tenure.db.notify import Hint
from tenure.db.people import PrincipalRow
from tenure.db.states import JobState
from tenure.resolvers.context import Context, Kind, require_role
from tenure.resolvers.errors import AdmissionRejected, FieldProblem, IdempotencyConflict, InvalidInput, NotFound
from tenure.resolvers.values import (
    MAX_PROBLEMS,
    instant_problem,
    is_blank,
    json_bytes,
    json_problems,
    key_problem,
    parse_id,
    range_problem,
    text_problem,
    unique_texts,
)

TAG_PAGES = "course.tag_pages"
MAX_PRIORITY = 100
MAX_ATTEMPTS = 100
MAX_TAGS = 50
MAX_TAG_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class EnqueueRequest:
    """As the client gave it; null where a field is absent."""

    workspace_id: str
    kind: str
    params: Any
    idempotency_key: str
    priority: int | None = None
    run_at: datetime | None = None
    max_attempts: int | None = None

    def hash(self, workspace_id: UUID) -> bytes:
        request = {
            "workspaceId": workspace_id,
            "kind": self.kind,
            "params": self.params,
            "priority": self.priority,
            "runAt": self.run_at,
            "maxAttempts": self.max_attempts,
        }
        return request_hash("enqueueJob", request)


@dataclass(frozen=True, slots=True)
class TagRequest:
    """As the client gave it."""

    workspace_id: str
    course_id: str
    tags: Sequence[str]
    idempotency_key: str

    def hash(self, workspace_id: UUID, course_id: UUID) -> bytes:
        return request_hash("tagCourse", {"workspaceId": workspace_id, "courseId": course_id, "tags": self.tags})


async def enqueue(context: Context, request: EnqueueRequest) -> Enqueued:
    """Enqueues one job, or finds the one that the key stands for.

    Raises Unauthenticated, NotFound, InvalidInput, Forbidden, IdempotencyConflict, AdmissionRejected.
    """
    principal = context.member_of(parse_id(request.workspace_id))
    kind = context.kinds.get(request.kind)
    if kind is not None:
        require_role(principal, kind.role)
    plain, of_params = plain_problems(request), json_problems(request.params, ("params",))
    of_kind = [] if of_params else kind_problems(kind, request)  # a schema is asked only about what is JSON
    if plain or of_params:
        raise InvalidInput([*plain, *of_params, *of_kind][:MAX_PROBLEMS])
    if kind is None or of_kind:
        return await _replayed(context, principal, request, of_kind)
    return await _submit(context, _new_job(context, principal, kind, request))


async def _replayed(
    context: Context, principal: PrincipalRow, request: EnqueueRequest, problems: Sequence[FieldProblem]
) -> Enqueued:
    """What a deploy no longer lets in may have come in before: the same request still finds its job. Raises InvalidInput."""
    workspace_id, actor_id = principal.workspace_id, principal.actor.id
    known = None
    if text_problem(request.kind) is None:  # else no kind ever had that name, and it cannot be hashed
        known = await context.database.run(
            lambda c: find_replay(c, workspace_id, actor_id, request.idempotency_key, request.hash(workspace_id))
        )
    if known is None:
        raise InvalidInput(problems[:MAX_PROBLEMS])
    return Enqueued(known, replayed=True)


def plain_problems(request: EnqueueRequest) -> list[FieldProblem]:
    """What is wrong with the input beside its params, whatever its kind; empty where nothing is."""
    return _problems(
        (("idempotencyKey",), key_problem(request.idempotency_key)),
        (("priority",), None if request.priority is None else range_problem(request.priority, -MAX_PRIORITY, MAX_PRIORITY)),
        (("maxAttempts",), None if request.max_attempts is None else range_problem(request.max_attempts, 1, MAX_ATTEMPTS)),
        (("runAt",), None if request.run_at is None else instant_problem(request.run_at)),
    )


def kind_problems(kind: Kind | None, request: EnqueueRequest) -> list[FieldProblem]:
    """What the kind has against the input, which is known to be JSON."""
    if kind is None:
        return [FieldProblem(("kind",), "is no kind of job that this server knows; its module is named in TENURE_KINDS")]
    return [FieldProblem(("params", *p.path), p.message) for p in kind.check_params(request.params)]


async def tag_course(context: Context, request: TagRequest) -> Enqueued:
    """Enqueues the tagging of a course of the workspace. Raises what `enqueue` raises."""
    principal = context.member_of(parse_id(request.workspace_id))
    kind = context.kinds.get(TAG_PAGES)
    if kind is None:
        raise NotFound("This installation tags no courses.")
    require_role(principal, kind.role)
    tags = unique_texts(request.tags)
    _refuse(_problems((("idempotencyKey",), key_problem(request.idempotency_key))) + _tag_problems(tags))
    course_id = parse_id(request.course_id)
    course = None if course_id is None else await context.loaders.courses.load(course_id)
    if course is None or course.workspace_id != principal.workspace_id:
        raise NotFound("There is no such course.")
    job = NewJob(
        workspace_id=principal.workspace_id,
        actor_id=principal.actor.id,
        kind=kind.name,
        queue=kind.queue,
        params={"courseId": str(course.id), "tags": [tag for _, tag in tags]},
        max_attempts=kind.max_attempts or context.default_max_attempts,
        idempotency_key=request.idempotency_key,
        request_hash=request.hash(principal.workspace_id, course.id),
    )
    return await _submit(context, job)


def _tag_problems(tags: Sequence[tuple[int, str]]) -> list[FieldProblem]:
    count = range_problem(len(tags), 1, MAX_TAGS)
    if count is not None:
        return [FieldProblem(("tags",), f"must be 1 to {MAX_TAGS} different tags")]
    return _problems(*((("tags", str(index)), _tag_problem(tag)) for index, tag in tags))


def _tag_problem(tag: str) -> str | None:
    if not 1 <= len(tag) <= MAX_TAG_CHARACTERS:
        return f"must have 1 to {MAX_TAG_CHARACTERS} characters"
    return text_problem(tag) or ("must not be blank" if is_blank(tag) else None)


def _problems(*found: tuple[tuple[str, ...], str | None]) -> list[FieldProblem]:
    return [FieldProblem(path, message) for path, message in found if message is not None]


def _refuse(problems: Sequence[FieldProblem]) -> None:
    if problems:
        raise InvalidInput(problems[:MAX_PROBLEMS])


def _new_job(context: Context, principal: PrincipalRow, kind: Kind, request: EnqueueRequest) -> NewJob:
    return NewJob(
        workspace_id=principal.workspace_id,
        actor_id=principal.actor.id,
        kind=kind.name,
        queue=kind.queue,
        params=request.params,
        max_attempts=request.max_attempts or kind.max_attempts or context.default_max_attempts,
        priority=request.priority or 0,
        run_at=request.run_at,
        idempotency_key=request.idempotency_key,
        request_hash=request.hash(principal.workspace_id),
    )


async def _submit(context: Context, job: NewJob) -> Enqueued:
    outcome = await context.enqueuing.submit(job, json_bytes(job.params))
    match outcome:
        case Enqueued():
            if not outcome.replayed:
                found = outcome.job
                context.hints.send(Hint(found.id, found.version, is_ready=found.state is JobState.QUEUED))
            return outcome
        case Conflict():
            raise IdempotencyConflict("The idempotency key was used before, with another request.")
        case Refused():
            raise AdmissionRejected(outcome)
