"""Which links robots.txt allows, and which ones wait until their robots.txt was fetched."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from driftline.fetch.origins import LinkHost, LinkItem, Origin, WaitingLink, key_of
from driftline.fetch.redirects import document_of_page, failure_at_target, unfetched_document
from driftline.fetch.robots import robots_url
from driftline.http.headers import BUSY
from driftline.model.outcome import Failed, Link

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from driftline.fetch.host import PriorityRequests
    from driftline.fetch.host_queue import HostQueue
    from driftline.fetch.origins import Origins
    from driftline.fetch.robots import Rules
    from driftline.fetch.robots_cache import RobotsCache
    from driftline.http.credentials import Access
    from driftline.model.outcome import Document
    from driftline.model.page import Failure

ROBOTS = -1  # sentinel page id of a robots.txt request
MOST_WHOLE_LINKS = 2_000  # links that wait in memory; of more than that, only the page ids are kept
_TRIES = 3  # requests for a robots.txt that is answered with 429 or 503


@dataclass(frozen=True, slots=True)
class Decisions:
    """What was decided about some links.

    `ready` may be fetched and are to be queued at their hosts, `failed` are forbidden, and `postponed` are of hosts
    with a long Retry-After. The robots.txt of `unread` ones may be in the store, and has to be read from there first.
    """

    ready: list[tuple[LinkHost, Link]] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    postponed: list[tuple[LinkHost, LinkItem]] = field(default_factory=list)
    unread: list[Link] = field(default_factory=list)


class Admission:
    """Decides by robots.txt which links may be fetched, and requests the files that are missing.

    It is called by one thread at a time, under a lock, and therefore never uses the store: callers read that before,
    and pass the rules that they found as `recalled`. `pending` counts the links that wait for a robots.txt.
    """

    def __init__(
        self, cache: RobotsCache, origins: Origins, hosts: HostQueue[LinkItem], clock: Callable[[], float]
    ) -> None:  # fmt: skip
        self._cache = cache
        self._origins = origins
        self._hosts = hosts
        self._clock = clock
        self.pending = 0

    def __repr__(self) -> str:
        return f"<Admission pending={self.pending}>"

    def consider(self, links: Sequence[Link], recalled: Mapping[str, Rules | None]) -> Decisions:
        """Decide about these links. Those that have to wait for a robots.txt are in none of the returned lists."""
        decisions = Decisions()
        for link in links:
            origin = self._origins.of(key_of(link.url))
            if not origin.obeys_robots:
                decisions.ready.append((origin.host, link))
                continue
            rules = None
            if not origin.requests:
                rules = self._rules(origin, recalled)
                if rules is None and origin.name not in recalled and self._cache.is_unread(origin.name):
                    decisions.unread.append(link)
                    continue
            if rules is not None:
                self.apply(origin, rules)
                self._judge(rules, origin.host, link, decisions)
            elif self._hosts.paused_for(origin.host) is not None:
                decisions.postponed.append((origin.host, link))
            else:
                self._wait_for_robots(origin, link)
        return decisions

    def consider_target(
        self, link: Link, recalled: Mapping[str, Rules | None], requests: PriorityRequests[LinkItem] | None
    ) -> Decisions:
        """Decide about the target of a redirect, which may belong to priority `requests`.

        The target of a robots.txt request is not subject to another robots.txt. A priority request does not wait for
        one: it is refused unless it is known that the target may be fetched.
        """
        if link.page_id == ROBOTS or (requests is not None and self._is_allowed(link, recalled)):
            return Decisions(ready=[(self._origins.of(key_of(link.url)).host, link)])
        if requests is None:
            return self.consider([link], recalled)
        requests.refused.append(link)
        return Decisions()

    def _is_allowed(self, link: Link, recalled: Mapping[str, Rules | None]) -> bool:
        """Return whether it is known that this link may be fetched."""
        origin = self._origins.of(key_of(link.url))
        rules = self._rules(origin, recalled) if origin.obeys_robots else None
        return not origin.obeys_robots or (rules is not None and rules.refusal(link.url) is None)

    def requested_again(self, origin: Origin, document: Document) -> bool:
        """Request the robots.txt once more if this response was a 429 or 503. Returns whether that was done."""
        again = document.status in BUSY and origin.requests < _TRIES
        if again:
            self._request_robots(origin, document.link.access)
        return again

    def apply(self, origin: Origin, rules: Rules) -> None:
        """Apply these rules to the origin, and their Crawl-delay to its host."""
        robots = rules.robots
        origin.open_until = robots.until if robots.text is None and robots.failure is None else 0.0
        if rules.delay != origin.delay:
            origin.delay = rules.delay
            self._hosts.set_crawl_delay(origin.host, self._origins.delay_at(origin.host))

    def decide_pending(self, origin: Origin, rules: Rules, links: Mapping[int, Link | None]) -> Decisions:
        """Decide about the links that wait for the robots.txt of this origin, which `release` removes.

        `links` has the links of which only the page id was kept, None for pages that are not watched any more.
        """
        decisions = Decisions()
        for item in origin.pending:
            link = item if isinstance(item, Link) else links[item.page_id]
            if link is not None:
                self._judge(rules, origin.host, link, decisions)
        return decisions

    def release(self, origin: Origin) -> list[LinkItem]:
        """Remove and return all that waits for the robots.txt of this origin."""
        items, origin.pending, origin.requests = origin.pending, [], 0
        self.pending -= len(items)
        return items

    def withdraw(self) -> list[LinkItem]:
        """Remove and return all that waits for any robots.txt; requests for these are not cancelled."""
        items: list[LinkItem] = []
        for origin in self._origins.known.values():
            items += origin.pending
            origin.pending = []
        self.pending = 0
        return items

    def pages_of(self, item: LinkItem) -> list[LinkItem]:
        """Return this page; for a robots.txt request, remove and return the pages that wait for it."""
        if not isinstance(item, Link) or item.page_id != ROBOTS:
            return [item]
        requested = item.url if item.way is None else item.way.start.url  # wherever redirects have led
        return self.release(self._origins.of(key_of(requested)))

    def _rules(self, origin: Origin, recalled: Mapping[str, Rules | None]) -> Rules | None:
        return self._cache.rules(origin.name) or recalled.get(origin.name)

    def _judge(self, rules: Rules, host: LinkHost, link: Link, decisions: Decisions) -> None:
        failure = rules.refusal(link.url)
        if failure is None:
            decisions.ready.append((host, link))
        else:
            decisions.failed.append(_failed(link, failure, self._clock()))

    def _wait_for_robots(self, origin: Origin, link: Link) -> None:
        # the target of a redirect cannot be read again by its page id
        whole = self.pending < MOST_WHOLE_LINKS or link.way is not None
        origin.pending.append(link if whole else WaitingLink(link.page_id, origin.host))
        self.pending += 1
        if not origin.requests:
            self._request_robots(origin, link.access)

    def _request_robots(self, origin: Origin, access: Access | None) -> None:
        """Request its robots.txt, through the proxy of the waiting page: a direct request may fail or reveal our IP."""
        origin.requests += 1
        proxy = None if access is None else access.only_proxy() or None
        self._hosts.put_first(origin.host, Link(ROBOTS, robots_url(origin.name + "/"), 0, None, access=proxy))


def _failed(link: Link, failure: Failure, now: float) -> Failed:
    failure = failure_at_target(link, failure)
    return Failed(document_of_page(unfetched_document(link, failure, now)), failure)
