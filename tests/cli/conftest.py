"""The command line as a real process, with nothing of the caller's settings."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import execute, url_of

PROGRAM = Path(sys.executable).with_name("tenure")
Finished = subprocess.CompletedProcess[str]
RunTenure = Callable[..., Finished]


def environment(**variables: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("TENURE_", "PYTHONDONT"))}
    return {**inherited, "COLUMNS": "200", "NO_COLOR": "1", **variables}


@pytest.fixture
def tenure(tmp_path: Path) -> RunTenure:
    """Runs a command to its end; keyword arguments are environment variables."""

    def run(*arguments: str | Path, cwd: Path = tmp_path, **variables: str) -> Finished:
        return subprocess.run(
            [PROGRAM, *map(str, arguments)],
            env=environment(**variables),
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def on_database(tenure: RunTenure, database_url: str) -> RunTenure:
    """As `tenure`, on the test's own migrated database."""

    def run(*arguments: str | Path, **variables: str) -> Finished:
        return tenure(*arguments, TENURE_DATABASE_URL=database_url, **variables)

    return run


@pytest.fixture
def unmigrated_url(server_url: str) -> Iterator[str]:
    """An empty database of the test's own."""
    name = f"tenure_empty_{os.getpid()}"
    asyncio.run(execute(server_url, f"CREATE DATABASE {name}"))
    yield url_of(server_url, name)
    asyncio.run(execute(server_url, f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@pytest.fixture
def data_directory() -> Iterator[Path]:
    """A directory that the server's user can reach, which pytest's own is not when root runs the tests."""
    path = Path(tempfile.mkdtemp(prefix="tenure-test-"))
    path.chmod(0o755)
    yield path / "data"
    shutil.rmtree(path, ignore_errors=True)
