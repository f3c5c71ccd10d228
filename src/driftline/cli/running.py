"""`run`: keep checking pages, the most urgent first, and tell what changed."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.options import BudgetOption, PolicyOption, StoreOption, UsualOption, opened
from driftline.cli.output import VERDICT_STYLES, clean, count, local_time, named, say
from driftline.errors import StoreBusy, StoreError
from driftline.model import Matter, Verdict
from driftline.pipeline.events import changes_of, events_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from driftline.library import Driftline
    from driftline.model import Change, Outcome
    from driftline.pipeline.stopping import Stop
    from driftline.scheduling.scheduler import Scheduler

_LOOK = 2.0  # seconds after which pages that were added, edited or removed are picked up
_SHARE = 20  # looking may take one part in so many of the time
_TOGETHER = 2.0  # seconds that a change waits for others by the same edit
_PAUSE = 1.0  # seconds between two picks
_RETRY = 60.0  # seconds before catching up is tried again after it failed


def run(
    every: UsualOption = "1h",
    budget: BudgetOption = None,
    policy: PolicyOption = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--exec", metavar="COMMAND", help="Run this on each event, which it gets as JSON on its standard input.",
            show_default=False,
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Check all pages that are due by now or new, whatever the budget, then end.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every check on standard error.")] = False,
    store: StoreOption = None,
) -> None:  # fmt: skip
    """Keep checking pages, those first whose check is worth most, and tell what changed."""
    from driftline.cli.signals import first_signal
    from driftline.pipeline.stopping import Stop

    stop = Stop()

    def on_signal() -> None:
        stop.request()
        with contextlib.suppress(OSError, RuntimeError):  # the latter while another line is being written
            say("Stopping: finishing what is in flight…", to_stderr=True)

    with opened(store) as watch_list, first_signal(on_signal), _hook(command, watch_list) as tell:
        scheduler = watch_list.scheduler(every=every, budget=budget, policy=policy, once=once)
        if not once and (short := watch_list.shortage(budget)) is not None:
            say(clean(short), to_stderr=True)
        rounds = _Rounds(watch_list, scheduler, stop, tell, verbose=verbose)
        while not stop.requested:
            try:
                pause = rounds.go()
            except StoreBusy as error:
                if once:
                    raise
                rounds.remark(f"Waiting: {error}")
                pause = _LOOK
            if once:
                break
            stop.bell.wait(pause)


@contextlib.contextmanager
def _hook(command: str | None, watch_list: Driftline) -> Iterator[Callable[[dict[str, Any]], None]]:
    """What is told of every event, and runs the user's command for it if there is one."""
    if command is None:
        yield lambda _: None
        return
    from driftline.scheduling.hooks import Hook

    hook = Hook(command, lambda sentence: say(clean(sentence), to_stderr=True))
    try:
        yield hook.tell
    finally:
        hook.close(watch_list.settings.stop_grace)


class _Rounds:
    """One pick after another, each checked at once."""

    def __init__(
        self, watch_list: Driftline, scheduler: Scheduler, stop: Stop, tell: Callable[[dict[str, Any]], None], *,
        verbose: bool,
    ) -> None:  # fmt: skip
        self._watch_list = watch_list
        self._scheduler = scheduler
        self._stop = stop
        self._tell = tell
        self._verbose = verbose
        self._remark = ""
        self._look_at = time.monotonic()
        self._settled: int | None = None
        self._catch_up_at = time.monotonic()

    def go(self) -> float:
        """Check the pages whose turn it is now; the seconds to wait before the next look."""
        started = time.monotonic()
        if started >= self._look_at:
            self._scheduler.refresh()
            ended = time.monotonic()
            self._look_at = ended + max(_LOOK, _SHARE * (ended - started))
        if not len(self._scheduler):
            self.remark("No pages are watched yet: in another terminal, driftline add URL")
            return _PAUSE
        picked = self._scheduler.pick()
        if picked:
            self._check(picked)
            return 0.0
        self.remark(f"Watching {self._scheduler.describe()}.")
        return _PAUSE if self._caught_up(_PAUSE) else 0.0

    def _caught_up(self, seconds: float) -> bool:
        """Read versions anew and index them for at most so long; whether there is nothing left of that to do now.

        It need not be looked at again before a page has another version or other filters. A store that fails at it, for
        somebody else is at work there, need not fail at the next check: checks go on, and it is tried again later.
        """
        as_it_is = self._scheduler.edition
        if as_it_is == self._settled or time.monotonic() < self._catch_up_at:
            return True
        end = time.monotonic() + seconds
        try:
            self._watch_list.catch_up(self._stop, lambda: time.monotonic() >= end)
        except StoreError as error:
            self.remark(f"Catching up failed, and will be tried again: {error}")
            self._catch_up_at = time.monotonic() + _RETRY
            return True
        if time.monotonic() >= end or self._stop.requested:
            return False
        self._settled = as_it_is
        return True

    def remark(self, remark: str) -> None:
        """Say how things stand, unless that is what was said last."""
        if remark != self._remark:
            self._remark = remark
            say(clean(remark), to_stderr=True)

    def _check(self, page_ids: Sequence[int]) -> None:
        news = _News(self._scheduler.failing, self._stop, self._tell, verbose=self._verbose)
        try:
            self._watch_list.check_pages(page_ids, fresh=True, stop=self._stop, told=news.told)
        finally:
            news.finish()  # what was recorded is not told by another round, even if this one failed
        self._scheduler.follow(page_ids)


class _News:
    """Tells what a round found: each change, each page that begins to fail or recovers, and how many are new.

    Changes wait for others by the same edit, but not for long: a page that does not answer holds up no news of others.
    """

    def __init__(
        self, was_failing: set[int], stop: Stop, tell: Callable[[dict[str, Any]], None], *, verbose: bool
    ) -> None:
        self._was_failing = was_failing
        self._new = 0
        self._stop = stop
        self._hook = tell
        self._verbose = verbose
        self._error: OSError | None = None
        self._changes: list[Change] = []
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def told(self, outcomes: Sequence[Outcome]) -> None:
        """These outcomes are recorded. An output that is gone ends the run, through `finish`, and not its recorder."""
        try:
            for outcome in outcomes:
                self._tell(outcome)
                if self._verbose:
                    _log(outcome)
        except OSError as error:
            self._give_up(error)
        with self._lock:
            self._changes += changes_of(outcomes)
            if self._timer is None and any(change.verdict is Matter.MEANINGFUL for change in self._changes):
                self._timer = threading.Timer(_TOGETHER, self._tell_early)
                self._timer.daemon = True
                self._timer.start()

    def finish(self) -> None:
        """The round is over: tell what is left to tell; raises what kept its news from being told."""
        with self._lock:
            timer = self._timer
        if timer is not None:
            timer.cancel()
            timer.join()
        if self._error is not None:
            raise self._error
        self._tell_changes(self._changes)
        if self._new:
            found = f"{count(self._new, 'page')} seen for the first time"
            say(f"{local_time(time.time())}  ", (f"{'new':<10}", VERDICT_STYLES[Verdict.NEW]), found)

    def _tell_early(self) -> None:
        """Tell the changes so far. Noise waits for the end: it is news only if many pages share it."""
        with self._lock:
            early = [change for change in self._changes if change.verdict is Matter.MEANINGFUL]
            self._changes = [change for change in self._changes if change.verdict is not Matter.MEANINGFUL]
            self._timer = None
            try:
                self._tell_changes(early)
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._error = error
        self._stop.request()

    def _tell_changes(self, changes: Sequence[Change]) -> None:
        for event in events_of(changes):
            self._hook({"event": "changed", "at": time.time(), **asdict(event)})
            style = VERDICT_STYLES[Verdict.CHANGED]
            say(f"{local_time(time.time())}  ", (f"{'changed':<10}", style), f"{named(event)}  {clean(event.reason)}")

    def _tell(self, outcome: Outcome) -> None:
        link = outcome.document.link
        failing, was_failing = outcome.verdict is Verdict.FAILED, link.page_id in self._was_failing
        if outcome.verdict is Verdict.NEW:
            self._new += 1
        if failing and not was_failing and outcome.failure is not None:
            self._line(outcome, "failing", VERDICT_STYLES[Verdict.FAILED], outcome.failure.sentence)
        elif was_failing and not failing:
            self._line(outcome, "recovered", "green", "")

    def _line(self, outcome: Outcome, what: str, style: str, why: str) -> None:
        at = local_time(outcome.document.fetched_at)
        url = outcome.document.link.url
        self._hook({"event": what, "at": outcome.document.fetched_at, "urls": [url], "reason": why})
        say(f"{at}  ", (f"{what:<10}", style), clean(outcome.document.link.url), f"  {clean(why)}" if why else "")


def _log(outcome: Outcome) -> None:
    """One line of words and values for a check."""
    document = outcome.document
    fields = {
        "at": f"{document.fetched_at:.3f}", "verdict": outcome.verdict, "status": document.status,
        "seconds": f"{document.seconds:.3f}", "bytes": document.size, "proof": outcome.proof,
        "failure": None if outcome.failure is None else outcome.failure.kind, "url": document.link.url,
    }  # fmt: skip
    say(clean(" ".join(f"{name}={value}" for name, value in fields.items() if value is not None)), to_stderr=True)
