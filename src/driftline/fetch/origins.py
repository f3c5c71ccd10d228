"""Where the links of a run come from: their source, and their origins (scheme, host and port) with their limits."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from driftline.fetch.host import Host, Permit
from driftline.model.outcome import Link
from driftline.settings import host_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from driftline.fetch.host_queue import HostQueue
    from driftline.fetch.robots_cache import Records
    from driftline.settings import Settings


class WaitingLink(NamedTuple):
    """The page id of a link that waits: the link is read from the store again when it is handed out."""

    page_id: int
    host: LinkHost


LinkItem: TypeAlias = Link | WaitingLink
LinkHost: TypeAlias = Host[LinkItem]


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
        self.pending: list[LinkItem] = []

    def __repr__(self) -> str:
        return (
            f"<Origin {self.name} delay={self.delay} obeys_robots={self.obeys_robots} requests={self.requests} "
            f"pending={len(self.pending)}>"
        )


class Origins:
    """The origins and hosts of a run. New ones are created by one thread at a time: callers hold a lock.

    `known` has the origins by the start of URLs up to the path, which may contain a user name and password.
    """

    def __init__(
        self, settings: Settings, records: Records, hosts: HostQueue[LinkItem], clock: Callable[[], float]
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

    def __repr__(self) -> str:
        return f"<Origins hosts={len(self._by_name)} known={len(self.known)} paused={len(self._pauses)}>"

    def of(self, key: str) -> Origin:
        """Return the origin of URLs that start with this key, created if it is new."""
        origin = self.known.get(key)
        if origin is None:
            name = without_user(key)
            origin = self.known.get(name)
            if origin is None:
                host = self.host(name.partition("://")[2])
                robots = host_policy(host.name, self._settings, self._tags).robots
                origin = self.known[name] = Origin(name, host, robots=robots)
                self._at[host.name].append(origin)
            self.known[key] = origin
        return origin

    def delay_at(self, host: LinkHost) -> float:
        """Return the Crawl-delay of a host, the longer one if its http and https disagree."""
        return max(origin.delay for origin in self._at[host.name])

    def hosts(self) -> Iterable[LinkHost]:
        """Return all hosts known so far."""
        return self._by_name.values()

    def delay_after_other_runs(self) -> None:
        """Start the delay of all hosts, also of new ones: another process may have contacted them meanwhile."""
        now = self._clock()
        self._last_end = self._records.last_end(now)
        for host in [*self._by_name.values()]:
            self._hosts.contacted(host, now - self._last_end)

    def host(self, name: str) -> LinkHost:
        """Return the host of this name, created if it is new, with what is left of its Retry-After.

        An earlier run may have contacted it just before it ended, so its delay counts from then.
        """
        host = self._by_name.get(name)
        if host is None:
            host = self._by_name[name] = Host(name, host_policy(name, self._settings, self._tags))
            now = self._clock()
            self._hosts.pause(host, self._pauses.get(name, now) - now)
            self._hosts.contacted(host, now - self._last_end)
        return host


def permit_of(link: Link) -> Permit[LinkItem]:
    """Return the permit that this link was handed out with."""
    permit = link.permit
    assert isinstance(permit, Permit), f"{link.url} was fetched without a permit of its host"
    return permit


def key_of(url: str) -> str:
    """Return the start of a canonical URL, up to its path."""
    return url[: url.find("/", 8)]


def without_user(key: str) -> str:
    """Return the same without the user name and password that it may contain."""
    scheme, _, rest = key.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


class Source(Protocol):
    """Where links come from: a queue that is filled from the start, or a feed without an end. Used by any thread."""

    def take(self, most: int) -> list[Link]:
        """Return up to `most` links, each only once; fewer, or none, when there are no more for now."""

    def put_off(self, page_ids: Sequence[int], seconds: float) -> None:
        """Postpone these pages by so many seconds, or drop those that are not watched any more."""

    @property
    def exhausted(self) -> bool:
        """Return whether there will never be another link."""

    def close(self) -> None:
        """Hand out nothing more."""

    def listen(self, wake: Callable[[], None], give_back: Callable[[], list[int]]) -> None:
        """Call `wake` whenever there may be more to take, and `give_back` to take back pages that still wait."""


class PageReturns:
    """Gives pages back to their source, and reads the links again of which only the page id was kept.

    `paused_hosts` has the hosts of postponed pages, with the time until which each is not contacted. Used by any
    thread; calls the source and the store without a lock.
    """

    def __init__(
        self, source: Source, read_links: Callable[[Sequence[int]], list[Link]], hosts: HostQueue[LinkItem],
        clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self._source = source
        self._read_links = read_links
        self._hosts = hosts
        self._clock = clock
        self.paused_hosts: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"<PageReturns paused_hosts={len(self.paused_hosts)}>"

    def postpone(self, pages: Iterable[tuple[LinkHost, LinkItem]]) -> None:
        """Give these pages back to the source until the Retry-After of their hosts is over."""
        for host, page in pages:
            seconds = self._hosts.paused_for(host) or 0.0
            self.paused_hosts[host.name] = self._clock() + seconds
            self._source.put_off([page.page_id], seconds)

    def links_of(self, items: Sequence[LinkItem]) -> list[Link]:
        """Return these as links; a page that is not watched any more is given back to the source."""
        kept = [item.page_id for item in items if isinstance(item, WaitingLink)]
        if not kept:
            return [item for item in items if isinstance(item, Link)]
        read = {link.page_id: link for link in self._read_links(kept)}
        self._source.put_off([page_id for page_id in kept if page_id not in read], 0.0)
        found = [item if isinstance(item, Link) else read.get(item.page_id) for item in items]
        return [link for link in found if link is not None]
