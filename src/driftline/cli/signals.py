"""Ctrl-C and SIGTERM: the first asks a run to stop, the second ends the process at once."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = b"\x1b[?25h\n"


@contextlib.contextmanager
def first_signal(stop: Callable[[], None]) -> Iterator[None]:
    """Within this block the first signal calls `stop` in a thread of its own, and a second one ends the process.

    The handler only writes to a pipe: it may interrupt the main thread while that holds the very lock `stop` needs.
    """
    reader, writer = os.pipe()
    received = 0

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received > 1:
            if sys.stderr.isatty():
                os.write(2, _SHOW_CURSOR)
            os._exit(130)
        os.write(writer, b"!")

    def wait() -> None:
        if os.read(reader, 1):
            stop()

    watcher = threading.Thread(target=wait, name="signals", daemon=True)
    watcher.start()
    before = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(writer)
        watcher.join()
        os.close(reader)
