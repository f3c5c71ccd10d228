"""A watcher on the terminal: signals stop it, events are printed, and a command may get them."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from driftline.cli.event_printer import EventPrinter
from driftline.cli.output import NOTHING_YET, clean_lines, count, local_time, remark, say
from driftline.cli.progress import first_signal, tell_slow
from driftline.model import Verdict
from driftline.pipeline.stop import Stop
from driftline.runtime import give_freed_memory_back
from driftline.watch.service import Watcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from driftline.api import Driftline
    from driftline.model import Outcome
    from driftline.notify.command import Command, CommandRunner
    from driftline.store.events import EventLog
    from driftline.watch.publisher import EventListener
    from driftline.watch.service import WatchOptions, WatchResult

_TERMINAL = "terminal"  # the name of this reader of the event log


class _Terminal:
    """The readers of the event log that `run` has: the terminal, and the user's command if there is one."""

    def __init__(self, command: Command | None, stop: Stop, grace: float, *, verbose: bool) -> None:
        self.all_delivered = True
        self._command = command
        self._stop = stop
        self._grace = grace
        self._verbose = verbose
        self._printer: EventPrinter | None = None
        self._runner: CommandRunner | None = None

    def recorded(self, outcomes: Sequence[Outcome]) -> None:
        """Count and log what was recorded."""
        if self._printer is not None:
            self._printer.recorded(outcomes)

    def end_command(self) -> None:
        """End the user's command at once; also in a signal handler."""
        if self._runner is not None:
            self._runner.stop()

    @contextlib.contextmanager
    def readers(self, log: EventLog) -> Iterator[Sequence[EventListener]]:
        """Open the readers for a block. At its end they deliver what is in the log, within a time if it is stopped."""
        printer = self._printer = EventPrinter(log.reader(_TERMINAL), self._stop, verbose=self._verbose)
        listeners: list[EventListener] = [printer]
        if self._command is not None:
            from driftline.notify.command import READER, CommandRunner

            self._runner = CommandRunner(self._command, log.reader(READER), remark)
            listeners.append(self._runner)
        try:
            yield listeners
        finally:
            printer.close()
            if self._runner is not None:
                self.all_delivered = self._runner.close(self._grace, lambda: self._stop.requested)
        if printer.error is not None:
            raise printer.error


def watch(watch_list: Driftline, options: WatchOptions, line: str | None, *, verbose: bool) -> bool:
    """Watch until a signal; return whether nothing is left: neither pages that were due nor events to deliver."""
    give_freed_memory_back()
    stop = Stop()
    terminal = _Terminal(_command(line), stop, watch_list.settings.stop_grace, verbose=verbose)

    def on_signal() -> None:
        stop.request()
        watch_list.hurry()
        with contextlib.suppress(OSError, RuntimeError):  # the latter while another line is being written
            say("Stopping: finishing what is in flight…", to_stderr=True)

    watch_list.on_trouble(lambda report: say(clean_lines(report), to_stderr=True))
    watcher = Watcher(
        watch_list, options, terminal.readers, stop, remark=remark, slow=tell_slow, recorded=terminal.recorded
    )
    with first_signal(on_signal, terminal.end_command):
        result = watcher.run()
    _summarise(result, once=options.once)
    return not result.left and terminal.all_delivered


def _command(line: str | None) -> Command | None:
    if line is None:
        return None
    from driftline.notify.command import Command

    return Command(line)


def _summarise(result: WatchResult, *, once: bool) -> None:
    if result.left:
        say(f"Stopped: {count(result.left, 'page')} left to the next run.", to_stderr=True)
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
    following = [one for one in scheduler.terms(1) if one.lane != "unsafe"]
    if not following:
        return f"{done} All other pages are blocked as unsafe."
    due_at = following[0].due_at
    when = "now" if due_at is None or due_at <= time.time() else f"at {local_time(due_at)}"
    return f"{done} The next page is due {when}."
