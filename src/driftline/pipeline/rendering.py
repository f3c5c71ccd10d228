"""The lane of pages that need a browser: beside producers and consumers, a few at a time, so that it slows no other.

A rendered page takes a second where a fetched one takes a millisecond. So these pages take no slot of a producer and no
place in the document queue: a thread of the lane goes the whole way of one page after the other.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from driftline.errors import RunStopped
from driftline.model import FETCHED_OTHERWISE, Known, Link, Outcome, RenderMode, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.fetching.hosts import Errands
    from driftline.model import Document
    from driftline.pipeline.confirmer import Confirmer
    from driftline.pipeline.consumers import ConsumerSteps
    from driftline.pipeline.recorder import Recorder
    from driftline.pipeline.stopping import Stop
    from driftline.settings import Settings

_LOOK = 0.1  # seconds between looks at whether a host may be asked
_PATIENCE = 0.5  # seconds between looks at whether to stop, when nothing happens


class Renderer(Protocol):
    """Who fetches through a browser."""

    def render(self, link: Link) -> Document:
        """The document of a link as a browser shows it; RunStopped once `stop` was called."""

    def stop(self) -> None:
        """Give up what is being rendered."""

    def close(self) -> None:
        """End the browser."""


class Rendered(Protocol):
    """Who knows what was fetched through a browser."""

    def needed_at(self, host: str) -> bool:
        """Whether pages of this host were found to need a browser."""

    def need_at(self, host: str) -> None:
        """Remember that they do."""

    def was_used(self, page_id: int, version: int) -> bool:
        """Whether this version was fetched through a browser."""


class Hosts(Protocol):
    """Who knows when a host may be asked."""

    def done(self, documents: list[Document]) -> list[Document]:
        """These are in, whose hosts had been asked with permission."""

    def errands(self, wake: Callable[[], None]) -> Errands[Any]:
        """Where permissions arrive."""

    def run_errand(self, link: Link, errands: Errands[Any]) -> None:
        """Ask for the permission to fetch this."""

    def granted(self, errands: Errands[Any], most: int) -> list[Link]:
        """What may be fetched now."""


class _Item(NamedTuple):
    """A link to render, and what came of it without a browser if that was tried."""

    link: Link
    plain: Outcome | None


class Rendering:
    """Takes over the links and outcomes that need a browser, and records what comes of them.

    Its threads start with the first of them, and the browser with them. What a stop leaves over is not recorded, and is
    checked by the next run.
    """

    def __init__(
        self, steps: ConsumerSteps, recorder: Recorder, confirmer: Confirmer, hosts: Hosts, settings: Settings,
        stop: Stop, rendered: Rendered, renderer: Callable[[], Renderer],
    ) -> None:  # fmt: skip
        self._steps = steps
        self._recorder = recorder
        self._confirmer = confirmer
        self._hosts = hosts
        self._settings = settings
        self._stop = stop
        self._rendered = rendered
        self._make = renderer
        self._renderer: Renderer | None = None
        self._lock = threading.Lock()
        self._wanted = threading.Condition(self._lock)
        self._items: deque[_Item] = deque()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._closed = self._given_up = False
        self.error: Exception | None = None

    def divert(self, links: list[Link]) -> list[Link]:
        """Take over those of these links that need a browser; the others."""
        if all([link.render is None for link in links]):  # noqa: C419 half the price, for every batch
            return links
        rendered = [link for link in links if self._needs_browser(link)]
        self._add([_Item(link, None) for link in rendered])
        taken = {link.page_id for link in rendered}
        return [link for link in links if link.page_id not in taken]

    def sift(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Take over the pages that turned out to need a browser, if that is to be found out; the other outcomes."""
        if not any([outcome.wants_script for outcome in outcomes]):  # noqa: C419 half the price, for every batch
            return outcomes
        found = [outcome for outcome in outcomes if outcome.wants_script and outcome.document.link.render is not None]
        self._add([_Item(outcome.document.link, outcome) for outcome in found])
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
        with self._lock:
            self._closed = self._given_up = True
            self._items.clear()
            self._wanted.notify_all()
            renderer = self._renderer
        if renderer is not None:
            renderer.stop()

    def close(self) -> None:
        """Give up what is left, and end the browser."""
        self.abandon()
        for thread in self._threads:
            thread.join()
        if self._renderer is not None:
            self._renderer.close()

    def _needs_browser(self, link: Link) -> bool:
        if link.render is None:
            return False
        return link.render.mode is RenderMode.ALWAYS or self._rendered.needed_at(link.host)

    def _add(self, items: Sequence[_Item]) -> None:
        with self._lock:
            if self._given_up:
                return
            self._items += items
            if self._renderer is None and items:
                self._renderer = self._make()
            wanted = min(len(self._items) - self._idle, self._settings.render_slots - len(self._threads))
            for _ in range(wanted):
                thread = threading.Thread(target=self._work, name="renderer", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._wanted.notify_all()

    def _work(self) -> None:
        try:
            while (item := self._next()) is not None:
                self._check(item)
        except RunStopped:
            pass
        except Exception as error:  # noqa: BLE001 kept for the thread that tends this one: nobody else can hear it
            self.error = error
            self.abandon()
            self._stop.bell.ring()

    def _next(self) -> _Item | None:
        """The next page to render, waited for; None when there are no more, or the run is to stop."""
        with self._lock:
            self._idle += 1
            try:
                while not self._items and not self._closed:
                    self._wanted.wait()
                return self._items.popleft() if self._items and not self._stop.requested else None
            finally:
                self._idle -= 1

    def _check(self, item: _Item) -> None:
        """Render a page, compare it, and once more if it seems changed: the whole way of a page."""
        steps = self._steps
        document = self._render(item.link, permitted=item.plain is None)
        if document is None:
            self._confirmer.add([] if item.plain is None else [item.plain])
            return
        (pair,) = steps.recall([document])
        if pair.old is not None and self._fetched_otherwise(item.link):
            pair.old = replace(pair.old, reading=FETCHED_OTHERWISE)
        (outcome,) = steps.compare([pair])
        if item.plain is not None and outcome.verdict is Verdict.FAILED:
            self._confirmer.add([item.plain])
            return
        if item.plain is not None:
            self._rendered.need_at(item.link.host)
        if outcome.verdict is Verdict.CHANGED and outcome.pair is not None:
            again = self._render(item.link, permitted=False)
            (outcome,) = [outcome] if again is None else steps.confirm([(outcome, again)])
        if outcome.version is None:
            outcome.document.screenshot = None
        self._recorder.add([outcome])

    def _render(self, link: Link, *, permitted: bool) -> Document | None:
        """What the browser shows, once its host may be asked; None if that wants to be left alone for long."""
        renderer = self._renderer
        assert renderer is not None
        if not permitted and not self._may_ask(link):
            return None
        document = renderer.render(_unproved(link))
        self._hosts.done([document])
        return document

    def _may_ask(self, link: Link) -> bool:
        woken = threading.Event()
        errands = self._hosts.errands(woken.set)
        self._hosts.run_errand(link, errands)
        while not self._given_up:
            if self._hosts.granted(errands, 1):
                return True
            if errands.refused:
                return False
            woken.wait(_LOOK)
            woken.clear()
        raise RunStopped("The run was stopped before a page could be rendered.")

    def _fetched_otherwise(self, link: Link) -> bool:
        """Whether the version in force came without a browser: what differs then may differ by that alone."""
        if link.known is None or link.render is None or link.render.mode is RenderMode.ALWAYS:
            return False  # who asks for a browser is no surprise, and was taken care of
        return not self._rendered.was_used(link.page_id, link.known.version)


def _unproved(link: Link) -> Link:
    """The same link without validators: what a server says of its answer says nothing of what scripts make of it."""
    known = link.known
    if known is None:
        return link
    return replace(link, known=Known(known.version, None, None, known.wire))
