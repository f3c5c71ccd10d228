"""Links that wait until their hosts may be contacted: what a producer takes is what it may fetch now.

Locks: `PoliteLinks` and the parts that it is made of hold theirs for memory alone. The store, the source and callbacks
are called without any, so that a database that does not answer holds up the thread that reads it and no other.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Protocol

from driftline.fetch.admission import BUSY, ROBOTS, WHOLE, Admission, Decisions
from driftline.fetch.host_queue import Answer, HostQueue, Permit, PriorityRequests
from driftline.fetch.origins import Item, LinkHost, Origin, Origins, WaitingLink, key_of, without_user
from driftline.fetch.redirects import document_of_page
from driftline.fetch.robots import robots_url
from driftline.fetch.robots_cache import RobotsCache
from driftline.http.headers import redirect_targets, retry_after
from driftline.model import Document, Link, Outcome
from driftline.urls.parts import host_of, without_password

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from driftline.capacity import ResourceUse
    from driftline.fetch.curl import Transfers
    from driftline.fetch.robots import Rules
    from driftline.fetch.robots_cache import Records
    from driftline.settings import Settings

_PULLS = (256, 1_024, 1_024, 1_024)  # links to read ahead, at least, to find hosts that may be contacted now
_SLOW = 10.0  # seconds that the pages of a host have to take for `slow` to be called
_MOST_UNREAD = 2_000  # links of hosts whose records are still to be read: no more are read ahead meanwhile
_LOG = logging.getLogger(__name__)


class Source(Protocol):
    """Where links come from: a queue that is filled from the start, or a feed that goes on. Used by any thread."""

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


class PoliteLinks:
    """Hands the links of a source to producers as their hosts may be contacted. Used by any thread.

    What `take` returns may be fetched now, and must come back by `done` or `abandon`. Requests for robots.txt are among
    it, and `done` keeps their documents. It also keeps redirects: their targets are handed out when their own hosts may
    be contacted, and the document of the last target is that of the page.

    A page that robots.txt forbids is recorded as failed and never handed out. Pages of a host with a long Retry-After
    are given back to the source, and the host is in `paused_hosts`, with the time until which it is not contacted.
    `slow` is called once, for a host whose pages will take long, with its name, how many wait, and the seconds between
    two. Nothing is handed out while `may_fetch` returns False.
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
        self._hosts: HostQueue[Item] = HostQueue(address_connections=settings.address_connections, clock=ticks)
        self._origins = Origins(settings, records, self._hosts, clock)
        self._admission = Admission(self._robots, self._origins, self._hosts, clock)
        self._lock = threading.Lock()
        self._unread: list[Link] = []  # the records of their hosts are still to be read from the store
        self._recalling = self._handed_over = False  # whether a thread reads them, and whether others left it more
        self._reading = 0  # how many threads have links that are neither in the source nor at their hosts
        self._reading_ahead = False
        self._all_read = False  # whether the source had no more links the last time
        self._closed = False
        self._wake: Callable[[], None] = lambda: None
        self.paused_hosts: dict[str, float] = {}

    def __repr__(self) -> str:
        # without the lock, as `exhausted`: figures of different moments do no harm
        return (
            f"<PoliteLinks hosts={self._hosts!r} pending={self._admission.pending} unread={len(self._unread)} "
            f"reading={self._reading} paused_hosts={len(self.paused_hosts)} closed={self._closed}>"
        )

    def take(self, most: int) -> list[Link]:
        """Return up to `most` links that may be fetched now, without waiting for a host."""
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

    def done(self, documents: list[Document], requests: PriorityRequests[Item] | None = None) -> list[Document]:
        """Give back the permits of these documents, of `requests` if given. Returns the documents that are pages."""
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
                    continue  # the redirect may be followed with the same permit
                if status in BUSY and _answering_host(document) == origin.host.name:
                    pause = retry_after(document.headers, document.fetched_at) or 0.0
            answers.append((permit, document.seconds, document.address, pause))
        refused = self._hosts.done(answers)
        if not refused and not special:
            return documents
        try:
            if refused:
                self._postpone(refused)
            while special:
                self._handle(*special[0], requests)
                special.popleft()
        except BaseException:
            # if the store failed, for example: redirects that were not followed by then still have their permits
            self.abandon(document.link for _, document in special if document.onward is not None)
            raise
        self._wake()
        return [one for one in documents if one.link.page_id != ROBOTS and one.onward is None]

    def _handle(self, origin: Origin, document: Document, requests: PriorityRequests[Item] | None) -> None:
        """Handle a redirect, a busy host or a robots.txt."""
        if document.onward is not None:
            self._follow_redirect(origin.host, document, document.onward, requests)
            return
        if document.redirects and document.link.way is None:
            self._count_browser_redirects(document, origin.host)
        if document.status in BUSY:
            self._record_pause(origin.host)
        document_of_page(document)
        if document.link.page_id == ROBOTS:
            self._record_robots(self._origins.known[key_of(document.link.url)], document)
            if document.redirects and document.failure is None and _is_robots(document.final_url):
                self._record_robots(origin, document)  # that of http leads to that of https, for example

    def _follow_redirect(
        self, host: LinkHost, document: Document, link: Link, requests: PriorityRequests[Item] | None
    ) -> None:
        """Queue the target of a redirect at its own host, or hand it out next if it is the host that redirects.

        The target of a robots.txt request needs no permission by another robots.txt. A priority request does not wait
        for one, and is refused if it is not known that the target may be fetched.
        """
        if _LOG.isEnabledFor(logging.DEBUG):
            _LOG.debug("%s redirects to %s", without_password(document.link.url), without_password(link.url))
        recalled = {} if link.page_id == ROBOTS else self._recall_for(link)
        with self._lock:
            if link.page_id == ROBOTS or (requests is not None and self._admission.is_allowed(link, recalled)):
                decisions = Decisions(ready=[(self._origins.of(key_of(link.url)).host, link)])
            elif requests is None:
                decisions = self._admission.consider([link], recalled)
                self._unread += decisions.unread
            else:
                decisions = Decisions()
                requests.refused.append(link)
        permit = _permit_of(document.link)
        if decisions.ready and decisions.ready[0][0] is host:
            self._hosts.continue_with(permit, link, document.address, requests)
        else:
            decisions.postponed.extend(self._hosts.done([(permit, document.seconds, document.address, None)]))
            self._enqueue(decisions, requests)
        self._report(decisions)

    def _recall_for(self, link: Link) -> Mapping[str, Rules | None]:
        """Read what the store knows of the origin of this link, if that is needed and not in memory."""
        with self._lock:
            origin = self._origins.of(key_of(link.url))
        unread = origin.obeys_robots and self._robots.is_unread(origin.name)
        return self._robots.recall([origin.name]) if unread else {}

    def _enqueue(self, decisions: Decisions, requests: PriorityRequests[Item] | None = None) -> None:
        """Queue what is ready, targets of redirects first: pages that were begun are finished before others begin."""
        self._enqueue_last([one for one in decisions.ready if one[1].way is None], decisions)
        for host, link in decisions.ready:
            if link.way is not None and requests is None and self._hosts.paused_for(host) is not None:
                decisions.postponed.append((host, link))
            elif link.way is not None:
                self._hosts.put_first(host, link, requests)

    def _report(self, decisions: Decisions) -> None:
        """Report what was decided to the source and to callbacks. Called without the lock."""
        if decisions.postponed:
            self._postpone(decisions.postponed)
        if self._slow is not None:
            for host in {host for host, _ in decisions.ready}:
                self._notify_if_slow(host)
        if decisions.failed:
            self._record(decisions.failed)

    def priority_requests(self, wake: Callable[[], None]) -> PriorityRequests[Item]:
        """Return an empty set of requests for an owner that fetches links on its own: see `request_first`."""
        return PriorityRequests(wake)

    def request_first(self, link: Link, requests: PriorityRequests[Item]) -> None:
        """Queue this link before all others of its host; it comes out of `requests`, granted or refused."""
        with self._lock:
            host = self._origins.of(key_of(link.url)).host
        self._hosts.put_first(host, link, requests)

    def granted(self, requests: PriorityRequests[Item], most: int) -> list[Link]:
        """Return up to `most` links of these requests that may be fetched now; they come back as those of `take` do."""
        if not self.may_fetch():
            return []
        return self._permitted(self._hosts.collect(requests, most))

    def cancel(self, requests: PriorityRequests[Item]) -> None:
        """Drop what is left of these requests, and give back their permits."""
        self._hosts.cancel(requests)

    def start(self, links: Sequence[Link], transfers: Transfers) -> None:
        """Start the transfers of links that were taken; if that fails, their permits are given back."""
        try:
            transfers.start(links)
        except BaseException:
            self.abandon(links)
            raise

    def abandon(self, links: Iterable[Link]) -> None:
        """Give back the permits of links that were taken and will not come back by `done`."""
        self._hosts.release([_permit_of(link) for link in links])

    def statistics(self) -> ResourceUse:
        """Return how many permits are held at the moment, over all hosts."""
        return self._hosts.statistics()

    def next_in(self) -> float | None:
        """Return the seconds until there may be something to take; None if that cannot be foreseen."""
        return 0.0 if self._reading_ahead else self._hosts.next_in()

    def neglected(self) -> bool:
        """Return whether something may be fetched now while no request is under way."""
        if self._hosts.neglects_requests():
            return True
        return self.next_in() == 0.0 and not self.exhausted and not self.statistics().in_use

    def close(self) -> None:
        """Hand out nothing more."""
        self._closed = True
        self._source.close()
        self._hosts.clear()

    @property
    def exhausted(self) -> bool:
        """Return whether there will never be another link to take. Looks at the stages in the order of a link's way."""
        waiting = (
            not self._source.exhausted or self._reading or self._unread or self._admission.pending or len(self._hosts)
        )
        return self._closed or not waiting

    def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever there may be more to take."""
        self._wake = wake
        self._source.listen(wake, self.give_back)

    def give_back(self) -> list[int]:
        """Give all pages back to the source that still wait, at their hosts or for a robots.txt. Returns their ids.

        None are given back once this is closed: the source hands them to the next run.
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

    def delay_after_other_runs(self) -> None:
        """Begin the delay of all hosts that another process may have contacted, before anything is handed out."""
        self._origins.delay_after_other_runs()

    def flush(self) -> None:
        """Write robots.txt files and Retry-After times to the store."""
        self._robots.flush()

    def end(self, stopped: Callable[[], bool] = lambda: True) -> None:
        """Write the same at the end of a run, with the delays that are not over: the next run may begin at once.

        Waits for a store that cannot be written until the run is `stopped`.
        """
        now = self._clock()
        with self._lock:
            for host, left in self._hosts.still_paused(self._origins.hosts()):
                self._robots.record_pause(host.name, now + left)
        self._robots.end(stopped)

    def _read_ahead(self, most: int) -> bool:
        """Queue up to `most` links of the source at their hosts. Returns whether there were any."""
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
            self._wake()  # others may have found nothing meanwhile, and these links are the last
        return bool(links)

    def _put(self, links: Sequence[Link]) -> None:
        """Queue these links at their hosts, as far as they may be fetched at all."""
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
            self._enqueue_last(decisions.ready, decisions)
        self._report(decisions)
        if decisions.unread:
            self._read_records()

    def _read_records(self) -> None:
        """Read what the store knows of new hosts, and queue their links there.

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
            self._recalling = False  # its links stay, for the next thread that takes links
            raise
        with self._lock:
            decisions = self._admission.consider(self._unread, recalled)
            self._enqueue(decisions)
            self._unread = decisions.unread  # only now: `exhausted` must find a link somewhere at any moment
            self._recalling = False
            others, self._handed_over = self._handed_over, False
        _LOG.debug("origins read from the store: %d", len(names))
        self._report(decisions)
        if others:
            self._wake()

    def _enqueue_last(self, links: list[tuple[LinkHost, Link]], decisions: Decisions) -> None:
        """Queue links at their hosts; those of paused hosts are added to the postponed."""
        items: Iterable[tuple[LinkHost, Item]] = links
        if len(self._hosts) > WHOLE:
            items = [(host, WaitingLink(link.page_id, host)) for host, link in links]
        decisions.postponed.extend(self._hosts.put(items))

    def _notify_if_slow(self, host: LinkHost) -> None:
        waiting = len(host.waiting) + len(host.first)
        # the first of them need not wait for another
        if self._all_read and (waiting - 1) * host.effective_delay() > _SLOW:
            with self._lock:
                slow, self._slow = self._slow, None
            if slow is not None:
                slow(host.name, waiting, host.effective_delay())

    def _record_robots(self, origin: Origin, document: Document) -> None:
        """Keep the robots.txt of this origin, and decide about the links that waited for it."""
        with self._lock:
            quiet = self._hosts.paused_for(origin.host) is not None
            postponed = self._admission.release(origin) if quiet else []
            if not quiet and self._admission.must_wait(origin, document):
                return
        if quiet:
            self._postpone([(origin.host, item) for item in postponed])
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
                    self._enqueue(decisions)
                    self._admission.release(origin)
                    break
            links.update(dict.fromkeys([item.page_id for item in kept]))
            links.update((link.page_id, link) for link in self._links_of(kept))
        self._report(decisions)

    def _permitted(self, permits: Sequence[Permit[Item]]) -> list[Link]:
        """Return the links to fetch now, each with its permit, made anew where only the page id was kept.

        The permit of a page that is not watched any more is given back; so are all if the store cannot be read.
        """
        links: list[Link] = []
        items = [permit.take_item() for permit in permits]
        try:
            # most are links already, and need not be read from the store
            kept = [item for item in items if not isinstance(item, Link)]
            made = {link.page_id: link for link in self._links_of(kept)} if kept else {}
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

    def _links_of(self, items: Sequence[Item]) -> list[Link]:
        """Return these as links; a page that is not watched any more is given back to the source."""
        kept = [item.page_id for item in items if isinstance(item, WaitingLink)]
        if not kept:
            return [item for item in items if isinstance(item, Link)]
        made = {link.page_id: link for link in self._links(kept)}
        self._source.put_off([page_id for page_id in kept if page_id not in made], 0.0)
        found = [item if isinstance(item, Link) else made.get(item.page_id) for item in items]
        return [link for link in found if link is not None]

    def _postpone(self, items: Iterable[tuple[LinkHost, Item]]) -> None:
        """Give these back to the source until the Retry-After of their hosts is over. Called without the lock."""
        with self._lock:
            pages = [(host, page) for host, item in items for page in self._pages_of(item)]
        _LOG.debug("pages postponed until their hosts may be contacted: %d", len(pages))
        for host, page in pages:
            seconds = self._hosts.paused_for(host) or 0.0
            self.paused_hosts[host.name] = self._clock() + seconds
            self._source.put_off([page.page_id], seconds)

    def _pages_of(self, item: Item) -> list[Item]:
        """Return this page, or the pages that wait for this robots.txt, which is no longer requested."""
        if isinstance(item, Link) and item.page_id == ROBOTS:
            return self._admission.release(self._origin_of_robots(item))
        return [item]

    def _origin_of_robots(self, robots: Link) -> Origin:
        """Return the origin whose robots.txt this link requests, wherever redirects have led."""
        return self._origins.of(key_of(robots.url if robots.way is None else robots.way.start.url))

    def _record_pause(self, host: LinkHost) -> None:
        _LOG.debug("%s asks to slow down: %r", host.name, host)
        seconds = self._hosts.paused_for(host)
        if seconds is not None:
            self._robots.record_pause(host.name, self._clock() + seconds)

    def _count_browser_redirects(self, document: Document, host: LinkHost) -> None:
        """Count the redirects that a browser followed as requests to their hosts."""
        targets = [target for target in redirect_targets(document.headers) if "://" in target[:8]]
        names = {host_of(target) for target in (*targets, document.final_url)} - {host.name}
        for name in names:
            with self._lock:
                other = self._origins.host(name)
            busy = document.status in BUSY and name == _answering_host(document)
            refused = self._hosts.count_redirect(
                other, retry_after(document.headers, document.fetched_at) if busy else None
            )
            if busy:
                self._record_pause(other)
            if refused:
                self._postpone(refused)


def _permit_of(link: Link) -> Permit[Item]:
    permit = link.permit
    assert isinstance(permit, Permit), f"{link.url} was fetched without the permission of its host"
    return permit


def _is_robots(url: str) -> bool:
    return url == robots_url(url)


def _answering_host(document: Document) -> str:
    """Return the host that answered in the end: a Retry-After is about that one."""
    return host_of(document.final_url if document.redirects else document.link.url)
