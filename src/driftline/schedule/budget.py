"""How many checks are allowed: credit that builds up at a rate, and whether the users' intervals fit into it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftline.settings import RATE_UNITS
from driftline.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_SAVED = 60.0  # seconds of a budget that can be saved up: after a night's sleep there is no burst of checks
_PER = {"s": "a second", "m": "a minute", "h": "an hour", "d": "a day"}
_MOST = 0.8  # share of a budget that pages with an interval may take


def format_rate(rate: float) -> str:
    """Return a rate in checks a second as text, in the unit that reads best: `3/h`."""
    for unit, seconds in RATE_UNITS.items():
        if rate * seconds >= 1:
            return f"{rate * seconds:,.4g}/{unit}"
    return f"{rate * RATE_UNITS['d']:,.4g}/d"


def rate_in_words(rate: float) -> str:
    """Return a rate in checks a second in words: `once an hour`, `12 checks a minute`."""
    unit = next((unit for unit, seconds in RATE_UNITS.items() if rate * seconds >= 1), "d")
    amount = f"{rate * RATE_UNITS[unit]:,.4g}"
    return f"{'once' if amount == '1' else f'{amount} checks'} {_PER[unit]}"


@dataclass(slots=True)
class Credit:
    """The checks that are allowed now: `saved` as of the time `at`; grows with time, up to a minute's worth."""

    at: float
    saved: float

    def refill(self, now: float, rate: float) -> int:
        """Return how many checks are allowed now; a clock that went backwards adds none."""
        self.saved = min(self.saved + max(0.0, now - self.at) * rate, max(1.0, _SAVED * rate))
        self.at = now
        return int(self.saved)

    def spend(self, checks: int) -> None:
        """Charge this many checks; a negative number gives them back."""
        self.saved -= checks


def shortages(
    rates: Mapping[str, float], budget: float | None, host_budget: float | None, hosts: Collection[str] | None = None
) -> list[str]:
    """Return a sentence for each budget, of all pages or of a host, that the pages with an interval nearly use up.

    `rates` are the checks a second that these pages need, by address; a budget of None is no limit. Only these `hosts`
    are looked at, if given, and only the one that needs the most is named.
    """
    found = []
    total = sum(rates.values())
    if budget is not None and total > _MOST * budget:
        found.append(f"The intervals that you set take {_too_much(total, 'budget', budget)}")
    if host_budget is not None:
        by_host: defaultdict[str, float] = defaultdict(float)
        for url, rate in rates.items():
            by_host[host_of(url)] += rate
        full = [host for host, rate in by_host.items() if rate > _MOST * host_budget and host in (hosts or by_host)]
        if full:
            worst = max(full, key=by_host.__getitem__)
            others = f" The same holds for {len(full) - 1:,} more host{'s'[len(full) == 2 :]}." if len(full) > 1 else ""
            too_much = _too_much(by_host[worst], "host budget", host_budget)
            found.append(f"The intervals that you set on {worst} take {too_much}{others}")
    return found


def _too_much(needed: float, name: str, budget: float) -> str:
    return (
        f"{format_rate(needed)}, more than {_MOST:.0%} of the {name} of {format_rate(budget)}: set longer ones, or "
        "raise the budget."
    )
