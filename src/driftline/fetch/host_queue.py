"""Links wait at their hosts, and taking one from this queue is the permission to connect: politeness by construction.

A host comes to the front of the queue only when its delay is over and it has a free connection, and is queued again
when the answer is in. So there is nothing that a caller would have to check, and nothing that it could forget.
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

    from driftline.settings import HostPolicy

Item = TypeVar("Item")

_LATENCIES = 2.0  # the delay is at least this many times the time that the host takes to answer
_LONGEST_DELAY = 60.0  # seconds, by that rule
_SMOOTHING = 0.3
_FIRST_BACK_OFF, _LONGEST_BACK_OFF = 5.0, 600.0  # seconds
_NOT_QUEUED, _QUEUED, _QUEUED_FIRST = range(3)  # states of a host; first come those with priority requests


class _Address(Generic[Item]):
    """An IP address that hosts share: its transfers, and the hosts that wait until there are fewer."""

    __slots__ = ("transferring", "waiting")

    def __init__(self) -> None:
        self.transferring = 0
        self.waiting: deque[Host[Item]] = deque()


class Host(Generic[Item]):
    """A host with its limits and what waits for it; only `HostQueue` changes it.

    `connections` and `delay` are the user's limits, `crawl_delay` is what robots.txt asks for. `next_request_at` is the
    earliest time of the next request, `transferring` how many are under way, `latency` the usual seconds to an answer,
    and `refusals` how many answers in a row asked us to slow down. `first` has what goes before all that is `waiting`.
    """

    __slots__ = (
        "address", "connections", "contacted_at", "crawl_delay", "delay", "first", "latency", "name",
        "next_request_at", "queued", "refusals", "stale_entries", "transferring", "waiting",
    )  # fmt: skip

    def __init__(self, name: str, policy: HostPolicy) -> None:
        self.name = name
        self.connections = policy.connections
        self.delay = policy.delay
        self.crawl_delay = 0.0
        self.next_request_at = 0.0
        self.contacted_at = -math.inf  # when a request of an earlier run ended, or may have
        self.transferring = 0
        self.latency = 0.0
        self.refusals = 0
        self.queued = _NOT_QUEUED
        self.stale_entries = 0  # places in the queue to be skipped, for the host has a better one
        self.address: _Address[Item] | None = None  # none while it is not known
        self.first: deque[tuple[PriorityRequests[Item] | None, Item]] = deque()
        self.waiting: deque[Item] = deque()

    def __repr__(self) -> str:
        return (
            f"<Host {self.name} connections={self.connections} delay={self.delay} crawl_delay={self.crawl_delay} "
            f"transferring={self.transferring} waiting={len(self.waiting)} first={len(self.first)} "
            f"next_request_at={self.next_request_at:.3f} latency={self.latency:.3f} refusals={self.refusals}>"
        )

    def effective_delay(self) -> float:
        """Return the seconds from an answer to the next request. A host with a delay of 0 is the user's own."""
        if not self.delay:
            return self.crawl_delay
        return max(self.delay, self.crawl_delay, min(_LATENCIES * self.latency, _LONGEST_DELAY))

    def delay_after(self, seconds: float, retry_after: float | None) -> float:
        """Return the delay after an answer that took so many seconds; `retry_after` as in `Answer`."""
        self.latency += _SMOOTHING * (seconds - self.latency) if self.latency else seconds
        if retry_after is None:
            self.refusals = 0
            return self.effective_delay()
        self.refusals += 1
        back_off = min(_FIRST_BACK_OFF * 2.0 ** (min(self.refusals, 16) - 1), _LONGEST_BACK_OFF) if self.delay else 0.0
        return max(self.effective_delay(), min(retry_after, LONGEST_PAUSE), back_off)


class Permit(Generic[Item]):
    """The permission for one request to a host, from when it is granted until it is given back, once.

    `held` is whether it still counts. A redirect within the host is followed with the same permit and another item.
    """

    __slots__ = ("held", "host", "item")

    def __init__(self, host: Host[Item], item: Item) -> None:
        self.host = host
        self.item: Item | None = item
        self.held = True

    def __repr__(self) -> str:
        return f"<Permit {self.host.name} held={self.held}>"

    def take_item(self) -> Item:
        """Return what may be fetched now, and drop it: a link refers to its permit, which must not refer to the link.

        A cycle for every page would only be freed by the garbage collector, which runs seldom.
        """
        item, self.item = self.item, None
        assert item is not None, "what a permit is for was taken twice"
        return item


#: an answer: the permit of the request, the seconds that it took, the IP address if it is known, and the seconds of a
#: Retry-After: 0 if the host asked us to slow down (429, 503) without one, and None if it did not ask
Answer: TypeAlias = tuple[Permit[Item], float, str, float | None]


class PriorityRequests(Generic[Item]):
    """Requests of one owner that go before all that waits at their hosts, and that only their owner gets.

    `wake` is called when some were `granted` or `refused`, with no lock held; `waiting` counts those that are neither.
    What is refused will not be granted: its host is paused for longer than anything waits. Once they are `cancelled` by
    `HostQueue.cancel`, nothing more is granted.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self.wake = wake
        self.cancelled = False
        self.waiting = 0
        self.granted: deque[Permit[Item]] = deque()
        self.refused: deque[Item] = deque()

    def __repr__(self) -> str:
        return (
            f"<PriorityRequests waiting={self.waiting} granted={len(self.granted)} refused={len(self.refused)} "
            f"cancelled={self.cancelled}>"
        )


class HostQueue(Generic[Item]):
    """Items that wait, by host. All methods may be called from any thread, and none waits for anything but the lock.

    A host never has more requests at once than its policy allows, and each begins after the host's delay. At an IP
    address that hosts share, there are never more than `address_connections`, as soon as it is known that they share
    it. Nothing waits at a host that is paused for longer than `patience` seconds: it is returned to the caller.
    """

    def __init__(
        self, *, address_connections: int, patience: float = 60.0, clock: Callable[[], float] = time.monotonic
    ) -> None:  # fmt: skip
        self._address_connections = address_connections
        self._patience = patience
        self._clock = clock
        self._lock = threading.Lock()
        self._ready: deque[Host[Item]] = deque()
        self._ready_first: deque[Host[Item]] = deque()
        self._later: list[tuple[float, int, Host[Item]]] = []
        self._order = count()
        self._granted: deque[Permit[Item]] = deque()
        self._addresses: dict[str, _Address[Item]] = {}
        self._waiting = 0
        self._requests: set[PriorityRequests[Item]] = set()  # with something that waits, or was not collected
        self._to_wake: list[PriorityRequests[Item]] = []  # to be woken once the lock is released
        self._permits_granted = self._permits_returned = 0
        self._cleared = False

    def __repr__(self) -> str:
        # without the lock: it is read while debugging, and figures of different moments do no harm
        return (
            f"<HostQueue waiting={self._waiting} ready={len(self._ready)} ready_first={len(self._ready_first)} "
            f"later={len(self._later)} transferring={self._permits_granted - self._permits_returned}>"
        )

    def __len__(self) -> int:
        """Return how many items wait, priority requests of owners left out."""
        return self._waiting

    def put(self, items: Iterable[tuple[Host[Item], Item]]) -> list[tuple[Host[Item], Item]]:
        """Queue these, each behind those that wait at its host. Returns those whose host is paused for too long."""
        refused: list[tuple[Host[Item], Item]] = []
        with self._lock:
            if self._cleared:
                return refused
            now = self._clock()
            latest = now + self._patience
            waiting = 0
            for pair in items:
                host, item = pair
                if host.next_request_at > latest:
                    refused.append(pair)
                    continue
                host.waiting.append(item)
                waiting += 1
                if not host.queued:
                    self._queue(host, now)
            self._waiting += waiting
        return refused

    def put_first(self, host: Host[Item], item: Item, requests: PriorityRequests[Item] | None = None) -> None:
        """Queue this before all others of its host: for the next `take`, or for `collect` if it has an owner."""
        with self._lock:
            if requests is None and self._cleared:
                return
            now = self._clock()
            if requests is not None and host.next_request_at > now + self._patience:
                requests.refused.append(item)
                return
            host.first.append((requests, item))
            if requests is None:
                self._waiting += 1
            else:
                requests.waiting += 1
                self._requests.add(requests)
            if host.queued == _QUEUED and host.next_request_at <= now:
                host.stale_entries += 1
                self._queue_first(host)
            elif not host.queued:
                self._queue(host, now)

    def continue_with(
        self, permit: Permit[Item], item: Item, address: str, requests: PriorityRequests[Item] | None = None
    ) -> None:
        """Hand this out next with the permit of an answer of the same host, instead of calling `done` for that.

        The IP address is learned all the same: only the answer that opened a connection has one.
        """
        with self._lock:
            self._learn_address(permit.host, address)
            if self._cleared if requests is None else requests.cancelled:
                self._return_permit(permit)
                return
            permit.item = item
            if requests is None:
                self._granted.append(permit)
                self._waiting += 1
            else:
                requests.granted.append(permit)
                self._requests.add(requests)
                self._to_wake.append(requests)
        self._wake_owners()

    def take(self, most: int) -> list[Permit[Item]]:
        """Return up to `most` permits for what may be fetched now; each must come back by `done` or `release`."""
        with self._lock:
            now = self._clock()
            self._grant_requests(now)
            granted, ready = self._granted, self._ready
            found = [granted.popleft() for _ in range(min(most, len(granted)))]
            while ready and len(found) < most:
                host = ready.popleft()
                if host.stale_entries:
                    host.stale_entries -= 1
                elif host.first:
                    self._queue_first(host)
                    self._grant_requests(now)
                    if granted:
                        found.append(granted.popleft())
                elif self._may_start(host, now):
                    share = self._batch_size(host, -(-(most - len(found)) // (len(ready) + 1)))
                    waiting = host.waiting
                    found += [Permit(host, waiting.popleft()) for _ in range(share)]
                    self._grant(host, share, now)
            self._waiting -= len(found)
        self._wake_owners()
        return found

    def collect(self, requests: PriorityRequests[Item], most: int) -> list[Permit[Item]]:
        """Return up to `most` permits of these requests; each must come back by `done` or `release`.

        Several threads may share the requests: each permit goes to one of them.
        """
        with self._lock:
            self._grant_requests(self._clock())
            collected = [requests.granted.popleft() for _ in range(min(most, len(requests.granted)))]
            if not requests.granted and not requests.waiting:
                self._requests.discard(requests)
        self._wake_owners()
        return collected

    def done(self, answers: Iterable[Answer[Item]]) -> list[tuple[Host[Item], Item]]:
        """Give back the permits of these answers. Returns what waited at hosts that are now paused for too long."""
        refused: list[tuple[Host[Item], Item]] = []
        with self._lock:
            now = self._clock()
            for permit, seconds, address, retry_after in answers:
                host = permit.host
                self._end_request(permit, address)
                if host.delay or host.crawl_delay or retry_after is not None:
                    delay = host.delay_after(seconds, retry_after)
                    host.next_request_at = max(host.next_request_at, now + delay)
                    if delay > self._patience:
                        refused += self._drop_waiting(host)
                if not host.queued and (host.waiting or host.first):
                    self._queue(host, now)
        self._wake_owners()
        return refused

    def release(self, permits: Iterable[Permit[Item]]) -> None:
        """Give back those of these permits that are still held: their requests were not made, or were aborted.

        An aborted one may have reached the host, so its delay begins anew.
        """
        with self._lock:
            now = self._clock()
            for permit in permits:
                if permit.held:
                    permit.host.next_request_at = max(permit.host.next_request_at, now + permit.host.effective_delay())
                    self._return_permit(permit)

    def cancel(self, requests: PriorityRequests[Item]) -> None:
        """Drop what is left of these requests, and give back the permits that were granted and not collected."""
        with self._lock:
            requests.cancelled = True
            self._requests.discard(requests)
            while requests.granted:
                self._return_permit(requests.granted.popleft())

    def statistics(self) -> ResourceUse:
        """Return how many permits are held at the moment, over all hosts."""
        with self._lock:
            granted, returned = self._permits_granted, self._permits_returned
            return ResourceUse(
                name="host permits", in_use=granted - returned, limit=None, acquired=granted, released=returned
            )

    def count_redirect(self, host: Host[Item], retry_after: float | None = None) -> list[tuple[Host[Item], Item]]:
        """Count a request that a browser sent to this host by following a redirect: the next waits for the delay.

        Returns what waited there if the answer had a `retry_after` that is too long to wait for.
        """
        with self._lock:
            delay = max(host.effective_delay(), min(retry_after or 0.0, LONGEST_PAUSE))
            host.next_request_at = max(host.next_request_at, self._clock() + delay)
            refused = self._drop_waiting(host) if delay > self._patience else []
        self._wake_owners()
        return refused

    def set_crawl_delay(self, host: Host[Item], delay: float) -> None:
        """Set the seconds between two requests that the robots.txt of the host asks for."""
        with self._lock:
            host.crawl_delay = delay
            host.next_request_at = max(host.next_request_at, host.contacted_at + host.effective_delay())

    def contacted(self, host: Host[Item], seconds_ago: float) -> None:
        """Note that an earlier run may have sent a request so many seconds ago: the next waits for the delay.

        If robots.txt turns out to ask for a longer one, that counts from the same time.
        """
        with self._lock:
            if seconds_ago >= 0.0:
                host.contacted_at = max(host.contacted_at, self._clock() - seconds_ago)
                host.next_request_at = max(host.next_request_at, host.contacted_at + host.effective_delay())

    def pause(self, host: Host[Item], seconds: float) -> None:
        """Do not contact the host for so many seconds, which are left of an earlier Retry-After."""
        with self._lock:
            host.next_request_at = max(host.next_request_at, self._clock() + min(seconds, LONGEST_PAUSE))

    def paused_for(self, host: Host[Item]) -> float | None:
        """Return the seconds for which the host is still paused if that is longer than anything waits, else None."""
        with self._lock:
            left = host.next_request_at - self._clock()
            return left if left > self._patience else None

    def still_paused(self, hosts: Iterable[Host[Item]]) -> list[tuple[Host[Item], float]]:
        """Return those of these hosts that are paused for longer than their usual delay, and for how many seconds."""
        with self._lock:
            now = self._clock()
            return [(host, host.next_request_at - now) for host in hosts if host.next_request_at - now > host.delay]

    def next_in(self) -> float | None:
        """Return the seconds until something may be taken; None if that depends on an answer or a new item."""
        with self._lock:
            if self._ready or self._ready_first or self._granted:
                return 0.0
            return max(0.0, self._later[0][0] - self._clock()) if self._later else None

    def neglects_requests(self) -> bool:
        """Return whether a priority request may be fetched now while no transfer is under way: its owner is idle."""
        with self._lock:
            granted = sum(len(requests.granted) for requests in self._requests)
            if self._permits_granted - self._permits_returned > granted:
                return False
            waiting = any(requests.waiting for requests in self._requests)
            due = bool(self._ready_first) or bool(self._later and self._later[0][0] <= self._clock())
            return bool(granted) or (waiting and due)

    def withdraw(self, hosts: Iterable[Host[Item]]) -> list[tuple[Host[Item], Item]]:
        """Remove and return what waits at these hosts, except for priority requests of owners."""
        found: list[tuple[Host[Item], Item]] = []
        with self._lock:
            for host in () if self._cleared else hosts:
                found += [(host, item) for item in host.waiting]
                found += [(host, item) for requests, item in host.first if requests is None]
                _clear(host)
            self._waiting -= len(found)
        return found

    def clear(self) -> None:
        """Remove everything but priority requests of owners, at hosts with a transfer under way once that ends."""
        with self._lock:
            self._cleared = True
            for host in (*self._ready, *self._ready_first, *[late for _, _, late in self._later]):
                _clear(host)
            for address in self._addresses.values():
                for host in address.waiting:
                    _clear(host)
            while self._granted:
                self._return_permit(self._granted.popleft())
            self._waiting = 0

    def _wake_owners(self) -> None:
        """Wake the owners of what was granted or refused. Called without the lock: they may do anything."""
        if self._to_wake:
            with self._lock:
                owners, self._to_wake = dict.fromkeys(self._to_wake), []
            for owner in owners:
                owner.wake()

    def _grant_requests(self, now: float) -> None:
        later = self._later
        while later and later[0][0] <= now:
            self._queue_due(heapq.heappop(later)[2])
        while self._ready_first:
            host = self._ready_first.popleft()
            if not host.first:
                host.queued = _QUEUED
                self._ready.append(host)
                continue
            if not self._may_start(host, now):
                continue
            requests, item = host.first.popleft()
            if requests is not None:
                requests.waiting -= 1
            if requests is None:
                self._granted.append(Permit(host, item))
            elif requests.cancelled:
                if host.waiting or host.first:
                    self._queue(host, now)
                continue
            else:
                requests.granted.append(Permit(host, item))
                self._to_wake.append(requests)
            self._grant(host, 1, now)

    def _queue_due(self, host: Host[Item]) -> None:
        if host.stale_entries:
            host.stale_entries -= 1
        elif host.first:
            self._queue_first(host)
        else:
            self._ready.append(host)

    def _queue_first(self, host: Host[Item]) -> None:
        host.queued = _QUEUED_FIRST
        self._ready_first.append(host)

    def _may_start(self, host: Host[Item], now: float) -> bool:
        """Return whether a request to a host from the queue may start now; if not, the host is queued again."""
        host.queued = _NOT_QUEUED
        if host.transferring >= host.connections or host.next_request_at > now or not (host.waiting or host.first):
            if host.waiting or host.first:
                self._queue(host, now)
            self._queue_next_at(host.address)
            return False
        if host.address is not None and host.address.transferring >= self._address_connections:
            host.queued = _QUEUED
            host.address.waiting.append(host)
            return False
        return True

    def _batch_size(self, host: Host[Item], most: int) -> int:
        """Return how many items may be taken from a host at once: one, unless it needs no delay."""
        if host.delay or host.crawl_delay:
            return 1
        room = most if host.address is None else self._address_connections - host.address.transferring
        return min(most, len(host.waiting), host.connections - host.transferring, room)

    def _grant(self, host: Host[Item], requests: int, now: float) -> None:
        host.transferring += requests
        self._permits_granted += requests
        if host.address is not None:
            host.address.transferring += requests
        if host.delay or host.crawl_delay:
            host.next_request_at = now + host.effective_delay()
        if host.waiting or host.first:
            self._queue(host, now)

    def _queue(self, host: Host[Item], now: float) -> None:
        """Queue the host for the time of its next request, unless it has all the transfers that it may have."""
        if host.transferring >= host.connections:
            return
        host.queued = _QUEUED
        if host.next_request_at > now:
            heapq.heappush(self._later, (host.next_request_at, next(self._order), host))
        elif host.first:
            self._queue_first(host)
        else:
            self._ready.append(host)

    def _drop_waiting(self, host: Host[Item]) -> list[tuple[Host[Item], Item]]:
        if self._cleared:
            _clear(host)
        items = [*host.waiting]
        host.waiting.clear()
        for requests, item in host.first:
            if requests is None:
                items.append(item)
            else:
                requests.waiting -= 1
                requests.refused.append(item)
                self._to_wake.append(requests)
        host.first.clear()
        self._waiting -= len(items)
        return [(host, item) for item in items]

    def _return_permit(self, permit: Permit[Item]) -> None:
        host = permit.host
        self._end_request(permit, "")
        if (host.waiting or host.first) and not host.queued:
            self._queue(host, self._clock())

    def _end_request(self, permit: Permit[Item], address: str) -> None:
        """Count a transfer less at the host and its IP address, where another host may follow."""
        if not permit.held:
            raise RuntimeError(f"A permit for {permit.host.name} was given back twice.")
        permit.held = False
        self._permits_returned += 1
        host = permit.host
        if self._cleared:
            _clear(host)
        host.transferring -= 1
        place = host.address
        if place is not None:
            place.transferring -= 1
            if place.waiting:
                self._queue_next_at(place)
        else:
            self._learn_address(host, address)

    def _learn_address(self, host: Host[Item], address: str) -> None:
        """Set the IP address of the host to the first that is seen: one that changes within a run does no harm."""
        if address and host.address is None:
            host.address = self._addresses.setdefault(address, _Address())
            host.address.transferring += host.transferring

    def _queue_next_at(self, address: _Address[Item] | None) -> None:
        """Queue the next of the hosts that wait for a free connection at this IP address."""
        while address is not None and address.waiting:
            host = address.waiting.popleft()
            if not host.stale_entries:
                self._queue_due(host)
                return
            host.stale_entries -= 1


def _clear(host: Host[Item]) -> None:
    host.waiting.clear()
    host.first = deque([one for one in host.first if one[0] is not None])
