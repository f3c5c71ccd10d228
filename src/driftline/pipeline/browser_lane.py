"""The lane of pages that need a browser: beside producers and consumers, a few at a time, so that it slows no other.

A rendered page takes a second where a fetched one takes a millisecond. So these pages take no slot of a producer and no
place in the document queue: a thread of the lane goes the whole way of one page after the other.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from driftline.capacity import Capacity
from driftline.errors import RunStopped
from driftline.model.outcome import Changed, Failed, Incomparable, Known, Link, version_made_by
from driftline.model.page import RenderMode
from driftline.pipeline.recorder import weight_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from driftline.capacity import Reservation, ResourceUse
    from driftline.fetch.host import PriorityRequests
    from driftline.model.outcome import Document, Outcome, Pair
    from driftline.pipeline.consumer import ConfirmingSteps
    from driftline.pipeline.recorder import Recorder
    from driftline.pipeline.stop import Stop
    from driftline.settings import Settings

_OVERHEAD = 500  # bytes of a link
_LOOK = 0.1  # seconds between looks at whether a host gave its permission
_LAST_WAIT = 10.0  # seconds for a thread to end: one that does not is held up by the store
_PATIENCE = 0.5  # seconds between looks at whether to stop, when nothing happens


class PageRenderer(Protocol):
    """Fetches pages through a browser."""

    def render(self, link: Link) -> Document:
        """Return the document of a link as a browser shows it; raise RunStopped once `stop` was called."""

    def stop(self) -> None:
        """Give up what is being rendered."""

    def close(self) -> None:
        """End the browser."""


class BrowserRecords(Protocol):
    """Knows what was fetched through a browser."""

    def needed_at(self, host: str) -> bool:
        """Return whether pages of this host were found to need a browser."""

    def need_at(self, host: str) -> None:
        """Remember that they do."""

    def was_used(self, page_id: int, version: int) -> bool:
        """Return whether this version was fetched through a browser."""


class OutcomeReceiver(Protocol):
    """The next stage: the confirming fetch, or the recorder where there is none."""

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Take these outcomes over."""


class HostPermits(Protocol):
    """Grants the permits to contact hosts: `PoliteLinks`."""

    def done(self, documents: list[Document]) -> list[Document]:
        """Give back the permits of these documents. Returns the documents that are pages."""

    def priority_requests(self, wake: Callable[[], None]) -> PriorityRequests[Any]:
        """Return an empty set of requests; `wake` is called when a permit is granted."""

    def request_first(self, link: Link, requests: PriorityRequests[Any]) -> None:
        """Request the permit to fetch this link, before all others of its host."""

    def granted(self, requests: PriorityRequests[Any], most: int) -> list[Link]:
        """Return up to `most` of the requested links that may be fetched now."""

    def cancel(self, requests: PriorityRequests[Any]) -> None:
        """Drop what is left of these requests."""

    def abandon(self, links: Iterable[Link]) -> None:
        """Give back the permits of links that will not come back by `done`, as far as they are still held."""


class _Item(NamedTuple):
    """A link to render, with the room that it takes in the lane.

    `plain` is what came of it without a browser, if that was tried; `found` what the browser showed the first time, if
    it is a change that is to be rendered again.
    """

    link: Link
    plain: Outcome | None
    room: Reservation
    found: Changed | None = None


class BrowserLane:
    """Takes over the links and outcomes that need a browser, and records what comes of them.

    Its threads start with the first of them, and the browser with them. What a stop leaves over is not recorded, and is
    checked by the next run. A page that needs the permission of its host waits for it without a thread: if all threads
    waited, pages that have the permission could not be rendered, and would never give it back.
    """

    def __init__(
        self, steps: ConfirmingSteps, recorder: Recorder[Outcome], onward: OutcomeReceiver, hosts: HostPermits,
        settings: Settings, stop: Stop, rendered: BrowserRecords, renderer: Callable[[], PageRenderer],
    ) -> None:  # fmt: skip
        self._steps = steps
        self._recorder = recorder
        self._onward = onward
        self._hosts = hosts
        self._settings = settings
        self._stop = stop
        self._rendered = rendered
        self._make = renderer
        self._renderer: PageRenderer | None = None
        self._lock = threading.Lock()
        self._wanted = threading.Condition(self._lock)
        self._bytes = Capacity("browser lane: bytes", settings.capacity_bytes)
        self._items: deque[_Item] = deque()  # that may be rendered now
        self._asked: dict[int, _Item] = {}  # by page: that wait for the permission of their hosts
        self._open = 0  # in the lane, those that a thread works on among them
        self._requests = hosts.priority_requests(self._wake)
        self._threads: list[threading.Thread] = []
        self._closed = self._given_up = False
        self.error: Exception | None = None

    def __repr__(self) -> str:
        # without the lock, for debugging: the numbers may be of slightly different moments
        return (
            f"<BrowserLane ready={len(self._items)} without_permit={len(self._asked)} open={self._open} "
            f"threads={len(self._threads)} closed={self._closed} given_up={self._given_up}>"
        )

    def divert(self, links: list[Link]) -> list[Link]:
        """Take over those of these links that need a browser. Returns the others. Gives up all if the store fails."""
        if all([link.render is None for link in links]):  # noqa: C419 half the price, for every batch
            return links
        try:
            rendered = [link for link in links if self._needs_browser(link)]
        except BaseException:
            self._hosts.abandon(links)
            raise
        self._add([(link, None) for link in rendered])
        taken = {link.page_id for link in rendered}
        return [link for link in links if link.page_id not in taken]

    def sift(self, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """Take over pages that turned out to need a browser, if their settings allow it. Returns the other outcomes."""
        if not any([outcome.wants_script for outcome in outcomes]):  # noqa: C419 half the price, for every batch
            return outcomes
        found = [outcome for outcome in outcomes if outcome.wants_script and outcome.document.link.render is not None]
        self._add([(outcome.document.link, outcome) for outcome in found])
        taken = {outcome.document.link.page_id for outcome in found}
        return [outcome for outcome in outcomes if outcome.document.link.page_id not in taken]

    def drain(self, give_up_at: Callable[[], float | None], given_up: Callable[[], None]) -> None:
        """Wait until everything is rendered, or until the time at which `give_up_at` says that it is enough."""
        with self._lock:
            self._closed = True
            self._wanted.notify_all()
        while any(thread.is_alive() for thread in self._threads):
            limit = give_up_at()
            if limit is not None and time.monotonic() > limit:
                self.abandon()
                given_up()
            for thread in self._threads:
                thread.join(0.05 if limit is not None else _PATIENCE)

    def abandon(self) -> None:
        """Give up what is not rendered yet."""
        self._bytes.close()
        with self._lock:
            self._closed = self._given_up = True
            items = [*self._items, *self._asked.values()]
            self._items.clear()
            self._asked.clear()
            self._wanted.notify_all()
            renderer = self._renderer
        self._hosts.cancel(self._requests)
        for item in items:
            self._free(item)
        if renderer is not None:
            renderer.stop()

    def close(self) -> None:
        """Give up what is left, and end the browser."""
        self.abandon()
        for thread in self._threads:
            thread.join(_LAST_WAIT)
        if self._renderer is not None:
            self._renderer.close()

    def _needs_browser(self, link: Link) -> bool:
        if link.render is None:
            return False
        return link.render.mode is RenderMode.ALWAYS or self._rendered.needed_at(link.host)

    def statistics(self) -> ResourceUse:
        """Return how many bytes wait for a browser or are in one."""
        return self._bytes.statistics()

    def _add(self, pages: Sequence[tuple[Link, Outcome | None]]) -> None:
        """Queue pages for a browser, each with what was found without one. After a stop all are given up."""
        for number, (link, plain) in enumerate(pages):
            # a link comes with a permit of its host, for which pages in the lane may be waiting: it is accepted at
            # once, and there are never more of them than permits
            weight = _OVERHEAD if plain is None else weight_of(plain)
            room = self._bytes.acquire(weight, wait=plain is not None)
            if room is None:
                self._hosts.abandon([link for link, _ in pages[number:]])
                return
            with self._lock:
                self._open += 1
            item = _Item(link, plain, room)
            if plain is None:
                self._queue(item)
            else:
                self._ask(item)

    def _queue(self, item: _Item) -> None:
        """Queue an item that has its permit, and start one more thread if there may be one."""
        self._make_renderer(item)
        with self._lock:
            late = self._given_up
            if not late:
                self._items.append(item)
                self._start_thread()
                self._wanted.notify()
        if late:
            self._free(item)

    def _ask(self, item: _Item) -> None:
        """Request a permit of the host of an item."""
        self._make_renderer(item)
        with self._lock:
            late = self._given_up
            if not late:
                self._asked[item.link.page_id] = item
                self._start_thread()
        if late:
            self._free(item)
            return
        self._hosts.request_first(item.link, self._requests)
        self._wake()

    def _make_renderer(self, item: _Item) -> None:
        """Make the renderer for the first item, without the lock: its modules are read from disk meanwhile."""
        if self._renderer is not None:
            return
        try:
            made = self._make()
        except BaseException:
            self._free(item)
            raise
        with self._lock:
            wanted = self._renderer is None and not self._given_up
            if wanted:
                self._renderer = made
        if not wanted:
            made.close()  # another thread was faster, or the run is stopped

    def _start_thread(self) -> None:
        """Start one more thread if there may be one. Called with the lock held, after `_make_renderer`."""
        if len(self._threads) < min(self._open, self._settings.render_slots):
            thread = threading.Thread(target=self._work, name="renderer", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _wake(self) -> None:
        with self._lock:
            self._wanted.notify_all()

    def _free(self, item: _Item) -> None:
        """Free what an item holds, whatever became of it."""
        item.room.release()
        self._hosts.abandon([item.link])
        with self._lock:
            self._open -= 1
            if not self._open:
                self._wanted.notify_all()

    def _work(self) -> None:
        try:
            while (item := self._next()) is not None:
                done = True
                try:
                    done = self._render(item)
                finally:
                    if done:
                        self._free(item)
        except RunStopped:
            pass
        except Exception as error:  # noqa: BLE001 kept for the thread that supervises this one
            self.error = error
            self.abandon()
            self._stop.bell.ring()

    def _next(self) -> _Item | None:
        """Wait for the next page to render and return it; None when there are no more, or the run is to stop."""
        while True:
            self._collect_permits()
            with self._lock:
                if self._stop.requested or self._given_up or (self._closed and not self._open):
                    return None
                if self._items:
                    return self._items.popleft()
                self._wanted.wait(_LOOK if self._asked else None)

    def _collect_permits(self) -> None:
        """Queue what may be rendered by now, and record without a browser what may not be for long."""
        for link in self._hosts.granted(self._requests, self._settings.render_slots):
            with self._lock:
                item = self._asked.pop(link.page_id, None)
                if item is not None:
                    self._items.append(item)
            if item is None:
                self._hosts.abandon([link])
        while self._requests.refused:
            with suppress(IndexError):  # another thread was faster
                page_id = self._requests.refused.popleft().page_id
                with self._lock:
                    item = self._asked.pop(page_id, None)
                if item is not None:
                    self._without_browser(item)

    def _without_browser(self, item: _Item) -> None:
        """Record what was found before: the host asked for a long pause."""
        try:
            if item.found is not None:
                self._record(item.found)
            elif item.plain is not None:
                self._onward.add([item.plain])
        finally:
            self._free(item)

    def _render(self, item: _Item) -> bool:
        """Render a page and compare it. Returns whether that was all: a change waits to be rendered once more."""
        steps, renderer = self._steps, self._renderer
        assert renderer is not None
        document = renderer.render(_unproved(item.link))
        self._hosts.done([document])
        if item.found is not None:
            (outcome,) = steps.confirm([(item.found, document)])
            self._record(outcome)
            return True
        (outcome,) = steps.compare([self._as_recalled(pair) for pair in steps.recall([document])])
        if item.plain is not None and isinstance(outcome, Failed):
            self._onward.add([item.plain])
            return True
        if item.plain is not None:
            self._rendered.need_at(item.link.host)
        if isinstance(outcome, Changed) and outcome.pair is not None:
            self._ask(item._replace(found=outcome))
            return False
        self._record(outcome)
        return True

    def _record(self, outcome: Outcome) -> None:
        if outcome.document.screenshot is not None and version_made_by(outcome) is None:
            outcome = replace(outcome, document=replace(outcome.document, screenshot=None))
        self._recorder.add([outcome])

    def _as_recalled(self, pair: Pair) -> Pair:
        """Return a pair with a note if the old version was fetched without a browser."""
        if pair.old is None or not self._fetched_otherwise(pair.document.link):
            return pair
        return replace(pair, old=replace(pair.old, reading=None, incomparable=Incomparable.FETCHED_OTHERWISE))

    def _fetched_otherwise(self, link: Link) -> bool:
        """Return whether the last version was fetched without a browser: what differs may differ by that alone."""
        if link.known is None or link.render is None or link.render.mode is RenderMode.ALWAYS:
            return False  # the user asked for a browser, and the old version was given up then
        return not self._rendered.was_used(link.page_id, link.known.version)


def _unproved(link: Link) -> Link:
    """Return the link without validators: they say nothing about what scripts make of a page."""
    known = link.known
    if known is None:
        return link
    return replace(link, known=Known(known.version, None, None, known.wire))
