"""How Python is set up for our work: fewer hunts for cycles, shorter turns while pages are checked, and a memory
that does not grow while it is run for days."""

from __future__ import annotations

import gc
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TURN = 0.0002  # seconds: measured, 0.05 and 1 ms are both slower
_MALLOC = {-8: 2, -3: 128 * 1024, -1: 128 * 1024}  # M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD of malloc.h
_TRIM = 15.0  # seconds
_ALLOCATIONS = 50_000  # objects more than at the last hunt for cycles: a few thousand pages


def hunt_less_for_cycles() -> None:
    """Look for cycles only now and then: the objects of a page form none, nor do those of imports.

    With the usual 700 objects, the hunts during imports are a tenth of the start of a command.
    """
    gc.set_threshold(_ALLOCATIONS, *gc.get_threshold()[1:])


def give_freed_memory_back() -> None:
    """Keep what malloc has free from growing, for a process that goes on for days; nothing where there is no glibc.

    By itself glibc takes ever larger blocks from heaps that it shares out among threads, and a heap shrinks only where
    nothing is left at its end: within minutes more of it is free than in use. With fewer heaps, and blocks of the size
    of a page and more always outside of them, that stays as it is.
    """
    import ctypes  # only a run that goes on needs it

    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in _MALLOC.items():
            mallopt(parameter, value)


class MemoryTrimmer:
    """Frees cycles and gives what malloc has free back to the system, now and then, in a process that goes on for days.

    SQLAlchemy's statements are cycles, which live long where there are few hunts for them. And a free block amid others
    that are in use is kept by malloc for good. Together they became a third of the memory of a run within minutes.
    """

    def __init__(self, ticks: Callable[[], float] = time.monotonic) -> None:
        self._ticks = ticks
        self._next = ticks() + _TRIM
        gc.collect()
        gc.freeze()  # all that was loaded stays: to look at it again at every hunt would take ten times as long

    def trim(self) -> bool:
        """Give free memory back if that was not done lately; whether it was done now."""
        if self._ticks() < self._next:
            return False
        import ctypes  # only a run that goes on needs it

        gc.collect()
        with suppress(OSError, AttributeError):  # nothing of the kind where there is no glibc
            ctypes.CDLL(None).malloc_trim(0)
        self._next = self._ticks() + _TRIM
        return True


class _FullSpeed:
    """Counts who needs the interpreter at full speed, so that the last of them, and nobody else, puts it back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._turn = 0.0
        self._thresholds = (0, 0, 0)

    def begin(self) -> None:
        with self._lock:
            if not self._users:
                self._turn, self._thresholds = sys.getswitchinterval(), gc.get_threshold()
                sys.setswitchinterval(TURN)
                hunt_less_for_cycles()
            self._users += 1

    def end(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                sys.setswitchinterval(self._turn)
                gc.set_threshold(*self._thresholds)


_FULL_SPEED = _FullSpeed()


@contextmanager
def at_full_speed() -> Iterator[None]:
    """Set the interpreter up for a run, until the end of the block, or of the last of several that overlap.

    A producer needs the interpreter for a moment at every header line and chunk that libcurl hands over. While another
    thread has it, each of these moments may wait for a whole turn, and with turns of 5 ms the network stands still.
    """
    _FULL_SPEED.begin()
    try:
        yield
    finally:
        _FULL_SPEED.end()


def program() -> str:
    """Return this command as the user can type it: a path such as .venv/bin/driftline if it is not on the PATH."""
    called = sys.argv[0] if sys.argv else ""
    if not called.endswith("/driftline"):
        return "driftline"
    import shutil

    return "driftline" if shutil.which("driftline") == called else called
