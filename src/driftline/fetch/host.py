"""A host with its limits and what waits for it, and the permits by which it is contacted.

Only `host_queue` changes the state that is kept here; others read it.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from driftline.http.headers import LONGEST_PAUSE

if TYPE_CHECKING:
    from collections.abc import Callable

    from driftline.settings import HostPolicy

Item = TypeVar("Item")

_LATENCIES = 2.0  # the delay is at least this many times the latency of the host
_LONGEST_DELAY = 60.0  # seconds, by that rule
_SMOOTHING = 0.3  # weight of the newest latency in the moving average
_FIRST_BACK_OFF, _LONGEST_BACK_OFF = 5.0, 600.0  # seconds
NOT_QUEUED, QUEUED, QUEUED_FIRST = range(3)  # states of a host; those with priority requests are QUEUED_FIRST


class SharedAddress(Generic[Item]):
    """An IP address that hosts share: how many transfers it has, and the hosts that wait for one of them to end."""

    __slots__ = ("transferring", "waiting")

    def __init__(self) -> None:
        self.transferring = 0
        self.waiting: deque[Host[Item]] = deque()

    def __repr__(self) -> str:
        return f"<SharedAddress transferring={self.transferring} waiting={len(self.waiting)}>"


class Host(Generic[Item]):
    """A host with its limits and the items that wait for it; only `HostQueue` changes it.

    `connections` and `delay` are the user's limits, `crawl_delay` is the Crawl-delay of its robots.txt.
    `next_request_at` is the earliest time of the next request, `transferring` the number of requests in flight,
    `latency` a moving average of the seconds to a response, and `refusals` counts the last responses in a row that were
    a 429 or 503. Items in `first` are taken before those in `waiting`.
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
        self.contacted_at = -math.inf  # the latest time at which an earlier run may have sent a request
        self.transferring = 0
        self.latency = 0.0
        self.refusals = 0
        self.queued = NOT_QUEUED
        self.stale_entries = 0  # entries in the queue to skip, because the host has an earlier one
        self.address: SharedAddress[Item] | None = None  # None until the first response
        self.first: deque[tuple[PriorityRequests[Item] | None, Item]] = deque()
        self.waiting: deque[Item] = deque()

    def __repr__(self) -> str:
        return (
            f"<Host {self.name} connections={self.connections} delay={self.delay} crawl_delay={self.crawl_delay} "
            f"transferring={self.transferring} waiting={len(self.waiting)} first={len(self.first)} "
            f"next_request_at={self.next_request_at:.3f} latency={self.latency:.3f} refusals={self.refusals}>"
        )

    def effective_delay(self) -> float:
        """Return the seconds from a response to the next request; a delay of 0 means that latency does not count."""
        if not self.delay:
            return self.crawl_delay
        return max(self.delay, self.crawl_delay, min(_LATENCIES * self.latency, _LONGEST_DELAY))

    def delay_after(self, seconds: float, retry_after: float | None) -> float:
        """Return the delay after a response that took this many seconds; `retry_after` as in `Answer`."""
        self.latency += _SMOOTHING * (seconds - self.latency) if self.latency else seconds
        if retry_after is None:
            self.refusals = 0
            return self.effective_delay()
        self.refusals += 1
        back_off = min(_FIRST_BACK_OFF * 2.0 ** (min(self.refusals, 16) - 1), _LONGEST_BACK_OFF) if self.delay else 0.0
        return max(self.effective_delay(), min(retry_after, LONGEST_PAUSE), back_off)


class Permit(Generic[Item]):
    """The permission for one request to a host, from when it is granted until it is given back, exactly once.

    `held` is False after that. A redirect within the host is followed with the same permit and another item.
    """

    __slots__ = ("held", "host", "item")

    def __init__(self, host: Host[Item], item: Item) -> None:
        self.host = host
        self.item: Item | None = item
        self.held = True

    def __repr__(self) -> str:
        return f"<Permit {self.host.name} held={self.held}>"

    def take_item(self) -> Item:
        """Return the item that may be fetched now, and drop the reference to it.

        A link refers to its permit. If the permit kept a reference to the link, that cycle would only be freed by the
        garbage collector, which seldom runs.
        """
        item, self.item = self.item, None
        assert item is not None, "the item of a permit was taken twice"
        return item


#: a response: the permit of the request, the seconds that it took, the IP address if it is known, and the seconds of
#: its Retry-After: 0 for a 429 or 503 without that header, None for any other response
HostAnswer: TypeAlias = tuple[Permit[Item], float, str, float | None]


class PriorityRequests(Generic[Item]):
    """Requests of one owner that come before everything that waits at their hosts; only their owner collects them.

    `wake` is called, with no lock held, after some were `granted` or `refused`; `waiting` counts those that are
    neither. A request is refused, for good, if its host is paused for longer than the patience of the queue. After
    `HostQueue.cancel`, which sets `cancelled`, nothing more is granted.
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
