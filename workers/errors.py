"""What a handler may raise to say how its attempt ends, and what stops a handler from outside."""

from enum import StrEnum


class Permanent(Exception):
    """The job fails for good: no further attempt. `code` is machine-readable, `message` is shown to people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class RetryLater(Exception):
    """Try again after so many seconds, if an attempt is left; this one is spent."""

    def __init__(self, seconds: float, message: str = "The handler asked to be run again later.") -> None:
        super().__init__(message)
        self.seconds = seconds
        self.message = message


class StopReason(StrEnum):
    """Why a handler has to end although it has not finished."""

    LEASE_LOST = "LEASE_LOST"
    TIMEOUT = "TIMEOUT"
    SHUTDOWN = "SHUTDOWN"
    CANCELLED = "CANCELLED"
    UNAUTHORIZED = "UNAUTHORIZED"


class JobStopped(BaseException):
    """Raised by a context's methods once the handler has to end. No Exception, so that `except Exception` lets it pass."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason
