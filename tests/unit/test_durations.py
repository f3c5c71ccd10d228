from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.durations import format_interval, parse_interval, parse_moment
from driftline.errors import BadSetting
from support.properties import searched

_TEN_YEARS = 10 * 365 * 86_400


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30), ("15m", 900), ("2h", 7_200), ("1d", 86_400), ("1w", 604_800), ("1h30m", 5_400), ("1h 30m", 5_400),
        ("1.5h", 5_400), (" 2H ", 7_200), ("1 d", 86_400), ("1s", 1),
    ],
)  # fmt: skip
def test_a_length_of_time_is_read_as_people_write_it(text: str, seconds: float) -> None:
    assert parse_interval(text) == seconds


@pytest.mark.parametrize(
    "text", ["", " ", "5", "h", "5x", "-5m", "1h and 2m", "1e5s", "0s", "0.5s", "600w", "9" * 400 + "s", "1:30", "s5"]
)
def test_a_text_that_is_no_length_of_time_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(BadSetting) as refused:
        parse_interval(text)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1, "1s"), (90, "1m30s"), (5_400, "1h30m"), (604_800, "1w"), (86_400 * 8, "1w1d"), (1.5, "1.5s")],
)
def test_a_length_of_time_is_written_in_its_largest_units(seconds: float, text: str) -> None:
    assert format_interval(seconds) == text


@searched
@given(st.integers(1, _TEN_YEARS))
def test_whole_seconds_are_read_back_as_they_were_written(seconds: int) -> None:
    assert parse_interval(format_interval(seconds)) == seconds


@searched
@given(st.text(alphabet="0123456789.smhdw -e", max_size=12))
def test_no_text_makes_anything_but_a_length_of_time_or_a_refusal(text: str) -> None:
    try:
        assert 1 <= parse_interval(text) <= _TEN_YEARS
    except BadSetting:
        return


@pytest.mark.parametrize(
    ("text", "moment"),
    [("1h", 996_400), ("1970-01-02T00:00Z", 86_400), (" 1970-01-01T01:00+01:00 ", 0), ("1d", 913_600)],
)
def test_a_moment_is_a_date_or_how_long_ago(text: str, moment: float) -> None:
    assert parse_moment(text, 1_000_000) == moment


def test_a_date_alone_begins_at_midnight_here() -> None:
    assert parse_moment("2026-01-31", 0) == datetime(2026, 1, 31).astimezone().timestamp()


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "0001-01-01", "5", "yesterday"])
def test_a_text_that_is_no_moment_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(BadSetting, match=r"is not a time.*\.$"):
        parse_moment(text, 1_000_000)
