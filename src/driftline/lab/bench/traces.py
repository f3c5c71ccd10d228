"""Worlds of pages that change: when each does, and how much it matters, simulated or replayed from real times."""

from __future__ import annotations

import csv
import gzip
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from driftline.errors import BadSetting, UsageError
from driftline.schedule.loader import importance
from driftline.schedule.page_table import DAY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from driftline.schedule.page_table import Floats, Places

TraceKind = Literal["poisson", "bursty", "seasonal", "failing", "squeezed"]
KINDS: tuple[TraceKind, ...] = get_args(TraceKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceWorld:
    """The parameters of a simulated world.

    'bursty' changes come in clusters; 'seasonal' ones in working hours; of a 'failing' world a tenth of the pages does
    not answer for a fifth of the time; in a 'squeezed' one the budget drops to a fifth for a quarter of the time.
    """

    kind: TraceKind = "poisson"
    pages: int = 10_000
    days: float = 60.0
    scored_from: float = 20.0
    checks_per_page: float = 0.2
    static: float = 0.1
    step: float = 0.05
    seed: int = 1

    def __post_init__(self) -> None:
        if self.pages < 1 or self.step <= 0 or not 0 <= self.scored_from < self.days < math.inf:
            raise BadSetting("A world needs at least one page, and more days than those that are not scored.")
        _require_checks(self.checks_per_page)
        if not 0 <= self.static <= 1:
            raise BadSetting("The share of static pages is between 0 and 1.")


def _require_checks(per_page: float) -> None:
    if not 0 < per_page < math.inf:
        raise BadSetting(f"Each page has a number of checks a day, above zero: got {per_page:g}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """When each page changed, in days, and how much it matters: all that the policies are scored on.

    `times` are those of all pages, one page after the other, `first` where each begins; `rates` the true ones. While
    `down` is True, a page cannot be checked. A trace is `steady` if its pages change at random times, its budget stays
    the same and all pages answer: then the optimum is known.
    """

    times: Floats
    first: Places
    rates: Floats
    weights: Floats
    visits: Floats
    dwell: Floats
    hosts: NDArray[np.int32]
    days: float
    scored_from: float
    step: float
    budget: Callable[[float], float]
    steady: bool
    down: Callable[[float], NDArray[np.bool_]] | None = None

    @property
    def pages(self) -> int:
        return len(self.rates)


def simulated(world: TraceWorld) -> Trace:
    """Return the trace of a simulated world, the same for the same seed."""
    random = np.random.default_rng(world.seed)
    size = world.pages
    rates = np.minimum(0.02 * (1 + random.pareto(0.9, size)), 24.0)
    rates[random.random(size) < world.static] = 0.0
    visits, dwell = _visited(random, size)
    per_page = [_changes(world.kind, rate, world.days, random) for rate in rates]
    hosts = random.integers(0, max(1, size // 20), size).astype(np.int32)
    usual = world.checks_per_page * size

    def budget(day: float) -> float:
        squeezed = world.kind == "squeezed" and 0.25 <= (day / world.days * 4) % 1.0 < 0.5
        return usual / 5 if squeezed else usual

    down = _failing(random, size, world.days) if world.kind == "failing" else None
    return _trace(
        per_page, rates, visits, dwell, hosts, days=world.days, scored_from=world.scored_from, step=world.step,
        budget=budget, steady=world.kind == "poisson", down=down,
    )  # fmt: skip


def replayed(
    file: Path, *, since: str = "2024-01-01", checks_per_page: float = 0.1, step: float = 0.25, seed: int = 1
) -> Trace:
    """Return the trace of real change times in a CSV file with columns document, host, unix and kind, gzip or plain.

    It has the documents that were there when it begins, and ends with the last time in the file. Weights are drawn.
    """
    _require_checks(checks_per_page)
    begin = np.datetime64(since).astype("datetime64[s]").astype(np.int64)
    started, changes, hosts = _read(file)
    end = max((time for times in changes.values() for time in times), default=begin)
    names = sorted(name for name, time in started.items() if time <= begin)
    if not names or end <= begin:
        raise UsageError(f"{file} has no documents that were there on {since} and changed later.")
    days = (end - begin) / DAY
    per_page = [np.array(sorted((time - begin) / DAY for time in changes[name] if time > begin)) for name in names]
    numbers = {host: number for number, host in enumerate(sorted(set(hosts.values())))}
    random = np.random.default_rng(seed)
    visits, dwell = _visited(random, len(names))
    return _trace(
        per_page, np.array([len(times) / days for times in per_page]), visits, dwell,
        np.array([numbers[hosts[name]] for name in names], np.int32), days=days, scored_from=0.0, step=step,
        budget=lambda _: checks_per_page * len(names), steady=False,
    )  # fmt: skip


def _read(file: Path) -> tuple[dict[str, float], dict[str, list[float]], dict[str, str]]:
    started: dict[str, float] = {}
    changes: dict[str, list[float]] = {}
    hosts: dict[str, str] = {}
    opener: Any = gzip.open if file.suffix == ".gz" else open
    try:
        with opener(file, "rt", encoding="utf-8", newline="") as lines:
            for number, row in enumerate(csv.DictReader(lines), start=2):
                try:
                    name, host, time, kind = row["document"], row["host"], float(row["unix"]), row["kind"]
                except (KeyError, TypeError, ValueError):
                    raise UsageError(f"Line {number} of {file} is not document, host, unix, kind.") from None
                hosts[name] = host
                started[name] = min(time, started.get(name, time))
                changes.setdefault(name, [])
                if kind == "change":
                    changes[name].append(time)
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise UsageError(f"{file} cannot be read: {error}.") from None
    return started, changes, hosts


def _visited(random: np.random.Generator, size: int) -> tuple[Floats, Floats]:
    """Return how often pages were visited, and for how many seconds in all."""
    visits = np.ceil(10 * random.pareto(1.1, size))
    return visits, visits * random.lognormal(3.0, 1.0, size)


def _changes(kind: TraceKind, rate: float, days: float, random: np.random.Generator) -> Floats:
    """Return the times at which one page changes."""
    if kind == "bursty":
        # as many changes, in clusters of four on average that last some hours
        starts = random.random(random.poisson(rate * days / 4)) * days
        times = np.concatenate([start + random.exponential(0.2, random.geometric(0.25)) for start in starts] or [[]])
        return np.sort(times[times < days])
    times = np.sort(random.random(random.poisson(rate * days)) * days)
    if kind == "seasonal":
        # the third of each day in which people work, five days of seven
        week, within = np.divmod(times, 1.0)
        times = np.sort(week - np.where(week % 7 >= 5, 2, 0) + 1 / 3 + within / 3)
        times = times[(times >= 0) & (times < days)]
    return times


def _failing(random: np.random.Generator, size: int, days: float) -> Callable[[float], NDArray[np.bool_]]:
    """Return which pages do not answer: a tenth of them, each for a fifth of the time."""
    some = random.random(size) < 0.1
    starts = random.random(size) * days * 0.8
    return lambda day: some & (starts <= day) & (day < starts + days / 5)


def _trace(
    per_page: Sequence[Floats], rates: Floats, visits: Floats, dwell: Floats, hosts: NDArray[np.int32], *, days: float,
    scored_from: float, step: float, budget: Callable[[float], float], steady: bool,
    down: Callable[[float], NDArray[np.bool_]] | None = None,
) -> Trace:  # fmt: skip
    weights = importance(visits, dwell).astype(np.float64)
    weights /= weights.sum()
    counts = np.array([len(times) for times in per_page])
    return Trace(
        times=np.concatenate([*per_page, np.empty(0)]), first=np.r_[0, np.cumsum(counts)], rates=rates,
        weights=weights, visits=visits, dwell=dwell, hosts=hosts, days=days, scored_from=scored_from, step=step,
        budget=budget, steady=steady, down=down,
    )  # fmt: skip
