"""A delay queue of hosts with the links that wait for them: taking a link from it is the permission to connect.

A host reaches the front of the queue only when its delay is over and it has a free connection, and is queued again
after the response. So callers have no limits to check, and cannot forget to check one.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Generic

from driftline.capacity import ResourceUse
from driftline.fetch.host import NOT_QUEUED, QUEUED, QUEUED_FIRST, Host, Item, Permit, PriorityRequests, SharedAddress
from driftline.http.headers import LONGEST_PAUSE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from driftline.fetch.host import HostAnswer


class HostQueue(Generic[Item]):
    """Items that wait, by host. All methods may be called from any thread, and none blocks except for the lock.

    A host never has more requests in flight than its policy allows, and each starts after the host's delay. An IP
    address that several hosts share never has more than `address_connections`, once it is known that they share it.
    Items of a host that is paused for longer than `patience` seconds are not queued: they are returned to the caller.
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
        self._addresses: dict[str, SharedAddress[Item]] = {}
        self._waiting = 0
        self._requests: set[PriorityRequests[Item]] = set()  # those with items that wait or are not collected yet
        self._to_wake: list[PriorityRequests[Item]] = []  # to wake once the lock is released
        self._permits_granted = self._permits_returned = 0
        self._cleared = False

    def __repr__(self) -> str:
        # without the lock, for debugging: the numbers may be of slightly different moments
        return (
            f"<HostQueue waiting={self._waiting} ready={len(self._ready)} ready_first={len(self._ready_first)} "
            f"later={len(self._later)} transferring={self._permits_granted - self._permits_returned}>"
        )

    def __len__(self) -> int:
        """Return how many items wait, without those of `PriorityRequests`."""
        return self._waiting

    def put(self, items: Iterable[tuple[Host[Item], Item]]) -> list[tuple[Host[Item], Item]]:
        """Queue these items, each last at its host. Returns those whose host is paused for longer than `patience`."""
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
        """Queue this item first at its host: for the next `take`, or for `collect` if `requests` are given."""
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
            if host.queued == QUEUED and host.next_request_at <= now:
                host.stale_entries += 1
                self._queue_first(host)
            elif not host.queued:
                self._queue(host, now)

    def continue_with(
        self, permit: Permit[Item], item: Item, address: str, requests: PriorityRequests[Item] | None = None
    ) -> None:
        """Hand this item out next with a permit of the same host, instead of giving that back by `done`.

        The IP address is kept as `done` would: only the first response over a connection has one.
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
        """Return up to `most` permits for items that may be fetched now; give each back by `done` or `release`."""
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
        """Return up to `most` permits that were granted to these requests; give each back by `done` or `release`.

        Several threads may share the requests: each permit is returned to one of them only.
        """
        with self._lock:
            self._grant_requests(self._clock())
            collected = [requests.granted.popleft() for _ in range(min(most, len(requests.granted)))]
            if not requests.granted and not requests.waiting:
                self._requests.discard(requests)
        self._wake_owners()
        return collected

    def done(self, answers: Iterable[HostAnswer[Item]]) -> list[tuple[Host[Item], Item]]:
        """Give back the permits of these responses. Returns what waited at hosts that are now paused for too long."""
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
        """Give back those of these permits that are still held: their requests were not sent, or were aborted.

        An aborted request may have reached the host, so the delay of the host starts again.
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
        """Return how many permits are held now, over all hosts."""
        with self._lock:
            granted, returned = self._permits_granted, self._permits_returned
            return ResourceUse(
                name="host permits", in_use=granted - returned, limit=None, acquired=granted, released=returned
            )

    def count_redirect(self, host: Host[Item], retry_after: float | None = None) -> list[tuple[Host[Item], Item]]:
        """Count a request that a browser sent to this host when it followed a redirect: the host's delay starts.

        Returns the items that waited there if the response had a `retry_after` longer than `patience`.
        """
        with self._lock:
            delay = max(host.effective_delay(), min(retry_after or 0.0, LONGEST_PAUSE))
            host.next_request_at = max(host.next_request_at, self._clock() + delay)
            refused = self._drop_waiting(host) if delay > self._patience else []
        self._wake_owners()
        return refused

    def set_crawl_delay(self, host: Host[Item], delay: float) -> None:
        """Set the Crawl-delay of the host's robots.txt, in seconds."""
        with self._lock:
            host.crawl_delay = delay
            host.next_request_at = max(host.next_request_at, host.contacted_at + host.effective_delay())

    def contacted(self, host: Host[Item], seconds_ago: float) -> None:
        """Start the delay of a host to which an earlier run may have sent a request so many seconds ago.

        A longer Crawl-delay that is set later counts from the same time.
        """
        with self._lock:
            if seconds_ago >= 0.0:
                host.contacted_at = max(host.contacted_at, self._clock() - seconds_ago)
                host.next_request_at = max(host.next_request_at, host.contacted_at + host.effective_delay())

    def pause(self, host: Host[Item], seconds: float) -> None:
        """Pause the host for so many seconds, which are left of an earlier Retry-After."""
        with self._lock:
            host.next_request_at = max(host.next_request_at, self._clock() + min(seconds, LONGEST_PAUSE))

    def paused_for(self, host: Host[Item]) -> float | None:
        """Return the seconds for which the host is still paused if they are more than `patience`, else None."""
        with self._lock:
            left = host.next_request_at - self._clock()
            return left if left > self._patience else None

    def still_paused(self, hosts: Iterable[Host[Item]]) -> list[tuple[Host[Item], float]]:
        """Return those of these hosts that are paused for longer than their usual delay, and for how many seconds."""
        with self._lock:
            now = self._clock()
            return [(host, host.next_request_at - now) for host in hosts if host.next_request_at - now > host.delay]

    def next_in(self) -> float | None:
        """Return the seconds until something may be taken; None if that depends on a response or a new item."""
        with self._lock:
            if self._ready or self._ready_first or self._granted:
                return 0.0
            return max(0.0, self._later[0][0] - self._clock()) if self._later else None

    def neglects_requests(self) -> bool:
        """Return whether a priority request may be fetched now although no transfer is in flight: a sign of a stall."""
        with self._lock:
            granted = sum(len(requests.granted) for requests in self._requests)
            if self._permits_granted - self._permits_returned > granted:
                return False
            waiting = any(requests.waiting for requests in self._requests)
            due = bool(self._ready_first) or bool(self._later and self._later[0][0] <= self._clock())
            return bool(granted) or (waiting and due)

    def withdraw(self, hosts: Iterable[Host[Item]]) -> list[tuple[Host[Item], Item]]:
        """Remove and return the items that wait at these hosts, except for those of `PriorityRequests`."""
        found: list[tuple[Host[Item], Item]] = []
        with self._lock:
            for host in () if self._cleared else hosts:
                found += [(host, item) for item in host.waiting]
                found += [(host, item) for requests, item in host.first if requests is None]
                _clear(host)
            self._waiting -= len(found)
        return found

    def clear(self) -> None:
        """Remove all items but those of `PriorityRequests`; at hosts with a transfer in flight, once that ends."""
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
        """Wake the owners of requests that were granted or refused. Called without the lock: `wake` is theirs."""
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
                host.queued = QUEUED
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
        host.queued = QUEUED_FIRST
        self._ready_first.append(host)

    def _may_start(self, host: Host[Item], now: float) -> bool:
        """Return whether a request to a host taken from the queue may start now; if not, queue the host again."""
        host.queued = NOT_QUEUED
        if host.transferring >= host.connections or host.next_request_at > now or not (host.waiting or host.first):
            if host.waiting or host.first:
                self._queue(host, now)
            self._queue_next_at(host.address)
            return False
        if host.address is not None and host.address.transferring >= self._address_connections:
            host.queued = QUEUED
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
        """Queue the host for the time of its next request, unless all of its connections are in use."""
        if host.transferring >= host.connections:
            return
        host.queued = QUEUED
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
        """Count one transfer less at the host and at its IP address, where another host may be next."""
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
        """Set the IP address of the host, to the first one seen: that it may change within a run does no harm."""
        if address and host.address is None:
            host.address = self._addresses.setdefault(address, SharedAddress())
            host.address.transferring += host.transferring

    def _queue_next_at(self, address: SharedAddress[Item] | None) -> None:
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
