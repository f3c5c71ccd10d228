"""The confirming fetch: a page that seems changed is fetched again next, and what differs then differs by itself."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from driftline.errors import RunStopped
from driftline.fetching.transfers import Transfers
from driftline.fetching.unsafe import NOTHING
from driftline.model import Link, Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.fetching.unsafe import Blocked
    from driftline.pipeline.consumers import ConsumerSteps
    from driftline.pipeline.polite import PoliteLinks
    from driftline.pipeline.recorder import Recorder
    from driftline.settings import Settings

_SLOTS = 32
_LOOK = 0.05  # seconds between looks at whether a host may be asked, for producers that have ended look no more
_PATIENCE = 0.5  # seconds between looks at whether to stop, when nothing happens


class Confirmer:
    """Stands before the recorder and lets everything through at once but changes, which are fetched again first.

    Its thread starts with the first change. It fetches with the same permission as the producers, before all that waits
    at the host. A change whose second fetch fails, or would have to wait for long, is recorded as it was found; one
    that a stop leaves unconfirmed is not recorded, and the next run finds it again.
    """

    def __init__(
        self, steps: ConsumerSteps, recorder: Recorder, settings: Settings, links: PoliteLinks,
        blocked: Blocked = NOTHING,
    ) -> None:  # fmt: skip
        self._steps = steps
        self._links = links
        self._recorder = recorder
        self._settings = settings
        self._blocked = blocked
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._waiting: list[_Unconfirmed] = []
        self._at_hand = 0
        self._closed = False
        self._give_up = False
        self._transfers: Transfers | None = None
        self._thread: threading.Thread | None = None
        self.error: Exception | None = None

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Record these, the changes among them once they are confirmed; waits while too many wait for that."""
        if not self._settings.confirm:
            self._recorder.add(outcomes)
            return
        changed = [outcome for outcome in outcomes if outcome.verdict is Verdict.CHANGED]
        if len(changed) < len(outcomes):
            self._recorder.add([outcome for outcome in outcomes if outcome.verdict is not Verdict.CHANGED])
        if not changed:
            return
        with self._lock:
            while self._at_hand > self._settings.capacity_bytes and not self._give_up:
                self._room.wait()
            if self._give_up:
                return
            unconfirmed = [_Unconfirmed(outcome, _weight(outcome)) for outcome in changed]
            self._waiting += unconfirmed
            self._at_hand += sum([one.weight for one in unconfirmed])
            if self._thread is None:
                self._transfers = Transfers(self._settings, blocked=self._blocked)
                self._thread = threading.Thread(target=self._work, name="confirmer", daemon=True)
                self._thread.start()
        if self._transfers is not None:
            self._transfers.wake()

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
        with self._lock:
            self._give_up = self._closed = True
            self._room.notify_all()
        if self._transfers is not None:
            self._transfers.wake()

    def _work(self) -> None:
        transfers = self._transfers
        assert transfers is not None
        try:
            self._confirm_all(transfers)
        except RunStopped:
            pass
        except Exception as error:  # noqa: BLE001 kept for the thread that tends this one: nobody else can hear it
            self.error = error
        finally:
            self.abandon()
            transfers.close()

    def _confirm_all(self, transfers: Transfers) -> None:
        links = self._links
        errands = links.errands(transfers.wake)
        open_ones: dict[int, _Unconfirmed] = {}
        while not self._give_up:
            with self._lock:
                more, self._waiting = self._waiting, []
            for one in more:
                link = one.outcome.document.link
                open_ones[link.page_id] = one
                links.run_errand(_again(link), errands)
            transfers.start(links.granted(errands, _SLOTS - transfers.active))
            refused = [open_ones.pop(errands.refused.popleft().page_id) for _ in range(len(errands.refused))]
            self._let_go([one.outcome for one in refused], refused)
            if not open_ones and self._closed:
                return
            documents = transfers.wait(_LOOK if len(open_ones) > transfers.active else _PATIENCE)
            if documents:
                pages = links.done(documents, errands)
                found = [(open_ones.pop(document.link.page_id), document) for document in pages]
                outcomes = self._steps.confirm([(one.outcome, document) for one, document in found])
                self._let_go(outcomes, [one for one, _ in found])

    def _let_go(self, outcomes: Sequence[Outcome], confirmed: Sequence[_Unconfirmed]) -> None:
        """Record these outcomes, and free the room of the changes that they were before they were confirmed."""
        if not confirmed:
            return
        self._recorder.add(outcomes)
        with self._lock:
            self._at_hand -= sum([one.weight for one in confirmed])
            self._room.notify_all()


class _Unconfirmed(NamedTuple):
    """A change to be fetched again, and the bytes it was counted with: confirming it frees them before it is let go."""

    outcome: Outcome
    weight: int


def _weight(outcome: Outcome) -> int:
    """The bytes that a change holds while it waits."""
    old = outcome.pair.old if outcome.pair else None
    blobs = (*(outcome.version.blobs if outcome.version else ()), *(old.blobs.values() if old else ()))
    return len(outcome.document.body) + sum([len(blob.data) for blob in blobs])


def _again(link: Link) -> Link:
    """The same link without validators: the answer must be the whole page."""
    return Link(link.page_id, link.url, link.sequence, None, access=link.access)
