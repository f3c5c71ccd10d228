"""Politeness by construction: what is to be fetched waits at its host, and taking it out is the permission to connect.

A host is a small state object. It is handed out only when its time has come, and comes back when the answer is in; so
there is nothing to check, and nothing that could be forgotten.
"""

from __future__ import annotations

import heapq
import math
import threading
import time
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from driftline.capacity import ResourceUse
from driftline.http.headers import LONGEST_PAUSE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from driftline.settings import Manners

Item = TypeVar("Item")

_LATENCIES = 2.0  # a host that takes long to answer gets this many times as long to rest
_LONGEST_REST = 60.0  # seconds, by that rule
_SMOOTHING = 0.3
_FIRST_BACK_OFF, _LONGEST_BACK_OFF = 5.0, 600.0  # seconds
_NOWHERE, _IN_LINE, _IN_FRONT = range(3)  # where a host stands: the line in front is for those with errands


class _Address(Generic[Item]):
    """An address that hosts share: how many requests there are, and the hosts that wait for room."""

    __slots__ = ("busy", "crowd")

    def __init__(self) -> None:
        self.busy = 0
        self.crowd: deque[Host[Item]] = deque()


class Host(Generic[Item]):
    """What is known of a host, and what waits for it. Only `Hosts` changes it."""

    __slots__ = (
        "address", "asked", "at", "busy", "connections", "contacted_at", "delay", "first", "latency", "name", "queued",
        "refusals", "stale", "waiting",
    )  # fmt: skip

    def __init__(self, name: str, manners: Manners) -> None:
        self.name = name
        self.connections = manners.connections
        self.delay = manners.delay
        self.asked = 0.0  # the delay that the host asks for
        self.at = 0.0  # when the next request may begin
        self.contacted_at = -math.inf  # when a request of an earlier run ended, or may have
        self.busy = 0
        self.latency = 0.0
        self.refusals = 0  # in a row
        self.queued = _NOWHERE
        self.stale = 0  # places in line that count no more, for it was given a better one
        self.address: _Address[Item] | None = None  # none while it is not known
        self.first: deque[tuple[Errands[Item] | None, Item]] = deque()
        self.waiting: deque[Item] = deque()

    def rest(self) -> float:
        """The seconds to leave it alone after an answer. A host without a delay is the user's own, and needs none."""
        if not self.delay:
            return self.asked
        return max(self.delay, self.asked, min(_LATENCIES * self.latency, _LONGEST_REST))

    def rest_after(self, seconds: float, pause: float | None) -> float:
        """The same after an answer that took so many seconds, and may have asked for a pause."""
        self.latency += _SMOOTHING * (seconds - self.latency) if self.latency else seconds
        if pause is None:
            self.refusals = 0
            return self.rest()
        self.refusals += 1
        back_off = min(_FIRST_BACK_OFF * 2.0 ** (min(self.refusals, 16) - 1), _LONGEST_BACK_OFF) if self.delay else 0.0
        return max(self.rest(), min(pause, LONGEST_PAUSE), back_off)


class Permit(Generic[Item]):
    """The permission for one request at a host, from when it is granted until it is given back, once.

    `held` is whether it still counts. A redirect within the host goes on with the same permit and another item.
    """

    __slots__ = ("held", "host", "item")

    def __init__(self, host: Host[Item], item: Item) -> None:
        self.host = host
        self.item: Item | None = item
        self.held = True

    def take_item(self) -> Item:
        """Return what may be fetched now, and forget it: a link holds its permit, and must not be held by it in turn.

        A cycle for every page would only be freed by the garbage collector, which runs seldom.
        """
        item, self.item = self.item, None
        assert item is not None, "what a permit is for was taken twice"
        return item


#: what came back: the permit it was fetched with, after how many seconds, from which address if that is known, and for
#: how long the host asked to be left alone, 0 if it refused without saying for how long, and None if it did not refuse
Answer: TypeAlias = tuple[Permit[Item], float, str, float | None]


class Errands(Generic[Item]):
    """What goes before all that waits at a host, and to somebody of its own: `wake` tells of what was `granted`.

    `waiting` counts those that are neither granted nor refused. What is `refused` will not be granted: its host wants
    to be left alone for longer than anybody waits. Once they are `cancelled` by `Hosts.cancel`, nothing more is
    granted.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self.wake = wake
        self.cancelled = False
        self.waiting = 0
        self.granted: deque[Permit[Item]] = deque()
        self.refused: deque[Item] = deque()


class HostQueue(Generic[Item]):
    """What waits, by host. All methods may be called from any thread.

    At a host there are never more requests at once than its manners allow, and each begins after its rest. At an
    address that many hosts share, there are never more than `at_address` at once, as soon as it is known that they
    share it. Nothing waits at a host that wants to be left alone for longer than `patience`: it is given back.
    """

    def __init__(
        self, *, at_address: int, patience: float = 60.0, clock: Callable[[], float] = time.monotonic
    ) -> None:  # fmt: skip
        self._at_address = at_address
        self._patience = patience
        self._clock = clock
        self._lock = threading.Lock()
        self._ready: deque[Host[Item]] = deque()
        self._ready_first: deque[Host[Item]] = deque()
        self._later: list[tuple[float, int, Host[Item]]] = []
        self._turns = count()
        self._granted: deque[Permit[Item]] = deque()
        self._addresses: dict[str, _Address[Item]] = {}
        self._waiting = 0
        self._errands: set[Errands[Item]] = set()  # those with something that waits, or was granted and not collected
        self._to_wake: list[Errands[Item]] = []  # to be woken once the lock is released
        self._permits_granted = self._permits_returned = 0
        self._cleared = False

    def __len__(self) -> int:
        """How many wait, errands for others left out."""
        return self._waiting

    def put(self, items: Iterable[tuple[Host[Item], Item]]) -> list[tuple[Host[Item], Item]]:
        """Let these wait for their turn, each after those of its host that wait already; those that may not wait."""
        refused: list[tuple[Host[Item], Item]] = []
        with self._lock:
            if self._cleared:
                return refused
            now = self._clock()
            latest = now + self._patience
            waiting = 0
            for pair in items:
                host, item = pair
                if host.at > latest:
                    refused.append(pair)
                    continue
                host.waiting.append(item)
                waiting += 1
                if not host.queued:
                    self._queue(host, now)
            self._waiting += waiting
        return refused

    def put_first(self, host: Host[Item], item: Item, errands: Errands[Item] | None = None) -> None:
        """Let this go before all others of its host, to whoever takes next unless it is an errand of somebody."""
        with self._lock:
            if errands is None and self._cleared:
                return
            now = self._clock()
            if errands is not None and host.at > now + self._patience:
                errands.refused.append(item)
                return
            host.first.append((errands, item))
            if errands is None:
                self._waiting += 1
            else:
                errands.waiting += 1
                self._errands.add(errands)
            if host.queued == _IN_LINE and host.at <= now:
                host.stale += 1
                self._to_the_front(host)
            elif not host.queued:
                self._queue(host, now)

    def go_on(self, permit: Permit[Item], item: Item, address: str, errands: Errands[Item] | None = None) -> None:
        """Hand this out next, by the permit of what came back from the same host, which is not `done` by that.

        Its address is learned all the same: only the answer that opened a connection has one.
        """
        with self._lock:
            self._learn(permit.host, address)
            if self._cleared if errands is None else errands.cancelled:
                self._make_room(permit)
                return
            permit.item = item
            if errands is None:
                self._granted.append(permit)
                self._waiting += 1
            else:
                errands.granted.append(permit)
                self._errands.add(errands)
                self._to_wake.append(errands)
        self._wake_owners()

    def take(self, most: int) -> list[Permit[Item]]:
        """Up to `most` that may be fetched now; each must come back by `done` or `release`."""
        with self._lock:
            now = self._clock()
            self._run_errands(now)
            granted, ready = self._granted, self._ready
            found = [granted.popleft() for _ in range(min(most, len(granted)))]
            while ready and len(found) < most:
                host = ready.popleft()
                if host.stale:
                    host.stale -= 1
                elif host.first:
                    self._to_the_front(host)
                    self._run_errands(now)
                    if granted:
                        found.append(granted.popleft())
                elif self._may(host, now):
                    share = self._share(host, -(-(most - len(found)) // (len(ready) + 1)))
                    waiting = host.waiting
                    found += [Permit(host, waiting.popleft()) for _ in range(share)]
                    self._grant(host, share, now)
            self._waiting -= len(found)
        self._wake_owners()
        return found

    def collect(self, errands: Errands[Item], most: int) -> list[Permit[Item]]:
        """Up to `most` of these errands that may be fetched now; each must come back by `done` or `release`.

        Several threads may share the errands: each permit goes to one of them.
        """
        with self._lock:
            self._run_errands(self._clock())
            collected = [errands.granted.popleft() for _ in range(min(most, len(errands.granted)))]
            if not errands.granted and not errands.waiting:
                self._errands.discard(errands)
        self._wake_owners()
        return collected

    def done(self, answers: Iterable[Answer[Item]]) -> list[tuple[Host[Item], Item]]:
        """These answers are in. What waited at a host that now wants to be left alone for long, to be put off."""
        refused: list[tuple[Host[Item], Item]] = []
        with self._lock:
            now = self._clock()
            for permit, seconds, address, pause in answers:
                host = permit.host
                self._leave(permit, address)
                if host.delay or host.asked or pause is not None:
                    rest = host.rest_after(seconds, pause)
                    host.at = max(host.at, now + rest)
                    if rest > self._patience:
                        refused += self._put_off(host)
                if not host.queued and (host.waiting or host.first):
                    self._queue(host, now)
        self._wake_owners()
        return refused

    def release(self, permits: Iterable[Permit[Item]]) -> None:
        """Give back those of these permits that are still held: their requests were not made, or were given up.

        One that was given up may have reached the host, which rests as after an answer.
        """
        with self._lock:
            now = self._clock()
            for permit in permits:
                if permit.held:
                    permit.host.at = max(permit.host.at, now + permit.host.rest())
                    self._make_room(permit)

    def cancel(self, errands: Errands[Item]) -> None:
        """Let nothing of these errands wait any more, and give back what was granted and not fetched."""
        with self._lock:
            errands.cancelled = True
            self._errands.discard(errands)
            while errands.granted:
                self._make_room(errands.granted.popleft())

    def statistics(self) -> ResourceUse:
        """Return how many requests are permitted at the moment and not given back, over all hosts."""
        with self._lock:
            granted, returned = self._permits_granted, self._permits_returned
            return ResourceUse(
                name="host permits", in_use=granted - returned, limit=None, acquired=granted, released=returned
            )

    def came_by(self, host: Host[Item], pause: float | None = None) -> list[tuple[Host[Item], Item]]:
        """A browser sent a request to this host unasked, by a redirect: the next one is to wait for its rest.

        It may have asked for a `pause`: what waited there, to be put off, if that is a long one.
        """
        with self._lock:
            rest = max(host.rest(), min(pause or 0.0, LONGEST_PAUSE))
            host.at = max(host.at, self._clock() + rest)
            refused = self._put_off(host) if rest > self._patience else []
        self._wake_owners()
        return refused

    def ask(self, host: Host[Item], delay: float) -> None:
        """The host asks for so many seconds between two requests."""
        with self._lock:
            host.asked = delay
            host.at = max(host.at, host.contacted_at + host.rest())

    def contacted(self, host: Host[Item], seconds_ago: float) -> None:
        """An earlier run may have sent a request so many seconds ago: the next waits for the host's rest.

        That is the delay which its robots.txt asks for, once that is known.
        """
        with self._lock:
            if seconds_ago >= 0.0:
                host.contacted_at = max(host.contacted_at, self._clock() - seconds_ago)
                host.at = max(host.at, host.contacted_at + host.rest())

    def leave_alone(self, host: Host[Item], seconds: float) -> None:
        """The host asked to be left alone, and so many seconds of that are left."""
        with self._lock:
            host.at = max(host.at, self._clock() + min(seconds, LONGEST_PAUSE))

    def quiet_for(self, host: Host[Item]) -> float | None:
        """The seconds that the host will still be left alone, if that is longer than anything may wait."""
        with self._lock:
            left = host.at - self._clock()
            return left if left > self._patience else None

    def resting(self, hosts: Iterable[Host[Item]]) -> list[tuple[Host[Item], float]]:
        """Which of these hosts are still to be left alone for longer than is usual, and for how many seconds."""
        with self._lock:
            now = self._clock()
            return [(host, host.at - now) for host in hosts if host.at - now > host.delay]

    def next_in(self) -> float | None:
        """The seconds until something may be taken; None if nothing can before something comes back or is put in."""
        with self._lock:
            if self._ready or self._ready_first or self._granted:
                return 0.0
            return max(0.0, self._later[0][0] - self._clock()) if self._later else None

    def neglects_errands(self) -> bool:
        """Whether an errand may be fetched now, and no request is under way anywhere: whose it is should have come."""
        with self._lock:
            granted = sum(len(errands.granted) for errands in self._errands)
            if self._permits_granted - self._permits_returned > granted:
                return False
            waiting = any(errands.waiting for errands in self._errands)
            due = bool(self._ready_first) or bool(self._later and self._later[0][0] <= self._clock())
            return bool(granted) or (waiting and due)

    def withdraw(self, hosts: Iterable[Host[Item]]) -> list[tuple[Host[Item], Item]]:
        """Let nothing wait any more at these hosts but errands of others; what did."""
        found: list[tuple[Host[Item], Item]] = []
        with self._lock:
            for host in () if self._cleared else hosts:
                found += [(host, item) for item in host.waiting]
                found += [(host, item) for errands, item in host.first if errands is None]
                _clear(host)
            self._waiting -= len(found)
        return found

    def clear(self) -> None:
        """Let nothing wait any more but errands of others; a host that is asked just now is cleared when that ends."""
        with self._lock:
            self._cleared = True
            for host in (*self._ready, *self._ready_first, *[late for _, _, late in self._later]):
                _clear(host)
            for address in self._addresses.values():
                for host in address.crowd:
                    _clear(host)
            while self._granted:
                self._make_room(self._granted.popleft())
            self._waiting = 0

    def _wake_owners(self) -> None:
        """Wake the owners of what was granted or refused. Called without the lock: what they do may take any time."""
        if self._to_wake:
            with self._lock:
                owners, self._to_wake = dict.fromkeys(self._to_wake), []
            for owner in owners:
                owner.wake()

    def _run_errands(self, now: float) -> None:
        later = self._later
        while later and later[0][0] <= now:
            self._come_up(heapq.heappop(later)[2])
        while self._ready_first:
            host = self._ready_first.popleft()
            if not host.first:
                host.queued = _IN_LINE
                self._ready.append(host)
                continue
            if not self._may(host, now):
                continue
            errands, item = host.first.popleft()
            if errands is not None:
                errands.waiting -= 1
            if errands is None:
                self._granted.append(Permit(host, item))
            elif errands.cancelled:
                if host.waiting or host.first:
                    self._queue(host, now)
                continue
            else:
                errands.granted.append(Permit(host, item))
                self._to_wake.append(errands)
            self._grant(host, 1, now)

    def _come_up(self, host: Host[Item]) -> None:
        if host.stale:
            host.stale -= 1
        elif host.first:
            self._to_the_front(host)
        else:
            self._ready.append(host)

    def _to_the_front(self, host: Host[Item]) -> None:
        host.queued = _IN_FRONT
        self._ready_first.append(host)

    def _may(self, host: Host[Item], now: float) -> bool:
        """Whether a host that came up is to be asked now; if not, it comes up again when it may, and others before."""
        host.queued = _NOWHERE
        if host.busy >= host.connections or host.at > now or not (host.waiting or host.first):
            if host.waiting or host.first:
                self._queue(host, now)
            self._admit(host.address)
            return False
        if host.address is not None and host.address.busy >= self._at_address:
            host.queued = _IN_LINE
            host.address.crowd.append(host)
            return False
        return True

    def _share(self, host: Host[Item], most: int) -> int:
        """How many may be taken from a host at once: one, unless it needs no rest."""
        if host.delay or host.asked:
            return 1
        room = most if host.address is None else self._at_address - host.address.busy
        return min(most, len(host.waiting), host.connections - host.busy, room)

    def _grant(self, host: Host[Item], requests: int, now: float) -> None:
        host.busy += requests
        self._permits_granted += requests
        if host.address is not None:
            host.address.busy += requests
        if host.delay or host.asked:
            host.at = now + host.rest()
        if host.waiting or host.first:
            self._queue(host, now)

    def _queue(self, host: Host[Item], now: float) -> None:
        """Let the host come up at its time, unless it has as many requests already as it may have."""
        if host.busy >= host.connections:
            return
        host.queued = _IN_LINE
        if host.at > now:
            heapq.heappush(self._later, (host.at, next(self._turns), host))
        elif host.first:
            self._to_the_front(host)
        else:
            self._ready.append(host)

    def _put_off(self, host: Host[Item]) -> list[tuple[Host[Item], Item]]:
        if self._cleared:
            _clear(host)
        items = [*host.waiting]
        host.waiting.clear()
        for errands, item in host.first:
            if errands is None:
                items.append(item)
            else:
                errands.waiting -= 1
                errands.refused.append(item)
                self._to_wake.append(errands)
        host.first.clear()
        self._waiting -= len(items)
        return [(host, item) for item in items]

    def _make_room(self, permit: Permit[Item]) -> None:
        host = permit.host
        self._leave(permit, "")
        if (host.waiting or host.first) and not host.queued:
            self._queue(host, self._clock())

    def _leave(self, permit: Permit[Item], address: str) -> None:
        """Count one request less at the host and its address, and let another in there; or learn which one it has."""
        if not permit.held:
            raise RuntimeError(f"A permit for {permit.host.name} was given back twice.")
        permit.held = False
        self._permits_returned += 1
        host = permit.host
        if self._cleared:
            _clear(host)
        host.busy -= 1
        place = host.address
        if place is not None:
            place.busy -= 1
            if place.crowd:
                self._admit(place)
        else:
            self._learn(host, address)

    def _learn(self, host: Host[Item], address: str) -> None:
        """Remember where the host is, by the first address that is seen: one that moves within a run does no harm."""
        if address and host.address is None:
            host.address = self._addresses.setdefault(address, _Address())
            host.address.busy += host.busy

    def _admit(self, address: _Address[Item] | None) -> None:
        """Let one of the hosts come up that wait for room at this address."""
        while address is not None and address.crowd:
            host = address.crowd.popleft()
            if not host.stale:
                self._come_up(host)
                return
            host.stale -= 1


def _clear(host: Host[Item]) -> None:
    host.waiting.clear()
    host.first = deque([one for one in host.first if one[0] is not None])
