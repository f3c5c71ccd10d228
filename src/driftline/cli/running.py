"""`run`: keep checking pages as they become due."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.cli.options import StoreOption, opened
from driftline.cli.output import VERDICT_STYLES, clean, count, local_time, named, say
from driftline.errors import StoreBusy
from driftline.model import Verdict
from driftline.pages.intervals import parse_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.library import Driftline
    from driftline.model import Outcome, Page
    from driftline.pipeline.events import Event
    from driftline.pipeline.stopping import Stop

_LOOK = 2.0  # seconds after which pages that were added, edited or removed are picked up
_SHARE = 20  # looking may take one part in so many of the time


def run(
    every: Annotated[
        str, typer.Option("--every", metavar="TIME", help="How often to check a page that has no interval of its own.")
    ] = "1h",
    once: Annotated[bool, typer.Option("--once", help="Check the pages that are due now, then end.")] = False,
    store: StoreOption = None,
) -> None:
    """Keep checking pages as they become due, and tell what changed."""
    from driftline.cli.signals import first_signal
    from driftline.pipeline.stopping import Stop

    default = parse_interval(every)
    stop = Stop()

    def on_signal() -> None:
        stop.request()
        with contextlib.suppress(OSError):
            say("Stopping: finishing what is in flight…", to_stderr=True)

    with opened(store) as watch_list, first_signal(on_signal):
        rounds = _Rounds(watch_list, stop, default)
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


class _Rounds:
    """One look after another at the watch list, each checking what is due."""

    def __init__(self, watch_list: Driftline, stop: Stop, default: float) -> None:
        self._watch_list = watch_list
        self._stop = stop
        self._default = default
        self._remark = ""
        self._settled: int | None = None

    def go(self) -> float:
        """Check the pages that are due now; the seconds to wait before the next look."""
        from driftline.scheduling.fixed import due

        started = time.monotonic()
        pages = self._watch_list.pages()
        longest = max(_LOOK, _SHARE * (time.monotonic() - started))
        if not pages:
            self.remark("No pages are watched yet: in another terminal, driftline add URL")
            return longest
        now = time.time()
        found = due(pages, now=now, default=self._default)
        if found.pages:
            self._check(found.pages)
            return 0.0
        self.remark(f"Watching {count(len(pages), 'page')}; none is due now.")
        pause = min(longest, max(0.0, (found.next_at or now) - now))
        return pause if self._caught_up(pages, pause) else 0.0

    def _caught_up(self, pages: Sequence[Page], seconds: float) -> bool:
        """Read versions anew and index them for at most so long; whether there is nothing left of that to do.

        It need not be looked at again before a page has another version or other filters.
        """
        as_it_is = hash(tuple((page.id, page.versions, page.filters) for page in pages))
        if as_it_is == self._settled:
            return True
        end = time.monotonic() + seconds
        self._watch_list.catch_up(self._stop, lambda: time.monotonic() >= end)
        if time.monotonic() >= end or self._stop.requested:
            return False
        self._settled = as_it_is
        return True

    def remark(self, remark: str) -> None:
        """Say how things stand, unless that is what was said last."""
        if remark != self._remark:
            self._remark = remark
            say(clean(remark), to_stderr=True)

    def _check(self, pages: Sequence[Page]) -> None:
        news = _News(pages, self._stop)
        page_ids = [page.id for page in pages]
        report = self._watch_list.check_pages(page_ids, fresh=True, stop=self._stop, told=news.told)
        news.finish(report.events)


class _News:
    """Tells what a round found: each change, each page that begins to fail or recovers, and how many are new."""

    def __init__(self, pages: Sequence[Page], stop: Stop) -> None:
        self._was_failing = {page.id for page in pages if page.verdict is Verdict.FAILED}
        self._new = 0
        self._stop = stop
        self._error: OSError | None = None

    def told(self, outcomes: Sequence[Outcome]) -> None:
        """These outcomes are recorded. An output that is gone ends the run, through `finish`, and not its recorder."""
        try:
            for outcome in outcomes:
                self._tell(outcome)
        except OSError as error:
            self._error = error
            self._stop.request()

    def finish(self, events: Sequence[Event]) -> None:
        """The round is over, and these are its changes; raises what kept its news from being told."""
        if self._error is not None:
            raise self._error
        for event in events:
            style = VERDICT_STYLES[Verdict.CHANGED]
            say(f"{local_time(time.time())}  ", (f"{'changed':<10}", style), f"{named(event)}  {clean(event.reason)}")
        if self._new:
            found = f"{count(self._new, 'page')} seen for the first time"
            say(f"{local_time(time.time())}  ", (f"{'new':<10}", VERDICT_STYLES[Verdict.NEW]), found)

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
        say(f"{at}  ", (f"{what:<10}", style), clean(outcome.document.link.url), f"  {clean(why)}" if why else "")
