"""Conditions on what a page shows, such as `price < 40`, `drop > 10 %`, `stock appears` or `"Kelvin" >= 300`.

A condition is one clause, or several joined by `and`. Each is about a quantity of the watched text:

- `price`: the price that `read offers` finds, or else the first sum of money;
- `stock`: whether it is in stock;
- `value`: the first number;
- `"TEXT"`: the first number after this text, in its line or in one of the next three (the cells of a table row);
- `$.path`: a value of a JSON document, by its path.
"""

from __future__ import annotations

import operator
import re
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from driftline.detection.extract.shop_words import (
    PRICE,
    STOCK,
    is_in_stock,
    money_in,
    number_in,
    parse_number,
    stock_in,
)
from driftline.errors import BadFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

PRICE_QUANTITY, STOCK_QUANTITY, VALUE_QUANTITY = "price", "stock", "value"
_AUTOMATIC = ""  # the price, or else the value
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, "≤": operator.le, ">": operator.gt, ">=": operator.ge, "≥": operator.ge,
    "=": operator.eq, "==": operator.eq, "!=": operator.ne, "≠": operator.ne,
}  # fmt: skip
_AND = re.compile(r'\s+and\s+(?=(?:[^"]*"[^"]*")*[^"]*\Z)', re.IGNORECASE)  # outside quotation marks
_QUANTITY = r'(?P<quantity>price|stock|value|"[^"]+"|\$(?:\[[^\]]*\]|[^\s<>=!≤≥≠\[])*)'
_OPERATOR = r"(?P<operator><=|>=|==|!=|<|>|=|≤|≥|≠)"
_NUMBER = (
    r"(?P<currency>[^\d\s+.,<>=!≤≥≠-]{0,3})\s*(?P<number>[-+]?\d[\d.,']*(?: \d{3})*)"
    r"\s*(?P<unit>%|(?!and\b|or\b)[^\d\s%]{1,4})?"
)
_COMPARE = re.compile(rf"{_QUANTITY}\s*{_OPERATOR}\s*{_NUMBER}", re.IGNORECASE)
_STATE = re.compile(r"stock\s*(?:=|==|is)\s*(?P<state>in|out)(?:[ -]of)?(?:[ -]stock)?", re.IGNORECASE)
_HAPPENS = re.compile(
    rf"(?:{_QUANTITY}\s*)?(?P<verb>drop|fall|rise|change)s?(?:\s*(?:by\s*)?{_OPERATOR}\s*{_NUMBER})?"
    rf"|{_QUANTITY.replace('quantity', 'thing')}\s*(?P<event>appear|disappear)s?",
    re.IGNORECASE,
)
_HOW = (
    "write one such as 'price < 40', 'value >= 3', 'drop > 10 %', 'stock appears', '\"TEXT\" > 5' or '$.path = 2', or "
    "several joined by 'and'"
)
_LONGEST = 2_000  # characters of a line that are looked at
_NEAR = 3  # lines after a label in which its number may be
_JSON_LINE = re.compile(r"(\$(?:\[[^\]]*\]|[^\s:\[])*): (.*)")
_PERCENT = 100.0


class MeasuredValue(NamedTuple):
    """A quantity as a text shows it: a number, None if it is a state of stock, and how it is written."""

    number: float | None
    words: str


class MeasuredVersion(NamedTuple):
    """What was measured in a version of a page, by name: `price`, `stock`, `value`, or what a condition is about."""

    version: int
    at: datetime
    values: dict[str, MeasuredValue]


class Clause(NamedTuple):
    """A part of a condition: what it is about, and what that must do."""

    quantity: str
    verb: str  # 'is' for a comparison with a number
    operator: str = ""
    number: float = 0.0
    percent: bool = False

    def judge(self, old: str, new: str) -> tuple[bool, bool]:
        """Return whether it holds after a change between two texts, and whether what it holds for is another one."""
        quantity = self.quantity
        if quantity == _AUTOMATIC:  # a price is not compared with another number
            quantity = PRICE_QUANTITY if any(_price(text.split("\n")) for text in (old, new)) else VALUE_QUANTITY
        before, after = values_of(quantity, old), values_of(quantity, new)
        holds = [key for key in {**before, **after} if self._holds(before.get(key), after.get(key))]
        return bool(holds), any(before.get(key) != after.get(key) for key in holds)

    def _holds(self, before: MeasuredValue | None, after: MeasuredValue | None) -> bool:
        if self.quantity == STOCK_QUANTITY:
            return self._holds_for_stock(before, after)
        if self.verb in ("appear", "disappear"):
            return (before is None, after is None) == (self.verb == "appear", self.verb == "disappear")
        if self.verb == "change" and not self.operator:
            return before is not None and after is not None and before != after
        if after is None or after.number is None:
            return False
        if self.verb == "is":
            return _COMPARISONS[self.operator](after.number, self.number)
        if before is None or before.number is None:
            return False
        moved = after.number - before.number
        if self.verb == "change":
            moved = abs(moved)
        elif self.verb != "rise":
            moved = -moved
        if moved <= 0:
            return False
        if not self.operator:
            return True
        if self.percent:
            moved = moved / abs(before.number) * _PERCENT if before.number else float("inf")
        return _COMPARISONS[self.operator](round(moved, 9), self.number)

    def _holds_for_stock(self, before: MeasuredValue | None, after: MeasuredValue | None) -> bool:
        was, there = (one is not None and is_in_stock(one.words) for one in (before, after))
        if self.verb == "change":
            return before is not None and after is not None and before.words != after.words
        if self.verb in ("appear", "disappear"):
            return was is not there is (self.verb == "appear")
        return after is not None and there is (self.verb == "in")


@lru_cache(256)
def parse_condition(value: str) -> tuple[Clause, ...]:
    """Return the clauses of a condition; raise BadFilter if it cannot be read."""
    return tuple(_clause(part.strip(), value) for part in _AND.split(value.strip()))


def _clause(text: str, whole: str) -> Clause:
    bad = BadFilter(f"The filter 'when {whole}' is not a condition: {_HOW}.")
    if (found := _STATE.fullmatch(text)) is not None:
        return Clause(STOCK_QUANTITY, found["state"].lower())
    found = _COMPARE.fullmatch(text)
    if found is not None:
        quantity = _quantity(found["quantity"])
        if quantity == STOCK_QUANTITY or found["unit"] == "%":
            raise bad
        return Clause(quantity, "is", found["operator"], _number(found["number"], bad))
    found = _HAPPENS.fullmatch(text)
    if found is None:
        raise bad
    if found["event"] is not None:
        return Clause(_quantity(found["thing"]), found["event"].lower())
    quantity, verb = _quantity(found["quantity"] or _AUTOMATIC), found["verb"].lower()
    verb = "drop" if verb == "fall" else verb
    if quantity == STOCK_QUANTITY and (verb != "change" or found["operator"]):
        raise bad
    if found["operator"] is None:
        return Clause(quantity, verb)
    return Clause(quantity, verb, found["operator"], _number(found["number"], bad), found["unit"] == "%")


def _quantity(text: str) -> str:
    return text if text.startswith(('"', "$")) else text.lower()


def _number(text: str, bad: BadFilter) -> float:
    try:
        return parse_number(text)
    except ValueError:
        raise bad from None


def is_met(conditions: Sequence[str], old: str, new: str) -> bool:
    """Return whether one of these conditions is met by a change between two texts.

    It has to hold now, and not have held before, unless what it is about is another one than before: a price that falls
    from 39 to 38 meets `price < 40` once more, and another description beside it does not.
    """
    return any(_is_met(parse_condition(value), old, new) for value in conditions)


def headline_of_met(conditions: Sequence[str], old: str, new: str) -> str:
    """Return what a change did to what a met condition is about, as `Price $39.00 → $29.00`; empty if none is met."""
    for value in conditions:
        clauses = parse_condition(value)
        if not _is_met(clauses, old, new):
            continue
        changed = next(clause.quantity for clause in clauses if clause.judge(old, new)[1])
        was_of, now_of = values_of(changed, old), values_of(changed, new)
        key = next((key for key in {**now_of, **was_of} if was_of.get(key) != now_of.get(key)), "")
        before, after = was_of.get(key), now_of.get(key)
        name = changed.strip('"') or PRICE_QUANTITY
        if changed == STOCK_QUANTITY and after is not None and is_in_stock(after.words):
            return "Back in stock" if before is not None and not is_in_stock(before.words) else "In stock"
        name = key or name
        was, now = ("none" if one is None else one.words for one in (before, after))
        return f"{name[0].upper()}{name[1:]} {was} → {now}"
    return ""


def _is_met(clauses: Sequence[Clause], old: str, new: str) -> bool:
    judged = [one.judge(old, new) for one in clauses]
    return all(holds for holds, _ in judged) and any(differs for _, differs in judged)


def readings(value: str, text: str) -> list[tuple[str, MeasuredValue | None]]:
    """Return what a condition is about, and how a text shows it."""
    quantities = dict.fromkeys(clause.quantity for clause in parse_condition(value))
    return [(one or PRICE_QUANTITY, reading_of(one, text)) for one in quantities]


def reading_of(quantity: str, text: str) -> MeasuredValue | None:
    """Return a quantity as a text shows it, the first if there are several; None if it has none."""
    return next(iter(values_of(quantity, text).values()), None)


def values_of(quantity: str, text: str) -> dict[str, MeasuredValue]:
    """Return a quantity as a text shows it: for a path with `[*]` every entry by its path, else at most one."""
    lines = text.split("\n")
    if quantity.startswith("$"):
        return _at_path(quantity.replace('"', "'"), lines)
    if quantity == STOCK_QUANTITY:
        found = _stock(lines)
    elif quantity in (PRICE_QUANTITY, _AUTOMATIC):
        found = _price(lines) or (_first_number(lines) if quantity == _AUTOMATIC else None)
    elif quantity.startswith('"'):
        found = _beside(quantity.strip('"'), lines)
    else:
        found = _first_number(lines)
    return {} if found is None else {"": found}


def _stock(lines: Sequence[str]) -> MeasuredValue | None:
    for line in lines:
        if line.startswith(f"{STOCK}: "):
            return MeasuredValue(None, line.removeprefix(f"{STOCK}: "))
    state = next((state for line in lines if len(line) < 100 and (state := stock_in(line))), "")
    return MeasuredValue(None, state) if state else None


def _price(lines: Sequence[str]) -> MeasuredValue | None:
    declared = next((line for line in lines if line.startswith(f"{PRICE}: ")), None)
    for line in (*([declared] if declared else []), *lines):
        for money, _, _ in money_in(line[:_LONGEST]):
            return MeasuredValue(money.amount, str(money))
    return None


def _first_number(lines: Sequence[str]) -> MeasuredValue | None:
    return next((found for line in lines if (found := _number_of(line)) is not None), None)


def _number_of(line: str) -> MeasuredValue | None:
    line = line[:_LONGEST]
    path = _JSON_LINE.fullmatch(line)
    if path is not None:
        return _plain(path[2])
    money = next(money_in(line), None)
    if money is not None:
        return MeasuredValue(money[0].amount, str(money[0]))
    return _of_number(number_in(line))


def _plain(text: str) -> MeasuredValue | None:
    """Return a number as JSON writes it, or any other."""
    try:
        number = float(text)
    except ValueError:
        return _of_number(number_in(text))
    return MeasuredValue(number, text) if isfinite(number) else None


def _of_number(number: float | None) -> MeasuredValue | None:
    return None if number is None or not isfinite(number) else MeasuredValue(number, f"{number:,.10g}")


def _beside(label: str, lines: Sequence[str]) -> MeasuredValue | None:
    wanted = re.compile(re.escape(" ".join(label.split())), re.IGNORECASE)
    for at, line in enumerate(lines):
        found_label = wanted.search(line)
        if found_label is None:
            continue
        for text in (line[found_label.end() :], *lines[at + 1 : at + 1 + _NEAR]):
            if (found := _number_of(text.strip(" :="))) is not None:
                return found
    return None


def _at_path(path: str, lines: Sequence[str]) -> dict[str, MeasuredValue]:
    pattern = re.compile(re.escape(path).replace(re.escape("[*]"), r"\[[^\]]*\]"))
    found: dict[str, MeasuredValue] = {}
    for line in lines:
        parts = _JSON_LINE.fullmatch(line)
        if parts is not None and pattern.fullmatch(parts[1]):
            found[parts[1]] = _plain(parts[2]) or MeasuredValue(None, parts[2])
    if "[*]" in path or not found:
        return found
    return {"": next(iter(found.values()))}


def measured(text: str, conditions: Sequence[str]) -> dict[str, MeasuredValue]:
    """Return what can be measured in a text: what conditions are about, price and stock, or else its only number."""
    found: dict[str, MeasuredValue] = {}
    lines = text.split("\n")
    for value in conditions:
        for name, reading in readings(value, text):
            if reading is not None:
                found.setdefault(name, reading)
    for name, label in ((PRICE_QUANTITY, PRICE), (STOCK_QUANTITY, STOCK)):
        if any(line.startswith(f"{label}: ") for line in lines):
            reading = reading_of(name, text)
            if reading is not None:
                found.setdefault(name, reading)
    if not found and (number := _first_number(lines)) is not None:
        found[VALUE_QUANTITY] = number
    return found
