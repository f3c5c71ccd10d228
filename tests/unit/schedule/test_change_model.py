from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.schedule import change_model
from support.properties import searched


def after(a: float, b: float, days: float, changed: bool, expected: float = 0.05) -> tuple[float, float]:
    found = change_model.updated(np.array([a]), np.array([b]), np.array([days]), np.array([changed]), expected)
    return float(found[0][0]), float(found[1][0])


def exact_mean(history: list[tuple[float, bool]], a: float, b: float) -> float:
    """The mean of the true posterior, by summing over a fine grid of rates."""
    grid = np.exp(np.linspace(np.log(1e-6), np.log(1e3), 40_001))
    log = a * np.log(grid) - b * grid  # one power more than the density, for the steps of the grid grow with the rate
    for days, changed in history:
        log += np.log(-np.expm1(-grid * days)) if changed else -grid * days
    mass = np.exp(log - log.max())
    return float((mass * grid).sum() / mass.sum())


@pytest.mark.parametrize("history", [[(1.0, True)], [(1.0, False)], [(2.0, True), (0.5, False), (1.0, True)] * 4])
def test_the_mean_is_close_to_that_of_the_true_posterior(history: list[tuple[float, bool]]) -> None:
    a, b = change_model.prior(0.3)
    mean = exact_mean(history, float(a), float(b))
    shape, scale = float(a), float(b)
    for days, changed in history:
        shape, scale = after(shape, scale, days, changed, 0.3)
    assert shape / scale == pytest.approx(mean, rel=0.05)


def test_a_rate_is_found_from_regular_checks_of_a_page_that_changes_faster_than_it_is_checked() -> None:
    random = np.random.default_rng(1)
    a, b = change_model.prior(np.full(400, 0.5))
    for _ in range(60):
        a, b = change_model.updated(a, b, np.ones(400), random.random(400) < 1 - np.exp(-1.5), 0.5)
    assert float(np.median(a / b)) == pytest.approx(1.5, rel=0.1)


def test_what_was_seen_long_ago_fades_into_what_is_expected() -> None:
    a, b = 100.0, 10.0
    for _ in range(40):
        a, b = after(a, b, 0.001, False)
    assert a / b > 9.9
    for _ in range(10):
        a, b = after(a, b, 180.0, False, expected=0.01)
    assert a / b < 0.02


@searched
@given(
    st.lists(st.tuples(st.floats(0, 5_000), st.booleans()), max_size=60),
    st.floats(1e-9, 1e9),
)
def test_whatever_happens_a_rate_stays_one_that_can_be_worked_with(
    history: list[tuple[float, bool]], mean: float
) -> None:
    a, b = (float(one) for one in change_model.prior(mean))
    for days, changed in history:
        a, b = after(a, b, days, changed)
        assert 0 < a <= 200.0
        assert change_model.SLOWEST * 0.999 <= a / b <= change_model.FASTEST * 1.001
