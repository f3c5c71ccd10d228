from __future__ import annotations

import pytest

from driftline.errors import BadSetting
from driftline.schedule.budget import Credit, format_rate, shortages
from driftline.settings import load_settings, parse_rate


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("10/s", 10.0),
        ("600/m", 10.0),
        ("1.5 / h", 1.5 / 3_600),
        ("86400/day", 1.0),
        ("60 per minute", 1.0),
        ("7/Sec", 7.0),
    ],
)
def test_a_rate_is_read_as_people_write_it(text: str, rate: float) -> None:
    assert parse_rate(text) == pytest.approx(rate)
    assert parse_rate(format_rate(rate)) == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize("text", ["", "10", "ten/s", "0/s", "-1/s", "10/w", "10/s/s", "1e3/s"])
def test_what_is_no_rate_gets_a_sentence(text: str) -> None:
    with pytest.raises(BadSetting, match="write 10/s"):
        parse_rate(text)


@pytest.mark.parametrize("text", ["1000001/s", "9" * 400 + "/s", "1" + "0" * 12 + "/d"])
def test_an_impossible_rate_is_refused(text: str) -> None:
    with pytest.raises(BadSetting, match="1,000,000 checks a second at most"):
        parse_rate(text)


@pytest.mark.parametrize("name", ["budget", "host_budget"])
@pytest.mark.parametrize("text", ["lots", "", "9" * 400 + "/s"])
def test_a_budget_in_the_settings_is_validated_when_they_are_loaded(name: str, text: str) -> None:
    with pytest.raises(BadSetting, match=f"The setting '{name}' is not valid"):
        load_settings(**{name: text})


def test_credit_grows_with_time_up_to_a_minute_of_it() -> None:
    credit = Credit(at=0.0, saved=1.0)
    assert credit.refill(0.0, 2.0) == 1
    credit.spend(1)
    assert credit.refill(0.25, 2.0) == 0
    assert credit.refill(10.0, 2.0) == 20
    assert credit.refill(9_000.0, 2.0) == 120, "who slept need not catch up at once"
    credit.spend(120)
    assert credit.refill(8_000.0, 2.0) == 0, "a clock that went backwards brings nothing"


def test_a_slow_budget_still_saves_up_for_one_check() -> None:
    credit = Credit(at=0.0, saved=0.0)
    assert credit.refill(3_599.0, 1 / 3_600) == 0
    assert credit.refill(3_601.0, 1 / 3_600) == 1


def test_intervals_may_take_four_fifths_of_a_budget() -> None:
    assert shortages({"http://a/": 0.79}, 1.0, None) == []
    assert shortages({"http://a/": 0.79}, None, 1.0) == []
    assert shortages({"http://a/": 9.0}, None, None) == []
    (said,) = shortages({"http://a/": 0.4, "http://b/": 0.41}, 1.0, 1.0)
    assert said.startswith("The intervals that you set take 48.6/m, more than 80% of the budget of 1/s: set longer")


def test_the_host_is_named_whose_intervals_take_most_of_its_budget() -> None:
    asked = {"http://a/1": 0.5, "http://a/2": 0.5, "http://b/": 2.0, "http://c/": 0.9, "http://d/": 0.1}
    (said,) = shortages(asked, None, 1.0)
    assert said.startswith("The intervals that you set on b take 2/s, more than 80% of the host budget of 1/s")
    assert said.endswith(" The same holds for 2 more hosts.")
    (said,) = shortages(asked, None, 1.0, {"a", "d"})
    assert "on a take 1/s" in said
    assert said.endswith("or raise the budget.")
    assert shortages(asked, None, 1.0, {"d"}) == []
    assert shortages(asked | {"http://a/1": 0.1}, None, 1.0)[0].endswith(" The same holds for 1 more host.")
    assert len(shortages(asked, 1.0, 1.0)) == 2
