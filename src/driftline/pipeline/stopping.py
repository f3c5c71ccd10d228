"""Ending a run early, and waking the thread that tends it."""

from __future__ import annotations

import queue


class Bell:
    """Rung by any thread, or by a signal handler; waited for by one. Rings are not counted."""

    def __init__(self) -> None:
        # made to be used by a signal handler even while the thread it interrupts is in the middle of it
        self._rings: queue.SimpleQueue[None] = queue.SimpleQueue()

    def ring(self) -> None:
        """Wake whoever waits, now or at its next wait."""
        self._rings.put(None)

    def wait(self, timeout: float) -> None:
        """Return at a ring, or after `timeout` seconds."""
        try:
            self._rings.get(timeout=timeout)
            while True:
                self._rings.get_nowait()
        except queue.Empty:
            return


class Stop:
    """A request to end a run early, safe to make from a signal handler or any thread."""

    def __init__(self) -> None:
        self.bell = Bell()
        self._bells: tuple[Bell, ...] = (self.bell,)
        self._requested = False

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
        return self._requested

    def request(self) -> None:
        """Finish what is in flight, record it, and end."""
        self._requested = True
        for bell in self._bells:
            bell.ring()
