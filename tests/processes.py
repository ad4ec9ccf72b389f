"""Real `tenure` processes for tests: started, waited for by condition, signalled by their own pid, and always ended."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Self

import httpx

TENURE = str(Path(sys.executable).parent / "tenure")
START_SECONDS = 60
END_SECONDS = 60

FAST = {
    "TENURE_LEASE_SECONDS": "3",
    "TENURE_HEARTBEAT_SECONDS": "0.5",
    "TENURE_POLL_SECONDS": "0.2",
    "TENURE_SHUTDOWN_GRACE_SECONDS": "0.3",
    "TENURE_BACKOFF_BASE_SECONDS": "0.01",
}
"""Settings under which a fault shows within seconds."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Process:
    """One command. Its output is kept in a file, and shown where something fails."""

    def __init__(self, *arguments: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> None:
        self.arguments = arguments
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `end`
        clean = {k: v for k, v in os.environ.items() if not k.startswith("TENURE_")}
        self.popen = subprocess.Popen(
            [TENURE, *arguments],
            env={**clean, **(env or {})},
            cwd=cwd or tempfile.gettempdir(),  # no .env of the checkout
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def output(self) -> str:
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode(errors="replace")

    def signal(self, number: int) -> None:
        self.popen.send_signal(number)

    async def until_output(self, text: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while text not in self.output:
            assert self.popen.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            await asyncio.sleep(0.01)  # a poll of the output

    async def ended(self) -> int:
        return await asyncio.to_thread(self.popen.wait, END_SECONDS)

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait(END_SECONDS)

    def end(self) -> None:
        """Ends it whatever state it is in, stopped included."""
        if self.popen.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.signal(signal.SIGCONT)
                self.popen.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(END_SECONDS)
        if self.popen.poll() is None:
            self.kill()
        if not self._log.closed:
            sys.stderr.write(f"--- tenure {' '.join(self.arguments)}\n{self.output}\n")
            self._log.close()


class Api(Process):
    """`tenure api`, or another command that serves."""

    def __init__(self, *arguments: str, env: dict[str, str]) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        super().__init__(*(arguments or ("api",)), "--port", str(self.port), env=env)

    async def until_ready(self) -> Self:
        deadline = time.monotonic() + START_SECONDS
        async with httpx.AsyncClient() as client:
            while True:
                assert self.popen.poll() is None, self.output
                assert time.monotonic() < deadline, self.output
                with contextlib.suppress(httpx.TransportError):
                    if (await client.get(f"{self.url}/readyz")).status_code == 200:
                        return self
                await asyncio.sleep(0.02)  # a poll of the port
