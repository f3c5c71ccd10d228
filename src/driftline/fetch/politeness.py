"""Decides when each link may be fetched, by robots.txt, delays and Retry-After, and follows redirects.

Locks guard memory only. The store, the source and callbacks are called without a lock, so that a database that does not
answer delays the thread that reads it and no other.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from driftline.fetch.host import HostAnswer, PriorityRequests
from driftline.fetch.host_queue import HostQueue
from driftline.fetch.origins import (
    LinkHost,
    LinkItem,
    Origin,
    Origins,
    PageReturns,
    WaitingLink,
    key_of,
    permit_of,
    without_user,
)
from driftline.fetch.redirects import answering_host, browser_redirect_hosts, document_of_page
from driftline.fetch.robots import robots_text, robots_url
from driftline.fetch.robots_admission import MOST_WHOLE_LINKS, ROBOTS, Admission, Decisions
from driftline.fetch.robots_cache import RobotsCache
from driftline.http.headers import BUSY, retry_after
from driftline.model.outcome import Document, Failed, Link
from driftline.urls import without_password

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from driftline.capacity import ResourceUse
    from driftline.fetch.curl import Transfers
    from driftline.fetch.host import Permit
    from driftline.fetch.origins import Source
    from driftline.fetch.robots import Rules
    from driftline.fetch.robots_cache import Records
    from driftline.model.page import Failure
    from driftline.settings import Settings

_READ_AHEAD = (256, 1_024, 1_024, 1_024)  # links to read from the source, at least, to find hosts that are ready
_SLOW = 10.0  # seconds from which on the pages of a host take so long that `slow` is called
_MOST_UNREAD = 2_000  # links whose host records are still to be read; with more of them, reading ahead pauses
_LOG = logging.getLogger(__name__)


class PoliteLinks:
    """Hands the links of a source to producers as their hosts may be contacted. Used by any thread.

    What `take` returns may be fetched now, and must be given back by `done` or `abandon`. Among it are requests for
    robots.txt, whose documents `done` handles itself. So it does with redirects: their targets are handed out when
    their own hosts may be contacted, and the document of the last target becomes that of the page.

    A page that robots.txt forbids is recorded as failed and never handed out. Pages of a host with a long Retry-After
    are given back to the source, and the host is in `paused_hosts`, with the time until which it is not contacted.
    `slow` is called once, for a host whose pages will take long, with its name, how many wait, and the seconds between
    two requests. Nothing is handed out while `may_fetch` returns False.
    """

    def __init__(
        self, source: Source, settings: Settings, records: Records, *,
        links: Callable[[Sequence[int]], list[Link]], record: Callable[[Sequence[Failed]], None],
        clock: Callable[[], float] = time.time, slow: Callable[[str, int, float], None] | None = None,
        ticks: Callable[[], float] = time.monotonic, may_fetch: Callable[[], bool] = lambda: True,
    ) -> None:  # fmt: skip
        self.may_fetch = may_fetch
        self._source = source
        self._record = record
        self._clock = clock
        self._slow = slow
        self._robots = RobotsCache(records, settings.user_agent, clock)
        self._hosts: HostQueue[LinkItem] = HostQueue(address_connections=settings.address_connections, clock=ticks)
        self._origins = Origins(settings, records, self._hosts, clock)
        self._admission = Admission(self._robots, self._origins, self._hosts, clock)
        self._returns = PageReturns(source, links, self._hosts, clock)
        self._lock = threading.Lock()
        self._unread: list[Link] = []  # the records of their hosts are still to be read from the store
        self._recalling = self._handed_over = False  # whether a thread reads them, and whether others added more
        self._reading = 0  # how many threads have links that are neither in the source nor at their hosts
        self._reading_ahead = False
        self._all_read = False  # whether the source had no more links the last time
        self._closed = False
        self._wake: Callable[[], None] = lambda: None

    @property
    def paused_hosts(self) -> dict[str, float]:
        """Return the hosts whose pages were postponed, and until when each is not contacted."""
        return self._returns.paused_hosts

    def __repr__(self) -> str:
        # without the lock, for debugging: the numbers may be of slightly different moments
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
            for ahead in _READ_AHEAD:
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

    def done(self, documents: list[Document], requests: PriorityRequests[LinkItem] | None = None) -> list[Document]:
        """Give back the permits of these documents, of `requests` if given. Returns the documents that are pages."""
        known = self._origins.known
        answers: list[HostAnswer[LinkItem]] = []
        special: deque[tuple[Origin, Document]] = deque()
        for document in documents:
            url = document.link.url
            permit = permit_of(document.link)
            origin = known[url[: url.find("/", 8)]]
            status, pause = document.status, None
            if status in BUSY or document.redirects or document.link.page_id == ROBOTS:
                special.append((origin, document))
                if document.onward is not None:
                    continue  # the redirect may be followed with the same permit
                if status in BUSY and answering_host(document) == origin.host.name:
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
            # for example because the store failed: redirects that were not followed yet still have their permits
            self.abandon(document.link for _, document in special if document.onward is not None)
            raise
        self._wake()
        return [document_of_page(one) for one in documents if one.link.page_id != ROBOTS and one.onward is None]

    def _handle(self, origin: Origin, document: Document, requests: PriorityRequests[LinkItem] | None) -> None:
        """Handle a redirect, a host that asks to slow down (429, 503), or a robots.txt."""
        if document.onward is not None:
            self._follow_redirect(origin.host, document, document.onward, requests)
            return
        if document.redirects and document.link.way is None:
            self._count_browser_redirects(document, origin.host)
        if document.status in BUSY:
            self._record_pause(origin.host)
        if document.link.page_id == ROBOTS:
            document = document_of_page(document)
            text = robots_text(document)
            self._record_robots(self._origins.known[key_of(document.link.url)], document, text)
            is_robots = isinstance(text, str) and document.final_url == robots_url(document.final_url)
            if document.redirects and is_robots:
                self._record_robots(origin, document, text)  # for example, http redirects to https

    def _follow_redirect(
        self, host: LinkHost, document: Document, link: Link, requests: PriorityRequests[LinkItem] | None
    ) -> None:
        """Queue the target of a redirect at its own host, or hand it out next if it is at the same host."""
        if _LOG.isEnabledFor(logging.DEBUG):
            _LOG.debug("%s redirects to %s", without_password(document.link.url), without_password(link.url))
        recalled = {} if link.page_id == ROBOTS else self._recall_for(link)
        with self._lock:
            decisions = self._admission.consider_target(link, recalled, requests)
            self._unread += decisions.unread
        permit = permit_of(document.link)
        if decisions.ready and decisions.ready[0][0] is host:
            self._hosts.continue_with(permit, link, document.address, requests)
        else:
            decisions.postponed.extend(self._hosts.done([(permit, document.seconds, document.address, None)]))
            self._enqueue(decisions, requests)
        self._report(decisions)

    def _recall_for(self, link: Link) -> Mapping[str, Rules | None]:
        """Return the stored robots.txt rules for this link, read if they are needed and not in memory."""
        with self._lock:
            origin = self._origins.of(key_of(link.url))
        unread = origin.obeys_robots and self._robots.is_unread(origin.name)
        return self._robots.recall([origin.name]) if unread else {}

    def _enqueue(self, decisions: Decisions, requests: PriorityRequests[LinkItem] | None = None) -> None:
        """Queue what is ready, targets of redirects first: pages that were started are finished before new ones."""
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

    def priority_requests(self, wake: Callable[[], None]) -> PriorityRequests[LinkItem]:
        """Return an empty set of requests for a component that fetches links by itself: see `request_first`."""
        return PriorityRequests(wake)

    def request_first(self, link: Link, requests: PriorityRequests[LinkItem]) -> None:
        """Queue this link before all others of its host; `requests` has it once it is granted or refused."""
        with self._lock:
            host = self._origins.of(key_of(link.url)).host
        self._hosts.put_first(host, link, requests)

    def granted(self, requests: PriorityRequests[LinkItem], most: int) -> list[Link]:
        """Return up to `most` links of these requests that may be fetched now, to be given back as those of `take`."""
        if not self.may_fetch():
            return []
        return self._permitted(self._hosts.collect(requests, most))

    def cancel(self, requests: PriorityRequests[LinkItem]) -> None:
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
        """Give back the permits of links that were taken and for which `done` will not be called."""
        self._hosts.release([permit_of(link) for link in links])

    def statistics(self) -> ResourceUse:
        """Return how many permits are held at the moment, over all hosts."""
        return self._hosts.statistics()

    def next_in(self) -> float | None:
        """Return the seconds until there may be something to take; None if that cannot be foreseen."""
        return 0.0 if self._reading_ahead else self._hosts.next_in()

    def neglected(self) -> bool:
        """Return whether something could be fetched now although no request is in flight: a sign of a stall."""
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
        """Return whether there will never be another link to take."""
        # in the order in which a link passes the stages, so that one on its way is not missed
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
            waiting: list[LinkItem] = []
            for _, item in self._hosts.withdraw(self._origins.hosts()):
                waiting += self._admission.pages_of(item)
            waiting += self._admission.withdraw()
            waiting += self._unread
            self._unread = []
        page_ids = [item.page_id for item in waiting]
        self._source.put_off(page_ids, 0.0)
        return page_ids

    def delay_after_other_runs(self) -> None:
        """Start the delay of all hosts that another process may have contacted. Call it before taking links."""
        self._origins.delay_after_other_runs()

    def flush(self) -> None:
        """Write robots.txt files and Retry-After times to the store."""
        self._robots.flush()

    def end(self, stopped: Callable[[], bool] = lambda: True) -> None:
        """Write the same at the end of a run, and the delays that are not over, which the next run must obey.

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
            if links or self._source.exhausted:  # or another thread may be taking some
                self._all_read = len(links) < most
            self._put(links)
        finally:
            with self._lock:
                self._reading -= 1
        if links and self._source.exhausted:
            self._wake()  # these links are the last, and other threads may have found nothing meanwhile
        return bool(links)

    def _put(self, links: Sequence[Link]) -> None:
        """Queue those of these links at their hosts that may be fetched, and decide about the others."""
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
        """Read the stored records of new hosts, and queue their links there.

        One thread at a time does so for all of them. The others leave their links to it and continue with known hosts:
        a store that does not answer delays one producer, and not all of them.
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
            self._recalling = False  # the links stay in `_unread` for the next thread that takes links
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
        items: Iterable[tuple[LinkHost, LinkItem]] = links
        if len(self._hosts) > MOST_WHOLE_LINKS:
            items = [(host, WaitingLink(link.page_id, host)) for host, link in links]
        decisions.postponed.extend(self._hosts.put(items))

    def _notify_if_slow(self, host: LinkHost) -> None:
        waiting = len(host.waiting) + len(host.first)
        # the first of them does not wait for another
        if self._all_read and (waiting - 1) * host.effective_delay() > _SLOW:
            with self._lock:
                slow, self._slow = self._slow, None
            if slow is not None:
                slow(host.name, waiting, host.effective_delay())

    def _record_robots(self, origin: Origin, document: Document, text: str | Failure) -> None:
        """Keep the robots.txt of this origin, and decide about the links that waited for it."""
        with self._lock:
            paused = self._hosts.paused_for(origin.host) is not None
            postponed = self._admission.release(origin) if paused else []
            if not paused and self._admission.requested_again(origin, document):
                return
        if paused:
            self._postpone([(origin.host, item) for item in postponed])
            return
        rules = self._robots.record_answer(origin.name, document, text)
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
            links.update((link.page_id, link) for link in self._returns.links_of(kept))
        self._report(decisions)

    def _permitted(self, permits: Sequence[Permit[LinkItem]]) -> list[Link]:
        """Return the links to fetch now, each with its permit, read again where only the page id was kept.

        The permit of a page that is not watched any more is given back; so are all if the store cannot be read.
        """
        links: list[Link] = []
        items = [permit.take_item() for permit in permits]
        try:
            # most are links already, and need not be read from the store
            kept = [item for item in items if not isinstance(item, Link)]
            made = {link.page_id: link for link in self._returns.links_of(kept)} if kept else {}
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

    def _postpone(self, items: Iterable[tuple[LinkHost, LinkItem]]) -> None:
        """Give these back to the source until the Retry-After of their hosts is over. Called without the lock."""
        with self._lock:
            pages = [(host, page) for host, item in items for page in self._admission.pages_of(item)]
        _LOG.info("pages postponed until their hosts may be contacted: %d", len(pages))
        self._returns.postpone(pages)

    def _record_pause(self, host: LinkHost) -> None:
        seconds = self._hosts.paused_for(host)
        _LOG.info("%s asks to slow down: %r", host.name, host, extra={"host": host.name, "seconds": seconds})
        if seconds is not None:
            self._robots.record_pause(host.name, self._clock() + seconds)

    def _count_browser_redirects(self, document: Document, host: LinkHost) -> None:
        """Count the redirects that a browser followed as requests to their hosts."""
        for name in browser_redirect_hosts(document) - {host.name}:
            with self._lock:
                other = self._origins.host(name)
            busy = document.status in BUSY and name == answering_host(document)
            refused = self._hosts.count_redirect(
                other, retry_after(document.headers, document.fetched_at) if busy else None
            )
            if busy:
                self._record_pause(other)
            if refused:
                self._postpone(refused)
