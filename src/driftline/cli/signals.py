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
_SHOW_CURSOR = b"\x1b[?25h\n"


@contextlib.contextmanager
def first_signal(stop: Callable[[], None]) -> Iterator[None]:
    """Within this block the first signal calls `stop`, in its handler, and a second one ends the process."""
    received = 0

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received > 1:
            if sys.stderr.isatty():
                os.write(2, _SHOW_CURSOR)
            os._exit(130)
        stop()

    before = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
