"""What a server writes down about itself in postmaster.pid, and whether it is still true."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PidFile:
    pid: int
    port: int
    is_ready: bool

    @classmethod
    def read(cls, data: Path) -> "PidFile | None":
        """None if there is none, or it is just being written."""
        try:
            lines = (data / "postmaster.pid").read_text(errors="surrogateescape").splitlines()
        except FileNotFoundError:
            return None
        if not lines or not lines[0].isdigit():
            return None
        port = int(lines[3]) if len(lines) > 3 and lines[3].isdigit() else 0
        return cls(int(lines[0]), port, is_ready=len(lines) > 7 and lines[7].strip() == "ready")


def is_postmaster(pid: int, data: Path) -> bool:
    """Whether the process lives and is a server in that folder, which is the working directory of its processes.

    Where there is no /proc (macOS) every living `postgres` counts.
    """
    if Path("/proc/self/cwd").exists():
        try:
            return Path(f"/proc/{pid}/cwd").readlink() == data
        except (FileNotFoundError, ProcessLookupError, PermissionError):  # gone, a zombie, or another user's
            return False
    done = subprocess.run(  # noqa: S603
        ["ps", "-o", "comm=", "-p", str(pid)],  # noqa: S607  # POSIX leaves its place open
        check=False,
        stdout=subprocess.PIPE,
        text=True,
        timeout=30,
    )
    return Path(done.stdout.strip()).name.startswith("postgres")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
