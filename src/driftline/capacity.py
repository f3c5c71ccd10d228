"""Bounded resources that threads share, and the reservations by which they use them.

A reservation keeps its own weight, so that what is released is what was acquired. Measuring a page a second time would
be wrong: one that was emptied while it waited would release less than it acquired, and after enough of them every
thread would wait forever.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceUse:
    """How much of a bounded resource is in use, and how it was used so far.

    `acquired` and `released` count reservations; `limit` is None where each host has a limit of its own. `waiting` is
    how many threads wait now, `waits` how often one had to, and `wait_seconds` for how long in all.
    """

    name: str
    in_use: int
    limit: int | None
    acquired: int
    released: int
    waiting: int = 0
    waits: int = 0
    wait_seconds: float = 0.0

    def __str__(self) -> str:
        limit = "" if self.limit is None else f" of {self.limit:,}"
        waiting = f", {self.waiting} waiting" if self.waiting else ""
        used = f"{self.in_use:,}{limit} in use{waiting}"
        return f"{self.name}: {used}, acquired {self.acquired:,}, released {self.released:,}"


class Capacity:
    """A limit on what may be in use at once, in bytes or in items. Used by any thread.

    The last reservation may exceed the limit: otherwise something larger than the limit could never be reserved.
    """

    def __init__(self, name: str, limit: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.limit = limit
        self._monotonic = monotonic
        self._freed = threading.Condition(threading.Lock())
        self._in_use = self._acquired = self._released = self._waiting = self._waits = 0
        self._wait_seconds = 0.0
        self._closed = False

    def __repr__(self) -> str:
        return f"<Capacity {self.statistics()}>"

    def acquire(self, weight: int, *, wait: bool = True) -> Reservation | None:
        """Reserve this much, waiting while the limit is reached. Returns None once the capacity is closed.

        Without `wait` it is reserved at once, over the limit if need be: for threads that hold something which threads
        with a reservation may be waiting for, so that waiting could be a deadlock.
        """
        with self._freed:
            if wait and self._in_use >= self.limit and not self._closed:
                self._waits += 1
                self._waiting += 1
                started = self._monotonic()
                while self._in_use >= self.limit and not self._closed:
                    self._freed.wait()
                self._waiting -= 1
                self._wait_seconds += self._monotonic() - started
            if self._closed:
                return None
            self._in_use += weight
            self._acquired += 1
        return Reservation(self, weight)

    def close(self) -> None:
        """Refuse every reservation from now on, also to threads that wait for one; what is reserved stays reserved."""
        with self._freed:
            self._closed = True
            self._freed.notify_all()

    def statistics(self) -> ResourceUse:
        """Return how much is in use now, and how it was used so far."""
        with self._freed:
            return ResourceUse(
                name=self.name, in_use=self._in_use, limit=self.limit, acquired=self._acquired,
                released=self._released, waiting=self._waiting, waits=self._waits, wait_seconds=self._wait_seconds,
            )  # fmt: skip

    def _give_back(self, weight: int) -> None:
        with self._freed:
            self._in_use -= weight
            self._released += 1
            self._freed.notify_all()


class Reservation:
    """A share of a capacity, to be released once, by `release` or at the end of a `with` block."""

    __slots__ = ("_capacity", "weight")

    def __init__(self, capacity: Capacity, weight: int) -> None:
        self._capacity: Capacity | None = capacity
        self.weight = weight

    def __repr__(self) -> str:
        name = "released" if self._capacity is None else self._capacity.name
        return f"<Reservation {name} weight={self.weight}>"

    def release(self) -> None:
        """Give it back to the capacity; raises RuntimeError if that was done before."""
        capacity, self._capacity = self._capacity, None
        if capacity is None:
            raise RuntimeError("A reservation was released twice.")
        capacity._give_back(self.weight)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
