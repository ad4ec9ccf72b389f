"""The embedded PostgreSQL server: found running, or started, in a data directory, and stopped when nobody needs it.

Durable unless it is ephemeral. Everything here is synchronous and bounded in time: it runs before and after the event
loop. The server outlives a killed process; the next command attaches to it, and the next `up` adopts it.
"""

import contextlib
import os
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tenure.db import postgres_programs
from tenure.db.cluster import HOST, KILL_SECONDS, NAME, START_SECONDS, Cluster, Endpoint, Say
from tenure.db.data_directory import (
    DataDirectory,
    EmbeddedError,
    Registration,
    abandoned_ephemerals,
    create_ephemeral,
    named_os_errors,
    remove_directory,
    wait_until,
)
from tenure.db.postmaster import is_postmaster

__all__ = ["EmbeddedError", "EmbeddedServer", "ServerInfo"]

EXCLUSIVE_SECONDS = START_SECONDS + 30
TEMPORARY_FOLDERS = ("/tmp", "/var/tmp")  # noqa: S108  # searched for a reachable one; the names below are random


@dataclass(frozen=True)
class ServerInfo:
    url: str
    """With the password: postgresql://tenure:...@127.0.0.1:port/tenure."""
    pid: int
    data_directory: Path
    version: str
    """Of the programs here; a server that was found running may be of another minor version."""


class EmbeddedServer:
    """A registered use of the server of one data directory, which lasts until `close`.

    Made by `open` and `ephemeral` only. A forked child does not share the registration: its `close` does nothing.
    """

    def __init__(self, cluster: Cluster, *, may_stop: bool, owner_lock: int | None = None) -> None:
        self._cluster = cluster
        self._directory = cluster.directory
        self._may_stop = may_stop
        self._owner_lock = owner_lock
        self._process = os.getpid()
        self._is_closed = False
        self._registration: Registration = self._directory.register()
        self.started = False
        try:
            self._enter()
            self._password = cluster.password()
        except BaseException:
            self._registration.release()
            raise

    @classmethod
    def open(cls, data_directory: Path, *, adopt: bool = False, say: Say | None = None) -> Self:
        """Attach to the server that runs in the directory, else start it.

        `close` stops it if it was started here or `adopt` is set, and no other process is registered. Raises
        EmbeddedError, with nothing changed outside the directory.
        """
        with named_os_errors(data_directory):
            directory = DataDirectory(data_directory.expanduser().resolve())
            cluster = Cluster(directory, is_durable=True, say=say or _silent)
            cluster.check_reachable()
            directory.prepare()
            with directory.exclusive(EXCLUSIVE_SECONDS):
                return cls(cluster, may_stop=adopt)

    @classmethod
    def ephemeral(cls, *, say: Say | None = None) -> Self:
        """Start a server in a temporary directory; `close` stops it and throws all away.

        What earlier owners left because they were killed is cleared first.
        """
        tell = say or _silent
        parent = _temporary_folder(tell)
        with named_os_errors(parent):
            _sweep(parent)
            directory, owner_lock = create_ephemeral(parent)
            cluster = Cluster(directory, is_durable=False, say=tell)
            try:
                with directory.exclusive(EXCLUSIVE_SECONDS):
                    return cls(cluster, may_stop=True, owner_lock=owner_lock)
            except BaseException:
                _discard(cluster, owner_lock)
                raise

    @property
    def url(self) -> str:
        return f"postgresql://{NAME}:{self._password}@{HOST}:{self._endpoint.port}/{NAME}"

    @property
    def pid(self) -> int:
        return self._endpoint.pid

    @property
    def info(self) -> ServerInfo:
        return ServerInfo(self.url, self.pid, self._directory.path, postgres_programs.version())

    def close(self) -> None:
        """Leave; stop the server if that is this process's duty and nobody else is registered. May be repeated."""
        if self._is_closed or os.getpid() != self._process:
            return
        self._is_closed = True
        with named_os_errors(self._directory.path):
            if self._owner_lock is not None:
                _discard(self._cluster, self._owner_lock, self._registration)
                return
            with self._directory.exclusive(EXCLUSIVE_SECONDS):
                self._registration.release()
                if self._may_stop and not self._directory.is_used():
                    self._cluster.stop()

    def kill(self) -> None:
        """Kill the postmaster without notice and see it dead, as a fault test does."""
        self._cluster.signal(signal.SIGKILL)
        wait_until(lambda: not is_postmaster(self.pid, self._cluster.data), KILL_SECONDS)

    def restart(self) -> None:
        """Stop what still runs and start the server again at the same port, as a fault test does."""
        with named_os_errors(self._directory.path), self._directory.exclusive(EXCLUSIVE_SECONDS):
            self._cluster.stop()
            self._enter(self._endpoint.port)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def _enter(self, port: int | None = None) -> None:
        endpoint, has_started = self._cluster.attach_or_start(port)
        self._endpoint: Endpoint = endpoint
        self.started = self.started or has_started
        self._may_stop = self._may_stop or has_started


def _silent(message: str) -> None:
    """Take the place of a missing listener."""


def _temporary_folder(say: Say) -> Path:
    """The first temporary folder that the server's user can enter."""
    wanted = Path(tempfile.gettempdir()).resolve()
    account = postgres_programs.server_account(wanted / "none")
    if account is None or not (folder := postgres_programs.unreachable_part(wanted, account)):
        return wanted
    for other in map(Path, TEMPORARY_FOLDERS):
        if other.is_dir() and not postgres_programs.unreachable_part(other.resolve(), account):
            say(f"The server's user {account.name} cannot enter {folder}: using {other} in place of {wanted}")
            return other.resolve()
    raise EmbeddedError(f"The server's user {account.name} cannot enter {folder}: set TMPDIR to a folder open to all.")


def _sweep(parent: Path) -> None:
    for directory in abandoned_ephemerals(parent):
        with contextlib.suppress(EmbeddedError, OSError):
            Cluster(directory, is_durable=False, say=_silent).stop()
            remove_directory(directory)


def _discard(cluster: Cluster, owner_lock: int, *registrations: Registration) -> None:
    """Stop an ephemeral server and remove its directory; what fails is left to the next sweep."""
    try:
        cluster.stop()
        remove_directory(cluster.directory)
    finally:
        for descriptor in (owner_lock, *(registration.descriptor for registration in registrations)):
            os.close(descriptor)
