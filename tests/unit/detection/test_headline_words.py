"""The words of a headline."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.detection.headline_words import (
    LONGEST,
    changed_field,
    changed_value,
    cut,
    difference,
    in_words,
    is_trivial,
    largest_difference,
    object_of,
    tail_of,
    value_of,
)
from support.properties import searched

lines = st.lists(st.sampled_from(["a", "bb", "we", "do", "not", "share.", "data,", "7", "€3", "(x)"]), max_size=40)


@searched
@given(lines, lines)
def test_a_difference_contains_both_lines(before: list[str], after: list[str]) -> None:
    found = difference(" ".join(before), " ".join(after))
    assert [*found.prefix, *found.gone, *found.suffix] == before
    assert [*found.prefix, *found.come, *found.suffix] == after
    part = largest_difference(found)
    for line, words in ((before, part.gone), (after, part.come)):
        shown = " ".join([*part.prefix, *words, *part.suffix])
        assert shown.removeprefix("… ").removesuffix(" …") in " ".join(line), "no words of the other line are shown"


@searched
@given(lines, lines, st.integers(30, LONGEST))
def test_words_in_context_fit_into_the_room(before: list[str], after: list[str], room: int) -> None:
    text = in_words(difference(" ".join(before), " ".join(after)), room)
    assert len(text) <= room + 4


def test_of_differences_far_apart_the_largest_in_words_counts() -> None:
    before = "Open as it was for some days and read by all of us here 96 times"
    after = "Closed as it was for some days and read by all of us here 99 times"
    found = largest_difference(difference(before, after))
    assert (found.gone, found.come) == (["Open"], ["Closed"])
    before, after = (
        f"{state} since Ann told all of us about it {age} ago"
        for state, age in (("Open", "16 days"), ("Done", "a month"))
    )
    found = largest_difference(difference(before, after))
    assert (found.gone, found.come) == (["Open"], ["Done"])


def test_differences_in_capital_letters_and_signs_are_trivial() -> None:
    assert is_trivial("these terms.", "these Terms")
    assert not is_trivial("14 days", "30 days")


@pytest.mark.parametrize(
    ("suffix", "tail"),
    [
        ("days of delivery or later on", " days"), ("km/h from the far west", " km/h"), ("g red beans", " g red beans"),
        ("m² · 3rd floor", " m²"), ("stations. Each is open", " stations"), ("", ""), ("% for students.", " %"),
    ],
)  # fmt: skip
def test_a_number_is_followed_by_what_it_counts(suffix: str, tail: str) -> None:
    assert tail_of(suffix.split()) == tail


def test_a_price_is_followed_by_a_whole_clause_or_nothing() -> None:
    assert tail_of("per month".split(), whole=True) == " per month"  # noqa: SIM905 as a line has it
    assert tail_of("registered under the number of".split(), whole=True) == ""  # noqa: SIM905 the same


def test_a_row_of_csv_is_named_by_fields_that_stayed() -> None:
    row = "stop: Harbour | line: 14 | state: {}"
    assert changed_field(row.format("on time"), row.format("late")) == "Harbour, 14: state on time → late"
    assert changed_field(row.format("on time"), "stop: Harbour | line: 14") is None
    assert changed_field("a | b", "a | c") is None


def test_a_value_is_named_by_its_element() -> None:
    terms = "/urlset/url[loc=https://a.example/terms]/{}"
    assert value_of(terms.format("loc: https://a.example/terms")) == "https://a.example/terms"
    assert value_of(terms.format("priority: 0.5")) == "https://a.example/terms / priority: 0.5"
    assert value_of("$.plans[name=Team].name: Team") == "$.plans[name=Team]"
    assert value_of("Any / other: line") == "Any / other: line"
    assert object_of("$.plans[name=Team].price: 9") == "$.plans[name=Team]"
    moved = changed_value(terms.format("priority: 0.5"), terms.format("priority: 0.5").replace("/terms", "/agb"))
    assert moved == "https://a.example/terms → https://a.example/agb"
    assert changed_value("Price: 5", "Price: 6") is None


def test_a_text_is_cut_at_a_word() -> None:
    assert cut("one two  three four", 14) == "one two…"
    assert cut("short", 14) == "short"
