"""The log on standard error: `-v` shows the state changes of a run, `-vv` every step, as text or as lines of JSON.

Without `-v` only errors are logged: what a user has to know is printed by the commands.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from driftline.urls import without_password

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LogFormat = Literal["text", "json"]
_ROOT = "driftline"
_LEVELS = (logging.ERROR, logging.INFO, logging.DEBUG)
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}  # the rest is `extra`


class _StandardError(logging.Handler):
    """Writes each record as a line on whatever standard error is at the time. One that is full or gone is ignored."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError):
            print(self.format(record), file=sys.stderr, flush=True)


class TextLines(logging.Formatter):
    """A record as a line for people: time, level, logger, message, then the other fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without passwords and control characters."""
        others = "".join(f" {name}={value!r}" for name, value in _extra(record).items())
        line = f"{_time(record)} {record.levelname.lower():<7} {record.name}: {record.getMessage()}{others}"
        trace = f" {self.formatException(record.exc_info)}" if record.exc_info else ""
        return without_password("".join(one if one.isprintable() else " " for one in line + trace))


class JsonLines(logging.Formatter):
    """A record as one JSON object: time, level, logger, message, and the other fields under their own names."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object on one line, without passwords."""
        found = {
            "time": _time(record), "level": record.levelname.lower(), "logger": record.name,
            "message": record.getMessage(), **_extra(record),
        }  # fmt: skip
        if record.exc_info:
            found["exception"] = self.formatException(record.exc_info)
        return without_password(json.dumps(found, default=str))


@contextmanager
def restored_log() -> Iterator[None]:
    """Undo at the end of the block what `set_up_log` did in it."""
    log = logging.getLogger(_ROOT)
    level, handlers = log.level, list(log.handlers)
    try:
        yield
    finally:
        log.setLevel(level)
        log.handlers[:] = handlers


def set_up_log(verbosity: int, log_format: LogFormat) -> None:
    """Log to standard error from now on, from the level that so many `-v` stand for."""
    log = logging.getLogger(_ROOT)
    log.setLevel(_LEVELS[min(verbosity, 2)])
    handler = _StandardError()
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    log.addHandler(handler)


def is_json_log() -> bool:
    """Return whether standard error is to have nothing but lines of JSON."""
    return any(isinstance(one.formatter, JsonLines) for one in logging.getLogger(_ROOT).handlers)


def is_json_asked_for(arguments: Sequence[str]) -> bool:
    """Return whether arguments ask for a log in JSON before their command, which may be misspelled."""
    asked = False
    for argument, following in pairwise([*arguments, ""]):
        asked = asked or argument == "--log-format=json" or (argument, following) == ("--log-format", "json")
        if not argument.startswith("-") and not asked:
            return False
    return asked


def log_sentence(sentence: str, fields: Mapping[str, object] | None = None, *, error: bool = False) -> None:
    """Write a sentence that is meant for people as a line of JSON with these fields, at any verbosity."""
    level = logging.ERROR if error else logging.INFO
    record = logging.LogRecord(f"{_ROOT}.cli", level, "", 0, "%s", (sentence,), None)
    vars(record).update(fields or {})
    for handler in logging.getLogger(_ROOT).handlers:
        if isinstance(handler, _StandardError):
            handler.handle(record)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _extra(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _OWN}
