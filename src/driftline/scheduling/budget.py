"""How many checks there may be: a rate as people write it, and the credit that builds up at that rate."""

from __future__ import annotations

import re
from dataclasses import dataclass

from driftline.errors import BadSetting

_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:/|per)\s*(s|m|h|d)(?:ec(?:ond)?|in(?:ute)?|our|ay)?")
_SAVED = 60.0  # seconds of a budget that can be saved up: who slept all night need not catch up at once
_MOST = 0.8  # of a budget, that intervals which were asked for may take


def parse_rate(text: str) -> float:
    """The checks a second that a text such as '10/s', '600/m' or '20000/d' stands for."""
    found = _RATE.fullmatch(text.strip().lower())
    if not found or float(found[1]) <= 0:
        raise BadSetting(f"'{text}' is not a number of checks in a time: write 10/s, 600/m, 500/h or 20000/d.")
    return float(found[1]) / _UNITS[found[2]]


def format_rate(rate: float) -> str:
    """The rate in the largest number of checks that reads well."""
    for unit, seconds in _UNITS.items():
        if rate * seconds >= 1:
            return f"{rate * seconds:,.4g}/{unit}"
    return f"{rate * _UNITS['d']:,.4g}/d"


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


def insist_on_room(asked: float, budget: float) -> None:
    """BadSetting if intervals that were asked for would take too much of the budget, both in checks a second."""
    if asked > _MOST * budget:
        raise BadSetting(
            f"The intervals asked for would take {format_rate(asked)}, more than {_MOST:.0%} of the budget of "
            f"{format_rate(budget)}: ask for longer ones, or raise the budget."
        )
