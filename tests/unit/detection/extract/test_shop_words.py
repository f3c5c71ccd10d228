"""Numbers, sums of money and states of stock, as people and shops write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.detection.extract.shop_words import (
    Money,
    declared_price,
    declared_stock,
    is_in_stock,
    money_in,
    number_in,
    parse_number,
    stock_in,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1.299,00 €", "€1,299.00"), ("$1,299", "$1,299.00"), ("CHF 1'299.–", "1,299.00 CHF"),
        ("1 299,00 kr", "1,299.00 kr"),
        ("€ 39.99", "€39.99"), ("39,99 EUR", "€39.99"), ("US$ 5", "$5.00"), ("R$ 1.234,56", "R$1,234.56"),
        ("₹1,29,999.00", "₹129,999.00"), ("¥12,800", "¥12,800"), ("12.800 円", "¥12,800"), ("39€99", "€39.99"),
        ("12 500 Ft", "12,500 HUF"), ("£1.299", "£1,299.00"), ("A$49", "49.00 AUD"), ("12,50 zł", "12.50 PLN"),
        ("Rs. 1,200", "₹1,200.00"), ("5,- kr", "5.00 kr"), ("-5 €", "-€5.00"), ("AU$1,000,000", "1,000,000.00 AUD"),
        ("EUR 1.234", "€1,234.00"), ("1 249,50 zł", "1,249.50 PLN"), ("KWD 12.500", "12,500.000 KWD"),
    ],
)  # fmt: skip
def test_a_sum_of_money_is_read_in_the_ways_of_many_countries(text: str, shown: str) -> None:
    [(money, _, _)] = money_in(text)
    assert str(money) == shown


@pytest.mark.parametrize(
    "text", ["", "no sum", "3 pens", "Euro 2024", "page 3 of 5", "10 %", "$", "€ and £", "A4", "chrome 5"]
)
def test_what_is_no_sum_of_money_is_none(text: str) -> None:
    assert [str(money) for money, _, _ in money_in(text)] in ([], ["€2,024.00"])


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("290 K", 290.0), ("-6 °C", -6.0), ("−6 °C", -6.0), ("+3", 3.0), ("1,5 km", 1.5),
        ("0.125", 0.125), ("0,999", 0.999),
        ("1.234.567", 1_234_567.0), ("1,234.5", 1_234.5), ("1 234 seats", 1_234.0),
        ("up to 12 of 20", 12.0), ("none", None),
        ("v2", None), (".5", 0.5),
    ],
)  # fmt: skip
def test_the_first_number_of_a_text(text: str, number: float | None) -> None:
    assert number_in(text) == number


@pytest.mark.parametrize(
    ("value", "currency", "found"),
    [
        ("1299.00", "EUR", Money(1299.0, "EUR")), ("1.299,00", "EUR", Money(1299.0, "EUR")),
        ("€ 39,99", "", Money(39.99, "EUR")),
        (39.5, "usd", Money(39.5, "USD")), ("12.500", "KWD", Money(12.5, "KWD")),
        ("1.299", "EUR", Money(1299.0, "EUR")),
        (1.299, "EUR", Money(1.299, "EUR")), ("", "EUR", None), ("Call us", "EUR", None),
        (None, "EUR", None), (True, "EUR", None),
        ("14,99", "USD", Money(14.99, "USD")),
    ],
)  # fmt: skip
def test_a_declared_price_is_read_as_programs_and_careless_templates_write_it(
    value: object, currency: str, found: Money | None
) -> None:
    assert declared_price(value, currency) == found


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("In stock", "in stock"), ("Not in stock", "out of stock"), ("Only 3 left in stock", "in stock, few left"),
        ("Nicht mehr lieferbar", "out of stock"), ("Sofort lieferbar", "in stock"), ("Pre-order now", "pre-order"),
        ("Available on backorder", "back-order"), ("Rupture de stock", "out of stock"), ("Disponible", "in stock"),
        ("No disponible", "out of stock"), ("在庫あり", "in stock"), ("売り切れ", "out of stock"),
        ("A stock of words", ""), ("", ""),
    ],
)  # fmt: skip
def test_the_state_of_stock_that_a_text_is_about(text: str, state: str) -> None:
    assert stock_in(text) == state
    assert is_in_stock(state) is state.startswith("in stock")


@pytest.mark.parametrize(
    ("value", "state"),
    [
        ("https://schema.org/InStock", "in stock"),
        ("http://schema.org/OutOfStock/", "out of stock"), ("instock", "in stock"),
        ("SoldOut", "out of stock"), ("out of stock", "out of stock"), ("oos", "out of stock"),
        ("https://schema.org/Nonsense", ""),
        ("", ""), (None, ""), (3, ""),
    ],
)  # fmt: skip
def test_a_declared_state_of_stock(value: object, state: str) -> None:
    assert declared_stock(value) == state


@pytest.mark.parametrize(
    ("text", "shown"),
    [("Größe 42 39 €", "€39.00"), ("from 2019 39 €", "€39.00"), ("$29 95", "$29.00"), ("9" * 400 + " €", None)],
)
def test_numbers_beside_a_sum_are_no_part_of_it(text: str, shown: str | None) -> None:
    assert next((str(money) for money, _, _ in money_in(text)), None) == shown


def test_long_rows_of_numbers_take_no_longer_than_their_length() -> None:
    for row in ("12 34 56 ", "123 456 ", "1,2", "1.234.567 ", "1"):
        list(money_in(row * 20_000))
        number_in("x" + row * 20_000)


@pytest.mark.parametrize(
    "text",
    [
        "No longer in stock", "Not yet available", "Not currently available", "Available soon", "In stock soon",
        "Email me when available", "0 in stock", "In stock: 0", "Expected back in stock 5 May", "Will be back in stock",
        "Available from 12 March", "Nicht sofort lieferbar", "Bald wieder verfügbar", "Lieferbar ab 12. Mai",
        "Produit plus disponible", "No está disponible", "Non più disponibile", "Nur noch 0 verfügbar", "Out-of-stock",
    ],
)  # fmt: skip
def test_what_is_not_there_or_not_yet_is_out_of_stock(text: str) -> None:
    assert stock_in(text) == "out of stock"


@pytest.mark.parametrize("text", ["Available in 3 colours", "Gift wrapping available", "We have words about stock"])
def test_other_things_that_are_available_say_nothing_about_stock(text: str) -> None:
    assert stock_in(text, alone=True) == ""


@given(number=st.floats(0, 10**9, allow_nan=False).map(lambda one: round(one, 2)))
def test_a_number_is_read_with_english_german_swiss_and_french_signs(number: float) -> None:
    english = f"{number:,.2f}"
    german = english.translate(str.maketrans(",.", ".,"))
    for text in (english, german, english.replace(",", "'"), german.replace(".", " ")):
        assert parse_number(text) == number


@given(text=st.text(max_size=200))
def test_no_text_is_too_odd(text: str) -> None:
    list(money_in(text))
    number_in(text)
    stock_in(text)
    declared_price(text, "EUR")
