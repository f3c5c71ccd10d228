"""The confirming fetch: a page that seems changed is fetched again, and what differs between both fetches is noise."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from driftline.capacity import Capacity
from driftline.errors import RunStopped
from driftline.fetch.curl import Transfers
from driftline.fetch.failures import NOTHING
from driftline.model.outcome import Changed, Link
from driftline.pipeline.recorder import weight_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from driftline.capacity import Reservation, ResourceUse
    from driftline.fetch.failures import Blocked
    from driftline.fetch.host import PriorityRequests
    from driftline.fetch.origins import LinkItem
    from driftline.fetch.politeness import PoliteLinks
    from driftline.model.outcome import Outcome
    from driftline.pipeline.consumer import ConfirmingSteps
    from driftline.pipeline.recorder import Recorder
    from driftline.settings import Settings

_SLOTS = 32
_LOOK = 0.05  # seconds between looks at whether a host may be contacted: no producer looks once all have ended
_PATIENCE = 0.5  # seconds between looks at whether to stop, when nothing happens

_LAST_WAIT = 2.0  # seconds


class Confirmer:
    """Passes outcomes on to the recorder: changes after a second fetch, all others at once.

    Its thread starts with the first change. It fetches with the same permission as the producers, before all that waits
    at the host. A change whose second fetch fails, or would have to wait for long, is recorded as it was found; one
    that a stop leaves unconfirmed is not recorded, and the next run finds it again.
    """

    def __init__(
        self, steps: ConfirmingSteps, recorder: Recorder[Outcome], settings: Settings, links: PoliteLinks,
        blocked: Blocked = NOTHING,
    ) -> None:  # fmt: skip
        self._steps = steps
        self._links = links
        self._recorder = recorder
        self._settings = settings
        self._blocked = blocked
        self._lock = threading.Lock()
        self._bytes = Capacity("unconfirmed changes: bytes", settings.capacity_bytes)
        self._waiting: list[_Unconfirmed] = []
        self._closed = False
        self._give_up = False
        self._transfers: Transfers | None = None
        self._thread: threading.Thread | None = None
        self.error: Exception | None = None

    def __repr__(self) -> str:
        # without the lock, for debugging: the numbers may be of slightly different moments
        return (
            f"<Confirmer waiting={len(self._waiting)} started={self._thread is not None} closed={self._closed} "
            f"given_up={self._give_up}>"
        )

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Record these, the changes among them once they are confirmed; waits while too many wait for that."""
        changed = [outcome for outcome in outcomes if isinstance(outcome, Changed)]
        if len(changed) < len(outcomes):
            self._recorder.add([outcome for outcome in outcomes if not isinstance(outcome, Changed)])
        for outcome in changed:
            room = self._bytes.acquire(weight_of(outcome))
            if room is None:
                return
            self._wait_with(_Unconfirmed(outcome, room))

    def statistics(self) -> ResourceUse:
        """Return how many bytes wait to be confirmed."""
        return self._bytes.statistics()

    def drain(self, give_up_at: Callable[[], float | None], given_up: Callable[[], None]) -> None:
        """Wait until everything is confirmed, or until the time at which `give_up_at` says that it is enough."""
        self._closed = True
        if self._transfers is not None:
            self._transfers.wake()
        while self._thread is not None and self._thread.is_alive():
            limit = give_up_at()
            if limit is not None and time.monotonic() > limit:
                self.abandon()
                given_up()
            self._thread.join(0.05 if limit is not None else _PATIENCE)

    def abandon(self) -> None:
        """Give up what is not confirmed yet."""
        self._bytes.close()
        with self._lock:
            self._give_up = self._closed = True
        if self._transfers is not None:
            self._transfers.wake()

    def close(self) -> None:
        """Give up what is left, and wait for the thread to end, unless it is held up by the store."""
        self.abandon()
        if self._thread is not None:
            self._thread.join(_LAST_WAIT)

    def _wait_with(self, change: _Unconfirmed) -> None:
        # made before the lock is taken, because that opens sockets; at most one of them is used
        made = Transfers(self._settings, blocked=self._blocked) if self._thread is None else None
        with self._lock:
            dropped = self._give_up
            if not dropped:
                self._waiting.append(change)
                if self._thread is None:
                    self._transfers, made = made, None
                    self._thread = threading.Thread(target=self._work, name="confirmer", daemon=True)
                    self._thread.start()
        if made is not None:
            made.close()
        if dropped:
            change.room.release()
        elif self._transfers is not None:
            self._transfers.wake()

    def _work(self) -> None:
        transfers = self._transfers
        assert transfers is not None
        requests = self._links.priority_requests(transfers.wake)
        unconfirmed: dict[int, _Unconfirmed] = {}
        try:
            self._confirm_all(transfers, requests, unconfirmed)
        except RunStopped:
            pass
        except Exception as error:  # noqa: BLE001 kept for the thread that supervises this one
            self.error = error
        finally:
            self.abandon()
            self._links.abandon(transfers.close())
            self._links.cancel(requests)
            with self._lock:
                left, self._waiting = self._waiting, []
            _release([*left, *unconfirmed.values()])

    def _confirm_all(
        self, transfers: Transfers, requests: PriorityRequests[LinkItem], unconfirmed: dict[int, _Unconfirmed]
    ) -> None:  # fmt: skip
        """Fetch each change again, until there are no more; `unconfirmed` are those that are not done, by page."""
        links = self._links
        while not self._give_up:
            with self._lock:
                more, self._waiting = self._waiting, []
            unconfirmed.update((change.outcome.document.link.page_id, change) for change in more)
            for change in more:
                links.request_first(_again(change.outcome.document.link), requests)
            links.start(links.granted(requests, _SLOTS - transfers.active), transfers)
            refused = [unconfirmed[requests.refused.popleft().page_id] for _ in range(len(requests.refused))]
            self._record([change.outcome for change in refused], refused, unconfirmed)
            if not unconfirmed and self._closed:
                return
            documents = transfers.wait(_LOOK if len(unconfirmed) > transfers.active else _PATIENCE)
            if documents:
                pages = links.done(documents, requests)
                changes = [unconfirmed[document.link.page_id] for document in pages]
                found = [(change.outcome, page) for change, page in zip(changes, pages, strict=True)]
                self._record(self._steps.confirm(found), changes, unconfirmed)

    def _record(
        self, outcomes: Sequence[Outcome], changes: Sequence[_Unconfirmed], unconfirmed: dict[int, _Unconfirmed]
    ) -> None:  # fmt: skip
        """Record the outcomes of these changes, which are confirmed now."""
        if changes:
            self._recorder.add(outcomes)
            for change in changes:
                del unconfirmed[change.outcome.document.link.page_id]
            _release(changes)


class _Unconfirmed(NamedTuple):
    """A change to be fetched again, with the room that it takes until then."""

    outcome: Changed
    room: Reservation


def _release(changes: Iterable[_Unconfirmed]) -> None:
    for change in changes:
        change.room.release()


def _again(link: Link) -> Link:
    """Return the link without validators: the answer must be the whole page."""
    return Link(link.page_id, link.url, link.sequence, None, link.filters, access=link.access)
