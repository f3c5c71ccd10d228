"""Politeness by construction: links wait at their hosts, and taking one out is the permission to connect.

A host is a small state object. It is handed out only when its time has come, and comes back when the answer is in; so
there is nothing to check, and nothing that could be forgotten.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from driftline.model import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from driftline.model import Link

_LATENCIES = 2.0  # a host that takes long to answer gets this many times as long to rest
_LONGEST_REST = 60.0  # seconds, by that rule
_SMOOTHING = 0.3
_FIRST_BACK_OFF, _LONGEST_BACK_OFF = 5.0, 600.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How a host is treated: requests at once, and the seconds from an answer to the next request."""

    connections: int = 1
    delay: float = 1.0


class _Host:
    """What is known of a host, and the links that wait for it."""

    __slots__ = ("address", "asked", "at", "busy", "connections", "delay", "latency", "queued", "refusals", "waiting")

    def __init__(self, manners: Manners) -> None:
        self.connections = manners.connections
        self.delay = manners.delay
        self.asked = 0.0  # the delay that the host asks for
        self.at = 0.0  # when the next request may begin
        self.busy = 0
        self.latency = 0.0
        self.refusals = 0  # in a row
        self.queued = False
        self.address = ""
        self.waiting: deque[Link] = deque()

    def rest(self) -> float:
        """The seconds to leave it alone after an answer. A host without a delay is the user's own, and needs none."""
        if not self.delay:
            return self.asked
        return max(self.delay, self.asked, min(_LATENCIES * self.latency, _LONGEST_REST))


class Hosts:
    """The links that wait, by host. All methods may be called from any thread.

    At a host there are never more requests at once than its manners allow, and each begins after its rest. At an
    address that many hosts share, there are never more than `at_address` at once, as soon as it is known that they
    share it.
    """

    def __init__(
        self, manners: Callable[[str], Manners], *, at_address: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._manners = manners
        self._at_address = at_address
        self._clock = clock
        self._lock = threading.Lock()
        self._hosts: dict[str, _Host] = {}
        self._ready: deque[_Host] = deque()
        self._later: list[tuple[float, int, _Host]] = []
        self._turns = count()
        self._busy_at: dict[str, int] = {}
        self._crowded: dict[str, deque[_Host]] = {}
        self._waiting = 0

    def __len__(self) -> int:
        """How many links wait."""
        return self._waiting

    def put(self, links: Iterable[Link]) -> None:
        """Let these links wait for their turn, each after those of its host that wait already."""
        with self._lock:
            now = self._clock()
            for link in links:
                host = self._of(link)
                host.waiting.append(link)
                self._waiting += 1
                if not host.queued:
                    self._queue(host, now)

    def put_first(self, link: Link) -> None:
        """Let this link wait in front of all others of its host: it stands for one that was handed out already."""
        with self._lock:
            host = self._of(link)
            host.waiting.appendleft(link)
            self._waiting += 1
            if not host.queued:
                self._queue(host, self._clock())

    def take(self, most: int) -> list[Link]:
        """Up to `most` links that may be fetched now; each must come back by `done`."""
        found: list[Link] = []
        with self._lock:
            now = self._clock()
            later, ready = self._later, self._ready
            while later and later[0][0] <= now:
                ready.append(heapq.heappop(later)[2])
            while ready and len(found) < most:
                host = ready.popleft()
                if host.address and self._busy_at.get(host.address, 0) >= self._at_address:
                    self._crowded.setdefault(host.address, deque()).append(host)
                    continue
                host.queued = False
                if not host.waiting:
                    continue
                found.append(host.waiting.popleft())
                host.busy += 1
                if host.address:
                    self._busy_at[host.address] = self._busy_at.get(host.address, 0) + 1
                if host.waiting:
                    host.at = now + host.rest()
                    self._queue(host, now)
            self._waiting -= len(found)
        return found

    def done(self, link: Link, *, seconds: float, address: str = "", pause: float | None = None) -> None:
        """The answer to this link is in, after so many seconds, from this address.

        `pause` is how long the host asked to be left alone, 0 if it refused without saying for how long, and None if
        it did not refuse.
        """
        with self._lock:
            host = self._of(link)
            now = self._clock()
            host.busy -= 1
            self._leave(host, address)
            host.latency += _SMOOTHING * (seconds - host.latency) if host.latency else seconds
            rest = host.rest()
            if pause is None:
                host.refusals = 0
            else:
                host.refusals += 1
                rest = max(rest, pause, min(_FIRST_BACK_OFF * 2.0 ** (host.refusals - 1), _LONGEST_BACK_OFF))
            host.at = max(host.at, now + rest)
            if host.waiting and not host.queued:
                self._queue(host, now)

    def ask(self, link: Link, delay: float) -> None:
        """The host of this link asks for so many seconds between two requests."""
        with self._lock:
            self._of(link).asked = delay

    def next_in(self) -> float | None:
        """The seconds until a link may be taken; None if none can before another one comes back or is put in."""
        with self._lock:
            if self._ready:
                return 0.0
            return max(0.0, self._later[0][0] - self._clock()) if self._later else None

    def _of(self, link: Link) -> _Host:
        name = host_of(link.url)
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _Host(self._manners(name))
        return host

    def _queue(self, host: _Host, now: float) -> None:
        """Let the host come up at its time, unless it has as many requests already as it may have."""
        if host.busy >= host.connections:
            return
        host.queued = True
        if host.at <= now:
            self._ready.append(host)
        else:
            heapq.heappush(self._later, (host.at, next(self._turns), host))

    def _leave(self, host: _Host, address: str) -> None:
        """Count one request less at the host's address, and let another host in there; or learn which one it has."""
        if not host.address:
            host.address = address  # the first that is seen: a host that moves within a run does no harm
            if address and host.busy:
                self._busy_at[address] = self._busy_at.get(address, 0) + host.busy
            return
        self._busy_at[host.address] -= 1
        if not self._busy_at[host.address]:
            del self._busy_at[host.address]
        crowd = self._crowded.get(host.address)
        if crowd:
            self._ready.append(crowd.popleft())
            if not crowd:
                del self._crowded[host.address]
