"""Which links may be fetched as far as the robots.txt of their hosts says, and those that wait until it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from driftline.fetch.origins import Item, LinkHost, Origin, WaitingLink, key_of, without_user
from driftline.fetch.redirects import arrived, behind, not_asked
from driftline.fetch.robots import robots_url
from driftline.model import Failure, Link, Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.fetch.host_queue import HostQueue
    from driftline.fetch.origins import Origins
    from driftline.fetch.robots import Rules
    from driftline.fetch.robots_cache import RobotsBook
    from driftline.http.credentials import Access
    from driftline.model import Document

BUSY = (429, 503)  # answers that ask to be left alone
ROBOTS = -1  # the number of no page
WHOLE = 2_000  # links that wait with all that belongs to them; of others only the page is kept
_TRIES = 3  # of a robots.txt whose host says that it is busy


class Judged(NamedTuple):
    """Links that may wait for their hosts, those that failed, and those `late` whose hosts want to be left alone."""

    ready: list[tuple[LinkHost, Link]]
    failed: list[Outcome]
    late: list[tuple[LinkHost, Item]]


class Admission:
    """Knows what robots.txt allows, or has it asked for. Its user sees to it that one thread at a time is in it.

    `made` makes links of what waited, of which some may be only the page's number. `pending` counts those that wait.
    """

    def __init__(
        self, book: RobotsBook, origins: Origins, hosts: HostQueue[Item], clock: Callable[[], float],
        made: Callable[[Sequence[Item]], list[Link]],
    ) -> None:  # fmt: skip
        self._book = book
        self._origins = origins
        self._hosts = hosts
        self._clock = clock
        self._made = made
        self.pending = 0

    def consider(self, links: Sequence[Link]) -> Judged:
        """What is to become of these, except those that wait from now on for a robots.txt."""
        keys = [key_of(link.url) for link in links]
        new = {key for key in keys if key not in self._origins.known}
        asking = {without_user(key) for key in new if self._origins.of(key).asks}
        if asking:
            self._book.recall([*asking])
        judged = Judged([], [], [])
        for key, link in zip(keys, links, strict=True):
            origin = self._origins.of(key)
            rules = self._book.rules(origin.name) if origin.asks and not origin.asked else None
            if not origin.asks:
                judged.ready.append((origin.host, link))
            elif rules is not None:
                self._learn(origin, rules)
                self._judge(rules, origin.host, link, judged)
            elif self._hosts.quiet_for(origin.host) is not None:
                judged.late.append((origin.host, link))
            else:
                # what redirects led to cannot be made anew
                whole = self.pending < WHOLE or link.way is not None
                origin.pending.append(link if whole else WaitingLink(link.page_id, origin.host))
                self.pending += 1
                if not origin.asked:
                    self._ask(origin, link.access)
        return judged

    def origin_of(self, link: Link) -> Origin:
        """The origin of a link, with what is known of its robots.txt at hand."""
        key = key_of(link.url)
        if key not in self._origins.known:
            self._book.recall([without_user(key)])
        return self._origins.of(key)

    def is_open(self, link: Link) -> bool:
        """Whether it is known that this may be fetched."""
        origin = self.origin_of(link)
        rules = self._book.rules(origin.name) if origin.asks else None
        return not origin.asks or (rules is not None and rules.refusal(link.url) is None)

    def heard(self, origin: Origin, document: Document) -> Judged | None:
        """A robots.txt is in: what is to become of the links that wait for it, until they are let go.

        None if they are to wait further, for it has to be asked for once more.
        """
        if self._hosts.quiet_for(origin.host) is not None:
            return Judged([], [], [(origin.host, item) for item in origin.pending])
        if document.status in BUSY and origin.asked < _TRIES:
            self._ask(origin, document.link.access)
            return None
        judged = Judged([], [], [])
        rules = self._book.heard(origin.name, document)
        self._learn(origin, rules)
        for link in self._made(origin.pending):
            self._judge(rules, origin.host, link, judged)
        return judged

    def let_go(self, origin: Origin) -> list[Item]:
        """Let nothing wait for the robots.txt of this origin any more; what did."""
        items, origin.pending, origin.asked = origin.pending, [], 0
        self.pending -= len(items)
        return items

    def withdraw(self) -> list[Item]:
        """What waits for a robots.txt that is on its way, and from now on does not."""
        items: list[Item] = []
        for origin in self._origins.known.values():
            items += origin.pending
            origin.pending = []
        self.pending = 0
        return items

    def _judge(self, rules: Rules, host: LinkHost, link: Link, judged: Judged) -> None:
        failure = rules.refusal(link.url)
        if failure is None:
            judged.ready.append((host, link))
        else:
            judged.failed.append(_failed(link, failure, self._clock()))

    def _learn(self, origin: Origin, rules: Rules) -> None:
        robots = rules.robots
        origin.open_until = robots.until if robots.text is None and robots.failure is None else 0.0
        if rules.delay != origin.delay:
            origin.delay = rules.delay
            self._hosts.ask(origin.host, self._origins.delay_at(origin.host))

    def _ask(self, origin: Origin, access: Access | None) -> None:
        """Ask for its robots.txt, by the proxy of what waits: another way may not lead there, or give us away."""
        origin.asked += 1
        proxy = None if access is None else access.only_proxy() or None
        self._hosts.put_first(origin.host, Link(ROBOTS, robots_url(origin.name + "/"), 0, None, access=proxy))


def _failed(link: Link, failure: Failure, now: float) -> Outcome:
    failure = behind(link, failure)
    return Outcome(arrived(not_asked(link, failure, now)), Verdict.FAILED, failure=failure)
