"""`run`: keep checking pages, the most urgent first, and tell what changed."""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.options import BudgetOption, NetworksOption, PolicyOption, StoreOption, UsualOption, opened
from driftline.cli.output import NOTHING_YET, clean, count, local_time, say
from driftline.errors import StoreBusy, StoreError, StoreLocked
from driftline.model import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from driftline.library import Driftline
    from driftline.model import Outcome
    from driftline.pipeline.feed import Feed
    from driftline.pipeline.stopping import Stop
    from driftline.scheduling.scheduler import Scheduler

_LOOK = 2.0  # seconds after which pages that were added, edited or removed are picked up
_SHARE = 20  # looking may take one part in so many of the time
_PAUSE = 1.0  # seconds between two picks
_RETRY = 60.0  # seconds before catching up is tried again after it failed


def run(
    every: UsualOption = "1h",
    budget: BudgetOption = None,
    policy: PolicyOption = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--exec", metavar="COMMAND", show_default=False,
            help="Run this, without a shell (for pipes: sh -c '…'), on each event that this run finds; it gets the "
            "event as JSON on its standard input. What 'driftline check' finds meanwhile is told by it alone.",
        ),
    ] = None,
    once: Annotated[
        bool,
        typer.Option(
            "--once",
            help="Check all pages that are due by now or new, whatever the budget; end, and say when the next is due.",
        ),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every check on standard error.")] = False,
    allow_network: NetworksOption = None,
    store: StoreOption = None,
) -> None:  # fmt: skip
    """Keep checking pages, those first whose check is worth most, and tell what changed."""
    from driftline.cli.news import News
    from driftline.cli.signals import first_signal
    from driftline.cli.turns import in_turn
    from driftline.pipeline.stopping import Stop
    from driftline.versions.locks import patiently

    stop = Stop()
    found: Counter[Verdict] = Counter()

    def on_signal() -> None:
        stop.request()
        with contextlib.suppress(OSError, RuntimeError):  # the latter while another line is being written
            say("Stopping: finishing what is in flight…", to_stderr=True)

    with opened(store, allow_network) as watch_list, first_signal(on_signal), _hook(command, watch_list, stop) as hook:
        scheduler = watch_list.scheduler(every=every, budget=budget, policy=policy, once=once)
        for short in watch_list.shortages(budget) if not once else ():
            say(clean(short), to_stderr=True)
        with (
            News(stop, hook, verbose=verbose) as news,
            watch_list.keep_checking(_each(scheduler.heard, news.told, partial(_count, found)), stop=stop) as keeping,
        ):
            planner = Planner(watch_list, scheduler, keeping.feed, stop)
            if once:
                in_turn(lambda: patiently(planner.offer, lambda: stop.requested), stop)
            while not once and keeping.at_work:
                keeping.wait(planner.go())
        if keeping.left:
            say(f"Stopped: {count(keeping.left, 'page')} left to the next run.", to_stderr=True)
        planner.end(once=once)
        if once and not stop.requested:
            say(clean(_told_once(scheduler, found)), to_stderr=True)


def _told_once(scheduler: Scheduler, found: Counter[Verdict]) -> str:
    """What a single pass found, and when there is something to do for the next."""
    if not len(scheduler):
        return NOTHING_YET
    verdicts = ", ".join(f"{found[one]:,} {one}" for one in Verdict if found[one])
    done = f"Checked {count(found.total(), 'page')}: {verdicts}." if found else "Nothing is due."
    following = scheduler.terms(1)
    due_at = following[0].due_at if following else None
    when = "now" if due_at is None or due_at <= time.time() else f"at {local_time(due_at)}"
    return f"{done} The next page is due {when}."


def _count(found: Counter[Verdict], outcomes: Sequence[Outcome]) -> None:
    found.update(outcome.verdict for outcome in outcomes)


def _each(*told: Callable[[Sequence[Outcome]], None]) -> Callable[[Sequence[Outcome]], None]:
    """Tell each of these, one after the other."""

    def tell(outcomes: Sequence[Outcome]) -> None:
        for one in told:
            one(outcomes)

    return tell


@contextlib.contextmanager
def _hook(command: str | None, watch_list: Driftline, stop: Stop) -> Iterator[Callable[[dict[str, Any]], None]]:
    """What is told of every event, and runs the user's command for it if there is one; status 1 if any was not told."""
    if command is None:
        yield lambda _: None
        return
    from driftline.scheduling.hooks import Hook

    hook = Hook(command, lambda sentence: say(clean(sentence), to_stderr=True))
    try:
        yield hook.tell
    finally:
        all_told = hook.close(watch_list.settings.stop_grace, lambda: stop.requested)
    if not all_told:
        raise typer.Exit(1)


class Planner:
    """Feeds a run with the pages whose turn it is, and learns from what came of them."""

    def __init__(
        self, watch_list: Driftline, scheduler: Scheduler, feed: Feed, stop: Stop,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._ticks = ticks
        self._watch_list = watch_list
        self._scheduler = scheduler
        self._feed = feed
        self._stop = stop
        self._remark = ""
        self._others = False  # whether others were checking when it was last tried
        self._unlearned: list[int] = []
        self._look_at = self._ticks()
        self._settled: int | None = None
        self._catch_up_at = self._ticks()

    def go(self) -> float:
        """Have the pages checked whose turn it is now; the seconds to wait before the next look."""
        try:
            busy = self.offer(self._feed.wanted())
        except (StoreBusy, StoreLocked) as error:
            self._say(f"Waiting: {error}")
            return _LOOK
        if not busy:
            empty = "No pages are watched yet: in another terminal, driftline add URL"
            self._say(f"Watching {self._scheduler.describe()}." if len(self._scheduler) else empty)
        return _PAUSE if busy or self._caught_up(_PAUSE) else 0.0

    def end(self, *, once: bool) -> None:
        """Learn from the last checks and, if `once` leaves no idle time for it, catch up; the next run can do both."""
        with contextlib.suppress(StoreLocked):
            self._learn()
        if once and not self._stop.requested:
            self._caught_up(math.inf)

    def offer(self, most: int | None = None) -> bool:
        """Offer the pages whose turn it is, `most` of them; whether there is enough to do for now.

        StoreBusy, and none picked, if another process checks pages at the moment. What is due is found out again once
        it is done, and nobody else can begin: it may have checked the same pages. Otherwise the right to check is asked
        for only when there is something to check, so that others are not refused it for nothing.
        """
        with contextlib.ExitStack() as rights:

            def claim() -> None:
                try:
                    rights.enter_context(self._feed.claimed())
                except StoreBusy:
                    self._others = True
                    raise

            if self._others:
                claim()
                self._look_at = self._ticks()
            self._learn()
            self._refresh()
            self._others = False
            if not len(self._scheduler):
                return False
            if most == 0:
                return True
            picked = self._scheduler.pick(most, self._feed.held(), claim)
            if not picked:
                return False
            self._feed.offer(picked)
            return True

    def _learn(self) -> None:
        """Learn from what was recorded since the last time; from all of it the next time, if the store is locked."""
        self._unlearned += self._feed.settled()
        self._scheduler.follow(self._unlearned)
        self._unlearned = []

    def _refresh(self) -> None:
        """See which pages were added, edited or removed, unless that was seen just now."""
        started = self._ticks()
        if started >= self._look_at:
            self._scheduler.refresh()
            ended = self._ticks()
            self._look_at = ended + max(_LOOK, _SHARE * (ended - started))

    def _caught_up(self, seconds: float) -> bool:
        """Read versions anew and index them for at most so long; whether there is nothing left of that to do now.

        It need not be looked at again before a page has another version or other filters. A store that fails at it, for
        somebody else is at work there, need not fail at the next check: checks go on, and it is tried again later.
        """
        as_it_is = self._scheduler.edition
        if as_it_is == self._settled or self._ticks() < self._catch_up_at:
            return True
        end = self._ticks() + seconds
        try:
            self._watch_list.catch_up(self._stop, lambda: self._ticks() >= end)
        except StoreError as error:
            self._say(f"Catching up failed, and will be tried again: {error}")
            self._catch_up_at = self._ticks() + _RETRY
            return True
        if self._ticks() >= end or self._stop.requested:
            return False
        self._settled = as_it_is
        return True

    def _say(self, remark: str) -> None:
        """Say how things stand, unless that is what was said last."""
        if remark != self._remark:
            self._remark = remark
            say(clean(remark), to_stderr=True)
