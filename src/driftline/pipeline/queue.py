"""The queues between the sections of a pipeline: bounded in items and in bytes, with lanes that can be stolen from.

Room is reserved before the work that fills it begins: a producer takes a link only while what is queued and what is in
flight leave room under the capacity (the paper's Algorithm 2), so a finished transfer never has to wait for a place.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from driftline.capacity import ResourceUse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

T = TypeVar("T")

_RIPE = 32  # items that are worth taking at once
_LINGER = 0.004  # seconds that a taker waits for that many


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatistics:
    """How a queue has fared. Waits: how often, and for how many seconds in all, one side waited for the other."""

    depth: int
    deepest: int
    bytes: int
    reserved: int
    put: int
    taken: int
    stolen: int
    discarded: int
    full_waits: int
    full_seconds: float
    empty_waits: int
    empty_seconds: float


class BoundedQueue(Generic[T]):
    """A first-in first-out queue of `lanes` lanes that many threads put into and take from, in batches.

    Each taker has a home lane and takes from the fullest other one when its own is empty, so that no thread starves
    while there is work. With one lane it is the paper's queue. `capacity` counts what is queued and what is reserved;
    `capacity_bytes` counts what is queued, and when it is reached nothing more can be reserved.
    """

    def __init__(
        self, capacity: int, capacity_bytes: int, size: Callable[[T], int], lanes: int = 1,
        monotonic: Callable[[], float] = time.monotonic, name: str = "queue",
    ) -> None:  # fmt: skip
        self.name = name
        self._capacity = capacity
        self._capacity_bytes = capacity_bytes
        self._size = size
        self._monotonic = monotonic
        # each item with the bytes it was counted with: some of them are emptied while they wait
        self._lanes: list[deque[tuple[T, int]]] = [deque() for _ in range(lanes)]
        self._next_lane = 0
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._filled = threading.Condition(self._lock)
        self._ripe = threading.Condition(self._lock)
        self._depth = self._bytes = self._reserved = 0
        self._deepest = self._put = self._taken = self._stolen = self._discarded = 0
        self._granted = self._returned = 0
        self._full_waits = self._empty_waits = 0
        self._full_seconds = self._empty_seconds = 0.0
        self._waiting_takers = 0
        self._closed = self._refusing = False

    def __repr__(self) -> str:
        # without the lock: figures of different moments do no harm, and whoever prints them may hold it
        state = " closed" if self._closed else " refusing" if self._refusing else ""
        return (
            f"<BoundedQueue {self.name!r} depth={self._depth}/{self._capacity} reserved={self._reserved}"
            f" bytes={self._bytes}/{self._capacity_bytes}{state}>"
        )

    def slots(self) -> QueueSlots[T]:
        """Return an account of reserved room, empty at first, for one thread that puts items in."""
        return QueueSlots(self)

    def _reserve(self, want: int, *, wait: bool) -> int:
        with self._lock:
            room = self._free()
            if room <= 0 and wait and not self._refusing:
                started = self._monotonic()
                self._full_waits += 1
                while (room := self._free()) <= 0 and not self._refusing:
                    self._room.wait()
                self._full_seconds += self._monotonic() - started
            if self._refusing:
                return 0
            granted = max(0, min(want, room))
            self._reserved += granted
            self._granted += granted
            return granted

    def _release(self, count: int) -> None:
        with self._lock:
            self._reserved -= count
            self._returned += count
            self._room.notify_all()

    def _add(self, items: Sequence[T]) -> None:
        """Add items for which room was reserved, and wake a taker."""
        size = self._size
        weighed = [(item, size(item)) for item in items]
        added = sum([weight for _, weight in weighed])
        with self._lock:
            self._reserved -= len(items)
            if len(self._lanes) == 1:
                self._lanes[0].extend(weighed)
            else:
                self._spread(weighed)
            self._depth += len(items)
            self._bytes += added
            self._put += len(items)
            if self._depth > self._deepest:
                self._deepest = self._depth
            if self._waiting_takers:
                self._filled.notify()  # one is enough: it wakes the next if it leaves something
            elif self._depth >= _RIPE:
                self._ripe.notify()

    def take(self, most: int, lane: int = 0, timeout: float | None = None) -> list[T] | None:
        """Wait for items and return up to `most`; none after `timeout` seconds, and None when closed and empty."""
        with self._lock:
            if not self._depth and not self._closed:
                started = self._monotonic()
                self._empty_waits += 1
                self._waiting_takers += 1
                self._filled.wait_for(lambda: self._depth or self._closed, timeout)
                self._waiting_takers -= 1
                if 0 < self._depth < _RIPE and not self._closed:
                    # a thread that wakes up for every single item would spend its time on waking up
                    self._ripe.wait(_LINGER)
                self._empty_seconds += self._monotonic() - started
            if not self._depth:
                return None if self._closed else []
            source = self._lanes[lane % len(self._lanes)]
            if not source:
                source = max(self._lanes, key=len)
                self._stolen += min(most, len(source))
            if len(source) <= most:
                weighed = list(source)
                source.clear()
            else:
                weighed = [source.popleft() for _ in range(most)]
            self._depth -= len(weighed)
            self._bytes -= sum([weight for _, weight in weighed])
            self._taken += len(weighed)
            if self._depth and self._waiting_takers:
                self._filled.notify()
            self._room.notify_all()
        return [item for item, _ in weighed]

    def discard(self) -> None:
        """Drop what is queued, after a stop."""
        with self._lock:
            for lane in self._lanes:
                self._depth -= len(lane)
                self._bytes -= sum([weight for _, weight in lane])
                self._discarded += len(lane)
                lane.clear()
            self._room.notify_all()

    def close(self) -> None:
        """Let nothing more be reserved or put; takers get what is queued, then None."""
        with self._lock:
            self._closed = self._refusing = True
            self._room.notify_all()
            self._filled.notify_all()
            self._ripe.notify_all()

    def refuse(self) -> None:
        """Let nothing more be reserved, and wake threads that wait for it; what is reserved may still be put."""
        with self._lock:
            self._refusing = True
            self._room.notify_all()

    def resize(self, capacity: int) -> None:
        """Change how many items may be queued or reserved."""
        with self._lock:
            self._capacity = capacity
            self._room.notify_all()

    @property
    def depth(self) -> int:
        """The number of items that are queued."""
        return self._depth

    def statistics(self) -> QueueStatistics:
        """Return the figures of the queue at this moment."""
        with self._lock:
            return QueueStatistics(
                depth=self._depth, deepest=self._deepest, bytes=self._bytes, reserved=self._reserved, put=self._put,
                taken=self._taken, stolen=self._stolen, discarded=self._discarded, full_waits=self._full_waits,
                full_seconds=self._full_seconds, empty_waits=self._empty_waits, empty_seconds=self._empty_seconds,
            )  # fmt: skip

    def resources(self) -> list[ResourceUse]:
        """Return how much of the queue's bounds is in use: places reserved, items queued, and their bytes."""
        with self._lock:
            gone = self._taken + self._discarded
            return [
                ResourceUse(
                    name=f"{self.name}: reserved places", in_use=self._reserved, limit=self._capacity,
                    acquired=self._granted, released=self._put + self._returned, waits=self._full_waits,
                    wait_seconds=self._full_seconds,
                ),
                ResourceUse(
                    name=f"{self.name}: items", in_use=self._depth, limit=self._capacity, acquired=self._put,
                    released=gone,
                ),
                ResourceUse(
                    name=f"{self.name}: bytes", in_use=self._bytes, limit=self._capacity_bytes, acquired=self._put,
                    released=gone,
                ),
            ]  # fmt: skip

    def _free(self) -> int:
        if self._bytes >= self._capacity_bytes:
            return 0
        return self._capacity - self._depth - self._reserved

    def _spread(self, weighed: Sequence[tuple[T, int]]) -> None:
        count = len(self._lanes)
        for one in weighed:
            self._lanes[self._next_lane].append(one)
            self._next_lane = (self._next_lane + 1) % count


class QueueSlots(Generic[T]):
    """The places in a queue that one thread has reserved and not filled yet; what is left of them `close` gives back.

    `held` is how many these are. To fill or give back more than that is an error: it would be that of others.
    """

    def __init__(self, queue: BoundedQueue[T]) -> None:
        self._queue = queue
        self.held = 0

    def __repr__(self) -> str:
        return f"<QueueSlots held={self.held} of {self._queue.name!r}>"

    def reserve(self, want: int, *, wait: bool) -> int:
        """Reserve up to `want` places. Returns how many: 0 if there are none now (unless `wait`), or none any more."""
        granted = self._queue._reserve(want, wait=wait)
        self.held += granted
        return granted

    def release(self, count: int) -> None:
        """Give back so many places that will not be filled."""
        if count:
            self._use(count)
            self._queue._release(count)

    def put(self, items: Sequence[T]) -> None:
        """Add items to the queue, each in a reserved place."""
        self._use(len(items))
        self._queue._add(items)

    def close(self) -> None:
        """Give back every place that is left."""
        self.release(self.held)

    def _use(self, count: int) -> None:
        if count > self.held:
            raise RuntimeError(f"{count} places of a queue were used of {self.held} that are reserved.")
        self.held -= count

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
