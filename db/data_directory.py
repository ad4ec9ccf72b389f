"""The files around an embedded cluster: locks, registrations, and where an ephemeral directory may live.

Every lock here is a flock, which the kernel drops with its last holder: whoever is killed vanishes by himself, and no
process id is ever trusted to mean what it meant when it was written down.
"""

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tenure.db.errors import TenureError

POLL_SECONDS = 0.02
EPHEMERAL_PREFIX = "tenure-ephemeral-"


class EmbeddedError(TenureError):
    """The embedded server cannot be used; the message names the file or folder and what to do."""

    code = "EMBEDDED_DATABASE"


@contextlib.contextmanager
def named_os_errors(path: Path) -> Iterator[None]:
    """Turn what the operating system refuses into an EmbeddedError that names the file."""
    try:
        yield
    except OSError as error:
        where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(path)
        message = f"The data directory {path} cannot be used: {where}: {error.strerror}."
        if error.errno in {errno.EACCES, errno.EPERM}:
            message += " Run as the user who made it, or choose another (--data-dir, TENURE_DATA_DIR)."
        raise EmbeddedError(message) from error


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Poll the condition until it holds; False if it never did in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def try_lock(path: Path, *, create: bool = True) -> int | None:
    """Lock the file and return its descriptor, which holds the lock until it is closed; None if another holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def await_lock(path: Path, seconds: float) -> int | None:
    """Like try_lock, but waits; None if the lock was never free in time."""
    deadline = time.monotonic() + seconds
    while (descriptor := try_lock(path)) is None and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return descriptor


def own_mode() -> int:
    """The mode of a directory of ours: when root makes it, the server's user passes through but cannot list."""
    return 0o711 if os.geteuid() == 0 else 0o700


@dataclass(frozen=True)
class Registration:
    """The proof that a process uses the server: valid as long as the descriptor is open."""

    path: Path
    descriptor: int

    def release(self) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self.descriptor)


@dataclass(frozen=True)
class DataDirectory:
    """The layout of one data directory. All but the cluster's own folder belongs to whoever runs Tenure."""

    path: Path

    def prepare(self) -> None:
        """Make the directory if it is missing; one that exists keeps its mode and owner."""
        if not self.path.is_dir():
            self.path.mkdir(parents=True)
            self.path.chmod(own_mode())
            (self.path / ".gitignore").write_text("*\n")
        self.users.mkdir(exist_ok=True)

    @property
    def cluster(self) -> Path:
        """The one folder that belongs to the server's user: the cluster (`data`) and its password."""
        return self.path / "postgres"

    @property
    def unfinished_cluster(self) -> Path:
        return self.path / "postgres.new"

    @property
    def log(self) -> Path:
        return self.path / "postgres.log"

    @property
    def users(self) -> Path:
        return self.path / "users"

    @property
    def server_lock(self) -> Path:
        """Held by the server itself, whose processes inherit it: free means that not one of them lives."""
        return self.path / "server.lock"

    @property
    def owner_lock(self) -> Path:
        """Held by the process to which an ephemeral directory belongs."""
        return self.path / "owner.lock"

    @contextlib.contextmanager
    def exclusive(self, seconds: float) -> Iterator[None]:
        """Hold the lock under which the server is started, stopped, joined and left."""
        path = self.path / "start.lock"
        descriptor = await_lock(path, seconds)
        if descriptor is None:
            message = f"Another process has been starting or stopping the database for {seconds:.0f} s ({path})."
            raise EmbeddedError(message)
        try:
            yield
        finally:
            os.close(descriptor)

    def register(self) -> Registration:
        """Count this process among the users. Call it under `exclusive`."""
        path = self.users / f"{os.getpid()}-{secrets.token_hex(4)}"
        descriptor = try_lock(path)
        if descriptor is None:
            raise EmbeddedError(f"{path} is locked by another process.")
        return Registration(path, descriptor)

    def is_used(self) -> bool:
        """Whether a living process is registered; forgets the dead ones. Call it under `exclusive`."""
        is_used = False
        for path in self.users.iterdir():
            descriptor = try_lock(path)
            if descriptor is None:
                is_used = True
            else:
                Registration(path, descriptor).release()
        return is_used


def create_ephemeral(parent: Path) -> tuple[DataDirectory, int]:
    """Make a temporary data directory and lock it as its owner; returns the lock's descriptor too."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=EPHEMERAL_PREFIX, dir=parent)).resolve()
        path.chmod(own_mode())
        directory = DataDirectory(path)
        # A sweep may come between the two lines; it then owns the directory, and the next one is tried.
        with contextlib.suppress(FileNotFoundError):
            descriptor = try_lock(directory.owner_lock)
            if descriptor is not None and directory.owner_lock.exists():
                directory.users.mkdir()
                return directory, descriptor


def abandoned_ephemerals(parent: Path) -> Iterator[DataDirectory]:
    """The temporary data directories of this user whose owner is dead, each locked while it is handed out."""
    for path in parent.glob(f"{EPHEMERAL_PREFIX}*"):
        with contextlib.suppress(OSError):
            # Others can write in a temporary folder: what belongs to somebody else, or is a link, is let be.
            if path.is_symlink() or path.stat().st_uid != os.geteuid():
                continue
            descriptor = try_lock(path / "owner.lock", create=False)
            if descriptor is not None:
                try:
                    yield DataDirectory(path)
                finally:
                    os.close(descriptor)


def remove_directory(directory: DataDirectory) -> None:
    """Throw an ephemeral directory away; a file that resists is left for the next sweep."""
    # The owner's lock goes last: the next sweep finds by it what a crash leaves here.
    shutil.rmtree(directory.cluster, ignore_errors=True)
    shutil.rmtree(directory.path, ignore_errors=True)
