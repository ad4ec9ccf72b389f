"""One PostgreSQL cluster in a data directory: its creation, start, stop and address.

Whoever calls holds the directory's exclusive lock. That the server lives is read from `server.lock`, which its
processes inherit: no process id is believed without it.
"""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tenure.db import postgres_programs
from tenure.db.data_directory import POLL_SECONDS, DataDirectory, EmbeddedError, await_lock, try_lock
from tenure.db.postmaster import PidFile, is_alive, is_postmaster

Say = Callable[[str], None]

NAME = "tenure"
HOST = "127.0.0.1"
START_SECONDS = 300.0  # recovery after a crash replays the log first
ATTACH_SECONDS = 30.0  # for a server that calls itself ready
STOP_SECONDS = 60.0
KILL_SECONDS = 10.0
ATTEMPTS = 10
SSL_REQUEST = struct.pack("!ii", 8, 80877103)
LOG_BYTES = 10_000_000
SETTINGS = {
    "max_connections": "200",
    "shared_buffers": "128MB",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}


@dataclass(frozen=True)
class Endpoint:
    pid: int
    port: int


class Cluster:
    """The cluster of one data directory. What is not durable is faster to make and stops without a checkpoint."""

    def __init__(self, directory: DataDirectory, *, is_durable: bool, say: Say) -> None:
        self.directory = directory
        self.data = directory.cluster / "data"
        self._is_durable = is_durable
        self._say = say
        self._account = postgres_programs.server_account(directory.cluster)

    def attach_or_start(self, port: int | None = None) -> tuple[Endpoint, bool]:
        """Return where the server is, and whether it was started for that."""
        self.check_reachable()
        began = time.monotonic()
        while (lock := try_lock(self.directory.server_lock)) is None:
            if endpoint := self._answering():
                return endpoint, False
            pid_file = PidFile.read(self.data)
            patience = ATTACH_SECONDS if pid_file and pid_file.is_ready else START_SECONDS
            if time.monotonic() - began > patience:
                message = (
                    f"A database server holds {self.directory.server_lock}, but does not answer on {HOST}. If it runs "
                    f"in another container, stop it there; see also {self.directory.log}."
                )
                raise EmbeddedError(message)
            time.sleep(POLL_SECONDS)
        return self._start(lock, port), True

    def check_reachable(self) -> None:
        """Raise EmbeddedError if the server's user cannot enter the directory, or the part of its path that exists."""
        postgres_programs.check_reachable(self.directory.path, self._account)

    def password(self) -> str:
        return (self.directory.cluster / "password").read_text().strip()

    def stop(self) -> None:
        """Stop the server and wait until none of its processes lives; nothing to do if that is so already."""
        graces = [(signal.SIGINT, STOP_SECONDS)] if self._is_durable else []
        for signal_number, seconds in [*graces, (signal.SIGQUIT, KILL_SECONDS), (signal.SIGKILL, KILL_SECONDS)]:
            if not self.signal(signal_number):
                return
            lock = await_lock(self.directory.server_lock, seconds)
            if lock is not None:
                os.close(lock)
                return
        raise EmbeddedError(f"The database server of {self.directory.path} does not stop; see {self.directory.log}.")

    def signal(self, signal_number: signal.Signals) -> bool:
        """Send the signal to the postmaster; False if the server does not run."""
        lock = try_lock(self.directory.server_lock)
        if lock is not None:
            os.close(lock)
            return False
        pid_file = PidFile.read(self.data)
        if pid_file and is_postmaster(pid_file.pid, self.data):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid_file.pid, signal_number)
        return True

    def _start(self, lock: int, port: int | None) -> Endpoint:
        """Start the server, which takes over the lock; another port is tried when one is taken."""
        try:
            self._prepare(lock)
        except BaseException:
            os.close(lock)
            raise
        self._say(f"Starting PostgreSQL {postgres_programs.version()}")
        for _ in range(ATTEMPTS):
            try:
                log_size = self._launch(lock, port or free_port())
            finally:
                os.close(lock)
            try:
                started = self._await_start()
            except KeyboardInterrupt:
                self.stop()
                raise
            if isinstance(started, Endpoint):
                return started
            lock = started
            reason = self._log_since(log_size)
            if "could not bind" not in reason:
                break
            time.sleep(POLL_SECONDS)
        os.close(lock)
        lines = [line for line in reason.splitlines() if ": " in line]
        raise EmbeddedError(f"PostgreSQL did not start: {' / '.join(lines[-3:])} (see {self.directory.log})")

    def _prepare(self, lock: int) -> None:
        if not self.directory.cluster.exists():
            self._create(lock)
        try:
            made_by = (self.data / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            message = f"{self.data} is no complete database cluster: restore it, or move {self.directory.cluster} away."
            raise EmbeddedError(message) from None
        ours = postgres_programs.version()
        if made_by != ours.split(".")[0]:
            message = (
                f"The data directory {self.directory.path} was made by PostgreSQL {made_by}; this is {ours}. Move the "
                f"data with pg_dump of version {made_by}, or choose another directory (--data-dir, TENURE_DATA_DIR)."
            )
            raise EmbeddedError(message)
        self._clear_stale_pid_file()

    def _create(self, lock: int) -> None:
        """Make a cluster beside its place and rename it there, so that a crash leaves none or a whole one.

        initdb inherits the server's lock: should we die, nobody clears the folder while it still writes.
        """
        self._say(f"Creating the database in {self.directory.path}")
        home = self.directory.unfinished_cluster
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(mode=0o700)
        password = home / "password"
        descriptor = os.open(password, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{secrets.token_urlsafe(24)}\n")
            file.flush()
            os.fsync(file.fileno())
        if self._account is not None:
            for path in (home, password):
                os.chown(path, self._account.uid, self._account.gid)
        self._initialize(home, lock)
        home.rename(self.directory.cluster)
        sync_directory(self.directory.path)

    def _initialize(self, home: Path, lock: int) -> None:
        data = str(home / "data")
        arguments = [f"--pgdata={data}", f"--username={NAME}", f"--pwfile={home / 'password'}", "--no-instructions"]
        arguments += ["--auth=scram-sha-256", "--encoding=UTF8"]
        arguments += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        arguments += [f"--set={name}={value}" for name, value in SETTINGS.items()]
        if not self._is_durable:
            arguments.append("--no-sync")
        postgres_programs.run("initdb", arguments, account=self._account, directory=home, pass_fds=(lock,))
        # In single-user mode nobody can connect to a cluster that is not yet whole. It exits 0 whatever the SQL does.
        output = postgres_programs.run(
            "postgres",
            ["--single", "-D", data, "postgres"],
            account=self._account,
            directory=home,
            input=f"CREATE DATABASE {NAME}\n",
            pass_fds=(lock,),
        )
        if "ERROR" in output or "FATAL" in output:
            raise EmbeddedError(f"The database {NAME} could not be created: {output.strip()}")

    def _clear_stale_pid_file(self) -> None:
        """Forget the postmaster of before a crash if its process id is now somebody else's.

        PostgreSQL itself sees that a process is gone, but takes any that lives for its own. The lock is ours, so no
        server that Tenure started runs; one that was started by hand must not be robbed of its file.
        """
        pid_file = PidFile.read(self.data)
        if pid_file is None or not is_alive(pid_file.pid):
            return
        if is_postmaster(pid_file.pid, self.data):
            message = f"Process {pid_file.pid}, which Tenure did not start, is a server in {self.data}: stop it first."
            raise EmbeddedError(message)
        (self.data / "postmaster.pid").unlink()

    def _launch(self, lock: int, port: int) -> int:
        """Have pg_ctl start the server in the background; returns the size of the log before."""
        self._rotate_log()
        descriptor = os.open(self.directory.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            # The path goes by PGDATA, since pg_ctl would hand it to a shell; the log is opened by us, who may.
            postgres_programs.run(
                "pg_ctl",
                ["-W", "-o", f"-p {port} -c listen_addresses={HOST} -c unix_socket_directories=''", "start"],
                account=self._account,
                directory=self.directory.cluster,
                variables={"PGDATA": str(self.data)},
                stdout=descriptor,
                stderr=descriptor,
                pass_fds=(lock,),
            )
        finally:
            os.close(descriptor)
        return size

    def _await_start(self) -> Endpoint | int:
        """Where the server answers, or, if it died, the lock that it left."""
        began = time.monotonic()
        is_told = False
        while time.monotonic() - began < START_SECONDS:
            if endpoint := self._answering():
                return endpoint
            if (lock := try_lock(self.directory.server_lock)) is not None:
                return lock
            if not is_told and time.monotonic() - began > 5:
                self._say("The database recovers from a crash; this may take a while")
                is_told = True
            time.sleep(POLL_SECONDS)
        message = f"PostgreSQL was not ready after {START_SECONDS:.0f} s and goes on starting; see {self.directory.log}."
        raise EmbeddedError(message)

    def _answering(self) -> Endpoint | None:
        pid_file = PidFile.read(self.data)
        if pid_file is None or not pid_file.is_ready or not is_postmaster(pid_file.pid, self.data):
            return None
        return Endpoint(pid_file.pid, pid_file.port) if does_answer(pid_file.port) else None

    def _log_since(self, size: int) -> str:
        with self.directory.log.open("rb") as file:
            file.seek(size)
            return file.read().decode(errors="replace")

    def _rotate_log(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            if self.directory.log.stat().st_size > LOG_BYTES:
                self.directory.log.replace(self.directory.log.with_suffix(".log.1"))


def free_port() -> int:
    """A port that nothing listens on just now; it may be taken before the server gets it."""
    with socket.create_server((HOST, 0)) as server:
        port: int = server.getsockname()[1]
        return port


def does_answer(port: int) -> bool:
    """Whether PostgreSQL speaks there: the kernel alone accepts connections for a server that is just dying."""
    try:
        with socket.create_connection((HOST, port), timeout=5) as connection:
            connection.sendall(SSL_REQUEST)
            return connection.recv(1) in {b"N", b"S"}
    except OSError:
        return False


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
