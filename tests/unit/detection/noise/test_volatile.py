from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.detection.noise.volatile import masked, names_age, names_stock, volatile_noise
from driftline.model.change import NoiseKind
from support.properties import searched


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Write to one@example.org today", "Write to today"),
        ("Write to [email\u00a0protected] today", "Write to today"),
        ("a@b.c+d@e.f x", "x"),
        ("me@home x", "me@home x"),
        ("@me.too x", "@me too x"),
    ],
)
def test_addresses_are_left_out(text: str, left: str) -> None:
    assert masked(text) == left


@searched
@given(st.text(alphabet="ab1.+-@[] é", max_size=30))
def test_an_address_ends_where_the_plain_pattern_ends_it(text: str) -> None:
    plain = re.sub(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "", text)
    assert masked(text) == masked(plain.replace("@", "\ufffc")).replace("\ufffc", "@")


def test_a_long_token_beside_an_address_is_passed_over_at_once() -> None:
    word = "x" * 400_000  # a look from each of its letters on would take many minutes
    assert masked(f"{word} @ one@example.org") == f"{word} @"


@pytest.mark.parametrize(
    "text",
    [
        "In stock", "OUT OF STOCK", "Sold-out", "Unavailable", "Fully booked", "Cancelled", "Canceled", "En rupture",
        "Disponible", "Disponível", "ÉPUISÉ", "Ausverkauft", "Auf Lager", "Nicht verfügbar", "Lieferbar", "Agotado",
        "Esaurito", "Esgotado", "Leverbaar", "Op voorraad", "Uitverkocht", "Slutsåld", "I lager",
    ],
)  # fmt: skip
def test_words_about_stock_are_found_in_many_languages(text: str) -> None:
    assert names_stock(f"Blue chair: {text}.")
    assert not names_stock("Blue chair: made of oak.")


def test_a_time_stamp_of_the_fetch_is_a_clock_within_a_day_too() -> None:
    at = 1_767_607_200.0  # 5 January 2026, 10:00 UTC
    for old, new in (("T10:00:00Z", "T11:00:00Z"), ("T10:00:00.120Z", "T11:00:00.871Z")):
        before, after = (f"$.generated_at: 2026-01-05{time}" for time in (old, new))
        assert volatile_noise(before, after, at, at + 3_600) is NoiseKind.CLOCK
        assert volatile_noise(before, after.replace("T11", "T15"), at, at + 3_600) is None


def test_ages_are_found_in_several_languages() -> None:
    assert all(map(names_age, ("2 hours ago", "mira, yesterday", "vor 3 Tagen", "il y a une heure")))
    assert not any(map(names_age, ("A long story", "Four evenings in May")))


NOON = datetime(2026, 1, 9, 12, tzinfo=UTC).timestamp()
DAY = 86_400.0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Register until 9 January.", "Register until 16 January."),
        ("Open from March 3", "Open from March 10"),
        ("250 g red lentils", "300 g red lentils"),
        ("Range 410 km", "Range 430 km"),
        ("05:10", "05:20"),
        ("05:18", "05:37"),
    ],
)
def test_days_measures_and_times_of_a_timetable_are_no_counters_and_clocks(old: str, new: str) -> None:
    assert volatile_noise(old, new, NOON, NOON + DAY) is None


def test_the_day_of_the_fetch_is_a_clock_without_a_year_too() -> None:
    assert volatile_noise("Friday 9 January", "Friday 10 January", NOON, NOON + DAY) is NoiseKind.CLOCK
    assert volatile_noise("Seats left: 13", "Seats left: 14", NOON, NOON + DAY) is NoiseKind.COUNTER


def test_the_time_of_the_fetch_alone_is_a_clock_of_a_time_zone_of_whole_hours_or_with_seconds() -> None:
    assert volatile_noise("08:10", "13:58", NOON - 60, NOON) is NoiseKind.CLOCK
    assert volatile_noise("08:10:12", "17:28:05", NOON - 60, NOON) is NoiseKind.CLOCK
    assert volatile_noise("08:10", "17:28", NOON - 60, NOON) is None
