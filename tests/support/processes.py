"""Processes that a test ends."""

from __future__ import annotations

import os
import select
import signal


def kill(process: int) -> None:
    """Kill a process, and wait until it is dead; it need not be a child of this one."""
    handle = os.pidfd_open(process)
    os.kill(process, signal.SIGKILL)
    ended = select.poll()
    ended.register(handle, select.POLLIN)
    assert ended.poll(20_000)
    os.close(handle)
