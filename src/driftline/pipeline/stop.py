"""Ending a run early, its threads, and waking the thread that supervises them."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG = logging.getLogger(__name__)


class Bell:
    """Rung by any thread, or by a signal handler; waited for by one. Rings are not counted.

    It is a lock that is free after a ring, until the next wait. A signal handler may ring even while the thread that
    it interrupts waits, which rules out conditions and events. Nor will a SimpleQueue do: where a handler takes longer
    than the rest of the time-out, its `get` waits forever.
    """

    def __init__(self) -> None:
        self._unrung = threading.Lock()
        self._unrung.acquire()

    def __repr__(self) -> str:
        return f"<Bell {'silent' if self._unrung.locked() else 'rung'}>"

    def ring(self) -> None:
        """Wake the thread that waits, now or at its next wait."""
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

    def __repr__(self) -> str:
        return f"<Stop requested={self.requested} bells={len(self._bells)}>"

    def listen(self) -> Bell:
        """Return one more bell, for another thread: the request rings it too, also one that was made before."""
        bell = Bell()
        self._bells += (bell,)
        if self.requested:
            bell.ring()
        return bell

    def unlisten(self, bell: Bell) -> None:
        """Do not ring this bell any more."""
        self._bells = tuple(one for one in self._bells if one is not bell)

    @property
    def requested(self) -> bool:
        """Whether a stop was requested."""
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


class Ending:
    """Why a pipeline ends before its source does: a request to stop, or an error that cuts it short."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        self.error: Exception | None = None  # the first that cut it short

    def __repr__(self) -> str:
        return f"<Ending error={self.error!r} {self.stop!r}>"

    @property
    def requested(self) -> bool:
        """Whether it is to end, for either reason."""
        return self.stop.requested or self.error is not None

    def cut_short(self, error: Exception) -> None:
        """End with this error: nothing more is fetched, and no thread waits for anything any more."""
        first = self.error is None
        self.error = self.error or error
        self.stop.bell.ring()
        if first:
            _LOG.info("pipeline cut short: %s", error, extra={"error": type(error).__name__})


class SupervisedThread:
    """A thread that keeps the exception that ended it, and calls `ended` when it has ended.

    It is created apart from its start: a supervisor that is interrupted meanwhile knows it already, and ends it.
    """

    def __init__(self, name: str, work: Callable[[], None], ended: Callable[[], None]) -> None:
        self._work = work
        self._ended = ended
        self._begun = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.error: Exception | None = None

    def __repr__(self) -> str:
        state = "ended" if self._over.is_set() else "at work" if self._begun else "not started"
        error = "" if self.error is None else f" error={self.error!r}"
        return f"<SupervisedThread {self._thread.name!r} {state}{error}>"

    def start(self) -> None:
        """Begin the work."""
        self._begun = True
        self._thread.start()

    @property
    def at_work(self) -> bool:
        """Whether the thread has not ended yet."""
        return not self._over.is_set()

    def join(self, timeout: float) -> None:
        """Wait for the thread to end, if it was started, for up to `timeout` seconds."""
        # a thread whose start was interrupted runs all the same, but refuses to be joined until it does
        if self._begun and self._over.wait(timeout):
            self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:  # noqa: BLE001 kept for the thread that supervises this one
            self.error = error
        finally:
            self._over.set()  # before the bell, or the thread that it wakes would wait for the next ring
            self._ended()
