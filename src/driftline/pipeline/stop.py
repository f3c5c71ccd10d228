"""Ending a run early, and waking the thread that tends it."""

from __future__ import annotations

import threading
import time
from contextlib import suppress


class Bell:
    """Rung by any thread, or by a signal handler; waited for by one. Rings are not counted.

    It is a lock that is free while there is a ring to be heard. A signal handler may ring even while the thread that
    it interrupts waits, which rules out conditions and events. Nor will a SimpleQueue do: where a handler takes longer
    than the rest of the time-out, its `get` waits forever.
    """

    def __init__(self) -> None:
        self._unrung = threading.Lock()
        self._unrung.acquire()

    def ring(self) -> None:
        """Wake whoever waits, now or at its next wait."""
        with suppress(RuntimeError):  # it has rung already
            self._unrung.release()

    def wait(self, timeout: float) -> bool:
        """Return True at a ring, or False after `timeout` seconds without one."""
        return self._unrung.acquire(timeout=max(0.0, timeout))


class Stop:
    """A request to end a run early, safe to make from a signal handler or any thread."""

    def __init__(self) -> None:
        self.bell = Bell()
        self._bells: tuple[Bell, ...] = (self.bell,)
        self._requested_at: float | None = None  # by the monotonic clock

    def listen(self) -> Bell:
        """One more bell, for another thread: the request rings it too."""
        bell = Bell()
        self._bells += (bell,)
        return bell

    def unlisten(self, bell: Bell) -> None:
        """Ring this bell no more: nobody waits for it."""
        self._bells = tuple(one for one in self._bells if one is not bell)

    @property
    def requested(self) -> bool:
        """Whether somebody asked."""
        return self._requested_at is not None

    def time_left(self, seconds: float) -> float | None:
        """Return how many of so many seconds after the request are left, at least 0; None if there was no request."""
        if self._requested_at is None:
            return None
        return max(0.0, self._requested_at + seconds - time.monotonic())

    def request(self) -> None:
        """Finish what is in flight, record it, and end."""
        if self._requested_at is None:
            self._requested_at = time.monotonic()
        for bell in self._bells:
            bell.ring()
