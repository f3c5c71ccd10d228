"""The terminal as a reader of the event log: one line for each event that a run finds."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Protocol

from driftline.api import workspace_of
from driftline.cli.log_output import is_json_log, log_sentence
from driftline.cli.output import NOTHING_YET, VERDICT_STYLES, clean, event_lines, local_time, remark, say
from driftline.cli.progress import print_slow_host, stopped_by_signal
from driftline.errors import StoreError
from driftline.model.event import EventSource
from driftline.model.outcome import Failed, New, Unchanged, Verdict
from driftline.model.page import Lane
from driftline.pipeline.stop import Stop
from driftline.plurals import count
from driftline.runtime import limit_free_memory
from driftline.watch.publisher import ReaderThread
from driftline.watch.service import Watcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from driftline.api.watch_list import Driftline
    from driftline.model.change import Importance
    from driftline.model.event import Event
    from driftline.model.outcome import Outcome, Recorded
    from driftline.notify.command import CommandRunner, UserCommand
    from driftline.store.events import EventLog
    from driftline.watch.publisher import EventListener
    from driftline.watch.service import WatchOptions, WatchResult


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

    def recorded(self, recorded: Recorded) -> None:
        """Count new pages, and log each check if that is wanted."""
        new = sum([isinstance(outcome, New) for outcome in recorded.notable])
        if new:
            with self._lock:
                self._last_at = self._ticks()
                self._first_at = self._first_at if self._new else self._last_at
                self._new += new
        for outcome in recorded.outcomes if self._verbose else ():
            if is_json_log():
                log_sentence("page checked", _fields(outcome))
            else:
                self._say(_logged(_fields(outcome)), to_stderr=True)

    def wake(self) -> None:
        """Print the events that are new in the log, and how many pages are new once no more come."""
        while self.error is None and (events := self._position.read()):
            for event in events:
                if event.source is EventSource.RUN and not self._print(event):
                    return
            self._position.advance(events[-1])
        self._print_new()

    def close(self) -> None:
        """Print what still waits."""
        self.wake()
        self._print_new(at_once=True)

    def _print(self, event: Event) -> bool:
        return all(self._say(*line) for line in event_lines(event, f"{local_time(event.at)}  "))

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


def _fields(outcome: Outcome) -> dict[str, object]:
    """Return what is logged of a check, by name."""
    document = outcome.document
    fields = {
        "at": round(document.fetched_at, 3), "verdict": outcome.verdict, "status": document.status,
        "seconds": round(document.seconds, 3), "bytes": document.size,
        "proof": outcome.proof if isinstance(outcome, Unchanged) else None,
        "failure": outcome.failure.kind if isinstance(outcome, Failed) else None, "url": document.link.url,
    }  # fmt: skip
    return {name: value for name, value in fields.items() if value is not None}


def _logged(fields: dict[str, object]) -> str:
    """Return one line of words and values for a check."""
    values = {name: f"{value:.3f}" if isinstance(value, float) else value for name, value in fields.items()}
    return clean(" ".join(f"{name}={value}" for name, value in values.items()))


_TERMINAL = "terminal"  # the name of this reader of the event log
_LAST_EVENTS = 0.7  # seconds that readers have, after the transfers, for what these found


class _Terminal:
    """The readers of the event log that `run` has: the terminal, and the user's command if there is one."""

    def __init__(
        self, command: UserCommand | None, stop: Stop, grace: float, least: Importance, *, verbose: bool
    ) -> None:
        self.all_delivered = True
        self._least = least
        self._command = command
        self._stop = stop
        self._grace = grace
        self._verbose = verbose
        self._printer: EventPrinter | None = None
        self._runner: CommandRunner | None = None

    def recorded(self, recorded: Recorded) -> None:
        """Count and log what was recorded."""
        if self._printer is not None:
            self._printer.recorded(recorded)

    def end_command(self) -> None:
        """End the user's command at once; also in a signal handler."""
        if self._runner is not None:
            self._runner.stop()

    def _time_left(self) -> float | None:
        """Return the seconds in which the readers have to finish; None unless the run is to stop.

        They count from the signal, like those of the transfers in flight: the stop as a whole is to take five seconds
        at most, whatever hangs.
        """
        return self._stop.time_left(self._grace + _LAST_EVENTS)

    @contextlib.contextmanager
    def readers(self, log: EventLog) -> Iterator[Sequence[EventListener]]:
        """Open the readers for a block. At its end they deliver what is in the log, within a time if it is stopped."""
        printer = self._printer = EventPrinter(log.reader(_TERMINAL, self._least), self._stop, verbose=self._verbose)
        printing = ReaderThread(printer.wake, "printer", self._stop)
        listeners: list[EventListener] = [printing]
        if self._command is not None:
            from driftline.notify.command import READER, CommandRunner

            self._runner = CommandRunner(self._command, log.reader(READER, self._least), remark)
            listeners.append(self._runner)
        try:
            yield listeners
        finally:
            try:
                if printing.close(self._time_left):
                    with contextlib.suppress(StoreError):  # if the store is away, the next run prints it
                        printer.close()
            finally:
                if self._runner is not None:
                    self.all_delivered = self._runner.close(self._time_left)
        error = printing.error or printer.error
        if error is not None:
            raise error


def watch(watch_list: Driftline, options: WatchOptions, line: str | None, *, verbose: bool) -> bool:
    """Watch until a signal; return whether nothing is left: neither pages that were due nor events to deliver."""
    workspace = workspace_of(watch_list)
    limit_free_memory()
    stop = Stop()
    terminal = _Terminal(_command(line), stop, watch_list.settings.stop_grace, options.least, verbose=verbose)
    watcher = Watcher(
        workspace.runs,
        options,
        terminal.readers,
        stop,
        remark=remark,
        slow=print_slow_host,
        recorded=terminal.recorded,
    )
    with stopped_by_signal(workspace, stop, terminal.end_command):
        result = watcher.run()
    _summarise(result, once=options.once)
    return not result.left and terminal.all_delivered


def _command(line: str | None) -> UserCommand | None:
    if line is None:
        return None
    from driftline.notify.command import UserCommand

    return UserCommand(line)


def _summarise(result: WatchResult, *, once: bool) -> None:
    if result.left:
        say(f"Stopped: {count(result.left, 'page')} left for the next run.", to_stderr=True)
    if once and result.postponed:
        pages = count(result.postponed, "page")
        say(f"{pages} postponed: their hosts asked us to slow down (Retry-After).", to_stderr=True)
    if once and not result.stopped:
        remark(_found_once(result))


def _found_once(result: WatchResult) -> str:
    """Return what a single pass found, and when the next page is due."""
    scheduler, found = result.scheduler, result.found
    if not len(scheduler):
        return NOTHING_YET
    verdicts = ", ".join(f"{found[one]:,} {one}" for one in Verdict if found[one])
    done = f"Checked {count(found.total(), 'page')}: {verdicts}." if found else "Nothing is due."
    following = [one for one in scheduler.upcoming(1) if one.lane is not Lane.UNSAFE]
    if not following:
        return f"{done} All other pages are blocked as unsafe."
    due_at = following[0].due_at
    when = "now" if due_at is None or due_at <= time.time() else f"at {local_time(due_at)}"
    return f"{done} The next page is due {when}."
