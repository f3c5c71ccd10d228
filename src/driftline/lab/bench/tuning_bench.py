"""`lab tuning`: does `auto` find what a grid search finds, in four worlds that call for different numbers?

Every run has more pages than it can check before it is stopped. Its speed is counted after ten seconds, when `auto`
should have found its numbers, and when the first transfers of a full line are through: small pages finish first, and
would make a cell with many in flight look faster than it is.

The best of many noisy cells is partly luck. So after the grid, its best cell and `auto` are run alternately, and `auto`
is judged by the median of its speed relative to the other in the same round.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from driftline.api import workspace_of
from driftline.lab.bench.local_watch_lists import LabError, open_local
from driftline.lab.simweb.simweb_client import serve
from driftline.lab.simweb.world import World
from driftline.pipeline.plan import Plan
from driftline.pipeline.stop import Stop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from driftline.api.watch_list import Driftline
    from driftline.model.outcome import Outcome

_SETTLED = 10.0  # seconds
_SLOTS = (8, 32, 128, 512, 2_048)
_ROUNDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A world with the reason why it is there, and the consumers that the grid tries."""

    name: str
    world: World
    consumers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningRow:
    """The speed of one run in pages a second, and the numbers that it ran with in the end.

    A `cell` is of the grid; `best` and `auto` alternate, once in every round.
    """

    world: str
    kind: Literal["cell", "best", "auto"]
    slots: int
    consumers: int
    pages_per_s: float


def settings() -> tuple[Setting, ...]:
    """Return the four worlds: limited by latency, by bandwidth, and by the processor.

    The last of them are two: where finding a page unchanged is the work, and where reading its many blocks is.
    """
    return (
        Setting(
            name="latency-bound",
            consumers=(1, 2),
            world=World(pages=40_000, hosts=500, size_mean=6_000, latency=0.9, latency_shape="lognormal"),
        ),
        Setting(
            name="bandwidth-bound",
            consumers=(1, 2),
            world=World(pages=7_000, hosts=500, latency=0.1, latency_shape="lognormal", bandwidth=8_000_000),
        ),
        Setting(name="CPU-bound", consumers=(1, 2), world=World(pages=60_000, hosts=50, noise="hidden")),
        Setting(
            name="many-blocks",
            consumers=(1, 2),
            world=World(pages=40_000, hosts=50, sizes="fixed", size_mean=64_000, blocks="short", noise="hidden"),
        ),
    )


def search(setting: Setting, seconds: float, progress: Callable[[str], None]) -> Iterator[TuningRow]:
    """Yield every cell of the grid in this world, then its best and `auto` alternating, each for this many seconds."""
    with (
        tempfile.TemporaryDirectory(prefix="driftline-tuning-") as folder,
        serve(replace(setting.world, latency_shape="none", bandwidth=0)) as web,
        open_local(str(Path(folder) / "pages.db")) as driftline,
    ):
        progress(f"{setting.name}: fetching the first version of every page")
        driftline.add(*web.urls())
        driftline.check()
        web.alter(latency_shape=setting.world.latency_shape, bandwidth=setting.world.bandwidth)
        fastest, best = 0.0, Plan()
        for slots in _SLOTS:
            for consumers in setting.consumers:
                progress(f"{setting.name}: {slots} in flight, {consumers} consumers")
                plan = Plan(producers=1, slots=slots, consumers=consumers)
                row = _row(setting.name, "cell", driftline, plan, seconds)
                yield row
                if row.pages_per_s > fastest:
                    fastest, best = row.pages_per_s, plan
        for number in range(_ROUNDS):
            progress(f"{setting.name}: the best cell and auto, round {number + 1} of {_ROUNDS}")
            yield _row(setting.name, "best", driftline, best, seconds)
            yield _row(setting.name, "auto", driftline, Plan(), seconds)


def reached(rows: Sequence[TuningRow]) -> float:
    """Return the speed of `auto` divided by that of the best cell in a world: the median over the rounds."""
    best, auto = ([row.pages_per_s for row in rows if row.kind == kind] for kind in ("best", "auto"))
    return statistics.median(ours / theirs for ours, theirs in zip(auto, best, strict=True))


def _row(
    name: str, kind: Literal["cell", "best", "auto"], driftline: Driftline, plan: Plan, seconds: float
) -> TuningRow:
    counter = _Counter(_SETTLED, seconds)
    runs = workspace_of(driftline).runs
    report = runs.check(None, plan=plan, fresh=True, stop=counter.stop, recorded=counter.count)
    if not report.left:
        raise LabError(f"All pages of the {name} world were checked before the time was up: it needs more of them.")
    return TuningRow(
        world=name, kind=kind, slots=report.slots * report.producers, consumers=report.consumers,
        pages_per_s=counter.speed(),
    )  # fmt: skip


class _Counter:
    """Counts outcomes between two moments of a run, and stops it after the second."""

    def __init__(self, settled: float, seconds: float) -> None:
        self.stop = Stop()
        self._counted = 0
        self._lock = threading.Lock()
        self._start = time.perf_counter() + settled
        self._first = self._last = self._start
        self._end = self._start + seconds

    def count(self, outcomes: Sequence[Outcome]) -> None:
        now = time.perf_counter()
        with self._lock:
            if now < self._start:
                self._first = now
            elif now <= self._end:
                self._counted += len(outcomes)
                self._last = now
            else:
                self.stop.request()

    def speed(self) -> float:
        return self._counted / max(self._last - self._first, 0.001)
