"""How many checks there may be: the credit that builds up at a rate, and the room that intervals leave in it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftline.settings import RATE_UNITS
from driftline.urls.parts import host_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_SAVED = 60.0  # seconds of a budget that can be saved up: who slept all night need not catch up at once
_MOST = 0.8  # of a budget, that intervals which were asked for may take


def format_rate(rate: float) -> str:
    """The rate in the largest number of checks that reads well."""
    for unit, seconds in RATE_UNITS.items():
        if rate * seconds >= 1:
            return f"{rate * seconds:,.4g}/{unit}"
    return f"{rate * RATE_UNITS['d']:,.4g}/d"


@dataclass(slots=True)
class Credit:
    """The checks that may be made now; it grows with time, up to what a minute brings."""

    at: float
    saved: float

    def grow(self, now: float, rate: float) -> int:
        """How many checks may be made by now; a clock that went backwards brings none."""
        self.saved = min(self.saved + max(0.0, now - self.at) * rate, max(1.0, _SAVED * rate))
        self.at = now
        return int(self.saved)

    def spend(self, checks: int) -> None:
        self.saved -= checks


def shortages(
    asked: Mapping[str, float], budget: float | None, host_budget: float | None, hosts: Collection[str] | None = None
) -> list[str]:
    """What is wrong if intervals that were asked for take too much of a budget: of that for all pages, or for a host.

    Rates are in checks a second, and those asked for by address; None is no limit. Only these `hosts` are looked at, if
    they are given, and the one that is named is asked most of.
    """
    found = []
    total = sum(asked.values())
    if budget is not None and total > _MOST * budget:
        found.append(f"The intervals asked for take {_too_much(total, 'budget', budget)}")
    if host_budget is not None:
        by_host: defaultdict[str, float] = defaultdict(float)
        for url, rate in asked.items():
            by_host[host_of(url)] += rate
        full = [host for host, rate in by_host.items() if rate > _MOST * host_budget and host in (hosts or by_host)]
        if full:
            worst = max(full, key=by_host.__getitem__)
            others = f" The same holds for {len(full) - 1:,} more host{'s'[len(full) == 2 :]}." if len(full) > 1 else ""
            too_much = _too_much(by_host[worst], "host budget", host_budget)
            found.append(f"The intervals asked for on {worst} take {too_much}{others}")
    return found


def _too_much(asked: float, name: str, budget: float) -> str:
    return (
        f"{format_rate(asked)}, more than {_MOST:.0%} of the {name} of {format_rate(budget)}: ask for longer ones, or "
        "raise the budget."
    )
