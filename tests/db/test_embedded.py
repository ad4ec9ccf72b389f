"""The embedded server, with real servers, real processes and real SIGKILLs."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tenure.db import cluster as cluster_module
from tenure.db import embedded, postgres_programs
from tenure.db.cluster import Cluster
from tenure.db.data_directory import DataDirectory, try_lock, wait_until
from tenure.db.embedded import EmbeddedError, EmbeddedServer
from tenure.db.postmaster import is_postmaster

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="tells what root does")

USER = """
    import sys
    from pathlib import Path
    from tenure.db.embedded import EmbeddedServer

    if sys.argv[1] == "ephemeral":
        server = EmbeddedServer.ephemeral()
    else:
        server = EmbeddedServer.open(Path(sys.argv[1]), adopt="adopt" in sys.argv)
    try:
        print(server.pid, server.started, server.url, server.info.data_directory, flush=True)
        sys.stdin.read()
    except KeyboardInterrupt:
        import socket
        port = int(server.url.rsplit(":", 1)[1].split("/")[0])
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        print("the server survived", flush=True)
    server.close()
"""


class UserProcess:
    """Another process that uses a server until it is told to leave, or killed."""

    def __init__(self, *arguments: str | Path, python: str = sys.executable, **options: Any) -> None:
        self.process = subprocess.Popen(
            [python, "-c", textwrap.dedent(USER), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            **options,
        )

    def wait_ready(self) -> "UserProcess":
        assert self.process.stdout
        pid, started, self.url, path = self.process.stdout.readline().strip().split(" ", 3)
        self.pid, self.started, self.path = int(pid), started == "True", Path(path)
        return self

    def leave(self) -> None:
        self.process.communicate()
        assert self.process.returncode == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def spawn() -> Iterator[Callable[..., UserProcess]]:
    spawned: list[UserProcess] = []

    def start(*arguments: str | Path, **options: Any) -> UserProcess:
        spawned.append(UserProcess(*arguments, **options))
        return spawned[-1]

    yield start
    for user in spawned:
        if user.process.poll() is None:
            user.kill()


def running(path: Path) -> bool:
    lock = try_lock(path / "server.lock")
    if lock is not None:
        os.close(lock)
    return lock is None


def discard(path: Path) -> None:
    if (path / "postgres").exists():
        Cluster(DataDirectory(path), is_durable=False, say=print).stop()
    shutil.rmtree(path)


@contextlib.contextmanager
def world_folder() -> Iterator[Path]:
    """A temporary folder that the server's user can enter: pytest's own are closed."""
    folder = Path(tempfile.mkdtemp(prefix="embedded test ")).resolve()
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        for path in folder.iterdir():
            discard(path)
        folder.rmdir()


@pytest.fixture
def folder() -> Iterator[Path]:
    with world_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    with world_folder() as folder:
        EmbeddedServer.open(folder / "data").close()
        yield folder / "data"


@pytest.fixture
def path(made: Path) -> Iterator[Path]:
    """A data directory with a cluster that does not run; all tests share it, so what they change they put back."""
    yield made
    Cluster(DataDirectory(made), is_durable=False, say=print).stop()


@contextlib.contextmanager
def changed(file: Path, text: str) -> Iterator[None]:
    before = file.read_text()
    file.write_text(text)
    try:
        yield
    finally:
        file.write_text(before)


async def query(url: str, sql: str) -> Any:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


async def execute(url: str, sql: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


class TestStart:
    async def test_a_new_directory_gets_a_durable_server_on_the_loopback_address_alone(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PGDATA", "/nonexistent")
        monkeypatch.setenv("PGPORT", "1")
        path = folder / 'it\'s $HOME "x"' / "a name so long that no Unix socket could have it for a parent folder" / "d"
        told: list[str] = []
        with EmbeddedServer.open(path, say=told.append) as server:
            assert server.started
            settings = {
                "fsync": "on",
                "synchronous_commit": "on",
                "full_page_writes": "on",
                "jit": "off",
                "TimeZone": "UTC",
                "shared_buffers": "128MB",
                "max_connections": "200",
                "server_encoding": "UTF8",
                "listen_addresses": "127.0.0.1",
                "unix_socket_directories": "",
            }
            names = ", ".join(f"'{name}', current_setting('{name}')" for name in settings)
            real = await query(server.url, f"SELECT ARRAY[{names}]")
            assert dict(zip(real[::2], real[1::2], strict=True)) == settings
            locale = "SELECT datlocprovider::text || datlocale FROM pg_database WHERE datname = current_database()"
            assert await query(server.url, locale) == "bC.UTF-8"
            assert (await query(server.url, "SHOW server_version")).startswith(server.info.version)
            password = server.url.split(":")[2].split("@")[0]
            with pytest.raises(asyncpg.InvalidPasswordError):
                await query(server.url.replace(password, "wrong"), "SELECT 1")
            assert (path / "postgres" / "password").stat().st_mode & 0o777 == 0o600
            assert os.getsid(server.pid) == server.pid
        assert len(told) == 2
        assert not running(path)
        server.close()

    async def test_what_was_written_is_there_at_the_next_start(self, path: Path) -> None:
        with EmbeddedServer.open(path) as server:
            await execute(server.url, "CREATE TABLE kept AS SELECT 7 AS n")
        with EmbeddedServer.open(path) as server:
            assert await query(server.url, "SELECT n FROM kept") == 7

    def test_a_cluster_left_half_made_is_made_anew_by_one_of_two_at_once(
        self, folder: Path, spawn: Callable[..., UserProcess]
    ) -> None:
        path = folder / "data"
        first = spawn(path)
        assert wait_until((path / "postgres.new" / "data" / "global").exists, 20)
        first.kill()
        assert not (path / "postgres").exists()
        users = [user.wait_ready() for user in [spawn(path), spawn(path)]]
        assert not (path / "postgres.new").exists()
        assert sorted(user.started for user in users) == [False, True]
        assert len({user.url for user in users}) == 1

    def test_a_taken_port_makes_it_take_another(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            taken = other.getsockname()[1]
            ports = iter([taken, cluster_module.free_port()])
            monkeypatch.setattr(cluster_module, "free_port", lambda: next(ports))
            with EmbeddedServer.open(path) as server:
                assert f":{taken}/" not in server.url
                assert next(ports, None) is None

    def test_a_server_that_cannot_start_says_why(self, path: Path) -> None:
        configuration = path / "postgres" / "data" / "postgresql.conf"
        with (
            changed(configuration, "no_such_setting = 1\n"),
            pytest.raises(EmbeddedError, match=r'"no_such_setting".*contains errors'),
        ):
            EmbeddedServer.open(path)
        assert not running(path)


class TestSharing:
    def test_one_that_attached_leaves_the_server_alone(self, path: Path, spawn: Callable[..., UserProcess]) -> None:
        with EmbeddedServer.open(path) as server:
            other = spawn(path).wait_ready()
            assert (other.url, other.pid, other.started) == (server.url, server.pid, False)
            other.leave()
            assert running(path)
        assert not running(path)

    def test_who_started_it_leaves_it_to_those_registered_and_up_stops_it(
        self, path: Path, spawn: Callable[..., UserProcess]
    ) -> None:
        server = EmbeddedServer.open(path)
        other, up = spawn(path).wait_ready(), spawn(path, "adopt").wait_ready()
        server.close()
        assert running(path)
        other.leave()
        assert running(path)
        up.leave()
        assert not running(path)

    def test_a_killed_user_no_longer_counts(self, path: Path, spawn: Callable[..., UserProcess]) -> None:
        with EmbeddedServer.open(path):
            spawn(path).wait_ready().kill()
        assert not running(path)
        assert not list((path / "users").iterdir())

    def test_an_orphan_is_used_by_any_and_stopped_by_who_adopts(self, path: Path, spawn: Callable[..., UserProcess]) -> None:
        starter = spawn(path).wait_ready()
        starter.kill()
        with EmbeddedServer.open(path) as server:
            assert (server.pid, server.started) == (starter.pid, False)
        assert running(path)
        with EmbeddedServer.open(path, adopt=True) as server:
            assert server.pid == starter.pid
        assert not running(path)

    def test_ctrl_c_reaches_the_process_and_not_the_server(self, path: Path, spawn: Callable[..., UserProcess]) -> None:
        user = spawn(path, start_new_session=True).wait_ready()
        os.killpg(user.process.pid, signal.SIGINT)
        output, _ = user.process.communicate()
        assert output == "the server survived\n"
        assert not running(path)


class TestCrash:
    async def test_a_killed_server_comes_back_with_what_was_committed(self, path: Path) -> None:
        with EmbeddedServer.open(path) as server:
            await execute(server.url, "CREATE TABLE committed AS SELECT 7 AS n")
            before = server.info
            server.kill()
            server.restart()
            assert (server.url, server.pid != before.pid) == (before.url, True)
            assert await query(server.url, "SELECT n FROM committed") == 7
        assert not running(path)

    async def test_the_next_process_starts_a_server_that_was_killed(
        self, path: Path, spawn: Callable[..., UserProcess]
    ) -> None:
        starter = spawn(path).wait_ready()
        starter.kill()
        os.kill(starter.pid, signal.SIGKILL)
        assert wait_until(lambda: not is_postmaster(starter.pid, path / "postgres" / "data"), 10)
        with EmbeddedServer.open(path) as server:
            assert server.started
            assert await query(server.url, "SELECT 1") == 1

    def test_a_process_id_that_is_now_somebody_elses_is_forgotten(self, path: Path) -> None:
        data = path / "postgres" / "data"
        account = postgres_programs.server_account(path / "postgres")
        options: Any = {"user": account.uid} if account else {}
        with subprocess.Popen(["sleep", "60"], cwd="/", **options) as somebody:
            stale = f"{somebody.pid}\n{data}\n1\n45999\n\n127.0.0.1\n        0         0\nready   \n"
            (data / "postmaster.pid").write_text(stale)
            with EmbeddedServer.open(path) as server:
                assert server.started
            assert somebody.poll() is None
            somebody.kill()

    def test_a_server_started_by_hand_is_not_robbed(self, path: Path) -> None:
        account = postgres_programs.server_account(path / "postgres")
        data = path / "postgres" / "data"
        by_hand = ["-D", str(data), "-o", f"-p {cluster_module.free_port()} -k ''"]
        quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        postgres_programs.run("pg_ctl", ["start", *by_hand], account=account, directory=data, **quiet)
        try:
            with pytest.raises(EmbeddedError, match="did not start, is a server"):
                EmbeddedServer.open(path)
            assert (data / "postmaster.pid").exists()
        finally:
            postgres_programs.run("pg_ctl", ["stop", "-D", str(data)], account=account, directory=data)

    def test_another_major_version_is_refused(self, path: Path) -> None:
        with (
            changed(path / "postgres" / "data" / "PG_VERSION", "17\n"),
            pytest.raises(EmbeddedError, match=r"made by PostgreSQL 17; this is 18\."),
        ):
            EmbeddedServer.open(path)


class TestEphemeral:
    async def test_all_is_gone_at_the_end(self) -> None:
        with EmbeddedServer.ephemeral() as server:
            directory = server.info.data_directory
            assert await query(server.url, "SHOW fsync") == "on"
            server.kill()
            server.restart()
            assert await query(server.url, "SELECT 1") == 1
        assert not directory.exists()
        with pytest.raises(ConnectionRefusedError):
            await query(server.url, "SELECT 1")

    def test_what_a_killed_owner_left_is_swept_by_the_next(self, spawn: Callable[..., UserProcess]) -> None:
        living, dead = spawn("ephemeral"), spawn("ephemeral")
        living.wait_ready()
        dead.wait_ready().kill()
        assert running(dead.path)
        with EmbeddedServer.ephemeral():
            assert not dead.path.exists()
            assert running(living.path)
        living.leave()
        assert not living.path.exists()

    @needs_root
    def test_a_temporary_folder_closed_to_the_server_is_passed_over(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tmp_path.chmod(0o700)
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        told: list[str] = []
        assert not embedded._temporary_folder(told.append).is_relative_to(tmp_path)
        assert "cannot enter" in told[0]
        assert tmp_path.stat().st_mode & 0o777 == 0o700
        monkeypatch.setattr(embedded, "TEMPORARY_FOLDERS", ())
        with pytest.raises(EmbeddedError, match="set TMPDIR"):
            EmbeddedServer.ephemeral()


class TestPermissions:
    @needs_root
    @pytest.mark.parametrize("exists", [True, False])
    def test_a_directory_closed_to_the_server_is_an_error_and_stays_closed(self, tmp_path: Path, exists: bool) -> None:
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o700)
        tmp_path.chmod(0o755)
        data = closed if exists else closed / "data"
        with pytest.raises(EmbeddedError, match=r"cannot enter .*chmod o\+x") as caught:
            EmbeddedServer.open(data)
        assert str(tmp_path) in str(caught.value)
        assert closed.stat().st_mode & 0o777 == 0o700
        assert closed.stat().st_uid == 0
        assert not list(closed.iterdir())

    @needs_root
    def test_programs_closed_to_the_server_are_an_error(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        closed = folder / "venv"
        (closed / "bin").mkdir(parents=True)
        closed.chmod(0o700)
        (closed / "bin" / "postgres").touch(mode=0o755)
        monkeypatch.setattr(postgres_programs, "programs_directory", lambda: closed / "bin")
        with pytest.raises(EmbeddedError, match=r"cannot reach PostgreSQL's programs: .*venv is closed"):
            EmbeddedServer.open(folder / "data")
        assert closed.stat().st_mode & 0o777 == 0o700

    @needs_root
    def test_without_a_system_user_root_is_told_to_add_one(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(postgres_programs, "SYSTEM_USERS", ("no-such-user",))
        with pytest.raises(EmbeddedError, match="no user no-such-user"):
            EmbeddedServer.open(folder / "data")

    @needs_root
    def test_root_runs_the_server_as_a_system_user(self, path: Path) -> None:
        with EmbeddedServer.open(path) as server:
            assert pwd.getpwuid(Path(f"/proc/{server.pid}").stat().st_uid).pw_name in postgres_programs.SYSTEM_USERS
        owners = {entry.name: entry.stat().st_uid for entry in path.iterdir()}
        assert {name for name, uid in owners.items() if uid != 0} == {"postgres"}

    @needs_root
    def test_another_user_runs_its_own_server_and_root_runs_it_as_that_user(
        self, folder: Path, spawn: Callable[..., UserProcess]
    ) -> None:
        nobody = postgres_programs.Account.of(pwd.getpwnam("nobody"))
        path = folder / "data"
        path.mkdir(mode=0o700)
        os.chown(path, nobody.uid, nobody.gid)
        options = {"user": nobody.uid, "group": nobody.gid, "extra_groups": [], "env": {"PYTHONPATH": python_path()}}
        user = spawn(path, python=reachable_python(nobody), **options).wait_ready()
        assert user.started
        assert Path(f"/proc/{user.pid}").stat().st_uid == nobody.uid
        user.leave()
        assert not running(path)
        with EmbeddedServer.open(path) as server:
            assert Path(f"/proc/{server.pid}").stat().st_uid == nobody.uid

    def test_a_file_in_the_place_of_the_directory_is_an_error(self, folder: Path) -> None:
        with tempfile.NamedTemporaryFile() as file, pytest.raises(EmbeddedError, match="cannot be used"):
            EmbeddedServer.open(Path(file.name))
        with tempfile.NamedTemporaryFile() as file, pytest.raises(EmbeddedError, match="cannot be used"):
            EmbeddedServer.open(Path(file.name) / "data")


def python_path() -> str:
    return os.pathsep.join(entry for entry in sys.path if entry)


def reachable_python(account: postgres_programs.Account) -> str:
    """An interpreter of this version that the account can run, and with it what this one imports."""
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        real = Path(python).resolve()
        if real.exists() and not postgres_programs.unreachable_part(real, account):
            return str(python)
    return pytest.skip(f"no Python that {account.name} can run")
