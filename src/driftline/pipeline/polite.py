"""Links that wait at their hosts until these may be asked: what producers take is what they may fetch now."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from driftline.fetching.hosts import Answer, Errands, Hosts
from driftline.fetching.robots import robots_url
from driftline.headers import redirect_targets, retry_after
from driftline.model import Document, Link, Outcome, Verdict, host_of
from driftline.pipeline.origins import Item, LinkHost, Origin, Origins, Waiting, key_of, without_user
from driftline.pipeline.robots import RobotsBook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from driftline.fetching.robots import Rules
    from driftline.model import Failure
    from driftline.pipeline.links import Source
    from driftline.pipeline.robots import Records
    from driftline.settings import Settings

_BUSY = (429, 503)  # answers that ask to be left alone
_ROBOTS = -1  # the number of no page
_PULLS = (256, 1_024, 1_024, 1_024)  # links to read ahead, at least, while hosts that may be asked now are looked for
_WHOLE = 2_000  # links that wait with all that belongs to them; of others only the page is kept
_TRIES = 3  # of a robots.txt whose host says that it is busy
_SLOW = 10.0  # seconds of waiting that are worth a word


class PoliteLinks:
    """Stands between a source of links and those who fetch. Used by any thread.

    What `take` returns may be fetched now, and must come back by `done`; the robots.txt files of the hosts are among
    it, and `done` keeps them. A page that a robots.txt forbids is recorded as failed and never handed out. Pages of a
    host that wants to be left alone for long are given back to the source, and the host is named in `quiet`, with the
    time until which it will be left alone. `slow` is told, once, of a host whose pages will take long, how many they
    are and how many seconds there are between two.
    """

    def __init__(
        self, source: Source, settings: Settings, records: Records, *,
        links: Callable[[Sequence[int]], list[Link]], record: Callable[[Sequence[Outcome]], None],
        clock: Callable[[], float] = time.time, slow: Callable[[str, int, float], None] | None = None,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._source = source
        self._links = links
        self._record = record
        self._clock = clock
        self._slow = slow
        self._book = RobotsBook(records, settings.user_agent, clock)
        self._hosts: Hosts[Item] = Hosts(at_address=settings.address_connections, clock=ticks)
        self._origins = Origins(settings, records, self._hosts, clock)
        self._lock = threading.Lock()
        self._reading = 0  # how many threads have links that are neither in the source nor at their hosts
        self._pending = 0
        self._reading_ahead = False
        self._closed = False
        self._wake: Callable[[], None] = lambda: None
        self.quiet: dict[str, float] = {}

    def take(self, most: int) -> list[Link]:
        """Up to `most` links that may be fetched now, without waiting for any."""
        if self._closed:
            return []
        found = self._hosts.take(most)
        self._reading_ahead = False
        for ahead in _PULLS:
            if len(found) >= most or self._source.exhausted:
                break
            if not self._read_ahead(max(ahead, most - len(found))):
                break
            found += self._hosts.take(most - len(found))
        else:
            self._reading_ahead = len(found) < most
        return self._whole(found)

    def done(self, documents: list[Document]) -> list[Document]:
        """These documents are in; those of them that are pages."""
        known = self._origins.known
        answers: list[Answer[Item]] = []
        special: list[tuple[Origin, Document]] = []
        for document in documents:
            url = document.link.url
            origin = known[url[: url.find("/", 8)]]
            status, pause = document.status, None
            if status in _BUSY or document.redirects or document.link.page_id == _ROBOTS:
                special.append((origin, document))
                asked = status in _BUSY and _asker(document) == origin.host.name
                pause = (retry_after(document.headers, document.fetched_at) or 0.0) if asked else None
            answers.append((origin.host, document.seconds, document.address, pause))
        refused = self._hosts.done(answers)
        if refused:
            with self._lock:
                self._put_off(refused)
        return self._attend(documents, special) if special else documents

    def _attend(self, documents: list[Document], special: list[tuple[Origin, Document]]) -> list[Document]:
        """See to answers that say more than what a page says; the documents that are pages."""
        for origin, document in special:
            if document.redirects:
                self._came_by(document, origin.host)
            if document.status in _BUSY:
                self._note_pause(origin.host)
            if document.link.page_id == _ROBOTS:
                self._heard(origin, document)
        self._wake()
        return [document for document in documents if document.link.page_id != _ROBOTS]

    def errands(self, wake: Callable[[], None]) -> Errands[Item]:
        """What somebody else fetches with the same permission: see `run_errand`."""
        return Errands(wake)

    def run_errand(self, link: Link, errands: Errands[Item]) -> None:
        """Let this link go before all others of its host; it comes out of `errands`, granted or refused."""
        with self._lock:
            host = self._origins.of(key_of(link.url)).host
        self._hosts.put_first(host, link, errands)

    def granted(self, errands: Errands[Item], most: int) -> list[Link]:
        """Up to `most` errands that may be fetched now; each must come back by `done`."""
        self._hosts.run_errands()
        found = [errands.granted.popleft() for _ in range(min(most, len(errands.granted)))]
        return [link for link in found if isinstance(link, Link)]

    def next_in(self) -> float | None:
        """The seconds until there may be something to take; None if nothing can be foreseen."""
        return 0.0 if self._reading_ahead else self._hosts.next_in()

    def close(self) -> None:
        """Hand out nothing more."""
        self._closed = True
        self._source.close()
        self._hosts.clear()

    @property
    def exhausted(self) -> bool:
        """Whether there never is anything more to hand out: looked for in the order in which links go on."""
        waiting = not self._source.exhausted or self._reading or self._pending or len(self._hosts)
        return self._closed or not waiting

    def listen(self, wake: Callable[[], None]) -> None:
        """Call this whenever there may be more to take."""
        self._wake = wake
        self._source.listen(wake)

    def flush(self) -> None:
        """Write to the store what hosts said."""
        self._book.flush()

    def _read_ahead(self, most: int) -> bool:
        """Let up to `most` links of the source wait at their hosts; whether there were any."""
        with self._lock:
            self._reading += 1
        try:
            links = self._source.take(most)
            self._put(links)
        finally:
            with self._lock:
                self._reading -= 1
        if links and self._source.exhausted:
            self._wake()  # others may have found nothing meanwhile, and what is at the hosts now is the last
        return bool(links)

    def _put(self, links: Sequence[Link]) -> None:
        """Let these wait at their hosts, as far as they may be fetched at all."""
        ready: list[tuple[LinkHost, Link]] = []
        others: list[Link] = []
        now = self._clock()
        known = self._origins.known
        with self._lock:
            for link in links:
                url = link.url
                origin = known.get(url[: url.find("/", 8)])
                if origin is not None and origin.open_until > now:
                    ready.append((origin.host, link))
                else:
                    others.append(link)
            failed = self._consider(others, ready) if others else []
            self._wait(ready)
        if failed:
            self._record(failed)

    def _wait(self, links: list[tuple[LinkHost, Link]]) -> None:
        items: Iterable[tuple[LinkHost, Item]] = links
        if len(self._hosts) > _WHOLE:
            items = [(host, Waiting(link.page_id, host)) for host, link in links]
        refused = self._hosts.put(items)
        if refused:
            self._put_off(refused)
        if self._slow is not None and self._source.exhausted:
            for host in {host for host, _ in links}:
                if len(host.waiting) * host.rest() > _SLOW:
                    self._slow(host.name, len(host.waiting), host.rest())
                    self._slow = None
                    break

    def _consider(self, links: Sequence[Link], ready: list[tuple[LinkHost, Link]]) -> list[Outcome]:
        """Add those that may be fetched to `ready`, and have robots.txt asked for where it must be; what may not be."""
        keys = [key_of(link.url) for link in links]
        new = {key for key in keys if key not in self._origins.known}
        asking = {without_user(key) for key in new if self._origins.of(key).asks}
        if asking:
            self._book.recall([*asking])
        failed: list[Outcome] = []
        for key, link in zip(keys, links, strict=True):
            origin = self._origins.of(key)
            rules = self._book.rules(origin.name) if origin.asks and not origin.asked else None
            if not origin.asks:
                ready.append((origin.host, link))
            elif rules is not None:
                self._learn(origin, rules)
                failed += self._judged(rules, origin.host, link, ready)
            elif self._hosts.quiet_for(origin.host) is not None:
                self._put_off([(origin.host, link)])
            else:
                origin.pending.append(link if self._pending < _WHOLE else Waiting(link.page_id, origin.host))
                self._pending += 1
                if not origin.asked:
                    self._ask(origin)
        return failed

    def _judged(self, rules: Rules, host: LinkHost, link: Link, ready: list[tuple[LinkHost, Link]]) -> list[Outcome]:
        failure = rules.refusal(link.url)
        if failure is None:
            ready.append((host, link))
            return []
        return [_failed(link, failure, self._clock())]

    def _learn(self, origin: Origin, rules: Rules) -> None:
        robots = rules.robots
        origin.open_until = robots.until if robots.text is None and robots.failure is None else 0.0
        if rules.delay != origin.delay:
            origin.delay = rules.delay
            self._hosts.ask(origin.host, self._origins.delay_at(origin.host))

    def _ask(self, origin: Origin) -> None:
        origin.asked += 1
        self._hosts.put_first(origin.host, Link(_ROBOTS, robots_url(origin.name + "/"), 0, None))

    def _heard(self, origin: Origin, document: Document) -> None:
        """A robots.txt is in: the links that waited for it may go, or fail."""
        with self._lock:
            if self._hosts.quiet_for(origin.host) is not None:
                self._put_off([(origin.host, item) for item in self._let_go(origin)])
                return
            if document.status in _BUSY and origin.asked < _TRIES:
                self._ask(origin)
                return
            rules = self._book.heard(origin.name, document)
            self._learn(origin, rules)
            ready: list[tuple[LinkHost, Link]] = []
            failed: list[Outcome] = []
            waited = origin.pending
            for link in self._made(waited):
                failed += self._judged(rules, origin.host, link, ready)
            self._wait(ready)
            self._let_go(origin)
        if failed:
            self._record(failed)

    def _let_go(self, origin: Origin) -> list[Item]:
        """Let nothing wait for the robots.txt of this origin any more; what did."""
        items, origin.pending, origin.asked = origin.pending, [], 0
        self._pending -= len(items)
        return items

    def _whole(self, items: list[Item]) -> list[Link]:
        """The links to fetch now, those made anew of which only the page was kept."""
        if all([type(item) is Link for item in items]):  # noqa: C419 half the price, for every batch
            return items  # type: ignore[return-value]
        links = self._made(items)
        missing = {item.page_id for item in items} - {link.page_id for link in links}
        for item in items:
            if isinstance(item, Waiting) and item.page_id in missing:
                self._hosts.unused(item.host)
        return links

    def _made(self, items: Sequence[Item]) -> list[Link]:
        """These as links; a page that is not watched any more is given back to the source."""
        kept = [item.page_id for item in items if isinstance(item, Waiting)]
        if not kept:
            return [item for item in items if isinstance(item, Link)]
        made = {link.page_id: link for link in self._links(kept)}
        self._source.put_off([page_id for page_id in kept if page_id not in made], 0.0)
        found = [item if isinstance(item, Link) else made.get(item.page_id) for item in items]
        return [link for link in found if link is not None]

    def _put_off(self, items: Iterable[tuple[LinkHost, Item]]) -> None:
        """Give these back to the source, for their hosts want to be left alone."""
        for host, item in items:
            seconds = self._hosts.quiet_for(host) or 0.0
            if isinstance(item, Link) and item.page_id == _ROBOTS:
                origin = self._origins.of(key_of(item.url))
                self._put_off([(host, one) for one in self._let_go(origin)])
            else:
                self.quiet[host.name] = self._clock() + seconds
                self._source.put_off([item.page_id], seconds)

    def _note_pause(self, host: LinkHost) -> None:
        seconds = self._hosts.quiet_for(host)
        if seconds is not None:
            self._book.leave_alone(host.name, self._clock() + seconds)

    def _came_by(self, document: Document, host: LinkHost) -> None:
        """Count what redirects led to against the hosts that were asked so."""
        targets = [target for target in redirect_targets(document.headers) if "://" in target[:8]]
        names = {host_of(target) for target in (*targets, document.final_url)} - {host.name}
        for name in names:
            with self._lock:
                other = self._origins.host(name)
            asked = document.status in _BUSY and name == _asker(document)
            refused = self._hosts.came_by(other, retry_after(document.headers, document.fetched_at) if asked else None)
            if asked:
                self._note_pause(other)
            if refused:
                with self._lock:
                    self._put_off(refused)


def _asker(document: Document) -> str:
    """The host that answered in the end: what it asks for is asked for itself."""
    return host_of(document.final_url if document.redirects else document.link.url)


def _failed(link: Link, failure: Failure, now: float) -> Outcome:
    return Outcome(Document(link, 0, b"", b"", 0, link.url, 0, now, 0.0, failure), Verdict.FAILED, failure=failure)
