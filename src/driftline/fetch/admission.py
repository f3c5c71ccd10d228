"""Which links the robots.txt of their hosts allows, and those that wait until that is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from driftline.fetch.origins import Item, LinkHost, Origin, WaitingLink, key_of
from driftline.fetch.redirects import document_of_page, failure_at_target, unfetched_document
from driftline.fetch.robots import robots_url
from driftline.model import Failure, Link, Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from driftline.fetch.host_queue import HostQueue
    from driftline.fetch.origins import Origins
    from driftline.fetch.robots import Rules
    from driftline.fetch.robots_cache import RobotsCache
    from driftline.http.credentials import Access
    from driftline.model import Document

BUSY = (429, 503)  # statuses by which a host asks to slow down, with or without a Retry-After
ROBOTS = -1  # sentinel page id of a robots.txt request
WHOLE = 2_000  # links that wait as they are; of more than that, only the page ids are kept
_TRIES = 3  # requests for a robots.txt whose host answers that it is busy


@dataclass(frozen=True, slots=True)
class Decisions:
    """What is to become of some links.

    `ready` may wait at their hosts, `failed` are forbidden, and `postponed` belong to hosts that are not contacted for
    long. Of `unread`, the robots.txt may be in the store and has to be read from there first.
    """

    ready: list[tuple[LinkHost, Link]] = field(default_factory=list)
    failed: list[Outcome] = field(default_factory=list)
    postponed: list[tuple[LinkHost, Item]] = field(default_factory=list)
    unread: list[Link] = field(default_factory=list)


class Admission:
    """Decides by robots.txt which links may be fetched, and requests the files that are missing.

    Its user calls it from one thread at a time, under a lock, and so it never uses the store: that is read before, and
    what was found is given as `recalled`. `pending` counts the links that wait for a robots.txt.
    """

    def __init__(
        self, cache: RobotsCache, origins: Origins, hosts: HostQueue[Item], clock: Callable[[], float]
    ) -> None:  # fmt: skip
        self._cache = cache
        self._origins = origins
        self._hosts = hosts
        self._clock = clock
        self.pending = 0

    def __repr__(self) -> str:
        return f"<Admission pending={self.pending}>"

    def consider(self, links: Sequence[Link], recalled: Mapping[str, Rules | None]) -> Decisions:
        """Decide about these links. Those that wait from now on for a robots.txt are in none of the lists."""
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

    def is_allowed(self, link: Link, recalled: Mapping[str, Rules | None]) -> bool:
        """Return whether it is known that this link may be fetched."""
        origin = self._origins.of(key_of(link.url))
        rules = self._rules(origin, recalled) if origin.obeys_robots else None
        return not origin.obeys_robots or (rules is not None and rules.refusal(link.url) is None)

    def must_wait(self, origin: Origin, document: Document) -> bool:
        """Return whether a robots.txt has to be requested once more, after this answer; if so, that is done."""
        again = document.status in BUSY and origin.requests < _TRIES
        if again:
            self._request_robots(origin, document.link.access)
        return again

    def apply(self, origin: Origin, rules: Rules) -> None:
        """Have the origin and its host follow these rules from now on."""
        robots = rules.robots
        origin.open_until = robots.until if robots.text is None and robots.failure is None else 0.0
        if rules.delay != origin.delay:
            origin.delay = rules.delay
            self._hosts.set_crawl_delay(origin.host, self._origins.delay_at(origin.host))

    def decide_pending(self, origin: Origin, rules: Rules, links: Mapping[int, Link | None]) -> Decisions:
        """Decide about the links that wait for the robots.txt of this origin, until `release` lets them go.

        `links` has those by page id of which only that was kept, None for pages that are not watched any more.
        """
        decisions = Decisions()
        for item in origin.pending:
            link = item if isinstance(item, Link) else links[item.page_id]
            if link is not None:
                self._judge(rules, origin.host, link, decisions)
        return decisions

    def release(self, origin: Origin) -> list[Item]:
        """Let nothing wait any more for the robots.txt of this origin. Returns what did."""
        items, origin.pending, origin.requests = origin.pending, [], 0
        self.pending -= len(items)
        return items

    def withdraw(self) -> list[Item]:
        """Let nothing wait for a robots.txt that was requested and is still to come. Returns what did."""
        items: list[Item] = []
        for origin in self._origins.known.values():
            items += origin.pending
            origin.pending = []
        self.pending = 0
        return items

    def _rules(self, origin: Origin, recalled: Mapping[str, Rules | None]) -> Rules | None:
        return self._cache.rules(origin.name) or recalled.get(origin.name)

    def _judge(self, rules: Rules, host: LinkHost, link: Link, decisions: Decisions) -> None:
        failure = rules.refusal(link.url)
        if failure is None:
            decisions.ready.append((host, link))
        else:
            decisions.failed.append(_failed(link, failure, self._clock()))

    def _wait_for_robots(self, origin: Origin, link: Link) -> None:
        # a link that redirects led to cannot be made anew from its page id
        whole = self.pending < WHOLE or link.way is not None
        origin.pending.append(link if whole else WaitingLink(link.page_id, origin.host))
        self.pending += 1
        if not origin.requests:
            self._request_robots(origin, link.access)

    def _request_robots(self, origin: Origin, access: Access | None) -> None:
        """Request its robots.txt through the proxy of the waiting page: a direct request may fail or reveal us."""
        origin.requests += 1
        proxy = None if access is None else access.only_proxy() or None
        self._hosts.put_first(origin.host, Link(ROBOTS, robots_url(origin.name + "/"), 0, None, access=proxy))


def _failed(link: Link, failure: Failure, now: float) -> Outcome:
    failure = failure_at_target(link, failure)
    return Outcome(document_of_page(unfetched_document(link, failure, now)), Verdict.FAILED, failure=failure)
