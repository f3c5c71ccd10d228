"""Expressions of filters that would never come to an end: they are given up after a while."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from driftline.errors import DriftlineError

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from types import FrameType

_PATIENCE = 2.0  # seconds of the processor's time that the expressions of a page may take to go through it
_TICK = 0.1


class RanAway(DriftlineError):
    """An expression takes so long that it would never come to an end."""


class _Watch:
    """Ends an expression that runs away. It needs a process that reads pages and nothing else: signals are global."""

    set_up = False
    searching = False


def watch_expressions() -> None:
    """Let no expression of a filter run away in this process from now on. To be called by its main thread."""
    signal.signal(signal.SIGVTALRM, _on_tick)
    _Watch.set_up = True


def _on_tick(_number: int, _frame: FrameType | None) -> None:
    if _Watch.searching:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        raise RanAway


@contextmanager
def patience() -> Iterator[None]:
    """Within this block the expressions of filters may take so long and no longer, where somebody watches them."""
    if not _Watch.set_up:
        yield
        return
    # again and again: the first tick may fall between two tries
    signal.setitimer(signal.ITIMER_VIRTUAL, _PATIENCE, _TICK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def is_found(pattern: re.Pattern[str], line: str) -> bool:
    """Whether the expression matches a part of the line; RanAway once that takes longer than there is patience for."""
    _Watch.searching = True
    try:
        return pattern.search(line) is not None
    finally:
        _Watch.searching = False
