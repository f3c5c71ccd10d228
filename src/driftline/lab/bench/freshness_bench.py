"""`lab freshness`: how up to date pages are kept by each policy, on one and the same trace of changes.

Time passes in steps. In each, a policy picks as many pages as the budget allows and learns which of them had changed
since their last check.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from driftline.errors import BadSetting
from driftline.schedule.change_model import SLOWEST
from driftline.schedule.page_table import DAY, PageTable
from driftline.schedule.picking import pick_pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from driftline.lab.bench.traces import Trace
    from driftline.schedule.page_table import Floats, Places


class CheckPolicy(Protocol):
    """Picks pages, with `now` in days, and learns which of them had changed."""

    def pick(self, now: float, count: int) -> Places: ...

    def learn(self, places: Places, now: float, changed: NDArray[np.bool_]) -> None: ...

    def failed(self, places: Places, now: float) -> None: ...


class Shipped:
    """A policy of the scheduler, with the code that `driftline run` uses."""

    def __init__(self, trace: Trace, policy: Any, *, known: bool = False) -> None:
        self._table = PageTable(trace.pages)
        self._table.weight[:] = trace.weights * trace.pages
        self._table.host[:] = trace.hosts
        self._table.checked[:] = 0.0
        order = np.lexsort((-trace.dwell, -trace.visits))
        self._table.rank[order] = np.arange(trace.pages)
        self._policy = policy
        self._known = known
        if known:
            self._table.a[:] = _SURE
            self._table.b[:] = _SURE / np.maximum(trace.rates, SLOWEST)

    def pick(self, now: float, count: int) -> Places:
        return pick_pages(self._table, now * DAY, count, policy=self._policy)

    def learn(self, places: Places, now: float, changed: NDArray[np.bool_]) -> None:
        if self._known:
            self._table.checked[places] = now * DAY
        else:
            self._table.record_checks(places, now * DAY, changed)

    def failed(self, places: Places, now: float) -> None:
        self._table.record_failures(places, self._table.failures[places] + 1, now * DAY)


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

    def learn(self, places: Places, now: float, changed: NDArray[np.bool_]) -> None:
        del changed
        self._due[places] = now + self._interval[places]


class Nutch(Due):
    """Nutch's adaptive schedule: an interval that shrinks by a fifth with each change and grows by one without."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._interval = np.full(trace.pages, trace.pages / trace.budget(0.0))

    def learn(self, places: Places, now: float, changed: NDArray[np.bool_]) -> None:
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

    def learn(self, places: Places, now: float, changed: NDArray[np.bool_]) -> None:
        del changed
        self._due[places] = now + self._random.exponential(1 / self._rates[places])


_SURE = 1e6  # the shape of a rate that is known
POLICIES: dict[str, Callable[[Trace], CheckPolicy]] = {
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
    """Return the check rates with the most freshness, if all change rates are known and checks are evenly spaced."""
    moving = rates > 0
    scale = weights[moving] / rates[moving]

    def spent(price: float) -> Floats:
        # 1 - (1 + x)·exp(-x) = price / scale, for x changes between two checks; none, if it is never worth the price
        target = price / scale
        low, high = np.zeros(len(scale)), np.full(len(scale), 750.0)
        for _ in range(80):
            x = (low + high) / 2
            below = -np.expm1(-x) - x * np.exp(-x) < target
            low, high = np.where(below, x, low), np.where(below, high, x)
        return np.where(target < 1, rates[moving] / high, 0.0)

    found = np.zeros(len(rates))
    found[moving] = spent(_price(lambda price: float(spent(price).sum()), budget))
    return found


def _price(spent: Callable[[float], float], budget: float) -> float:
    """Return the price at which the budget is spent; spending falls as the price rises."""
    low, high = 1e-18, 1e6
    for _ in range(100):
        price = math.sqrt(low * high)
        low, high = (price, high) if spent(price) > budget else (low, price)
    return high


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshnessRow:
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


def optimum(trace: Trace) -> float:
    """Return the highest weighted freshness of any policy whose times of checks do not depend on what it finds."""
    often = optimal_rates(trace.weights, trace.rates, trace.budget(0.0))
    x = np.divide(trace.rates, often, out=np.full(trace.pages, np.inf), where=often > 0)
    x = np.where(trace.rates == 0, 0.0, x)
    fresh = np.where(x == 0, 1.0, np.where(np.isinf(x), 0.0, -np.expm1(-x) / np.maximum(x, 1e-300)))
    return float((trace.weights * fresh).sum())


def race(trace: Trace, policies: Sequence[str] = tuple(POLICIES)) -> Iterator[FreshnessRow]:
    """Yield a row for each policy on the same trace, then one for the optimum."""
    for name in policies:
        if name not in POLICIES:
            raise BadSetting(f"'{name}' is not one of {', '.join(POLICIES)}.")
    for name in policies:
        yield replace(_run(trace, POLICIES[name](trace)), policy=name)
    if trace.steady:
        yield FreshnessRow(policy="optimum", fw=optimum(trace))


def means(rows: Sequence[FreshnessRow]) -> list[FreshnessRow]:
    """Return the mean of the rows of each policy."""
    by_policy: dict[str, list[FreshnessRow]] = {}
    for row in rows:
        by_policy.setdefault(row.policy, []).append(row)

    def mean(some: Sequence[FreshnessRow], name: str) -> Any:
        numbers = [getattr(row, name) for row in some]
        return None if None in numbers else sum(numbers) / len(numbers)

    names = [field.name for field in fields(FreshnessRow) if field.name != "policy"]
    return [
        FreshnessRow(policy=policy, **{name: mean(some, name) for name in names}) for policy, some in by_policy.items()
    ]


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
        """Check these pages, and return which of them had changed."""
        changed = self._settle(places, now)
        if now >= self._trace.scored_from:
            self._checked[places] = True
            self._checks += len(places)
            self._wasted += int(len(places) - changed.sum())
        return changed

    def row(self) -> FreshnessRow:
        """Return the scores, at the end of the trace."""
        trace = self._trace
        self._settle(np.arange(trace.pages), trace.days)
        whole = trace.weights.sum() * (trace.days - trace.scored_from)
        return FreshnessRow(
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


def _run(trace: Trace, policy: CheckPolicy) -> FreshnessRow:
    score = _Score(trace)
    credit = 0.0
    for step in range(1, round(trace.days / trace.step)):
        now = step * trace.step
        credit += trace.budget(now) * trace.step
        places = policy.pick(now, int(credit))
        credit -= len(places)
        credit = min(credit, trace.budget(now))
        if trace.down is not None:
            down = trace.down(now)[places]
            policy.failed(places[down], now)
            places = places[~down]
        policy.learn(places, now, score.check(places, now))
    return score.row()
