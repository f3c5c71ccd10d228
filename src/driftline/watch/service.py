"""A run without an end, in a thread of its own, for somebody who feeds it."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from driftline.errors import RunStalled, RunStopped, StoreBusy, StoreUnavailable
from driftline.store.locks import patiently

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from driftline.model import Outcome
    from driftline.pipeline.check_run import Run
    from driftline.pipeline.sources import Feed
    from driftline.pipeline.stop import Stop
    from driftline.store.process_locks import Claim, Having


class EndlessRun:
    """Checks what its feed is offered, for the time of a `with` block, in which it has the `right` to be the only one.

    Two of them would share the pages, and each would tell what changed on those that it happened to check.

    At the end of the block what was offered is checked to the end, unless a stop was requested or the block raised:
    then what is in flight gets its grace, and `left` says how many pages of those offered were not checked. Others were
    `put_off`, for their hosts want to be left alone. What ended the run early is raised there.
    """

    def __init__(
        self, run: Run, feed: Feed, stop: Stop, told: Callable[[Sequence[Outcome]], None],
        right: Callable[[], Having], slow: Callable[[str, int, float], None] | None = None,
    ) -> None:  # fmt: skip
        self.feed = feed
        self.left = self.put_off = 0
        self._run = run
        self._stop = stop
        self._told = told
        self._slow = slow
        self._right = right
        self._rights = ExitStack()
        self._claim: Claim | None = None
        self._bell = stop.listen()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, name="pipeline", daemon=True)

    def __enter__(self) -> Self:
        self._claim = patiently(lambda: self._rights.enter_context(self._right()), lambda: self._stop.requested)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._stop.request()
        self.feed.end()
        self._thread.join()
        self.feed.give_up()
        self.left, self.put_off = len(self.feed), self.feed.put_off_for_now()
        self._rights.close()
        self._stop.unlisten(self._bell)
        if self._error is not None and kind is None:
            raise self._error

    @property
    def at_work(self) -> bool:
        """Whether what is offered will be checked: not once a stop was requested or something failed."""
        return self._thread.is_alive() and not self._stop.requested

    def wait(self, seconds: float) -> None:
        """Return after so long, or when it is not at work any more; StoreBusy if another run has taken its place."""
        if self._claim is not None and self._claim.lost:
            raise StoreBusy("Another 'driftline run' has taken over while the database could not be reached.")
        self._bell.wait(seconds)

    def _work(self) -> None:
        try:
            self._check_offered()
        except RunStopped:
            pass
        except Exception as error:  # noqa: BLE001 raised at the end of the block: nobody else can hear it
            self._error = error
        finally:
            self._bell.ring()

    def _check_offered(self) -> None:
        """Check what is offered, with another pipeline if one was cut short by an outage of the store or stalled."""
        while True:
            try:
                self._run.check_offered(self.feed, self._told, self._slow)
            except (StoreUnavailable, RunStalled):
                if self._stop.requested:
                    raise
                self.feed.restart(lambda: self._stop.requested)
            else:
                return
