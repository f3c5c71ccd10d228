"""Settings of the Python process: rare garbage collection, a short switch interval while pages are checked, and
memory that does not grow while it runs for days."""

from __future__ import annotations

import gc
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SWITCH_INTERVAL = 0.0002  # seconds: measured, 0.05 and 1 ms are both slower
_MALLOC = {-8: 2, -3: 128 * 1024, -1: 128 * 1024}  # M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD of malloc.h
_TRIM = 15.0  # seconds
_ALLOCATIONS = 50_000  # new objects between two garbage collections: those of a few thousand pages


def command_name() -> str:
    """Return what a user types to run this installation's command: "driftline" only if that is what the shell finds.

    In a checkout that was set up by `make run` it is ".venv/bin/driftline".
    """
    import shlex  # imported here because every command imports this module, and few need the name
    import shutil
    from pathlib import Path

    program = Path(sys.argv[0])
    if program.name != "driftline":
        return "driftline"
    with suppress(OSError):
        found = shutil.which("driftline")
        if found is not None and program.samefile(found):
            return "driftline"
        program = program.absolute()
        program = program.relative_to(Path.cwd()) if program.is_relative_to(Path.cwd()) else program
    return shlex.quote(str(program))


def collect_garbage_rarely() -> None:
    """Collect garbage rarely: neither the objects of a page nor those of imports form reference cycles.

    With the default threshold of 700 objects, collections during imports take a tenth of the start of a command.
    """
    gc.set_threshold(_ALLOCATIONS, *gc.get_threshold()[1:])


def limit_free_memory() -> None:
    """Keep the free memory of malloc from growing, in a process that runs for days; does nothing without glibc.

    By default glibc raises the size of blocks that it takes from heaps, of which threads have their own, and a heap
    shrinks only if its end is free: within minutes more of it is free than in use. With fewer heaps, and large blocks
    always mapped outside of them, this does not happen.
    """
    import ctypes  # only a run that goes on needs it

    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in _MALLOC.items():
            mallopt(parameter, value)


class MemoryTrimmer:
    """Collects garbage and returns free memory of malloc to the system, now and then, in a process that runs for days.

    SQLAlchemy's statements form reference cycles, which live long if garbage is collected rarely. And malloc keeps free
    blocks between others that are in use. Together they became a third of the memory of a run within minutes.
    """

    def __init__(self, ticks: Callable[[], float] = time.monotonic) -> None:
        self._ticks = ticks
        self._next = ticks() + _TRIM
        gc.collect()
        gc.freeze()  # what is loaded now stays: to examine it at every collection would take ten times as long

    def trim(self) -> bool:
        """Return free memory to the system unless that was done lately. Returns whether it was done now."""
        if self._ticks() < self._next:
            return False
        import ctypes  # only a run that goes on needs it

        gc.collect()
        with suppress(OSError, AttributeError):  # without glibc there is no malloc_trim
            ctypes.CDLL(None).malloc_trim(0)
        self._next = self._ticks() + _TRIM
        return True


class _FullSpeed:
    """Counts the users of the interpreter at full speed, so that the last of them restores its settings."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._switch_interval = 0.0
        self._thresholds = (0, 0, 0)

    def begin(self) -> None:
        with self._lock:
            if not self._users:
                self._switch_interval, self._thresholds = sys.getswitchinterval(), gc.get_threshold()
                sys.setswitchinterval(SWITCH_INTERVAL)
                collect_garbage_rarely()
            self._users += 1

    def end(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                sys.setswitchinterval(self._switch_interval)
                gc.set_threshold(*self._thresholds)


_FULL_SPEED = _FullSpeed()


@contextmanager
def at_full_speed() -> Iterator[None]:
    """Set the interpreter up for a run, until the end of the block, or of the last of several that overlap.

    A producer needs the interpreter lock for a moment at every header line and chunk that libcurl hands over. While
    another thread holds it, each of these moments may wait for a switch interval, and with the default of 5 ms the
    network would be idle most of the time.
    """
    _FULL_SPEED.begin()
    try:
        yield
    finally:
        _FULL_SPEED.end()
