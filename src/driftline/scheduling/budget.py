"""How many checks there may be: the credit that builds up at a rate, and the room that intervals leave in it."""

from __future__ import annotations

from dataclasses import dataclass

from driftline.settings import RATE_UNITS

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
    saved: float = 1.0

    def grow(self, now: float, rate: float) -> int:
        """How many checks may be made by now; a clock that went backwards brings none."""
        self.saved = min(self.saved + max(0.0, now - self.at) * rate, max(1.0, _SAVED * rate))
        self.at = now
        return int(self.saved)

    def spend(self, checks: int) -> None:
        self.saved -= checks


def shortage(asked: float, budget: float, host: str | None = None) -> str | None:
    """What is wrong if intervals that were asked for take too much of the budget, of all or of a host; None if not.

    Both are in checks a second.
    """
    if asked <= _MOST * budget:
        return None
    where = "" if host is None else f" on {host}"
    return (
        f"The intervals asked for{where} take {format_rate(asked)}, more than {_MOST:.0%} of the "
        f"{'' if host is None else 'host '}budget of {format_rate(budget)}: ask for longer ones, or raise the budget."
    )
