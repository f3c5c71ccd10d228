"""The watcher as an iterator of events, for Python programs."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from driftline.watch.service import Watcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from driftline.model import Event
    from driftline.pipeline.stop import Stop
    from driftline.store.events import EventLog, EventReader
    from driftline.watch.publisher import EventListener
    from driftline.watch.service import WatchList, WatchOptions

READER = "library"  # the name of this reader of the event log


class _Events:
    """A watcher in a thread of its own, and the reader of its events."""

    def __init__(self, watch_list: WatchList, options: WatchOptions, stop: Stop) -> None:
        self.reader: EventReader | None = None
        self.error: Exception | None = None
        self._changed = threading.Event()
        self._watcher = Watcher(watch_list, options, self._opened, stop, remark=lambda _: None)
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
        self._thread.start()

    @contextmanager
    def _opened(self, log: EventLog) -> Iterator[Sequence[EventListener]]:
        self.reader = log.reader(READER)
        yield [self]

    def wake(self) -> None:
        self._changed.set()

    def _run(self) -> None:
        try:
            self._watcher.run()
        except Exception as error:  # noqa: BLE001 raised where the events are read
            self.error = error
        finally:
            self._changed.set()

    def wait(self) -> bool:
        """Wait until there may be new events; return whether the watcher is still at work."""
        self._changed.wait()
        self._changed.clear()
        return self._thread.is_alive()

    def join(self) -> None:
        self._thread.join()


def watch_events(watch_list: WatchList, options: WatchOptions, stop: Stop) -> Iterator[Event]:
    """Yield the events of a watcher until it is stopped or the iterator is closed; raise what ended it otherwise."""
    events = _Events(watch_list, options, stop)
    try:
        at_work = True
        while at_work:
            at_work = events.wait()
            while events.reader is not None and (found := events.reader.read()):
                for event in found:
                    yield event
                    events.reader.advance(event)
                    if stop.requested:
                        return
    finally:
        stop.request()
        events.join()
    if events.error is not None:
        raise events.error
