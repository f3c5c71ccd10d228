"""The link queue: what is left to crawl, handed out to producers."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

from driftline.errors import StoreUnavailable
from driftline.store.process_locks import RegainedRight

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from driftline.model import Link
    from driftline.store.process_locks import Having


class LinkQueue:
    """The links of a run over given pages, which are drawn from `source` only as they are wanted."""

    def __init__(self, source: Iterator[Link]) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._exhausted = self._closed = False

    def take(self, most: int) -> list[Link]:
        """Up to `most` links; fewer, or none, only when there are no more."""
        with self._lock:
            if self.exhausted:
                return []
            links = list(islice(self._source, most))
            self._exhausted = len(links) < most
            return [] if self._closed else links

    def put_off(self, page_ids: Sequence[int], seconds: float) -> None:
        """Nothing to be done: what is not recorded is left to the next run."""

    def close(self) -> None:
        """Hand out nothing more. Waits for nobody: `take` may be reading from a store that does not answer."""
        self._closed = True

    @property
    def exhausted(self) -> bool:
        """Whether there is nothing more to hand out."""
        return self._closed or self._exhausted

    def listen(self, wake: Callable[[], None], give_back: Callable[[], list[int]]) -> None:
        """Nothing comes later that somebody would have to be told of."""


_FEWEST = 256  # pages that may wait, however slowly they are taken


class Feed:
    """Holds the pages that were offered, each once, from then until it is settled.

    A page waits until a producer wants it. Only then its link is made, by `links`, of what the store knows of the page
    at that moment; a page that is not there any more is settled by that. The `right` to check pages is held as long as
    any page is, so that others have their turn while there is nothing to do. Used by any thread.

    A page that is put off, for its host wants to be left alone, is held for so long and needs no right. `wanted` says
    whether somebody else waits for the right.
    """

    def __init__(
        self, links: Callable[[Sequence[int]], list[Link]], right: Callable[[], Having],
        ticks: Callable[[], float] = time.monotonic, wanted: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        self._wanted = wanted
        self._ticks = ticks
        self._put_off: dict[int, float] = {}
        self._links = links
        self._right = RegainedRight(right)
        self._lock = threading.Lock()
        self._waiting: deque[int] = deque()
        self._held: set[int] = set()
        self._settled: dict[int, None] = {}  # in the order in which they were
        self._claims = 0
        self._taken = self._taken_before = 0
        self._ended = self._closed = False
        self._wake: Callable[[], None] = lambda: None
        self._give_back: Callable[[], list[int]] = list
        self._begin_turn: Callable[[], None] = lambda: None

    def __len__(self) -> int:
        """How many pages wait or are being checked."""
        return len(self._held) - len(self._settled) - len(self._put_off)

    def held(self) -> list[int]:
        """The pages that wait, are being checked or are put off."""
        with self._lock:
            now = self._ticks()
            over = [page_id for page_id, until in self._put_off.items() if until <= now]
            self._held.difference_update(over)
            for page_id in over:
                del self._put_off[page_id]
            return [*self._held]

    def next_portion(self) -> int:
        """How many more pages to offer now, for somebody who asks about once a second.

        No more wait than twice as many as were taken since it was last asked: who decides what comes first wants that
        done soon, or decided anew.
        """
        with self._lock:
            lately, self._taken_before = self._taken - self._taken_before, self._taken
            return max(0, max(_FEWEST, 2 * lately) - len(self._waiting))

    def offer(self, page_ids: Iterable[int]) -> None:
        """Have these pages checked, in this order, after those that wait; one that is held already is left out.

        StoreBusy, and none of them taken over, if another process has the right to check pages.
        """
        with self.claimed(), self._lock:
            for page_id in page_ids:
                if page_id not in self._held:
                    self._held.add(page_id)
                    self._waiting.append(page_id)
        self._wake()

    def make_way(self) -> list[int] | None:
        """Let somebody else have the right to check who wants it, as soon as what is being fetched is settled.

        What is withdrawn for that; None if there is nobody.
        """
        return self.withdraw() if self._wanted() else None

    def withdraw(self) -> list[int]:
        """Let go of the pages that nobody has begun with; which these are."""
        with self._lock:
            page_ids = [*self._waiting]
            self._waiting.clear()
            self._held.difference_update(page_ids)
            self._release_if_idle()
        return page_ids + self._give_back()

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold the right to check pages for a block in which it is decided what to offer; StoreBusy as for an offer.

        StoreUnavailable if it was held, and lost meanwhile: somebody else may be checking the same pages.
        """
        with self._lock:
            if not len(self) and not self._claims:
                self._right.take()
                try:
                    self._begin_turn()
                except BaseException:
                    self._right.give_back()
                    raise
            elif not self._right.holds():
                raise StoreUnavailable("The right to check pages was lost while the database did not answer.")
            self._claims += 1
        try:
            yield
        finally:
            with self._lock:
                self._claims -= 1
                self._release_if_idle()

    def settle(self, page_ids: Iterable[int]) -> None:
        """These pages were checked and recorded, or are no more; one that is not held was given up meanwhile."""
        with self._lock:
            held = [page_id for page_id in page_ids if page_id in self._held]
            self._settled.update(dict.fromkeys(held))
            for page_id in held:
                self._put_off.pop(page_id, None)  # the next run may have put off what the last commit of one settles
            self._release_if_idle()

    def put_off(self, page_ids: Sequence[int], seconds: float) -> None:
        """These pages are not checked for now; they may be offered again after so many seconds.

        Those that are not held were withdrawn meanwhile.
        """
        with self._lock:
            held = (page_id for page_id in page_ids if page_id in self._held and page_id not in self._settled)
            self._put_off.update(dict.fromkeys(held, self._ticks() + seconds))
            self._release_if_idle()

    def settled(self) -> list[int]:
        """The pages that were settled since this was last asked; from now on they may be offered again."""
        with self._lock:
            page_ids, self._settled = [*self._settled], {}
            self._held.difference_update(page_ids)
            return page_ids

    def unchecked(self) -> list[int]:
        """The pages that wait or are being checked."""
        with self._lock:
            return [*self._held.difference(self._settled, self._put_off)]

    def put_off_for_now(self) -> int:
        """How many pages are put off."""
        self.held()
        return len(self._put_off)

    def give_up(self) -> None:
        """Let go of the right to check, once nothing works on any page any more."""
        with self._lock:
            self._right.give_back()

    def may_fetch(self) -> bool:
        """Whether pages may be fetched: not once the right to check them, where it is needed, cannot be relied on."""
        return not self._right.lapsed()

    def restart(self, stopped: Callable[[], bool]) -> None:
        """Let all pages that are held be checked from the start, by a run that takes over from one that failed.

        Waits for the right to check them if it was lost; RunStopped if the run is `stopped` before it is there.
        """
        with self._lock:
            waiting = {*self._waiting, *self._settled, *self._put_off}
            self._waiting.extendleft(page_id for page_id in self._held if page_id not in waiting)
            self._closed = False
            self._wake, self._give_back = lambda: None, list  # the run that failed has nothing to give back any more
            needed = bool(len(self) or self._claims)
        if needed and not self._right.holds():
            self._right.regain(stopped)
            with self._lock:
                self._release_if_idle()  # all pages may have been withdrawn meanwhile

    def end(self) -> None:
        """Nothing more will be offered: what waits is handed out, then the links are exhausted."""
        self._ended = True
        self._wake()

    def take(self, most: int) -> list[Link]:
        """Up to `most` links, without waiting for any."""
        with self._lock:
            count = 0 if self._closed else min(most, len(self._waiting))
            page_ids = [self._waiting.popleft() for _ in range(count)]
            self._taken += count
        if not page_ids:
            return []
        links = self._links(page_ids)
        if len(links) < len(page_ids):
            self.settle(set(page_ids) - {link.page_id for link in links})
        return links

    def close(self) -> None:
        """Hand out nothing more."""
        self._closed = True

    @property
    def exhausted(self) -> bool:
        """Whether there never is anything more to hand out."""
        return self._closed or (self._ended and not self._waiting)

    def listen(self, wake: Callable[[], None], give_back: Callable[[], list[int]]) -> None:
        """Call `wake` whenever there may be more to take, and `give_back` to have pages back that only wait by now."""
        self._wake = wake
        self._give_back = give_back

    def on_turn(self, begin: Callable[[], None]) -> None:
        """Call `begin` whenever the right to check was taken, before any page is offered; at once if it is held."""
        with self._lock:
            self._begin_turn = begin
            if len(self) or self._claims:
                begin()

    def _release_if_idle(self) -> None:
        if not len(self) and not self._claims:
            self._right.give_back()
