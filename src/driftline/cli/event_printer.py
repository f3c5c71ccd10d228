"""The terminal as a reader of the event log: one line for each event that a run finds."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol

from driftline.cli.output import EVENT_STYLES, VERDICT_STYLES, clean, count, local_time, named, say
from driftline.model import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.model import Event, Outcome
    from driftline.pipeline.stop import Stop

_TOGETHER = 2.0  # seconds without a new page after which those that came are counted
_LONGEST = 30.0  # seconds that they wait while more of them come


class Position(Protocol):
    """Where the terminal is in the event log."""

    def read(self) -> list[Event]:
        """Return the next events, the oldest first."""

    def advance(self, event: Event) -> None:
        """Note that all events up to this one are printed."""


class EventPrinter:
    """Prints the events of runs, and counts new pages. An output that is gone ends the run.

    What `driftline check` finds meanwhile is printed by that command and not here.
    """

    def __init__(
        self, position: Position, stop: Stop, *, verbose: bool = False, say: Callable[..., None] = say,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._position = position
        self._stop = stop
        self._verbose = verbose
        self._write = say
        self._ticks = ticks
        self._lock = threading.Lock()  # of the counts of new pages
        self._new = 0
        self._first_at = self._last_at = 0.0
        self.error: OSError | None = None

    def recorded(self, outcomes: Sequence[Outcome]) -> None:
        """Count new pages, and log each check if that is wanted."""
        new = sum([outcome.verdict is Verdict.NEW for outcome in outcomes])
        if new:
            with self._lock:
                self._last_at = self._ticks()
                self._first_at = self._first_at if self._new else self._last_at
                self._new += new
        for outcome in outcomes if self._verbose else ():
            self._say(_logged(outcome), to_stderr=True)

    def wake(self) -> None:
        """Print the events that are new in the log, and how many pages are new once no more come."""
        while self.error is None and (events := self._position.read()):
            for event in events:
                if event.source != "check" and not self._print(event):
                    return
            self._position.advance(events[-1])
        self._print_new()

    def close(self) -> None:
        """Print what still waits."""
        self.wake()
        self._print_new(at_once=True)

    def _print(self, event: Event) -> bool:
        words = f"{named(event)}  {clean(event.headline)}"
        return self._say(f"{local_time(event.at)}  ", (f"{event.event:<10}", EVENT_STYLES[event.event]), words)

    def _print_new(self, *, at_once: bool = False) -> None:
        with self._lock:
            now = self._ticks()
            if not self._new or not (at_once or now >= min(self._last_at + _TOGETHER, self._first_at + _LONGEST)):
                return
            new, self._new = self._new, 0
        found = f"{count(new, 'page')} seen for the first time"
        self._say(f"{local_time(time.time())}  ", (f"{'new':<10}", VERDICT_STYLES[Verdict.NEW]), found)

    def _say(self, *parts: str | tuple[str, str], to_stderr: bool = False) -> bool:
        """Print a line and return whether it was printed; an output that is gone ends the run."""
        if self.error is None:
            try:
                self._write(*parts, to_stderr=to_stderr)
            except OSError as error:
                self.error = error
                self._stop.request()
        return self.error is None


def _logged(outcome: Outcome) -> str:
    """Return one line of words and values for a check."""
    document = outcome.document
    fields = {
        "at": f"{document.fetched_at:.3f}", "verdict": outcome.verdict, "status": document.status,
        "seconds": f"{document.seconds:.3f}", "bytes": document.size, "proof": outcome.proof,
        "failure": None if outcome.failure is None else outcome.failure.kind, "url": document.link.url,
    }  # fmt: skip
    return clean(" ".join(f"{name}={value}" for name, value in fields.items() if value is not None))
