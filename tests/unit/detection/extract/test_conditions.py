"""Conditions on numbers, prices and stock: how they are read, and when they are met."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.detection.extract.conditions import headline_of_met, is_met, measured, parse_condition, reading_of
from driftline.errors import BadFilter

JSON = "$.load: 1.299\n$.items[id=7].price: 12\n$.items[id=8].price: 40\n$.status: ok"
TABLE = "Plan\nmonthly\nFree\n€0\nPro\n€29\nTeam\n€99"


def met(condition: str, change: str) -> bool:
    old, new = (side.strip().replace(" | ", "\n") for side in change.split("->"))
    return is_met([condition], old, new)


@pytest.mark.parametrize(
    ("condition", "change"),
    [
        ("price < 40", "€45 -> €39"),
        ("price < 40", "€39 -> €38"),
        ("price < 40", "Sold out -> €39"),
        ("Price <= 39,99", "45,00 € -> 39,99 €"),
        ("price ≤ 39.99", "$45 -> $39.99"),
        ("price < €40", "€45 -> €39"),
        ("price < 40 EUR", "€45 -> €39"),
        ("price < 1.300", "€1,400 -> €1,299.99"),
        ("price<40", "Price: €45.00 | Stock: in stock -> Price: €39.00 | Stock: in stock"),
        ("price < 40", "Was €10 | Price: €45.00 -> Was €10 | Price: €39.00"),
        ("price = 40", "€45 -> €40.00"),
        ("price != 40", "€40 -> €41"),
        ("value >= 300", "290 K -> 301 K"),
        ("value < -5", "0 °C -> -6 °C"),
        ("value < -5", "0 °C -> −6 °C"),
        ("drop > 10 %", "€50 -> €44.99"),
        ("drop > 10%", "50 seats -> 44 seats"),
        ("price drops by >= 5", "€50 -> €45"),
        ("drops", "€50 -> €49.99"),
        ("price falls", "€50 -> €49.99"),
        ("rise > 100 %", "€5 -> €10.01"),
        ("value rises", "3 -> 4"),
        ("value changes", "3 -> 4"),
        ("value changes by > 2", "3 -> 0"),
        ("stock appears", "Sold out -> In stock"),
        ("stock appears", "Coming soon -> In stock"),
        ("stock appears", "Stock: pre-order -> Stock: in stock, few left"),
        ("stock disappears", "Auf Lager -> Ausverkauft"),
        ("stock = out", "In stock -> Sold out"),
        ("stock is out of stock", "In stock -> Sold out"),
        ("stock changes", "Stock: pre-order -> Stock: back-order"),
        ("price appears", "Soon -> €12"),
        ("price disappears", "€12 -> Ask us"),
        ('"Pro" < 24', "Pro | €29 | Team | €99 -> Pro | €19 | Team | €99"),
        ('"kelvin" > 300', "Celsius 20 | Kelvin: 299 -> Celsius 20 | Kelvin: 301"),
        ('"A and B" > 1', "A and B: 1 -> A and B: 2"),
        ("$.load > 1.5", "$.load: 1.299 -> $.load: 1.750"),
        ("$.items[*].price < 10", "$.items[id=7].price: 12 -> $.items[id=7].price: 9"),
        ("$.items[id=8].price < 10", "$.items[id=7].price: 1 | $.items[id=8].price: 12 -> $.items[id=8].price: 9"),
        ("price < 40 and stock = in", "€35 | Sold out -> €35 | In stock"),
        ("price < 40 and price > 30", "€45 -> €35"),
        ("$['a b'] < 5", "$['a b']: 9 -> $['a b']: 3"),
        ('$["a b"] < 5', "$['a b']: 9 -> $['a b']: 3"),
        (
            "$.items[*].price < 2",
            "$.items[0].price: 9 | $.items[1].price: 5 -> $.items[0].price: 9 | $.items[1].price: 1",
        ),
        ("$.status changes", "$.status: open -> $.status: closed"),
        ("price < 1 300", "1.499,00 € -> 1.299,00 €"),
        ("stock disappears", "In stock -> Words"),
        ('"Größe" > 41', "Maße und Größe 41 -> Maße und Größe 42"),
        ('"Seats" < 5 and "Price" < 100', "Seats: 4 | Price: 120 -> Seats: 4 | Price: 90"),
    ],
)
def test_a_condition_is_met_when_a_change_makes_it_hold(condition: str, change: str) -> None:
    assert met(condition, change)


@pytest.mark.parametrize(
    ("condition", "change"),
    [
        ("price < 40", "€45 -> €40"),
        ("price < 40", "€35 | In red -> €35 | In blue"),
        ("price < 40", "€35 -> Sold out"),
        ("price < 40", "€35 -> €41"),
        ("drop > 10 %", "€50 -> €45"),
        ("drop > 10 %", "€50 -> €56"),
        ("drop > 10 %", "Soon -> €5"),
        ("drop > 1", "€50 -> Sold out"),
        ("value changes by > 2", "3 -> 1"),
        ("stock appears", "In stock -> Only 2 left"),
        ("stock appears", "In stock -> Sold out"),
        ("stock appears", "Sold out -> Pre-order"),
        ("stock disappears", "Sold out -> Discontinued"),
        ("price appears", "€12 -> €11"),
        ("price disappears", "Soon -> Later"),
        ('"Pro" < 24', "Pro | €29 | Team | €99 -> Pro | €29 | Team | €9"),
        ('"Pro" < 24', "Plus | €29 -> Plus | €9"),
        ("$.load > 1.5", "$.load: 1.299 -> $.load: 1.400"),
        ("$.load > 1.5", "$.loads: 1 -> $.loads: 9"),
        ("price < 40 and stock = in", "€45 | Sold out -> €35 | Sold out"),
        ("price < 40", "Set of 12 | €50 -> Set of 12 | Sold out"),
        ("drop > 10 %", "Set of 12 | €50 -> Set of 12 | Sold out"),
        ("price disappears", "Set of 12 -> Set of 13"),
        ("$.big > 2", "$.big: 1 -> $.big: Infinity"),
        ("$.big > 2", "$.big: 1 -> $.big: nan"),
        ("stock appears", "Sold out -> Email me when available"),
        ("stock appears", "Sold out -> Available from 12 March"),
    ],
)
def test_a_condition_is_not_met_by_other_changes(condition: str, change: str) -> None:
    assert not met(condition, change)


@pytest.mark.parametrize(
    "condition",
    [
        "", "price", "price <", "< 40", "price < cheap", "cost < 40", "stock < 3", "stock drops", "price < 10 %",
        "price =< 40", "price <> 40",
        "drop >", "drop > x %", '"Pro', '"" < 3', "price < 40 or price > 50", "price < 40 and", "appears", "price ~ 3",
    ],
)  # fmt: skip
def test_what_is_no_condition_is_refused_with_an_example(condition: str) -> None:
    with pytest.raises(BadFilter, match="write one such as 'price < 40'"):
        parse_condition(condition)


def test_the_headline_says_what_happened_to_what_the_condition_is_about() -> None:
    assert headline_of_met(["price < 40"], "€45", "€39") == "Price €45.00 → €39.00"
    assert headline_of_met(['"Pro" < 24'], TABLE, TABLE.replace("29", "19")) == "Pro €29.00 → €19.00"
    assert headline_of_met(["stock appears"], "Sold out", "In stock") == "Back in stock"
    assert headline_of_met(["stock = out"], "In stock", "Sold out") == "Stock in stock → out of stock"
    assert headline_of_met(["price < 40", "value > 9"], "8", "10") == "Value 8 → 10"
    assert headline_of_met(["price < 40"], "€45", "€41") == ""


def test_what_a_condition_is_about_is_measured_and_price_and_stock_and_else_the_first_number() -> None:
    assert {name: value.number for name, value in measured(TABLE, ['"Pro" < 2']).items()} == {'"Pro"': 29.0}
    offered = measured("Price: €39.00\nStock: in stock", [])
    assert {name: value.words for name, value in offered.items()} == {"price": "€39.00", "stock": "in stock"}
    assert measured("Some 12 words", [])["value"].number == 12.0
    assert measured("No number", []) == {}


def test_numbers_of_json_are_read_as_json_writes_them() -> None:
    found = reading_of("$.load", JSON)
    assert found is not None
    assert found.number == 1.299
    status = reading_of("$.status", JSON)
    assert status is not None
    assert status.number is None


@given(text=st.text(max_size=200), old=st.text(max_size=200))
def test_no_text_is_too_odd(text: str, old: str) -> None:
    for condition in ("price < 3", "stock appears", '"a" > 1', "drop > 10 %", "value changes"):
        is_met([condition], old, text)
    measured(text, ["price < 3"])
