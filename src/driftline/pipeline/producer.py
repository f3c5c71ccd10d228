"""Section 1: threads that fetch, each with a number of transfers in flight."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from driftline.fetch.curl import Transfers
from driftline.fetch.failures import NOTHING
from driftline.pipeline.stop import SupervisedThread

if TYPE_CHECKING:
    from collections.abc import Callable

    from driftline.fetch.failures import Blocked
    from driftline.fetch.politeness import PoliteLinks
    from driftline.model.outcome import Document, Link
    from driftline.pipeline.queue import BoundedQueue
    from driftline.settings import Settings

_PATIENCE = 0.5  # seconds between looks at whether to stop, when nothing happens
_WITHOUT_ROOM = 0.02  # seconds between looks at the queue while it has no room for more


class Producer:
    """One thread that keeps up to `slots` transfers in flight. With one slot it is exactly the paper's producer.

    `prove` deals with the documents that need no consumer, and returns the others; so does `divert` with the links
    that are not for it.
    """

    def __init__(
        self, *, links: PoliteLinks, queue: BoundedQueue[Document], settings: Settings, slots: int,
        clock: Callable[[], float], ended: Callable[[], None],
        prove: Callable[[list[Document]], list[Document]] | None = None,
        divert: Callable[[list[Link]], list[Link]] | None = None, blocked: Blocked = NOTHING,
    ) -> None:  # fmt: skip
        self._divert = divert
        self._links = links
        self._room = queue.slots()
        self._transfers = Transfers(settings, clock, blocked=blocked)
        self._slots = slots
        self._kept_alive = 0
        self._give_up_at: float | None = None
        self._finished = 0
        self._troubled = 0
        self._latency = 0.0
        self._hungry = 0
        self._prove = prove
        self._settled = 0
        self.thread = SupervisedThread("producer", self._work, ended)

    def __repr__(self) -> str:
        stopping = "" if self._give_up_at is None else " stopping"
        return (
            f"<Producer active={self._transfers.active}/{self._slots} finished={self._finished}"
            f" settled={self._settled}{stopping} {self.thread!r}>"
        )

    def resize(self, slots: int) -> None:
        """Change how many transfers may be in flight from now on."""
        grew = slots > self._slots
        self._slots = slots
        if grew:
            self._transfers.wake()

    def wake(self) -> None:
        """Look for links now: there may be more."""
        self._transfers.wake()

    def stop(self, grace: float) -> None:
        """Take no more links, and give up what is still in flight after `grace` seconds."""
        self._give_up_at = time.monotonic() + grace
        self._transfers.wake()

    def figures(self) -> tuple[int, int, int, int, float]:
        """Return how many transfers finished, how many of them are settled, how many point to overload, how often there
        were fewer links than slots, and the seconds that the transfers took.
        """
        return self._finished, self._settled, self._troubled, self._hungry, self._latency

    def _work(self) -> None:
        transfers = self._transfers
        try:
            self._fetch(transfers)
        finally:
            self._links.abandon(transfers.close())
            self._room.close()

    def _fetch(self, transfers: Transfers) -> None:
        while True:
            stopping = self._give_up_at is not None
            short = False if stopping else self._refill()
            if not transfers.active and (stopping or self._links.exhausted):
                return
            if stopping and time.monotonic() >= (self._give_up_at or 0.0):
                return
            documents = transfers.wait(_WITHOUT_ROOM if short or stopping else self._patience())
            if documents:
                self._count(documents)
                pages = self._links.done(documents)
                self._room.release(len(documents) - len(pages))
                self._hand_over(pages)

    def _patience(self) -> float:
        """Return the seconds to wait for something to happen: fewer if a slot is free and a link will be available."""
        wait = self._links.next_in() if self._transfers.active < self._slots else None
        return _PATIENCE if wait is None else min(_PATIENCE, wait)

    def _hand_over(self, documents: list[Document]) -> None:
        left = documents if self._prove is None else self._prove(documents)
        if left:
            self._room.put(left)
        if len(left) < len(documents):
            self._settled += len(documents) - len(left)
            self._room.release(len(documents) - len(left))

    def _refill(self) -> bool:
        """Put more links in flight; whether the queue had no room for as many as there are slots."""
        if self._slots != self._kept_alive:
            self._kept_alive = self._slots
            self._transfers.keep_alive(self._slots)
        free = self._slots - self._transfers.active
        if free <= 0:
            return False
        if self._links.exhausted:
            self._hungry += 1
            return False
        granted = self._room.reserve(free, wait=not self._transfers.active)
        if granted:
            links = self._links.take(granted)
            self._hungry += len(links) < granted
            own = links if self._divert is None else self._divert(links)
            self._room.release(granted - len(own))
            self._links.start(own, self._transfers)
            granted -= len(links) - len(own)  # slots that are still free are filled at once
        return granted < free

    def _count(self, documents: list[Document]) -> None:
        self._finished += len(documents)
        self._latency += sum([document.seconds for document in documents])
        failures = [document.failure for document in documents if document.failure is not None]
        self._troubled += sum([failure.points_to_overload for failure in failures])
