"""Ctrl-C and SIGTERM: the first asks a run to stop, the second ends the process at once."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_AT_ONCE = 2
_SHOW_CURSOR = b"\x1b[?25h\n"


@contextlib.contextmanager
def first_signal(stop: Callable[[], None], at_once: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Within this block the first signal calls `stop`, in its handler, and a second one ends the process.

    `at_once` is what has to be done before that: it must be quick, and may not rely on anything that was being done.
    """
    received = 0

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received == 1:
            stop()
        elif received == _AT_ONCE:  # more of them come too late to make it any quicker
            try:
                at_once()
                if sys.stderr.isatty():
                    os.write(2, _SHOW_CURSOR)
            finally:
                os._exit(130)

    before = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
