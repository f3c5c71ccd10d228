"""Progress bars of the commands, and Ctrl-C: the first stops a run gently, the second ends the process."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from driftline.cli.output import VERDICT_STYLES, clean, clean_lines, err, local_time, say
from driftline.model.outcome import Verdict
from driftline.plurals import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType, TracebackType

    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from driftline.api.workspace import Workspace
    from driftline.crawl.survey_steps import CrawlOutcome
    from driftline.model.outcome import Outcome
    from driftline.pipeline.stop import Stop
    from driftline.store.crawls import Begun


_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_AT_ONCE = 2
_SHOW_CURSOR = b"\x1b[?25h\n"


@contextlib.contextmanager
def first_signal(stop: Callable[[], None], at_once: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Within this block the first Ctrl-C or SIGTERM calls `stop`, and a second one ends the process with status 130.

    `at_once` is called just before that. Both run in the signal handler, so they must be quick.
    """
    received = 0

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received == 1:
            stop()
        elif received == _AT_ONCE:  # more of them come too late to make it any quicker
            try:
                at_once()
                if sys.stderr.isatty():
                    os.write(2, _SHOW_CURSOR)
            finally:
                os._exit(130)

    before = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def stopped_by_signal(workspace: Workspace, stop: Stop, at_once: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Within this block the first Ctrl-C or SIGTERM requests `stop`, and troubles of the store are printed.

    A second signal calls `at_once` and ends the process.
    """

    def on_signal() -> None:
        stop.request()
        workspace.store.hurry()
        with contextlib.suppress(OSError, RuntimeError):  # the latter while another line is being written
            say("Stopping after the requests in flight…", to_stderr=True)

    workspace.on_trouble(lambda report: say(clean_lines(report), to_stderr=True))
    with first_signal(on_signal, at_once):
        yield


_LONG = 120.0  # seconds: a crawl that takes longer says so


class TerminalBar:
    """A progress bar on standard error in a `with` block; it shows nothing if that is no terminal."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, total: int | None = None) -> None:
        """Show the bar, for so many pages, or an unknown number of them."""
        if self._bar is None and _on_terminal():
            self._bar = _bar()
            self._task = self._bar.add_task("", total=total, figures="")
            self._bar.start()

    def show(self, done: int, total: int | None = None, figures: str = "") -> None:
        """Show how many are done, and of how many if that has changed."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total, figures=figures)

    def stop(self) -> None:
        """Remove the bar, if it is shown."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class Progress:
    """Follows one check and shows it on a bar. Thread-safe."""

    def __init__(self, bar: TerminalBar) -> None:
        self.total = 0
        self.continued = self.stopped = False
        self._counts: Counter[Verdict] = Counter()
        self._lock = threading.Lock()
        self._bar = bar
        self._started = 0.0

    def begun(self, total: int, continued: bool) -> None:
        """Start, for so many pages."""
        self.total, self.continued = total, continued
        self._started = time.monotonic()
        if continued and total:
            left = f"{count(total, 'page')} left. Start over with --fresh."
            say(f"Continuing an interrupted check: {left}", to_stderr=True)
        if total:
            self._bar.start(total)

    def recorded(self, outcomes: Sequence[Outcome]) -> None:
        """Count outcomes that were recorded."""
        with self._lock:
            self._counts.update(outcome.verdict for outcome in outcomes)
            done = self._counts.total()
            figures = self._figures(done)
        self._bar.show(done, figures=figures)

    def _figures(self, done: int) -> str:
        rate = done / max(time.monotonic() - self._started, 1e-3)
        found = [
            f"[{VERDICT_STYLES[verdict]}]{self._counts[verdict]:,} {verdict}[/]"
            for verdict in (Verdict.NEW, Verdict.CHANGED, Verdict.FAILED)
            if self._counts[verdict]
        ]
        return " ".join([f"[dim]{rate:,.0f}/s[/]", *found])


def print_slow_host(host: str, waiting: int, delay: float) -> None:
    """Print how long the pages of a host take, with `delay` seconds between two requests."""
    text = f"{count(waiting, 'page')} on {host}, one request every {delay:.3g} s to be polite: this takes about "
    text += f"{waiting * delay:,.0f} s. If the server is yours, use --host-delay 0."
    say(clean(text), to_stderr=True)


class CrawlProgress:
    """Follows one crawl: shows on a bar the pages fetched among those found so far."""

    def __init__(self, bar: TerminalBar, clock: Callable[[], float] = time.monotonic) -> None:
        self._bar = bar
        self._clock = clock
        self._done = 0
        self._warned = False
        self._started = 0.0

    def begun(self, crawl: Begun, waiting: int) -> None:
        """Start, or continue."""
        self._started = self._clock()
        if crawl.continued:
            begun = f"Continuing the crawl of {local_time(crawl.started_at)}"
            say(f"{begun}: {count(waiting, 'URL')} left. Start over with --fresh.", to_stderr=True)
        self._bar.start()

    def recorded(self, outcomes: Sequence[CrawlOutcome], waiting: int) -> None:
        """Count outcomes that were recorded; so many URLs are left."""
        self._done += len(outcomes)
        rate = self._done / max(self._clock() - self._started, 1e-3)
        if waiting / rate > _LONG and not self._warned:
            self._warned = True
            text = f"{count(waiting, 'URL')} left so far, at {rate:,.3g} per second: this takes about "
            text += f"{waiting / rate / 60:,.0f} minutes. Ctrl-C stops; the same command continues. "
            text += "If the server is yours, use --host-delay 0."
            say(text, to_stderr=True)
        self._bar.show(self._done, self._done + waiting, f"[dim]{rate:,.0f}/s[/]")


@contextmanager
def counted() -> Iterator[Callable[[int, int], None]]:
    """Return a function that shows how many of how many are done, as a bar on a terminal."""
    with TerminalBar() as bar:

        def show(done: int, total: int) -> None:
            bar.start()
            bar.show(done, total)

        yield show


def _on_terminal() -> bool:
    console = err()
    return console.is_terminal and not console.is_dumb_terminal


def _bar() -> Bar:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    # the streams stay as they are: standard output may be a pipe while the bar is on the terminal
    return Bar(
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        console=err(),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
