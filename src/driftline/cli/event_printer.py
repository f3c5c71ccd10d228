"""What `run` tells as it goes: each change, each page that fails, recovers or looks dangerous, and how many are new."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import count as count_from
from typing import TYPE_CHECKING, Any, Protocol, Self

from driftline.cli.output import EVENT_STYLES, VERDICT_STYLES, clean, count, local_time, named, say
from driftline.model import Matter, Verdict
from driftline.pipeline.grouping import changes_of, dangers_by, events_of, turned_by

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from driftline.model import Change, Danger, Outcome, Turned
    from driftline.pipeline.grouping import Event
    from driftline.pipeline.stop import Stop

_TOGETHER = 2.0  # seconds that a change waits for others by the same edit
_LONGEST = 30.0  # seconds that noise and new pages wait while more of them come


Hearer = Callable[[dict[str, Any], Callable[[], None]], None]


class Alarm(Protocol):
    """Something that will be done later."""

    def cancel(self) -> None:
        """Do it no more."""


def later(seconds: float, do: Callable[[], None]) -> Alarm:
    """Have this done after so long, in a thread of its own."""
    timer = threading.Timer(seconds, do)
    timer.daemon = True
    timer.start()
    return timer


class News:
    """Tells what was recorded, for the time of a `with` block.

    A change waits for others by the same edit, and a page that fails for others of its host, two seconds at most.
    Noise, which is news only if many pages share it, and new pages, which are only counted, wait as long as more of
    them come.

    `take_out` is told what was told, or turned out to be no news: changes, turns and dangers by their ids, and what
    they were told as. That is what was printed; or, where there is a `hook`, what this says that it is done with: it is
    given each event, and what to call then.
    """

    def __init__(
        self, stop: Stop, hook: Hearer | None, take_out: Callable[[list[tuple[str, str]]], None], *,
        verbose: bool = False, say: Callable[..., None] = say,
        later: Callable[[float, Callable[[], None]], Alarm] = later, monotonic: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._stop = stop
        self._hook = hook
        self._take_out = take_out
        self._verbose = verbose
        self._write = say
        self._later = later
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._alarm: Alarm | None = None
        self._changes: list[Change] = []
        self._turned: list[Turned] = []
        self._dangers: list[Danger] = []
        self._noise: list[Change] = []
        self._new = 0
        self._first_at = self._last_at = 0.0  # of the noise and the new pages that wait
        self._error: OSError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Tell what is left to tell, even if the run failed; raises what kept news from being told."""
        with self._lock:
            if self._alarm is not None:
                self._alarm.cancel()
            self._tell_changes()
            self._tell_the_rest()
        if self._error is not None:
            raise self._error

    def told(self, outcomes: Sequence[Outcome]) -> None:
        """These outcomes are recorded. An output that is gone ends the run, and not its recorder."""
        with self._lock:
            new = sum([outcome.verdict is Verdict.NEW for outcome in outcomes])
            self._await_more(changes_of(outcomes), turned_by(outcomes), dangers_by(outcomes), new)
            for outcome in outcomes if self._verbose else ():
                self._say(_logged(outcome), to_stderr=True)

    def left(self, changes: Sequence[Change], turned: Sequence[Turned], dangers: Sequence[Danger]) -> None:
        """An earlier run recorded these, and did not get to tell them."""
        with self._lock:
            self._await_more(changes, turned, dangers, 0)

    def of_site(self, events: Sequence[Event], done: Callable[[], None]) -> None:
        """A site was crawled again, and this is what came of it; `done` is to be called once all was told."""
        so_far = count_from(1)

        def told_one() -> None:
            if next(so_far) == len(events):
                done()

        with self._lock:
            for event in events:
                if self._hook is not None:
                    self._hook(asdict(event), told_one)
                if self._say_event(event) and self._hook is None:
                    told_one()

    def _await_more(
        self, changes: Sequence[Change], turned: Sequence[Turned], dangers: Sequence[Danger], new: int
    ) -> None:  # fmt: skip
        self._changes += [change for change in changes if change.verdict is Matter.MEANINGFUL]
        self._turned += turned
        self._dangers += dangers
        noise = [change for change in changes if change.verdict is not Matter.MEANINGFUL]
        if noise or new:
            self._last_at = self._monotonic()
            if not (self._noise or self._new):
                self._first_at = self._last_at
            self._noise += noise
            self._new += new
        if self._alarm is None and (self._changes or self._turned or self._dangers or self._noise or self._new):
            self._alarm = self._later(_TOGETHER, self._ring)

    def _ring(self) -> None:
        with self._lock:
            self._alarm = None
            self._tell_changes()
            if self._noise or self._new:
                now = self._monotonic()
                ripe_at = min(self._last_at + _TOGETHER, self._first_at + _LONGEST)
                if ripe_at <= now:
                    self._tell_the_rest()
                else:
                    self._alarm = self._later(ripe_at - now, self._ring)

    def _tell_changes(self) -> None:
        changes, self._changes = self._changes, []
        turned, self._turned = self._turned, []
        dangers, self._dangers = self._dangers, []
        self._tell_events(changes, turned, dangers)

    def _tell_the_rest(self) -> None:
        noise, self._noise = self._noise, []
        new, self._new = self._new, 0
        self._tell_events(noise)
        if new:
            found = f"{count(new, 'page')} seen for the first time"
            self._say(f"{local_time(time.time())}  ", (f"{'new':<10}", VERDICT_STYLES[Verdict.NEW]), found)

    def _tell_events(
        self, changes: Sequence[Change], turned: Sequence[Turned] = (), dangers: Sequence[Danger] = ()
    ) -> None:  # fmt: skip
        events = events_of(changes, turned, dangers)
        made = {one for event in events for one in event.ids}
        done = [(change.id, Verdict.CHANGED.value) for change in changes if change.id not in made]
        for event in events:
            told = [(one, event.what) for one in event.ids]
            if self._hook is not None:
                self._hook(asdict(event), partial(self._take_out, told))
            if self._say_event(event) and self._hook is None:
                done += told
        if done:
            self._take_out(done)

    def _say_event(self, event: Event) -> bool:
        words = f"{named(event)}  {clean(event.reason)}"
        return self._say(f"{local_time(event.at)}  ", (f"{event.event:<10}", EVENT_STYLES[event.event]), words)

    def _say(self, *parts: str | tuple[str, str], to_stderr: bool = False) -> bool:
        """Say it, unless the output is gone, which ends the run; whether it was said."""
        if self._error is None:
            try:
                self._write(*parts, to_stderr=to_stderr)
            except OSError as error:
                self._error = error
                self._stop.request()
        return self._error is None


def _logged(outcome: Outcome) -> str:
    """One line of words and values for a check."""
    document = outcome.document
    fields = {
        "at": f"{document.fetched_at:.3f}", "verdict": outcome.verdict, "status": document.status,
        "seconds": f"{document.seconds:.3f}", "bytes": document.size, "proof": outcome.proof,
        "failure": None if outcome.failure is None else outcome.failure.kind, "url": document.link.url,
    }  # fmt: skip
    return clean(" ".join(f"{name}={value}" for name, value in fields.items() if value is not None))
