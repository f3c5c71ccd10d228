"""A bandwidth that many share fairly: what is to be sent, released in small parts as time allows."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

TICK = 0.005
"""Seconds between two releases."""

_CHUNK = 16 * 1024
_CATCH_UP = 0.25

Receiver = TypeVar("Receiver")


class Pacer(Generic[Receiver]):
    """Shares a link of `rate` bytes a second between receivers, in turns.

    Over any stretch of time in which something waits, no more than `rate` times its length is released, plus
    one tick's worth that an idle link may have saved up; a delayed call of `release` catches up. It never
    reads a clock.
    """

    def __init__(self, *, rate: float, now: float) -> None:
        self.rate = rate
        self._allowance = rate * TICK
        self._last = now
        self._waiting: deque[tuple[Receiver, memoryview]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def submit(self, receiver: Receiver, data: bytes, now: float) -> None:
        """Puts data in line. A receiver submits again only after it was told that all before was released."""
        self._accrue(now)
        self._waiting.append((receiver, memoryview(data)))

    def release(self, now: float) -> list[tuple[Receiver, memoryview, bool]]:
        """What may be sent now: to whom, which bytes, and whether they end what was submitted."""
        self._accrue(now)
        found = []
        while self._waiting and self._allowance >= 1:
            receiver, data = self._waiting.popleft()
            part = data[: min(_CHUNK, int(self._allowance))]
            self._allowance -= len(part)
            done = len(part) == len(data)
            if not done:
                self._waiting.append((receiver, data[len(part) :]))
            found.append((receiver, part, done))
        return found

    def forget(self, receiver: Receiver) -> None:
        self._waiting = deque(item for item in self._waiting if item[0] is not receiver)

    def _accrue(self, now: float) -> None:
        most = self.rate * (_CATCH_UP if self._waiting else TICK)
        self._allowance = min(most, self._allowance + self.rate * (now - self._last))
        self._last = now
