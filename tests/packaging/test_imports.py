"""What an import drags in, and what the wheel would hold."""

import ast
import subprocess
import sys
from pathlib import Path

import tenure

ROOT = Path(__file__).parent.parent.parent
WEB = ("starlette", "strawberry", "uvicorn", "graphql", "gql")


def test_importing_the_public_face_loads_no_web() -> None:
    script = f"import sys, tenure; print([m for m in {WEB!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_names_that_others_import_are_there() -> None:
    assert {"JobContext", "Permanent", "RetryLater", "kind"} <= set(tenure.__all__)


def test_every_public_name_is_documented() -> None:
    for name in tenure.__all__:
        value = getattr(tenure, name)
        assert value.__doc__, name
        for attribute, member in vars(value).items() if isinstance(value, type) else ():
            if not attribute.startswith("_") and callable(member):
                assert member.__doc__, f"{name}.{attribute}"


def test_only_db_and_migrations_build_statements() -> None:
    for layer in ("workers", "resolvers", "schema", "src/tenure"):
        for path in (ROOT / layer).rglob("*.py"):
            if path.resolve().is_relative_to(ROOT / "db") or path.resolve().is_relative_to(ROOT / "migrations"):
                continue
            imported = {
                name.split(".")[0]
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Import | ast.ImportFrom)
                for name in ([a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""])
            }
            allowed = {"asyncpg"} if path.name == "heartbeat.py" else set()  # a bare connection in a thread of its own
            assert not imported & {"sqlalchemy", "asyncpg"} - allowed, path
