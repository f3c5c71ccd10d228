"""Who keeps pages up to date: the policies of the scheduler, by its own code, and rivals that are made here."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from driftline.schedule.change_model import SLOWEST
from driftline.schedule.page_table import DAY, PageTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from driftline.lab.bench.traces import Floats, Places, Trace


class Rival(Protocol):
    """Something that picks pages, `now` in days, and is told which of them had changed."""

    def pick(self, now: float, count: int) -> Places: ...

    def told(self, places: Places, now: float, changed: NDArray[np.bool_]) -> None: ...

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
        return self._table.pick(now * DAY, count, policy=self._policy)

    def told(self, places: Places, now: float, changed: NDArray[np.bool_]) -> None:
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
