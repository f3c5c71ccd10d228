"""`run`: keep checking pages, the most urgent first, and tell what changed."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.options import (
    BudgetOption,
    HostConnectionsOption,
    HostDelayOption,
    NetworksOption,
    PolicyOption,
    RobotsOption,
    StallOption,
    StoreOption,
    UsualOption,
    opened,
)
from driftline.cli.output import NOTHING_YET, clean, clean_lines, count, local_time, say
from driftline.errors import StoreBusy, StoreLocked, StoreUnavailable
from driftline.model import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from driftline.api import Driftline
    from driftline.cli.event_printer import Hearer
    from driftline.model import Outcome
    from driftline.notify.command import Hook
    from driftline.pipeline.stop import Stop
    from driftline.schedule.scheduler import Scheduler
    from driftline.watch.planner import Planner

_TURN = 60.0  # seconds of crawling before pages have their turn again


def run(
    every: UsualOption = "1h",
    budget: BudgetOption = None,
    policy: PolicyOption = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--exec", metavar="COMMAND", show_default=False,
            help="Run this, without a shell (for pipes: sh -c '…'), on each event that this run finds, or an earlier "
            "one did not get to tell; it gets the event as JSON on its standard input. What 'driftline check' finds "
            "meanwhile is told by it alone.",
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
    host_delay: HostDelayOption = None,
    host_connections: HostConnectionsOption = None,
    robots: RobotsOption = None,
    stall_after: StallOption = None,
    allow_network: NetworksOption = None,
    store: StoreOption = None,
) -> None:  # fmt: skip
    """Keep checking pages, those first whose check is worth most, and tell what changed.

    Sites that are kept watched are crawled again once a day, unless told otherwise: see 'driftline crawl'.

    Ctrl-C ends it, with status 1 if that left pages unchecked whose turn it was; so it is if an event was not told.
    """
    from driftline.cli.event_printer import News
    from driftline.cli.progress import first_signal, tell_slow
    from driftline.cli.turn_taking import in_turn
    from driftline.pipeline.stop import Stop
    from driftline.runtime import MemoryTrimmer, give_freed_memory_back

    give_freed_memory_back()
    stop = Stop()
    found: Counter[Verdict] = Counter()
    hooks: list[Hook] = []

    watch_lists: list[Driftline] = []

    def on_signal() -> None:
        stop.request()
        for watch_list in watch_lists:
            watch_list.hurry()
        with contextlib.suppress(OSError, RuntimeError):  # the latter while another line is being written
            say("Stopping: finishing what is in flight…", to_stderr=True)

    def at_once() -> None:
        for hook in hooks:
            hook.cut_off()

    polite: dict[str, Any] = {"host_delay": host_delay, "host_connections": host_connections, "robots": robots}
    polite["stall_after"] = stall_after
    with (
        opened(store, allow_networks=allow_network, make=not once, patient=True, **polite) as watch_list,
        first_signal(on_signal, at_once),
    ):
        watch_lists.append(watch_list)
        watch_list.on_trouble(lambda report: say(clean_lines(report), to_stderr=True))
        scheduler = watch_list.scheduler(every=every, budget=budget, policy=policy, once=once)
        with (
            watch_list.outbox(stop) as outbox,
            _telling(command, watch_list.settings.stop_grace, stop, hooks) as (hook, all_told),
            News(stop, hook, outbox.take_out, verbose=verbose) as news,
        ):
            news.left(*outbox.left())
            told = _each(scheduler.heard, news.told, partial(_count, found))
            slow = _first(tell_slow)
            remark = _unless_said(lambda sentence: say(clean(sentence), to_stderr=True))
            for short in watch_list.shortages(budget) if not once else ():
                remark(short)
            rounds = watch_list.rounds(news.of_site, stop, remark, once=once)
            changed = in_turn(rounds.go, stop, watch_list.be_next) if once else []
            planner: Planner | None = None
            memory = MemoryTrimmer()
            left = 0
            while True:
                with watch_list.keep_checking(told, outbox=outbox, stop=stop, slow=slow) as running:
                    if planner is None:
                        planner = watch_list.planner(scheduler, running.feed, stop, remark, slow=slow)
                    else:
                        planner.feed_anew(running.feed)
                    if changed:
                        # they are checked all the same, in their time
                        with contextlib.suppress(StoreBusy, StoreLocked, StoreUnavailable):
                            running.feed.offer(watch_list.watched(changed))
                    if once:
                        in_turn(planner.offer_patiently, stop, watch_list.be_next)
                    while not once and running.at_work and not rounds.due():
                        running.wait(planner.go())
                        memory.trim()
                    if not once and not stop.requested:
                        planner.step_aside()
                if once or stop.requested:
                    break
                # pages wait meanwhile: two pipelines that ask the same hosts would not know of each other
                changed = []
                with contextlib.suppress(StoreBusy, StoreUnavailable):
                    changed = rounds.go(_TURN)
            stopped = stop.requested
            if stopped:
                planner.end(once=once)
            # asked for now: what becomes due while the command gets its grace is for the next run anyway
            with contextlib.suppress(StoreUnavailable):
                left = planner.left(once=once) if stopped else 0
        if not stopped:
            planner.end(once=once)
        if left:
            say(f"Stopped: {count(left, 'page')} left to the next run.", to_stderr=True)
        if once and running.put_off:
            wanted = f"Hosts want to be left alone: {count(running.put_off, 'page')} left to the next run."
            say(wanted, to_stderr=True)
        if once and not stop.requested:
            say(clean(_told_once(scheduler, found)), to_stderr=True)
    if left or not all_told():
        raise typer.Exit(1)


def _told_once(scheduler: Scheduler, found: Counter[Verdict]) -> str:
    """What a single pass found, and when there is something to do for the next."""
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


def _first(tell: Callable[[str, int, float], None]) -> Callable[[str, int, float], None]:
    """Tell the first that there is to tell: a run goes on, and who has read it once knows it."""
    told = False

    def tell_first(host: str, waiting: int, rest: float) -> None:
        nonlocal told
        if not told:
            told = True
            tell(host, waiting, rest)

    return tell_first


def _unless_said(tell: Callable[[str], None]) -> Callable[[str], None]:
    """Tell what was not told last: a run that takes turns comes to the same again and again."""
    last = ""

    def tell_news(sentence: str) -> None:
        nonlocal last
        if sentence != last:
            last = sentence
            tell(sentence)

    return tell_news


def _count(found: Counter[Verdict], outcomes: Sequence[Outcome]) -> None:
    found.update(outcome.verdict for outcome in outcomes)


def _each(*told: Callable[[Sequence[Outcome]], None]) -> Callable[[Sequence[Outcome]], None]:
    """Tell each of these, one after the other."""

    def tell(outcomes: Sequence[Outcome]) -> None:
        for one in told:
            one(outcomes)

    return tell


@contextlib.contextmanager
def _telling(
    command: str | None, grace: float, stop: Stop, hooks: list[Hook]
) -> Iterator[tuple[Hearer | None, Callable[[], bool]]]:  # fmt: skip
    """What runs the user's command, if there is one, for each event; and, asked in the end, whether all were told.

    It is among the `hooks` from then on.
    """
    if command is None:
        yield None, lambda: True
        return
    from driftline.notify.command import Hook

    hook = Hook(command, lambda sentence: say(clean(sentence), to_stderr=True))
    hooks.append(hook)
    all_told = False
    try:
        yield hook.tell, lambda: all_told
    finally:
        all_told = hook.close(grace, lambda: stop.requested)
