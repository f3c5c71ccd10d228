"""Sources of links: a queue of given pages, and a feed to which pages are offered for as long as a run lasts.

Locks: both hold theirs for memory alone. The store and callbacks are called without any, so that a database that does
not answer holds up the thread that waits for it and no other.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from driftline.errors import StoreUnavailable
from driftline.store.process_locks import RegainedRight

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from driftline.model.outcome import Link
    from driftline.store.process_locks import Having


class LinkQueue:
    """The links of a run over given pages, drawn from `source` only as they are wanted. Used by any thread."""

    def __init__(self, source: Iterator[Link]) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._reading = self._missed = False  # whether a thread draws links, and whether another found it doing so
        self._exhausted = self._closed = False
        self._wake: Callable[[], None] = lambda: None

    def __repr__(self) -> str:
        return f"<LinkQueue reading={self._reading} exhausted={self.exhausted}>"

    def take(self, most: int) -> list[Link]:
        """Return up to `most` links; fewer when there are no more, and none while another thread draws some."""
        with self._lock:
            if self._reading or self.exhausted:
                self._missed |= self._reading
                return []
            self._reading = True
        try:
            links = list(islice(self._source, most))
            self._exhausted = len(links) < most
        finally:
            with self._lock:
                self._reading = False
                missed, self._missed = self._missed, False
            if missed:
                self._wake()
        return [] if self._closed else links

    def put_off(self, page_ids: Sequence[int], seconds: float) -> None:
        """Do nothing: what is not recorded is left to the next run."""

    def close(self) -> None:
        """Hand out nothing more. Does not wait for `take`, which may be reading from a store that does not answer."""
        self._closed = True

    @property
    def exhausted(self) -> bool:
        """Whether there is nothing more to hand out."""
        return self._closed or self._exhausted

    def listen(self, wake: Callable[[], None], give_back: Callable[[], list[int]]) -> None:
        """Call `wake` when there may be links for a thread that got none. Pages are never taken back."""
        del give_back
        self._wake = wake


class RightListener(Protocol):
    """Is notified of the right to check pages."""

    def right_taken(self) -> None:
        """Do what has to be done after the right was taken, before any page is offered."""


_FEWEST = 256  # pages that may wait, however slowly they are taken


class Feed:
    """The queue between the planner and the pipeline of `run`. Used by any thread.

    A page is held from when it is offered until its outcome is recorded, so that it is never queued twice.

    A page waits until a producer wants it. Only then its link is made, by `links`, of what the store knows of the page
    at that moment; a page that is not watched any more is settled by that. The `right` to check pages is held as long
    as any page is, so that other processes can check theirs while there is nothing to do.

    A page that is put off, because its host asked for a pause, is held for so long and needs no right. `wanted` says
    whether another process waits for the right.
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
        self._right_changed = threading.Condition(self._lock)
        self._changing_right = False  # whether a thread takes the right, or gives it back
        self._waiting: deque[int] = deque()
        self._held: set[int] = set()
        self._settled: dict[int, None] = {}  # in the order in which they were
        self._claims = 0
        self._taken = self._taken_before = 0
        self._ended = self._closed = False
        self._wake: Callable[[], None] = lambda: None
        self._give_back: Callable[[], list[int]] = list
        self._listener: RightListener | None = None

    def __repr__(self) -> str:
        # without the lock: figures of different moments do no harm
        return (
            f"<Feed waiting={len(self._waiting)} held={len(self._held)} put_off={len(self._put_off)} {self._right!r}>"
        )

    def __len__(self) -> int:
        """Return how many pages wait or are being checked."""
        return len(self._held) - len(self._settled) - len(self._put_off)

    @property
    def idle(self) -> bool:
        """Whether no page waits or is being checked, and the right to check pages was given back."""
        return not len(self) and not self._changing_right and not self._right.holds()

    def held(self) -> list[int]:
        """Return the pages that wait, are being checked or are put off."""
        with self._lock:
            now = self._ticks()
            over = [page_id for page_id, until in self._put_off.items() if until <= now]
            self._held.difference_update(over)
            for page_id in over:
                del self._put_off[page_id]
            return [*self._held]

    def next_portion(self) -> int:
        """Return how many more pages to offer now, to a caller that asks about once a second.

        At most twice as many may wait as were taken since the last call: what was offered first is to be checked soon,
        or decided anew.
        """
        with self._lock:
            lately, self._taken_before = self._taken - self._taken_before, self._taken
            return max(0, max(_FEWEST, 2 * lately) - len(self._waiting))

    def offer(self, page_ids: Iterable[int]) -> None:
        """Have these pages checked, in this order, after those that wait; one that is held already is left out.

        Raises StoreBusy, and takes none of them over, if another process has the right to check pages.
        """
        with self.claimed(), self._lock:
            for page_id in page_ids:
                if page_id not in self._held:
                    self._held.add(page_id)
                    self._waiting.append(page_id)
        self._wake()

    def make_way(self) -> list[int] | None:
        """Let another process have the right to check that wants it, as soon as what is being fetched is settled.

        Returns the pages that are withdrawn for that; None if no process waits.
        """
        return self.withdraw() if self._wanted() else None

    def withdraw(self) -> list[int]:
        """Release pages not started yet. Returns their ids."""
        with self._lock:
            page_ids = [*self._waiting]
            self._waiting.clear()
            self._held.difference_update(page_ids)
        self._release_if_idle()
        return page_ids + self._give_back()

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold the right to check pages for a block in which it is decided what to offer; StoreBusy as for an offer.

        Raises StoreUnavailable if it was held, and lost meanwhile: another process may be checking the same pages.
        """
        with self._lock:
            self._right_changed.wait_for(self._right_is_settled)
            held = bool(len(self) or self._claims)
            self._changing_right = not held
            self._claims += held
        if not held:
            self._take_right()
        try:
            if held and not self._right.holds():
                raise StoreUnavailable("The right to check pages was lost while the database did not answer.")
            yield
        finally:
            with self._lock:
                self._claims -= 1
            self._release_if_idle()

    def _take_right(self) -> None:
        """Take the right for a claim, and notify the listener. Called by the one thread that may change the right."""
        claims = 0
        try:
            self._right.take()
            try:
                if self._listener is not None:
                    self._listener.right_taken()
            except BaseException:
                self._right.give_back()
                raise
            claims = 1
        finally:
            self._settle_right(claims)

    def settle(self, page_ids: Iterable[int]) -> None:
        """Note that these pages were checked and recorded, or are not watched any more; others are ignored."""
        with self._lock:
            held = [page_id for page_id in page_ids if page_id in self._held]
            self._settled.update(dict.fromkeys(held))
            for page_id in held:
                self._put_off.pop(page_id, None)  # the next run may have put off what the last commit of one settles
        self._release_if_idle()

    def put_off(self, page_ids: Sequence[int], seconds: float) -> None:
        """Do not check these pages for so many seconds. Those that are not held were withdrawn meanwhile."""
        with self._lock:
            held = (page_id for page_id in page_ids if page_id in self._held and page_id not in self._settled)
            self._put_off.update(dict.fromkeys(held, self._ticks() + seconds))
        self._release_if_idle()

    def settled(self) -> list[int]:
        """Return the pages that were settled since the last call. From now on they may be offered again."""
        with self._lock:
            page_ids, self._settled = [*self._settled], {}
            self._held.difference_update(page_ids)
            return page_ids

    def unchecked(self) -> list[int]:
        """Return the pages that wait or are being checked."""
        with self._lock:
            return [*self._held.difference(self._settled, self._put_off)]

    def put_off_for_now(self) -> int:
        """Return how many pages are put off."""
        self.held()
        return len(self._put_off)

    def give_up(self) -> None:
        """Give back the right to check, once nothing works on any page any more."""
        self._right.give_back()

    def may_fetch(self) -> bool:
        """Return whether pages may be fetched: not once the right to check them was lost."""
        return not self._right.lapsed()

    def restart(self, stopped: Callable[[], bool]) -> None:
        """Let all pages that are held be checked from the start, by a run that takes over from one that failed.

        Waits for the right to check them if it was lost. Raises RunStopped if the run is `stopped` meanwhile.
        """
        with self._lock:
            waiting = {*self._waiting, *self._settled, *self._put_off}
            self._waiting.extendleft(page_id for page_id in self._held if page_id not in waiting)
            self._closed = False
            self._wake, self._give_back = lambda: None, list  # the run that failed has nothing to give back any more
            needed = bool(len(self) or self._claims)
        if needed and not self._right.holds():
            self._right.regain(stopped)
            self._release_if_idle()  # all pages may have been withdrawn meanwhile

    def end(self) -> None:
        """Note that nothing more will be offered: what waits is handed out, then the links are exhausted."""
        self._ended = True
        self._wake()

    def take(self, most: int) -> list[Link]:
        """Return up to `most` links, without waiting for any."""
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
        """Call `wake` whenever there may be more to take, and `give_back` to take back pages that still wait."""
        self._wake = wake
        self._give_back = give_back

    def notify_of_right(self, listener: RightListener) -> None:
        """Notify this listener whenever the right to check was taken; at once if it is held."""
        with self._lock:
            self._right_changed.wait_for(self._right_is_settled)
            self._listener = listener
            held = self._changing_right = bool(len(self) or self._claims)
        if held:
            try:
                listener.right_taken()
            finally:
                self._settle_right()
                self._release_if_idle()

    def _release_if_idle(self) -> None:
        """Give the right back if no page needs it."""
        with self._lock:
            if len(self) or self._claims or self._changing_right:
                return  # a thread that changes the right comes here afterwards
            self._changing_right = True
        try:
            self._right.give_back()
        finally:
            self._settle_right()

    def _right_is_settled(self) -> bool:
        return not self._changing_right

    def _settle_right(self, claims: int = 0) -> None:
        with self._lock:
            self._claims += claims
            self._changing_right = False
            self._right_changed.notify_all()
