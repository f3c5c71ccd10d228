"""Publishing what a run finds: the outbox is grouped into events two seconds later, and readers are woken.

The wait is for other findings with the same cause: the same edit on many pages, a host that is down with all its pages.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, Self

from driftline.errors import StoreError
from driftline.model.change import Importance
from driftline.model.outcome import changes_to_report
from driftline.pipeline.grouping import events_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from driftline.model.outcome import Recorded
    from driftline.pipeline.stop import Stop
    from driftline.store.events import Group

_LOG = logging.getLogger(__name__)

_TOGETHER = 2.0  # seconds that a finding waits for others with the same cause
_LONGEST = 30.0  # seconds that noise waits while more of it comes: it is an event only if many pages share it
_NONE = -math.inf  # a time before all noise
_LOOK = 0.2  # seconds between looks at whether a stop was requested
_POLL = 5.0  # seconds between looks at what other processes have recorded


class OutboxLog(Protocol):
    """Where events are published."""

    def publish(self, group: Group, *, noise_until: float) -> int:
        """Turn the outbox into events and return how many; leave noise that `run` found later than `noise_until`."""


class EventListener(Protocol):
    """A reader of the event log in this process."""

    def wake(self) -> None:
        """Read the log: there may be new events in it."""


class ReaderThread:
    """Reads the log in a thread of its own whenever it is woken, so that a slow reader holds up nothing else.

    A store that is away is tried again. Any other error ends the run, and is in `error` for its end: a run whose reader
    is gone would go on, and report nothing.
    """

    def __init__(self, read: Callable[[], None], name: str, stop: Stop) -> None:
        self.error: Exception | None = None
        self._read = read
        self._stop = stop
        self._changed = threading.Condition()
        self._awake = self._ending = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        state = f"awake={self._awake} ending={self._ending} error={self.error!r}"
        return f"<ReaderThread {self._thread.name!r} {state}>"

    def wake(self) -> None:
        """Have the log read soon."""
        with self._changed:
            self._awake = True
            self._changed.notify()

    def close(self, time_left: Callable[[], float | None]) -> bool:
        """End, and return whether the reader has returned.

        `time_left` says how many seconds it may still take; None is as long as it needs.
        """
        with self._changed:
            self._ending = True
            self._changed.notify()
        while self._thread.is_alive():
            left = time_left()
            if left == 0:
                return False
            self._thread.join(_LOOK if left is None else min(_LOOK, left))
        return True

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._awake and not self._ending:
                    self._changed.wait()
                if self._ending:
                    return
                self._awake = False
            try:
                self._read()
            except StoreError as error:
                _LOG.info("events could not be read: %s", error)
            except Exception as error:  # noqa: BLE001 raised where the run ends: nobody else can see it
                self.error = error
                self._stop.request()
                return


class Publisher:
    """Publishes what is recorded, in a thread of its own, for the time of a `with` block.

    At the end of the block everything is published that is recorded by then. What cannot be published because the
    store is away stays in the outbox, for the next run. Any other error ends the run and is raised there.
    """

    def __init__(
        self,
        log: OutboxLog,
        listeners: Sequence[EventListener],
        stop: Stop,
        ticks: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._log = log
        self._listeners = listeners
        self._stop = stop
        self._ticks = ticks
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._due_at: float | None = ticks()  # what an earlier run recorded is published at once
        self._first_noise = self._last_noise = 0.0
        self._noise = 0  # changes that are noise and wait for others with the same cause
        # when the newest of them was fetched: what is recorded while the log is being written must wait for its own
        self._noise_until = clock()  # at first, all that an earlier run left
        self._poll_at = ticks()
        self._ending = False
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, name="publisher", daemon=True)

    def __repr__(self) -> str:
        return f"<Publisher due_at={self._due_at} noise={self._noise} listeners={len(self._listeners)}>"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._ending = True
            self._changed.notify()
        self._thread.join()
        if self._error is None:
            with suppress(StoreError):
                self._publish(math.inf)
        elif kind is None:
            raise self._error

    def note_findings(self, recorded: Recorded) -> None:
        """Publish what these outcomes, which were just committed, found; soon, and in the publisher's thread."""
        changes = changes_to_report(recorded.notable)
        noise = [one.document.fetched_at for one in changes if one.change.importance is Importance.NOISE]
        if not changes and not recorded.turned and not recorded.dangers and not recorded.ignored:
            return
        with self._lock:
            now = self._ticks()
            if noise:
                self._first_noise = self._first_noise if self._noise else now
                self._last_noise = now
                self._noise += len(noise)
                self._noise_until = max(self._noise_until, *noise)
            if self._due_at is None:
                self._due_at = now + _TOGETHER
                self._changed.notify()

    def wake(self) -> None:
        """Publish now, and have the readers look at the log."""
        with self._lock:
            self._due_at = self._ticks()
            self._changed.notify()

    def tick(self) -> float:
        """Publish what is due; return the seconds until something may be due again."""
        with self._lock:
            now = self._ticks()
            due = self._due_at is not None and self._due_at <= now
            ripe = not self._noise or min(self._last_noise + _TOGETHER, self._first_noise + _LONGEST) <= now
            look = due or self._poll_at <= now
            if look:
                self._poll_at = now + _POLL
            if due:
                self._due_at = now + _TOGETHER if self._noise and not ripe else None
            until = self._noise_until if ripe else _NONE
            if look and ripe:
                self._noise = 0
        if look:
            self._publish(until)
        with self._lock:
            if look and ripe and not self._noise:
                self._noise_until = _NONE
            following = self._poll_at if self._due_at is None else min(self._due_at, self._poll_at)
            return max(0.0, following - self._ticks())

    def _publish(self, noise_until: float) -> None:
        published = self._log.publish(events_of, noise_until=noise_until)
        if published:
            _LOG.debug("published %d events", published)
        for listener in self._listeners:
            listener.wake()

    def _work(self) -> None:
        try:
            while True:
                try:
                    pause = self.tick()
                except StoreError as error:
                    _LOG.info("events could not be published: %s", error)
                    pause = _POLL
                with self._lock:
                    if self._due_at is not None:  # it may have been set since the tick
                        pause = min(pause, max(0.0, self._due_at - self._ticks()))
                    if not self._ending and pause:
                        self._changed.wait(pause)
                    if self._ending:
                        return
        except Exception as error:  # noqa: BLE001 raised at the end of the block: nobody else can see it
            self._error = error
            self._stop.request()
