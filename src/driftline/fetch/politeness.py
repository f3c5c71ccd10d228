"""Links that wait at their hosts until these may be asked: what producers take is what they may fetch now."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Protocol

from driftline.fetch.admission import BUSY, ROBOTS, WHOLE, Admission, Decisions
from driftline.fetch.host_queue import Answer, Errands, HostQueue, Permit
from driftline.fetch.origins import Item, LinkHost, Origin, Origins, WaitingLink, key_of, without_user
from driftline.fetch.redirects import arrived
from driftline.fetch.robots import robots_url
from driftline.fetch.robots_cache import RobotsCache
from driftline.http.headers import redirect_targets, retry_after
from driftline.model import Document, Link, Outcome
from driftline.urls.parts import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from driftline.capacity import ResourceUse
    from driftline.fetch.curl import Transfers
    from driftline.fetch.robots import Rules
    from driftline.fetch.robots_cache import Records
    from driftline.settings import Settings

_PULLS = (256, 1_024, 1_024, 1_024)  # links to read ahead, at least, while hosts that may be asked now are looked for
_SLOW = 10.0  # seconds of waiting that are worth a word
_MOST_UNREAD = 2_000  # links of hosts whose records are still to be read: no more are read ahead meanwhile


class Source(Protocol):
    """Where links come from: a queue that is filled from the start, or a feed that goes on."""

    def take(self, most: int) -> list[Link]:
        """Up to `most` links, each handed out only once; fewer, or none, when there are no more for now."""

    def put_off(self, page_ids: Sequence[int], seconds: float) -> None:
        """These pages are not checked for now: not for so many seconds, or not at all if they are no more."""

    @property
    def exhausted(self) -> bool:
        """Whether there never is anything more to hand out."""

    def close(self) -> None:
        """Hand out nothing more."""

    def listen(self, wake: Callable[[], None], give_back: Callable[[], list[int]]) -> None:
        """Call `wake` whenever there may be more to take, and `give_back` to have pages back that only wait by now."""


class PoliteLinks:
    """Stands between a source of links and those who fetch. Used by any thread.

    What `take` returns may be fetched now, and must come back by `done` or `abandon`; the robots.txt files of the hosts
    are among it, and `done` keeps them. It also keeps redirects: where they lead is handed out when that may be
    fetched, and what comes of it is the page. A page that a robots.txt forbids is recorded as failed and never handed
    out. Pages of a host that wants to be left alone for long are given back to the source, and the host is named in
    `quiet`, with the time until which it will be left alone. `slow` is told, once, of a host whose pages will take
    long, how many they are and how many seconds there are between two. Nothing is handed out while `may_fetch` says no.
    """

    def __init__(
        self, source: Source, settings: Settings, records: Records, *,
        links: Callable[[Sequence[int]], list[Link]], record: Callable[[Sequence[Outcome]], None],
        clock: Callable[[], float] = time.time, slow: Callable[[str, int, float], None] | None = None,
        ticks: Callable[[], float] = time.monotonic, may_fetch: Callable[[], bool] = lambda: True,
    ) -> None:  # fmt: skip
        self.may_fetch = may_fetch
        self._source = source
        self._links = links
        self._record = record
        self._clock = clock
        self._slow = slow
        self._robots = RobotsCache(records, settings.user_agent, clock)
        self._hosts: HostQueue[Item] = HostQueue(at_address=settings.address_connections, clock=ticks)
        self._origins = Origins(settings, records, self._hosts, clock)
        self._admission = Admission(self._robots, self._origins, self._hosts, clock)
        self._lock = threading.Lock()
        self._unread: list[Link] = []  # the records of their hosts are still to be read from the store
        self._recalling = self._handed_over = False  # whether a thread reads them, and whether others left it more
        self._reading = 0  # how many threads have links that are neither in the source nor at their hosts
        self._reading_ahead = False
        self._all_read = False  # whether the source had no more when it was last asked
        self._closed = False
        self._wake: Callable[[], None] = lambda: None
        self.quiet: dict[str, float] = {}

    def take(self, most: int) -> list[Link]:
        """Up to `most` links that may be fetched now, without waiting for any."""
        if self._closed or not self.may_fetch():
            return []
        found = self._hosts.take(most)
        self._reading_ahead = False
        try:
            if self._unread and len(found) < most:
                self._read_records()
                found += self._hosts.take(most - len(found))
            for ahead in _PULLS:
                if len(found) >= most or self._source.exhausted or len(self._unread) >= _MOST_UNREAD:
                    break
                if not self._read_ahead(max(ahead, most - len(found))):
                    break
                found += self._hosts.take(most - len(found))
            else:
                self._reading_ahead = len(found) < most
        except BaseException:
            self._hosts.release(found)
            raise
        return self._permitted(found)

    def done(self, documents: list[Document], errands: Errands[Item] | None = None) -> list[Document]:
        """These documents are in, of `errands` if that is what they were; those of them that are pages."""
        known = self._origins.known
        answers: list[Answer[Item]] = []
        special: deque[tuple[Origin, Document]] = deque()
        for document in documents:
            url = document.link.url
            permit = _permit_of(document.link)
            origin = known[url[: url.find("/", 8)]]
            status, pause = document.status, None
            if status in BUSY or document.redirects or document.link.page_id == ROBOTS:
                special.append((origin, document))
                if document.onward is not None:
                    continue  # its host may have to answer once more
                asked = status in BUSY and _asker(document) == origin.host.name
                pause = (retry_after(document.headers, document.fetched_at) or 0.0) if asked else None
            answers.append((permit, document.seconds, document.address, pause))
        refused = self._hosts.done(answers)
        if not refused and not special:
            return documents
        try:
            if refused:
                self._put_off(refused)
            while special:
                self._attend(*special[0], errands)
                special.popleft()
        except BaseException:
            # the store failed, for example: redirects that were not followed by then still have their permits
            self.abandon(document.link for _, document in special if document.onward is not None)
            raise
        self._wake()
        return [one for one in documents if one.link.page_id != ROBOTS and one.onward is None]

    def _attend(self, origin: Origin, document: Document, errands: Errands[Item] | None) -> None:
        """See to an answer that says more than what a page says."""
        if document.onward is not None:
            self._lead_on(origin.host, document, document.onward, errands)
            return
        if document.redirects and document.link.way is None:
            self._came_by(document, origin.host)
        if document.status in BUSY:
            self._note_pause(origin.host)
        arrived(document)
        if document.link.page_id == ROBOTS:
            self._heard(self._origins.known[key_of(document.link.url)], document)
            if document.redirects and document.failure is None and _is_robots(document.final_url):
                self._heard(origin, document)  # that of http leads to that of https, for example

    def _lead_on(self, host: LinkHost, document: Document, link: Link, errands: Errands[Item] | None) -> None:
        """Let this link have its turn, to which a document of the host redirects: within the host that is at once.

        A robots.txt may be anywhere. A second fetch does not wait for one, and is refused if none is known.
        """
        recalled = {} if link.page_id == ROBOTS else self._recall_for(link)
        with self._lock:
            if link.page_id == ROBOTS or (errands is not None and self._admission.is_allowed(link, recalled)):
                decisions = Decisions(ready=[(self._origins.of(key_of(link.url)).host, link)])
            elif errands is None:
                decisions = self._admission.consider([link], recalled)
                self._unread += decisions.unread
            else:
                decisions = Decisions()
                errands.refused.append(link)
        permit = _permit_of(document.link)
        if decisions.ready and decisions.ready[0][0] is host:
            self._hosts.go_on(permit, link, document.address, errands)
        else:
            decisions.postponed.extend(self._hosts.done([(permit, document.seconds, document.address, None)]))
            self._line_up(decisions, errands)
        self._conclude(decisions)

    def _recall_for(self, link: Link) -> Mapping[str, Rules | None]:
        """Read what the store knows of the origin of this link, if that is needed and not in memory."""
        with self._lock:
            origin = self._origins.of(key_of(link.url))
        unread = origin.obeys_robots and self._robots.is_unread(origin.name)
        return self._robots.recall([origin.name]) if unread else {}

    def _line_up(self, decisions: Decisions, errands: Errands[Item] | None = None) -> None:
        """Let those wait that may, what redirects led to before all others: more is begun when that is finished."""
        self._wait([one for one in decisions.ready if one[1].way is None], decisions)
        for host, link in decisions.ready:
            if link.way is not None and errands is None and self._hosts.quiet_for(host) is not None:
                decisions.postponed.append((host, link))
            elif link.way is not None:
                self._hosts.put_first(host, link, errands)

    def _conclude(self, decisions: Decisions) -> None:
        """Tell others what was decided. Called without the lock: what they do may take any time."""
        if decisions.postponed:
            self._put_off(decisions.postponed)
        if self._slow is not None:
            for host in {host for host, _ in decisions.ready}:
                self._tell_if_slow(host)
        if decisions.failed:
            self._record(decisions.failed)

    def errands(self, wake: Callable[[], None]) -> Errands[Item]:
        """What somebody else fetches with the same permission: see `run_errand`."""
        return Errands(wake)

    def run_errand(self, link: Link, errands: Errands[Item]) -> None:
        """Let this link go before all others of its host; it comes out of `errands`, granted or refused."""
        with self._lock:
            host = self._origins.of(key_of(link.url)).host
        self._hosts.put_first(host, link, errands)

    def granted(self, errands: Errands[Item], most: int) -> list[Link]:
        """Up to `most` errands that may be fetched now; each must come back by `done` or `abandon`."""
        if not self.may_fetch():
            return []
        return self._permitted(self._hosts.collect(errands, most))

    def cancel(self, errands: Errands[Item]) -> None:
        """Let nothing of these errands wait any more: nobody will fetch it."""
        self._hosts.cancel(errands)

    def start(self, links: Sequence[Link], transfers: Transfers) -> None:
        """Put links that were taken in flight; those that cannot be started give back their permits."""
        try:
            transfers.start(links)
        except BaseException:
            self.abandon(links)
            raise

    def abandon(self, links: Iterable[Link]) -> None:
        """Give back the permits of links that were taken and will not come back by `done`."""
        self._hosts.release([_permit_of(link) for link in links])

    def statistics(self) -> ResourceUse:
        """Return how many requests are permitted at the moment, over all hosts."""
        return self._hosts.statistics()

    def next_in(self) -> float | None:
        """The seconds until there may be something to take; None if nothing can be foreseen."""
        return 0.0 if self._reading_ahead else self._hosts.next_in()

    def neglected(self) -> bool:
        """Whether a link or a second fetch may be fetched now, and no request is under way."""
        if self._hosts.neglects_errands():
            return True
        return self.next_in() == 0.0 and not self.exhausted and not self.statistics().in_use

    def close(self) -> None:
        """Hand out nothing more."""
        self._closed = True
        self._source.close()
        self._hosts.clear()

    @property
    def exhausted(self) -> bool:
        """Whether there never is anything more to hand out: looked for in the order in which links go on."""
        waiting = (
            not self._source.exhausted or self._reading or self._unread or self._admission.pending or len(self._hosts)
        )
        return self._closed or not waiting

    def listen(self, wake: Callable[[], None]) -> None:
        """Call this whenever there may be more to take."""
        self._wake = wake
        self._source.listen(wake, self.give_back)

    def give_back(self) -> list[int]:
        """Give all pages back to the source that wait, at their hosts or for a robots.txt; which these are.

        None once it is closed: the source hands them to the next run.
        """
        with self._lock:
            if self._closed:
                return []
            waiting: list[Item] = []
            for _, item in self._hosts.withdraw(self._origins.hosts()):
                waiting += self._pages_of(item)
            waiting += self._admission.withdraw()
            waiting += self._unread
            self._unread = []
        page_ids = [item.page_id for item in waiting]
        self._source.put_off(page_ids, 0.0)
        return page_ids

    def rest_after_others(self) -> None:
        """Let all hosts rest that another process may have asked, before anything is handed out."""
        self._origins.rest_after_others()

    def flush(self) -> None:
        """Write to the store what hosts said."""
        self._robots.flush()

    def end(self, stopped: Callable[[], bool] = lambda: True) -> None:
        """Write the same at the end of a run, with the rests that hosts still have to get: the next may begin at once.

        Waits for a store that cannot be written until the run is `stopped`.
        """
        now = self._clock()
        with self._lock:
            for host, left in self._hosts.resting(self._origins.hosts()):
                self._robots.record_pause(host.name, now + left)
        self._robots.end(stopped)

    def _read_ahead(self, most: int) -> bool:
        """Let up to `most` links of the source wait at their hosts; whether there were any."""
        with self._lock:
            self._reading += 1
        try:
            links = self._source.take(most)
            self._all_read = len(links) < most
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
            decisions = self._admission.consider(others, {}) if others else Decisions()
            self._unread += decisions.unread
            decisions.ready[:0] = ready
            self._wait(decisions.ready, decisions)
        self._conclude(decisions)
        if decisions.unread:
            self._read_records()

    def _read_records(self) -> None:
        """Read what the store knows of new hosts, and let their links wait there.

        One thread at a time does so, also for others, which leave their links to it and go on with hosts that are
        known: a store that does not answer holds up one producer, and not all of them.
        """
        with self._lock:
            self._handed_over |= self._recalling
            if self._recalling or not self._unread:
                return
            self._recalling = True
            names = {without_user(key_of(link.url)) for link in self._unread}
        try:
            recalled = self._robots.recall(names)
        except BaseException:
            self._recalling = False  # they stay, for whoever takes links next
            raise
        with self._lock:
            decisions = self._admission.consider(self._unread, recalled)
            self._line_up(decisions)
            self._unread = decisions.unread  # only now: no link is nowhere while somebody looks whether all are done
            self._recalling = False
            others, self._handed_over = self._handed_over, False
        self._conclude(decisions)
        if others:
            self._wake()

    def _wait(self, links: list[tuple[LinkHost, Link]], decisions: Decisions) -> None:
        """Let links wait at their hosts; those that may not are among the postponed of the decisions."""
        items: Iterable[tuple[LinkHost, Item]] = links
        if len(self._hosts) > WHOLE:
            items = [(host, WaitingLink(link.page_id, host)) for host, link in links]
        decisions.postponed.extend(self._hosts.put(items))

    def _tell_if_slow(self, host: LinkHost) -> None:
        waiting = len(host.waiting) + len(host.first)
        # the first of them waits for no other
        if self._all_read and (waiting - 1) * host.rest() > _SLOW:
            with self._lock:
                slow, self._slow = self._slow, None
            if slow is not None:
                slow(host.name, waiting, host.rest())

    def _heard(self, origin: Origin, document: Document) -> None:
        """The robots.txt of this origin is in: the links that waited for it may go, or fail."""
        with self._lock:
            quiet = self._hosts.quiet_for(origin.host) is not None
            postponed = self._admission.release(origin) if quiet else []
            if not quiet and self._admission.must_wait(origin, document):
                return
        if quiet:
            self._put_off([(origin.host, item) for item in postponed])
            return
        rules = self._robots.record_answer(origin.name, document)
        links: dict[int, Link | None] = {}
        while True:
            with self._lock:
                origin.requests = 0  # from now on, nothing more waits for it
                self._admission.apply(origin, rules)
                kept = [item for item in origin.pending if isinstance(item, WaitingLink) and item.page_id not in links]
                if not kept:
                    decisions = self._admission.decide_pending(origin, rules, links)
                    self._line_up(decisions)
                    self._admission.release(origin)
                    break
            links.update(dict.fromkeys([item.page_id for item in kept]))
            links.update((link.page_id, link) for link in self._made(kept))
        self._conclude(decisions)

    def _permitted(self, permits: Sequence[Permit[Item]]) -> list[Link]:
        """The links to fetch now, each with its permit; made anew where only the page was kept.

        What is not watched any more gives its permit back; so do all if the store cannot be read.
        """
        links: list[Link] = []
        items = [permit.take_item() for permit in permits]
        try:
            # most have all that belongs to them, and need no look at the store
            kept = [item for item in items if not isinstance(item, Link)]
            made = {link.page_id: link for link in self._made(kept)} if kept else {}
        except BaseException:
            self._hosts.release(permits)
            raise
        for permit, item in zip(permits, items, strict=True):
            link = item if isinstance(item, Link) else made.get(item.page_id)
            if link is None:
                self._hosts.release([permit])
                continue
            link.permit = permit
            links.append(link)
        return links

    def _made(self, items: Sequence[Item]) -> list[Link]:
        """These as links; a page that is not watched any more is given back to the source."""
        kept = [item.page_id for item in items if isinstance(item, WaitingLink)]
        if not kept:
            return [item for item in items if isinstance(item, Link)]
        made = {link.page_id: link for link in self._links(kept)}
        self._source.put_off([page_id for page_id in kept if page_id not in made], 0.0)
        found = [item if isinstance(item, Link) else made.get(item.page_id) for item in items]
        return [link for link in found if link is not None]

    def _put_off(self, items: Iterable[tuple[LinkHost, Item]]) -> None:
        """Give these back to the source, for their hosts want to be left alone."""
        with self._lock:
            pages = [(host, page) for host, item in items for page in self._pages_of(item)]
        for host, page in pages:
            seconds = self._hosts.quiet_for(host) or 0.0
            self.quiet[host.name] = self._clock() + seconds
            self._source.put_off([page.page_id], seconds)

    def _pages_of(self, item: Item) -> list[Item]:
        """Return the page that this is, or the pages that wait for this robots.txt, which do so no more."""
        if isinstance(item, Link) and item.page_id == ROBOTS:
            return self._admission.release(self._asks_for(item))
        return [item]

    def _asks_for(self, robots: Link) -> Origin:
        """The origin whose robots.txt this link asks for, wherever redirects have led it."""
        return self._origins.of(key_of(robots.url if robots.way is None else robots.way.start.url))

    def _note_pause(self, host: LinkHost) -> None:
        seconds = self._hosts.quiet_for(host)
        if seconds is not None:
            self._robots.record_pause(host.name, self._clock() + seconds)

    def _came_by(self, document: Document, host: LinkHost) -> None:
        """Count what redirects led a browser to against the hosts that were asked so."""
        targets = [target for target in redirect_targets(document.headers) if "://" in target[:8]]
        names = {host_of(target) for target in (*targets, document.final_url)} - {host.name}
        for name in names:
            with self._lock:
                other = self._origins.host(name)
            asked = document.status in BUSY and name == _asker(document)
            refused = self._hosts.came_by(other, retry_after(document.headers, document.fetched_at) if asked else None)
            if asked:
                self._note_pause(other)
            if refused:
                self._put_off(refused)


def _permit_of(link: Link) -> Permit[Item]:
    permit = link.permit
    assert isinstance(permit, Permit), f"{link.url} was fetched without the permission of its host"
    return permit


def _is_robots(url: str) -> bool:
    return url == robots_url(url)


def _asker(document: Document) -> str:
    """The host that answered in the end: what it asks for is asked for itself."""
    return host_of(document.final_url if document.redirects else document.link.url)
