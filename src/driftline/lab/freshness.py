"""`lab freshness`: how up to date pages are kept by each policy, on one and the same trace of changes.

Time passes in steps. In each, a policy picks as many pages as the budget allows and is told which of them had changed
since it last looked. The policies that Driftline ships are the scheduler's own code; the others are rivals made here.
"""

from __future__ import annotations

import csv
import gzip
import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np

from driftline.errors import BadSetting, UsageError
from driftline.scheduling.index import DAY, Index
from driftline.scheduling.rates import SLOWEST
from driftline.scheduling.weighing import importance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.int64]

Kind = Literal["poisson", "bursty", "seasonal", "failing", "squeezed"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The parameters of a simulated world.

    'bursty' changes come in clusters; 'seasonal' ones in working hours; of a 'failing' world a tenth of the pages does
    not answer for a fifth of the time; in a 'squeezed' one the budget drops to a fifth for a quarter of the time.
    """

    kind: Kind = "poisson"
    pages: int = 10_000
    days: float = 60.0
    scored_from: float = 20.0
    checks_per_page: float = 0.2
    static: float = 0.1
    step: float = 0.05
    seed: int = 1

    def __post_init__(self) -> None:
        if self.pages < 1 or self.step <= 0 or not 0 <= self.scored_from < self.days < math.inf:
            raise BadSetting("A world has pages, and days after those that are not scored.")
        _insist_on_checks(self.checks_per_page)
        if not 0 <= self.static <= 1:
            raise BadSetting("The share of static pages is between 0 and 1.")


def _insist_on_checks(per_page: float) -> None:
    if not 0 < per_page < math.inf:
        raise BadSetting(f"Each page has a number of checks a day, above zero: got {per_page:g}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """When each page changed, in days, and how much it matters: all that the policies are scored on.

    `times` are those of all pages, one page after the other, `first` where each begins; `rates` the true ones. While
    `down` says so, a page cannot be checked. A trace is `steady` if its pages change at random times, its budget stays
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How a policy did; of the optimum, only the freshness is known.

    `fw` is the share of all weight that was up to date, `hw` the harmonic penalty for what was missed, `delay_w` the
    weighted mean of the hours from a change to its detection, `wasted` the share of checks that found nothing, and
    `starved` counts the pages that were never checked while scores were kept.
    """

    policy: str
    fw: float
    hw: float | None = None
    delay_w: float | None = None
    wasted: float | None = None
    starved: float | None = None


def simulated(world: World) -> Trace:
    """The trace of a simulated world, the same for the same seed."""
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
    """The trace of real change times in a CSV file with the columns document, host, unix and kind, gzip or plain.

    It has the documents that were there when it begins, and ends with the last time in the file. Weights are drawn.
    """
    _insist_on_checks(checks_per_page)
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
    """How often pages were visited, and for how many seconds in all."""
    visits = np.ceil(10 * random.pareto(1.1, size))
    return visits, visits * random.lognormal(3.0, 1.0, size)


def _changes(kind: Kind, rate: float, days: float, random: np.random.Generator) -> Floats:
    """The times at which one page changes."""
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
    """Which pages do not answer: a tenth of them, each for a fifth of the time."""
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


class Rival(Protocol):
    """Something that picks pages, `now` in days, and is told which of them had changed."""

    def pick(self, now: float, count: int) -> Places: ...

    def told(self, places: Places, now: float, changed: NDArray[np.bool_]) -> None: ...

    def failed(self, places: Places, now: float) -> None: ...


class Shipped:
    """A policy of the scheduler, with the code that `driftline run` uses."""

    def __init__(self, trace: Trace, policy: Any, *, known: bool = False) -> None:
        self._index = Index(trace.pages)
        self._index.weight[:] = trace.weights * trace.pages
        self._index.host[:] = trace.hosts
        self._index.checked[:] = 0.0
        order = np.lexsort((-trace.dwell, -trace.visits))
        self._index.rank[order] = np.arange(trace.pages)
        self._policy = policy
        self._known = known
        if known:
            self._index.a[:] = _SURE
            self._index.b[:] = _SURE / np.maximum(trace.rates, SLOWEST)

    def pick(self, now: float, count: int) -> Places:
        return self._index.pick(now * DAY, count, policy=self._policy)

    def told(self, places: Places, now: float, changed: NDArray[np.bool_]) -> None:
        if self._known:
            self._index.checked[places] = now * DAY
        else:
            self._index.learn(places, now * DAY, changed)

    def failed(self, places: Places, now: float) -> None:
        self._index.fail(places, now * DAY)


class Due:
    """Checks pages in the order of when each is due next."""

    def __init__(self, trace: Trace) -> None:
        self._due = np.random.default_rng(0).random(trace.pages) * trace.pages / trace.budget(0.0)

    def pick(self, now: float, count: int) -> Places:
        del now
        return np.argpartition(self._due, count)[:count] if count < len(self._due) else np.arange(len(self._due))

    def failed(self, places: Places, now: float) -> None:
        self._due[places] = now + 0.25


class Proportional(Due):
    """Checks pages as often as they change, in proportion; knows the true rates."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        rates = np.maximum(trace.rates, SLOWEST)
        self._interval = rates.sum() / trace.budget(0.0) / rates
        self._due = np.random.default_rng(0).random(trace.pages) * self._interval

    def told(self, places: Places, now: float, changed: NDArray[np.bool_]) -> None:
        del changed
        self._due[places] = now + self._interval[places]


class Nutch(Due):
    """Nutch's adaptive schedule: an interval that shrinks by a fifth with each change and grows by one without."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._interval = np.full(trace.pages, trace.pages / trace.budget(0.0))

    def told(self, places: Places, now: float, changed: NDArray[np.bool_]) -> None:
        factor = np.where(changed, 0.8, 1.2)
        self._interval[places] = np.clip(self._interval[places] * factor, 1 / 1440, 365.0)
        self._due[places] = now + self._interval[places]


class LambdaCrawl(Due):
    """The best rates for the harmonic penalty, with times drawn at random; knows the true rates."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._random = np.random.default_rng(0)
        self._rates = np.maximum(_lambda_rates(trace.weights, trace.rates, trace.budget(0.0)), 1e-9)
        self._due = self._random.exponential(1 / self._rates)

    def told(self, places: Places, now: float, changed: NDArray[np.bool_]) -> None:
        del changed
        self._due[places] = now + self._random.exponential(1 / self._rates[places])


_SURE = 1e6  # the shape of a rate that is known
POLICIES: dict[str, Callable[[Trace], Rival]] = {
    "uniform": lambda trace: Shipped(trace, "uniform"),
    "proportional": Proportional,
    "intelligent": lambda trace: Shipped(trace, "intelligent"),
    "nutch": Nutch,
    "lambdacrawl": LambdaCrawl,
    "known": lambda trace: Shipped(trace, "value", known=True),
    "value": lambda trace: Shipped(trace, "value"),
}


def _lambda_rates(weights: Floats, rates: Floats, budget: float) -> Floats:
    def spent(price: float) -> Floats:
        found: Floats = (-rates + np.sqrt(rates**2 + 4 * weights * rates / price)) / 2
        return found

    return spent(_price(lambda price: float(spent(price).sum()), budget))


def optimal_rates(weights: Floats, rates: Floats, budget: float) -> Floats:
    """How often to check each page for the most freshness, if all rates are known and checks are evenly spaced."""
    moving = rates > 0
    scale = weights[moving] / rates[moving]

    def spent(price: float) -> Floats:
        # 1 - (1 + x)·exp(-x) = price / scale, for x changes between two checks; none, if it is never worth the price
        wanted = price / scale
        low, high = np.zeros(len(scale)), np.full(len(scale), 750.0)
        for _ in range(80):
            x = (low + high) / 2
            below = -np.expm1(-x) - x * np.exp(-x) < wanted
            low, high = np.where(below, x, low), np.where(below, high, x)
        return np.where(wanted < 1, rates[moving] / high, 0.0)

    found = np.zeros(len(rates))
    found[moving] = spent(_price(lambda price: float(spent(price).sum()), budget))
    return found


def _price(spent: Callable[[float], float], budget: float) -> float:
    """The price at which so much is spent; spending falls with it."""
    low, high = 1e-18, 1e6
    for _ in range(100):
        price = math.sqrt(low * high)
        low, high = (price, high) if spent(price) > budget else (low, price)
    return high


def optimum(trace: Trace) -> float:
    """The weighted freshness that nobody can exceed who checks pages at times that do not depend on what is found."""
    often = optimal_rates(trace.weights, trace.rates, trace.budget(0.0))
    x = np.divide(trace.rates, often, out=np.full(trace.pages, np.inf), where=often > 0)
    x = np.where(trace.rates == 0, 0.0, x)
    fresh = np.where(x == 0, 1.0, np.where(np.isinf(x), 0.0, -np.expm1(-x) / np.maximum(x, 1e-300)))
    return float((trace.weights * fresh).sum())


def race(trace: Trace, policies: Sequence[str] = tuple(POLICIES)) -> Iterator[Row]:
    """Let these policies keep the pages of a trace up to date, one after the other; then what is possible at all."""
    for name in policies:
        if name not in POLICIES:
            raise BadSetting(f"'{name}' is not one of {', '.join(POLICIES)}.")
    for name in policies:
        yield replace(_run(trace, POLICIES[name](trace)), policy=name)
    if trace.steady:
        yield Row(policy="optimum", fw=optimum(trace))


def means(rows: Sequence[Row]) -> list[Row]:
    """The mean of the rows of each policy."""
    by_policy: dict[str, list[Row]] = {}
    for row in rows:
        by_policy.setdefault(row.policy, []).append(row)

    def mean(some: Sequence[Row], name: str) -> Any:
        numbers = [getattr(row, name) for row in some]
        return None if None in numbers else sum(numbers) / len(numbers)

    names = [field.name for field in fields(Row) if field.name != "policy"]
    return [Row(policy=policy, **{name: mean(some, name) for name in names}) for policy, some in by_policy.items()]


class _Score:
    """What a policy has missed so far, in the time that is scored."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._keys = trace.times + np.repeat(np.arange(trace.pages), np.diff(trace.first)) * (trace.days + 1)
        self._known = np.zeros(trace.pages, np.int64)
        self._checked = np.zeros(trace.pages, bool)
        self._stale = self._harmonic = self._late = self._late_weight = 0.0
        self._checks = self._wasted = 0

    def check(self, places: Places, now: float) -> NDArray[np.bool_]:
        """These pages are checked; which of them had changed."""
        changed = self._settle(places, now)
        if now >= self._trace.scored_from:
            self._checked[places] = True
            self._checks += len(places)
            self._wasted += int(len(places) - changed.sum())
        return changed

    def row(self) -> Row:
        """How it went, once all is over."""
        trace = self._trace
        self._settle(np.arange(trace.pages), trace.days)
        whole = trace.weights.sum() * (trace.days - trace.scored_from)
        return Row(
            policy="", fw=float(1 - self._stale / whole), hw=float(self._harmonic / whole),
            delay_w=24 * self._late / max(self._late_weight, 1e-300), wasted=self._wasted / max(self._checks, 1),
            starved=int((~self._checked).sum()),
        )  # fmt: skip

    def _settle(self, places: Places, now: float) -> NDArray[np.bool_]:
        trace = self._trace
        upto = np.searchsorted(self._keys, places * (trace.days + 1) + now, side="right") - trace.first[places]
        missed = upto - self._known[places]
        begin = trace.first[places] + self._known[places]
        self._known[places] = upto
        nth = np.arange(missed.sum()) - np.repeat(np.cumsum(missed) - missed, missed)
        times = trace.times[np.repeat(begin, missed) + nth]
        weights = trace.weights[np.repeat(places, missed)]
        late = weights * np.maximum(now - np.maximum(times, trace.scored_from), 0.0)
        self._stale += float(late[nth == 0].sum())
        self._harmonic += float((late / (nth + 1)).sum())
        counted = times >= trace.scored_from
        self._late += float((weights * (now - times))[counted].sum())
        self._late_weight += float(weights[counted].sum())
        return missed > 0


def _run(trace: Trace, rival: Rival) -> Row:
    score = _Score(trace)
    credit = 0.0
    for step in range(1, round(trace.days / trace.step)):
        now = step * trace.step
        credit += trace.budget(now) * trace.step
        places = rival.pick(now, int(credit))
        credit -= len(places)
        credit = min(credit, trace.budget(now))
        if trace.down is not None:
            down = trace.down(now)[places]
            rival.failed(places[down], now)
            places = places[~down]
        rival.told(places, now, score.check(places, now))
    return score.row()
