"""`lab experiment`: the paper's study, on the simulated web.

A cell is one configuration with its numbers of threads. Each is run several times over pages that have an old version,
of which a few have changed since, and its effective time is the seconds from start to end divided by the pages
(equation 1). The latency of the paper's web, 0.911 s a page, can be scaled down: what the configurations gain over each
other does not depend on it until Python's own work shows.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

from driftline.api import workspace_of
from driftline.lab.bench.local_watch_lists import LabError, open_local
from driftline.lab.simweb.simweb_client import RunningWeb, serve
from driftline.lab.simweb.world import World
from driftline.pipeline.plan import PipelineName, Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from driftline.api.watch_list import Driftline


PAPER_PAGES = 6_540
PAPER_LATENCY = 0.91105  # seconds: configuration 1 in Table I
PAPER_SATURATED = 0.05919  # seconds: configuration 3 in Table I, where the paper's network was full
MOST_CONSUMERS = 15
_WIRE_SHARE = 0.34  # bytes on the wire per byte of a page of the simulated web
_PIPELINES: dict[int, PipelineName] = {1: "sequential", 2: "three-section", 3: "two-section"}
_MOST_SECONDS = 8.0
_FEWEST_PAGES = 30
_ROUNDS = 8  # pages per producer at least, or the slow ones at the end of a run weigh too much


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cell:
    """One configuration of the study. `k` is 0 but for configuration 2; `capped` is whether bandwidth was limited."""

    configuration: int
    n: int = 1
    m: int = 1
    k: int = 0
    slots: int = 1
    capped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A cell with its effective time in milliseconds: the mean over its iterations, and their standard deviation."""

    cell: Cell
    pages: int
    effective_ms: float
    sd: float

    def row(self) -> dict[str, Any]:
        """Return the cell as it is printed and saved."""
        return asdict(self.cell) | {"pages": self.pages, "effective_ms": self.effective_ms, "sd": self.sd}


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What is measured, and in which world."""

    cells: tuple[Cell, ...]
    scale: float = 0.25
    iterations: int = 5
    seconds: float = _MOST_SECONDS
    pages: int = PAPER_PAGES
    change_rate: float = 0.05
    seed: int = 1

    def world(self) -> World:
        """Return the simulated web of the study."""
        return World(
            pages=self.pages, hosts=500, seed=self.seed, change_rate=self.change_rate,
            latency=PAPER_LATENCY * self.scale, latency_shape="lognormal",
        )  # fmt: skip

    def bandwidth(self) -> int:
        """Return the bandwidth in bytes per second that saturates this web as the paper's was at its optimum."""
        return int(self.world().size_mean * _WIRE_SHARE / (PAPER_SATURATED * self.scale))

    def pages_of(self, cell: Cell) -> int:
        """Return how many pages take about `seconds` in that cell if only latency counted, at most all."""
        in_flight = cell.n * cell.slots
        rate = in_flight / (PAPER_LATENCY * self.scale)
        if cell.capped:
            rate = min(rate, 1 / (PAPER_SATURATED * self.scale))
        rounds = 0 if cell.capped else _ROUNDS * cell.n  # a full line, not the slowest page, ends a capped run
        enough = max(int(rate * self.seconds), _FEWEST_PAGES, rounds, 3 * in_flight)
        return min(enough, self.pages)


def full_study(ns: Sequence[int], *, pages: int, scale: float, iterations: int, seconds: float) -> Study:
    """Return the paper's sweep over these N: every M up to N/4 and 15, and every K as well in configuration 2."""
    cells = [Cell(configuration=1)]
    for n in ns:
        for m in range(1, most_consumers(n) + 1):
            cells.append(Cell(configuration=3, n=n, m=m))
            cells += [Cell(configuration=2, n=n, m=m, k=k) for k in range(1, most_consumers(n) + 1)]
    cells += [Cell(configuration=3, n=n, m=most_consumers(n), capped=True) for n in ns]
    cells += _slotted()
    return Study(cells=tuple(cells), pages=pages, scale=scale, iterations=iterations, seconds=seconds)


def quick_study() -> Study:
    """Return a grid of under three minutes that fills every table and figure."""
    cells = [Cell(configuration=1)]
    for n in (8, 24, 48, 78):
        few, many = max(1, most_consumers(n) // 3), min(11, most_consumers(n))
        for m in (few, many):
            cells.append(Cell(configuration=3, n=n, m=m))
            cells.append(Cell(configuration=2, n=n, m=m, k=m))
        if n >= 48:
            cells.append(Cell(configuration=2, n=n, m=few, k=many))
    cells += [Cell(configuration=3, n=n, m=most_consumers(n), capped=True) for n in (4, 16, 32, 64, 100)]
    cells += _slotted()
    return Study(cells=tuple(cells), iterations=2, seconds=1.4)


def most_consumers(n: int) -> int:
    """Return the paper's bound on M and K: a quarter of N, at most 15 and at least 1."""
    return max(1, min(MOST_CONSUMERS, n // 4))


def conduct(study: Study, kept: Path | None, progress: Callable[[str], None]) -> Iterator[Measured]:
    """Measure every cell of the study; those that `kept` holds from an earlier, interrupted study are not run again."""
    done = _read(study, kept)
    left = [cell for cell in study.cells if cell not in done]
    yield from (done[cell] for cell in study.cells if cell in done)
    if not left:
        return
    generations = cycle((1, 0))
    with _prepared(study, progress) as (web, driftline):
        for number, cell in enumerate(left, start=1):
            progress(f"cell {number} of {len(left)}: {describe(cell)}")
            web.alter(bandwidth=study.bandwidth() if cell.capped else 0)
            measured = _measure(study, cell, web, driftline, generations)
            _keep(study, kept, measured)
            yield measured


def describe(cell: Cell) -> str:
    """Return the cell in a few words."""
    numbers = f"N = {cell.n}, M = {cell.m}" + (f", K = {cell.k}" if cell.k else "")
    if cell.slots > 1:
        numbers += f", S = {cell.slots}"
    return f"configuration {cell.configuration}, {numbers}" + (", bandwidth capped" if cell.capped else "")


def _slotted() -> list[Cell]:
    return [Cell(configuration=3, n=n, m=2, slots=slots) for n, slots in ((1, 256), (1, 1024), (2, 1024))]


@contextmanager
def _prepared(study: Study, progress: Callable[[str], None]) -> Iterator[tuple[RunningWeb, Driftline]]:
    """Serve the web of the study, with a store in which all of its pages have an old version.

    The paper fetches a page once, so what seems changed is not fetched again here.
    """
    with (
        tempfile.TemporaryDirectory(prefix="driftline-experiment-") as folder,
        serve(study.world()) as web,
        open_local(f"{folder}/pages.db", confirm=False) as driftline,
    ):
        progress("fetching the first version of every page")
        web.alter(latency_shape="none")
        driftline.add(*web.urls())
        first = driftline.check()
        if first.new != study.pages:
            raise LabError(f"Only {first.new} of {study.pages} pages could be fetched.")
        web.alter(latency_shape="lognormal")
        yield web, driftline


def _measure(study: Study, cell: Cell, web: RunningWeb, driftline: Driftline, generations: Iterator[int]) -> Measured:
    page_ids = [page.id for page in driftline.pages()][: study.pages_of(cell)]
    plan = Plan(
        pipeline=_PIPELINES[cell.configuration], producers=cell.n, slots=cell.slots, consumers=cell.m,
        comparers=cell.k or None,
    )  # fmt: skip
    times: list[float] = []
    for _ in range(study.iterations):
        # two generations alternate: what changed between them differs from the current version at every run
        web.generation(next(generations))
        report = workspace_of(driftline).runs.check(page_ids, plan=plan, fresh=True)
        if report.failed or report.pages != len(page_ids):
            raise LabError(f"{describe(cell)}: {report.failed} of {len(page_ids)} pages failed.")
        times.append(report.effective_ms)
    sd = statistics.stdev(times) if len(times) > 1 else 0.0
    return Measured(cell=cell, pages=len(page_ids), effective_ms=statistics.mean(times), sd=sd)


def _terms(study: Study) -> dict[str, Any]:
    """Return what two studies must have in common for their cells to be comparable."""
    return {name: value for name, value in asdict(study).items() if name != "cells"}


def _read(study: Study, kept: Path | None) -> dict[Cell, Measured]:
    if kept is None or not kept.exists():
        return {}
    found: dict[Cell, Measured] = {}
    try:
        terms, *rows = (json.loads(line) for line in kept.read_text().splitlines())
        if terms != _terms(study):
            raise LabError(f"{kept} holds a study with other parameters: give another folder, or remove it.")
        for row in rows:
            figures = {name: row.pop(name) for name in ("pages", "effective_ms", "sd")}
            cell = Cell(**row)
            found[cell] = Measured(cell=cell, **figures)
    except (ValueError, KeyError, TypeError, OSError):
        raise LabError(f"{kept} is not the record of a study: give another folder, or remove it.") from None
    return found


def _keep(study: Study, kept: Path | None, measured: Measured) -> None:
    if kept is None:
        return
    new = not kept.exists()
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.open("a") as file:
        if new:
            file.write(json.dumps(_terms(study)) + "\n")
        file.write(json.dumps(measured.row()) + "\n")


PAPER_TABLE_1 = {1: (911.05, "1 thread"), 2: (60.05, "N = 78, M = 6, K = 6"), 3: (59.19, "N = 78, M = 11")}
PAPER_TABLE_2 = {"M << K": 4, "M <= K+2": 5, "M = K": 73, "M >= K-2": 11, "K << M": 7}
PAPER_TABLE_3 = {"T2 < T3": 4, "T2 = T3": 0, "T2 > T3": 96}
PAPER_REDUCTION = 93.51


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The figures of the three tables, shares in percent. `headline` is the paper's own optimum, N = 78 and M = 11."""

    optimum: dict[int, Measured]
    headline: Measured | None
    with_slots: Measured | None
    m_and_k: dict[str, float]
    two_and_three: dict[str, float]
    matched: tuple[int, int, int]

    def reduction(self, measured: Measured) -> float:
        """Return by how many percent a cell reduces the effective time of configuration 1."""
        return 100 * (1 - measured.effective_ms / self.optimum[1].effective_ms)


def draw_up(measured: Sequence[Measured]) -> Findings:
    """Return the findings of a study that has at least its configuration 1."""
    plain = [one for one in measured if not one.cell.capped and one.cell.slots == 1]
    slotted = [one for one in measured if not one.cell.capped and one.cell.slots > 1]
    optimum = {number: _fastest(plain, number) for number in (1, 2, 3)}
    return Findings(
        optimum={number: one for number, one in optimum.items() if one is not None},
        headline=next((one for one in plain if (one.cell.configuration, one.cell.n, one.cell.m) == (3, 78, 11)), None),
        with_slots=min(slotted, key=lambda one: one.effective_ms, default=None),
        m_and_k=_shares(_relation(one) for one in per_n(measured, 2)),
        two_and_three=_shares(_order(two, three) for two, three in zip_by_n(measured)),
        matched=_matched(plain),
    )


def per_n(measured: Iterable[Measured], configuration: int, *, capped: bool = False) -> list[Measured]:
    """Return for each N the cell with the minimum effective time, in order of N: the points of Figs. 5 and 6."""
    best: dict[int, Measured] = {}
    for one in measured:
        cell = one.cell
        if cell.configuration != configuration or cell.capped != capped or cell.slots > 1:
            continue
        if cell.n not in best or one.effective_ms < best[cell.n].effective_ms:
            best[cell.n] = one
    return [best[n] for n in sorted(best)]


def zip_by_n(measured: Sequence[Measured]) -> list[tuple[Measured, Measured]]:
    """Return the minimum cells of configurations 2 and 3 for every N that both have."""
    twos = {one.cell.n: one for one in per_n(measured, 2)}
    return [(twos[three.cell.n], three) for three in per_n(measured, 3) if three.cell.n in twos]


def _fastest(measured: Iterable[Measured], configuration: int) -> Measured | None:
    some = [one for one in measured if one.cell.configuration == configuration]
    return min(some, key=lambda one: one.effective_ms, default=None)


def _relation(one: Measured) -> str:
    m, k = one.cell.m, one.cell.k
    if m == k:
        return "M = K"
    if m < k:
        return "M <= K+2" if k - m <= 2 else "M << K"
    return "M >= K-2" if m - k <= 2 else "K << M"


def _order(two: Measured, three: Measured) -> str:
    """Compare two cells; they are equal if they differ by less than their own spread."""
    if abs(two.effective_ms - three.effective_ms) <= max(two.sd, three.sd):
        return "T2 = T3"
    return "T2 < T3" if two.effective_ms < three.effective_ms else "T2 > T3"


def _matched(measured: Sequence[Measured]) -> tuple[int, int, int]:
    """Count the pairs of cells with equal N and M = K: configuration 3 at or below 2, ties, and all."""
    twos = {
        (one.cell.n, one.cell.m): one for one in measured if one.cell.configuration == 2 and one.cell.m == one.cell.k
    }
    pairs = [
        (twos[one.cell.n, one.cell.m], one)
        for one in measured
        if one.cell.configuration == 3 and (one.cell.n, one.cell.m) in twos
    ]
    below = sum(three.effective_ms <= two.effective_ms for two, three in pairs)
    ties = sum(_order(two, three) == "T2 = T3" and three.effective_ms > two.effective_ms for two, three in pairs)
    return below, ties, len(pairs)


def _shares(names: Iterable[str]) -> dict[str, float]:
    listed = list(names)
    return {name: 100 * listed.count(name) / len(listed) for name in dict.fromkeys(listed)}
