"""A watchdog over a run: whether anything is recorded while there is work, and if not, who waits for what."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from driftline.capacity import Capacity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from driftline.capacity import ResourceUse
    from driftline.pipeline.threads import Parts

_PACKAGE = str(Path(__file__).parent.parent)
_LOOKS = 20  # that are taken in the time after which a run counts as stalled


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """What was seen when nothing had been recorded for so many seconds."""

    seconds: float
    threads: tuple[str, ...]
    resources: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"Nothing was recorded for {self.seconds:.0f} s although there is work to do.", "Threads:"]
        lines += [f"  {line}" for line in self.threads]
        lines += ["Resources:", *[f"  {line}" for line in self.resources]]
        return "\n".join(lines)


class Watchdog:
    """Calls `stalled` once if a run with work to do records nothing for `after` seconds; `progress` is a record.

    There is work to do while something is queued, read, written or waited for, or a host may be asked, also for the
    second fetch of a page, and none is: a request that is on its way ends by its own time-out. So does a page that a
    worker process reads, by its deadline: until then only the recorder is expected to go on. Nobody is to blame while
    the run is `excused`: its store is locked by another program, or cannot be reached.
    """

    def __init__(
        self, parts: Parts, after: float, stalled: Callable[[Stall], None], excused: Callable[[], bool],
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._parts = parts
        self._after = after
        self._stalled = stalled
        self._excused = excused
        self._ticks = ticks
        self._since = ticks()

    def progress(self) -> None:
        """Note that something was recorded."""
        self._since = self._ticks()

    def look(self) -> bool:
        """See whether the run stalls. Returns True once it does, after `stalled` was called."""
        resources = self._parts.resources()
        if self._excused() or not self._has_work(resources):
            self._since = self._ticks()
            return False
        seconds = self._ticks() - self._since
        if seconds < self._after:
            return False
        self._stalled(Stall(seconds=seconds, threads=tuple(threads_at()), resources=tuple(map(str, resources))))
        return True

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look now and then, in a thread of its own, until the block ends or the run has stalled."""
        ended = threading.Event()

        def work() -> None:
            while not ended.wait(self._after / _LOOKS):
                if self.look():
                    return

        thread = threading.Thread(target=work, name="watchdog", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _has_work(self, resources: Sequence[ResourceUse]) -> bool:
        parts = self._parts
        if parts.recorder.statistics().in_use:
            return True
        if parts.workers.within_deadline():
            return False  # whoever waits may wait for it
        own = {use.name for use in (parts.recorder.statistics(), parts.workers.statistics())}
        own |= {use.name for queue in parts.queues for use in queue.resources()[1:]}
        if any(use.waiting or (use.in_use and use.name in own) for use in resources):
            return True
        return parts.links.neglected()


def threads_at() -> list[str]:
    """Return where each thread of this process is: its name, and the innermost of our functions that it is in."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found: list[str] = []
    for ident, frame in sys._current_frames().items():
        if ident == threading.get_ident():
            continue
        place = _place(frame)
        if place:
            found.append(f"{names.get(ident, 'a thread')}: {place}")
    return sorted(found)


def _place(frame: FrameType | None) -> str:
    """Where a thread is within Driftline, with its caller and with what it waits for; empty if nowhere."""
    ours: list[FrameType] = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(_PACKAGE):
            ours.append(frame)
        frame = frame.f_back
    if not ours:
        return ""
    places = [f"{one.f_code.co_qualname} ({Path(one.f_code.co_filename).name}:{one.f_lineno})" for one in ours[:2]]
    owner = ours[0].f_locals.get("self")
    waits = f"waiting for '{owner.name}' in " if isinstance(owner, Capacity) else "in "
    return waits + ", called by ".join(places)
