"""The life of a serving process around its event loop: it ends with an exit code and waits for no thread."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from uvicorn.loops.auto import auto_loop_factory

from tenure.cli.database import url_of
from tenure.cli.failures import describe
from tenure.cli.serve import Roles, serve
from tenure.settings import Settings

logger = logging.getLogger(__name__)


def run_serving(settings: Settings, roles: Roles) -> None:
    """Serves until a signal. The loop is not closed: that would wait for whatever handlers left running in it."""
    sys.path.insert(0, str(Path.cwd()))  # TENURE_KINDS names modules beside which the process was started, too
    runner = asyncio.Runner(loop_factory=auto_loop_factory(use_subprocess=False))
    runner.run(serve(settings, url_of(settings), roles))


def leave_after(call: Callable[[], None]) -> NoReturn:
    """Runs what a serving command does, and leaves the process: 0 after a graceful end, 1 after an error, which is told.

    A handler's thread that never ends does not keep the process: its job was released, or its lease runs out.
    """
    code = 0
    try:
        call()
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        code = 1
        if (message := describe(error)) is None:
            logger.exception("The process failed")
        else:
            sys.stderr.write(f"tenure: {message}\n")
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
