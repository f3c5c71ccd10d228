"""Time limit for the regular expressions of filters, which may take exponential time."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from driftline.errors import DriftlineError

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from types import FrameType

_LIMIT = 2.0  # seconds of processor time for all expressions of a page
_TICK = 0.1


class RegexTimeout(DriftlineError):
    """A regular expression exceeded its time limit."""


class _Timer:
    """State of the timer. Signals are global, so it is used only in processes that do nothing but read pages."""

    set_up = False
    searching = False


def watch_expressions() -> None:
    """Enforce the time limit in this process from now on. Call it in the main thread."""
    signal.signal(signal.SIGVTALRM, _on_tick)
    _Timer.set_up = True


def _on_tick(_number: int, _frame: FrameType | None) -> None:
    if _Timer.searching:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        raise RegexTimeout


@contextmanager
def time_limit() -> Iterator[None]:
    """Limit the time of the expressions within this block, if `watch_expressions` was called."""
    if not _Timer.set_up:
        yield
        return
    # repeatedly: the first signal may arrive between two searches
    signal.setitimer(signal.ITIMER_VIRTUAL, _LIMIT, _TICK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def is_found(pattern: re.Pattern[str], line: str) -> bool:
    """Return whether the expression matches a part of the line. Raise RegexTimeout when it takes too long."""
    _Timer.searching = True
    try:
        return pattern.search(line) is not None
    finally:
        _Timer.searching = False
