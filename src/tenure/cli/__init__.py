"""The command line. One file a noun: each parses, calls one function, and turns its outcome into an exit code.

Expected errors become one line on standard error: exit code 2 for what was typed or set wrongly, else 1.
"""

import logging
import signal
import sys

from tenure.cli.commands import application
from tenure.cli.failures import describe

logger = logging.getLogger(__name__)


def main() -> None:
    """The entry point `tenure`."""
    # What ends a command by SIGTERM leaves through the same `finally` blocks as Ctrl-C: a server it started is stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        application()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        message = describe(error)
        if message is None:
            raise
        logger.debug("The command failed", exc_info=error)
        sys.stderr.write(f"tenure: {message}\n")
        sys.exit(1)
