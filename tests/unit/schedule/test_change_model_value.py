from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from driftline.schedule.change_model import check_value
from support.properties import searched


def worth(a: float, b: float, days: float, harmonic: float) -> float:
    one, shape, scale, age = (np.array([x], np.float32) for x in (1.0, a, b, days))
    return float(check_value(one, shape, scale, age, harmonic)[0])


@pytest.mark.parametrize("rate", [0.001, 0.05, 1.0, 24.0])
@pytest.mark.parametrize("days", [0.001, 0.5, 5.0, 90.0])
def test_of_a_rate_that_is_known_the_value_is_the_textbook_one(rate: float, days: float) -> None:
    x = rate * days
    fresh, harmonic = (1 - (1 + x) * np.exp(-x)) / rate, (x - 1 + np.exp(-x)) / rate
    assert worth(1e6, 1e6 / rate, days, 0.0) == pytest.approx(fresh, rel=0.01)
    assert worth(1e6, 1e6 / rate, days, 1.0) == pytest.approx(harmonic, rel=0.01)


@searched
@given(st.floats(0.05, 200), st.floats(1e-3, 1e4), st.floats(1e-4, 400), st.sampled_from([0.0, 0.2, 1.0]))
@example(a=0.9375, b=83.0, days=0.875, harmonic=0.0)
def test_in_single_precision_it_is_the_mean_over_the_rate(a: float, b: float, days: float, harmonic: float) -> None:
    # the rates at the middle of equal shares of the distribution would need scipy: the formula in double precision
    q, above = b / (b + days), a - 1
    fresh_days = b * np.log1p(days / b) if abs(above) < 1e-6 else b / above * -np.expm1(above * np.log(q))
    expected = (1 - harmonic) * (fresh_days - days * q**a) + harmonic * (days - fresh_days)
    assert worth(a, b, days, harmonic) == pytest.approx(expected, rel=0.03, abs=1e-6 * days)


@searched
@given(st.floats(0.05, 200), st.floats(1e-3, 1e4), st.floats(1e-3, 300))
def test_the_longer_a_page_waits_the_more_its_check_is_worth(a: float, b: float, days: float) -> None:
    assert worth(a, b, days * 1.5, 0.2) >= worth(a, b, days, 0.2) * 0.999


@pytest.mark.parametrize("a", [0.5, 1.0, 2.0])
def test_to_check_a_page_again_at_once_is_worth_nothing(a: float) -> None:
    assert worth(a, 30.0, 0.0, 0.2) == 0
