"""Who is asked: the origins of the links with their hosts, and what waits there."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from driftline.fetch.host_queue import Host
from driftline.model import Link
from driftline.settings import manners_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from driftline.fetch.host_queue import HostQueue
    from driftline.fetch.robots_cache import Records
    from driftline.settings import Settings


class WaitingLink(NamedTuple):
    """A link that waits, to be made anew when it is its turn."""

    page_id: int
    host: LinkHost


Item: TypeAlias = Link | WaitingLink
LinkHost: TypeAlias = Host[Item]


class Origin:
    """A scheme, host and port, with the links that wait for its robots.txt.

    `requests` is how often its robots.txt was requested without a final answer, `delay` its Crawl-delay in seconds.
    Until `open_until`, everything may be fetched, and the rules need not be looked at.
    """

    __slots__ = ("delay", "host", "name", "obeys_robots", "open_until", "pending", "requests")

    def __init__(self, name: str, host: LinkHost, *, robots: bool) -> None:
        self.name = name
        self.host = host
        self.obeys_robots = robots
        self.open_until = 0.0 if robots else math.inf
        self.requests = 0
        self.delay = 0.0
        self.pending: list[Item] = []

    def __repr__(self) -> str:
        return (
            f"<Origin {self.name} delay={self.delay} obeys_robots={self.obeys_robots} requests={self.requests} "
            f"pending={len(self.pending)}>"
        )


class Origins:
    """The origins and hosts that were met in a run. Its user sees to it that one thread at a time asks for new ones.

    `known` has the origins by the beginnings of their addresses, which may name a user.
    """

    def __init__(
        self, settings: Settings, records: Records, hosts: HostQueue[Item], clock: Callable[[], float]
    ) -> None:  # fmt: skip
        self._settings = settings
        self._tags = records.tagged(settings.tags)
        self._pauses = records.pauses(clock())
        self._records = records
        self._last_end = records.last_end(clock())
        self._hosts = hosts
        self._clock = clock
        self._by_name: dict[str, LinkHost] = {}
        self._at: dict[str, list[Origin]] = defaultdict(list)
        self.known: dict[str, Origin] = {}

    def of(self, key: str) -> Origin:
        """The origin of this beginning of an address."""
        origin = self.known.get(key)
        if origin is None:
            name = without_user(key)
            origin = self.known.get(name)
            if origin is None:
                host = self.host(name.partition("://")[2])
                robots = manners_of(host.name, self._settings, self._tags).robots
                origin = self.known[name] = Origin(name, host, robots=robots)
                self._at[host.name].append(origin)
            self.known[key] = origin
        return origin

    def delay_at(self, host: LinkHost) -> float:
        """The seconds between two requests that a host asks for, the longest if http and https of it disagree."""
        return max(origin.delay for origin in self._at[host.name])

    def hosts(self) -> Iterable[LinkHost]:
        """All that were met."""
        return self._by_name.values()

    def rest_after_others(self) -> None:
        """Let all hosts rest, also those that are met later, for other processes may have asked them meanwhile."""
        now = self._clock()
        self._last_end = self._records.last_end(now)
        for host in [*self._by_name.values()]:
            self._hosts.contacted(host, now - self._last_end)

    def host(self, name: str) -> LinkHost:
        """The host of this name, which is left alone for as long as it asked for in an earlier run.

        Any may have been asked for something just when the last run ended.
        """
        host = self._by_name.get(name)
        if host is None:
            host = self._by_name[name] = Host(name, manners_of(name, self._settings, self._tags))
            now = self._clock()
            self._hosts.leave_alone(host, self._pauses.get(name, now) - now)
            self._hosts.contacted(host, now - self._last_end)
        return host


def key_of(url: str) -> str:
    """The beginning of an address in canonical form, up to its path."""
    return url[: url.find("/", 8)]


def without_user(key: str) -> str:
    """The same without the user that it may name."""
    scheme, _, rest = key.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
