"""What `tenure up --demo` shows: a workspace, an administrator, and the project's own documentation as a course."""

import json
import secrets
import shlex
import shutil
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from uuid import UUID

from tenure.cli.course_files import find_course_files
from tenure.cli.course_import import import_course
from tenure.cli.options import DEFAULT_HOST, DEFAULT_PORT, say
from tenure.db.engine import Database
from tenure.db.errors import InvalidInput
from tenure.db.people import WorkspaceRow, create_token, create_workspace, workspace_by_slug
from tenure.db.states import Role

WORKSPACE = "demo"
EMAIL = "demo@example.com"
COURSE = "docs"


@dataclass(frozen=True, slots=True)
class Demo:
    """What the first command needs."""

    workspace_id: UUID
    course_id: UUID
    pages: int
    token: str


def demo_course_directory() -> Path:
    """The project's documentation, packaged with Tenure."""
    return Path(str(files("tenure"))) / "demo"


async def prepare_demo(database_url: str, directory: Path) -> Demo:
    """Makes what is missing, and brings the course up to date; a new token each time, since a token cannot be shown twice."""
    database = Database(database_url, pool_size=2, application_name="tenure demo")
    try:
        try:
            workspace, token = await _make_workspace(database)
        except InvalidInput:  # another `up --demo` on this database made it at the same time
            workspace, token = await _make_workspace(database)
        pages = find_course_files(directory)
        course = await import_course(database, pages, workspace=WORKSPACE, slug=COURSE, title="Tenure's documentation")
    finally:
        await database.dispose()
    for problem in pages.problems:
        say(f"Left out: {problem.path}: {problem.reason}.")
    return Demo(workspace.id, course.id, len(pages.paths), token)


async def _make_workspace(database: Database) -> tuple[WorkspaceRow, str]:
    async with database.transaction() as session:
        workspace = await workspace_by_slug(session, WORKSPACE) or await create_workspace(session, WORKSPACE, "Demo")
        return workspace, await create_token(session, WORKSPACE, EMAIL, Role.ADMIN)


def invitation(demo: Demo, address: str) -> str:
    """How to make and watch a first job: lines to be pasted into a shell."""
    url = "" if address == f"http://{DEFAULT_HOST}:{DEFAULT_PORT}" else f" TENURE_URL={address}"
    return f"""
  In the browser, signed in:  {address}/#token={demo.token}

  Your first job, in another terminal: tag the {demo.pages} pages of the course "{COURSE}", and watch it.

export TENURE_TOKEN={demo.token}{url}
JOB=$(curl -sS {address}/graphql -H "Authorization: Bearer $TENURE_TOKEN" -H 'Content-Type: application/json' \\
  -d {shlex.quote(_tag_course(demo))} | sed 's/.*"id": *"\\([^"]*\\)".*/\\1/')
{_program()} job watch "$JOB"
"""


def _tag_course(demo: Demo) -> str:
    query = (
        "mutation ($input: TagCourseInput!) { tagCourse(input: $input)"
        " { ... on EnqueueJobPayload { job { id } } ... on Error { code message } } }"
    )
    values = {
        "workspaceId": str(demo.workspace_id),
        "courseId": str(demo.course_id),
        "tags": ["hello"],
        "idempotencyKey": f"first-{secrets.token_hex(3)}",
    }
    return json.dumps({"query": query, "variables": {"input": values}})


def _program() -> str:
    """How this program is called from where it was started."""
    found = shutil.which("tenure")
    this = Path(sys.argv[0])
    if found is not None and Path(found).samefile(this):
        return "tenure"
    return shlex.quote(str(this.relative_to(Path.cwd()) if this.is_relative_to(Path.cwd()) else this))
