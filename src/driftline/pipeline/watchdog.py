"""A watchdog over a pipeline: whether anything is recorded while there is work, and if not, what threads wait for."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driftline.capacity import Capacity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from driftline.capacity import ResourceUse
    from driftline.pipeline.pipeline import Pipeline

_PACKAGE = str(Path(__file__).parent.parent)
_LOOKS = 20  # that are taken in the time after which a run counts as stalled


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """What was seen when nothing had been recorded for so many seconds."""

    seconds: float
    threads: tuple[str, ...]
    resources: tuple[str, ...]

    @property
    def headline(self) -> str:
        """What happened, in one sentence."""
        return f"Nothing was recorded for {self.seconds:.0f} s although there is work to do."

    def __str__(self) -> str:
        lines = [self.headline, "Threads:"]
        lines += [f"  {line}" for line in self.threads]
        lines += ["Resources:", *[f"  {line}" for line in self.resources]]
        return "\n".join(lines)


class Watchdog:
    """Ends a pipeline that has work to do and records nothing for `after` seconds; `progress` notes a record.

    There is work to do while something is queued, read, written or waited for, or a host may be contacted, also for the
    second fetch of a page, and none is: a request that is on its way ends by its own time-out. So does a page that a
    worker process reads, by its deadline: until then only the recorder is expected to go on. A pipeline that is excused
    is left alone.
    """

    def __init__(self, pipeline: Pipeline[Any], after: float, ticks: Callable[[], float] = time.monotonic) -> None:
        self._pipeline = pipeline
        self._after = after
        self._ticks = ticks
        self._since = ticks()

    def __repr__(self) -> str:
        return f"<Watchdog after={self._after} idle={self._ticks() - self._since:.1f}>"

    def progress(self) -> None:
        """Note that something was recorded."""
        self._since = self._ticks()

    def look(self) -> bool:
        """End the pipeline if it has stalled. Returns whether it has."""
        resources = self._pipeline.resources()
        if self._pipeline.is_excused() or not self._has_work(resources):
            self._since = self._ticks()
            return False
        seconds = self._ticks() - self._since
        if seconds < self._after:
            return False
        stall = Stall(seconds=seconds, threads=tuple(threads_at()), resources=tuple(map(str, resources)))
        self._pipeline.end_stalled(stall)
        return True

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look now and then, in a thread of its own, until the block ends or the pipeline has stalled."""
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
        pipeline = self._pipeline
        recorder, workers = pipeline.recorder.statistics(), pipeline.workers.statistics()
        if recorder.in_use:
            return True
        if pipeline.workers.within_deadline():
            return False  # a thread that waits may wait for it
        own = {recorder.name, workers.name}
        own |= {use.name for queue in pipeline.queues for use in queue.resources()[1:]}
        if any(use.waiting or (use.in_use and use.name in own) for use in resources):
            return True
        return pipeline.links.neglected()


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
    """Return where a thread is within Driftline, with its caller and what it waits for; empty if it is elsewhere."""
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
