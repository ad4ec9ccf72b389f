"""How a serving process logs: one line an event on standard error, the message constant, what varies as key=value."""

import logging
import time

import typer

ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}
"""What every record has; all else was passed as `extra`."""


class LineFormatter(logging.Formatter):
    """Time in UTC, level, logger, message, and the record's extra fields."""

    converter = time.gmtime  # type: ignore[assignment]
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the base class's name
        line = super().formatMessage(record)
        fields = (f"{name}={_value(value)}" for name, value in vars(record).items() if name not in ORDINARY)
        return " ".join([line, *fields])


def _value(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, (list, tuple, set, frozenset)) else str(value)
    return text if text.isprintable() and " " not in text and text else repr(text)


def configure_logging(level: str) -> None:
    """Sends the log of this process to standard error. Ends it with exit code 2 if there is no such level."""
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    try:
        root.setLevel(level.upper())
    except ValueError:
        typer.echo(f"tenure: TENURE_LOG_LEVEL: there is no level {level!r}; try INFO", err=True)
        raise typer.Exit(2) from None
    root.handlers[:] = [handler]
    for chatty in ("uvicorn.error", "alembic"):
        logging.getLogger(chatty).setLevel(max(root.level, logging.WARNING))
    logging.captureWarnings(capture=True)
