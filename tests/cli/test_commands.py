"""Administration and import as commands: what they print where, and their exit codes."""

import asyncio
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from tests.cli.conftest import RunTenure


def fetch(url: str, query: str) -> list[asyncpg.Record]:
    async def run() -> list[asyncpg.Record]:
        connection = await asyncpg.connect(url)
        try:
            return list(await connection.fetch(query))
        finally:
            await connection.close()

    return asyncio.run(run())


def test_version_and_help(tenure: RunTenure) -> None:
    assert tenure("--version").stdout.startswith("tenure ")
    shown = tenure("--help")
    assert shown.returncode == 0
    for noun in ("up", "api", "worker", "migrate", "workspace", "user", "member", "token", "limit", "course", "job", "schema"):
        assert f" {noun} " in shown.stdout
    assert tenure("no-such-noun").returncode == 2


def test_people_and_places(on_database: RunTenure, database_url: str) -> None:
    made = on_database("workspace", "create", "--slug", "school", "--name", "The School")
    assert UUID(made.stdout.strip())
    again = on_database("workspace", "create", "--slug", "school")
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == "tenure: There is a workspace 'school' already.\n"

    assert UUID(on_database("user", "create", "--email", "ann@example.com", "--name", "Ann").stdout.strip())
    assert (
        on_database("member", "set", "--workspace", "school", "--email", "ann@example.com", "--role", "operator").returncode
        == 0
    )
    (member,) = fetch(database_url, "SELECT role, is_enabled FROM membership")
    assert tuple(member) == ("OPERATOR", True)

    limit = ("limit", "set", "--workspace", "school", "--limit")
    assert on_database(*limit, "pending_per_actor", "--queue", "admin", "--max", "7").returncode == 0
    refused = on_database(*limit, "PENDING_GLOBAL", "--max", "7")
    assert (refused.returncode, "TENURE_MAX_PENDING" in refused.stderr) == (1, True)
    (row,) = fetch(database_url, 'SELECT queue, "limit", max FROM workspace_limit')
    assert tuple(row) == ("admin", "PENDING_PER_ACTOR", 7)


def test_a_token_makes_what_is_missing_and_raises_nobody(on_database: RunTenure, database_url: str) -> None:
    on_database("workspace", "create", "--slug", "school")
    create = ("token", "create", "--workspace", "school", "--email", "bob@example.com", "--role")

    made = on_database(*create, "Viewer")
    assert made.returncode == 0
    assert made.stdout.startswith("tnr_")
    assert len(made.stdout.split()) == 1

    raised = on_database(*create, "admin")
    assert (raised.returncode, raised.stdout) == (1, "")
    assert "cannot raise" in raised.stderr

    on_database("member", "set", "--workspace", "school", "--email", "bob@example.com", "--role", "admin", "--disabled")
    disabled = on_database(*create, "viewer")
    assert (disabled.returncode, "disabled" in disabled.stderr) == (1, True)

    assert on_database(*create, "owner").returncode == 2
    (tokens,) = fetch(database_url, "SELECT count(*) FROM api_token")
    assert tokens[0] == 1


def test_import_reports_what_it_leaves_out(on_database: RunTenure, database_url: str, tmp_path: Path) -> None:
    on_database("workspace", "create", "--slug", "school")
    course = tmp_path / "course"
    course.mkdir()
    command = ("course", "import", "--workspace", "school", "--slug", "guide", course)

    empty = on_database(*command)
    assert (empty.returncode, empty.stdout) == (1, "")
    assert f"no Markdown file below {course}" in empty.stderr

    (course / "a.md").write_bytes(b"# A\r\n")
    (course / "bad.md").write_bytes(b"\xff")
    (course / "nul.md").write_bytes(b"a\0b")
    partly = on_database(*command)
    assert partly.returncode == 1
    assert "bad.md: it is not UTF-8" in partly.stderr
    assert "nul.md: it holds a NUL" in partly.stderr
    before = fetch(database_url, "SELECT path, body, etag FROM page")
    assert [tuple(row)[:2] for row in before] == [("a.md", "# A\r\n")]

    (course / "bad.md").unlink()
    (course / "nul.md").unlink()
    whole = on_database(*command)
    assert whole.returncode == 0
    assert whole.stdout.splitlines()[-1] == partly.stdout.splitlines()[-1]
    assert UUID(whole.stdout.splitlines()[-1])
    assert fetch(database_url, "SELECT path, body, etag FROM page") == before

    missing = on_database("course", "import", "--workspace", "school", "--slug", "guide", tmp_path / "missing")
    assert (missing.returncode, "no directory" in missing.stderr) == (1, True)


def test_migrate_is_asked_for_and_may_be_repeated(tenure: RunTenure, server_url: str, unmigrated_url: str) -> None:
    create = ("workspace", "create", "--slug", "school", "--database-url", unmigrated_url)
    refused = tenure(*create)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Run `tenure migrate`" in refused.stderr
    for _ in range(2):
        # An option overrides the environment, before the command's name as after it.
        assert tenure("--database-url", unmigrated_url, "migrate", TENURE_DATABASE_URL=server_url).returncode == 0
    assert tenure(*create).returncode == 0


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"TENURE_DATABASE_URL": "mysql://user:secret@host/x"}, "TENURE_DATABASE_URL: must be a plain postgresql:// URL"),
        ({"TENURE_POLL_SECONDS": "soon"}, "TENURE_POLL_SECONDS: "),
        ({"TENURE_LEASE_SECONDS": "10", "TENURE_HEARTBEAT_SECONDS": "9"}, "TENURE_HEARTBEAT_SECONDS (9)"),
    ],
)
def test_wrong_settings_are_named(tenure: RunTenure, variables: dict[str, str], said: str) -> None:
    refused = tenure("worker", **variables)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert "secret" not in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_database_that_cannot_be_reached_is_one_line(tenure: RunTenure, free_port: int, database_url: str) -> None:
    nobody = tenure("workspace", "create", "--slug", "x", TENURE_DATABASE_URL=f"postgresql://u:secret@127.0.0.1:{free_port}/x")
    assert nobody.returncode == 1
    assert nobody.stderr == "tenure: The database cannot be reached at the moment; try again.\n"
    no_such = tenure("workspace", "create", "--slug", "x", TENURE_DATABASE_URL=f"{database_url}_nothing")
    assert no_such.returncode == 1
    assert len(no_such.stderr.splitlines()) == 1


def test_the_data_directory_needs_no_migration_by_hand(tenure: RunTenure, data_directory: Path) -> None:
    made = tenure("workspace", "create", "--slug", "school", "--data-dir", data_directory)
    assert made.returncode == 0, made.stderr
    assert UUID(made.stdout.strip())
    token = ("token", "create", "--workspace", "school", "--email", "a@example.com", "--role", "admin")
    assert tenure(*token, TENURE_DATA_DIR=str(data_directory)).stdout.startswith("tnr_")
    assert not (data_directory / "postgres/data/postmaster.pid").exists(), "whoever starts the server stops it"
