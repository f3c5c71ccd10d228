"""How visits weigh pages in the schedule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.schedule.loader import FLOOR, availability, importance
from support.properties import searched

visited = st.lists(st.tuples(st.integers(1, 1_000), st.integers(0, 100_000)), min_size=1, max_size=30)


def weights(frequencies: list[float], weightages: list[float]) -> list[float]:
    found: list[float] = importance(np.array(frequencies, np.float64), np.array(weightages, np.float64)).tolist()
    return found


def test_importance_is_half_the_share_of_visits_and_half_the_share_of_time() -> None:
    assert weights([3, 1], [0.0, 10.0]) == [pytest.approx(0.375), pytest.approx(0.625)]


def test_a_page_that_was_never_visited_still_counts() -> None:
    assert weights([8, 2, 0], [50.0, 50.0, 0.0]) == [pytest.approx(0.65), pytest.approx(0.35), pytest.approx(FLOOR / 3)]


def test_without_any_visits_all_pages_weigh_the_same() -> None:
    assert weights([0, 0, 0, 0], [0.0] * 4) == [0.25] * 4
    assert weights([], []) == []


def test_where_nobodys_time_is_known_visits_count_whole() -> None:
    assert weights([3, 1], [0.0, 0.0]) == [pytest.approx(0.75), pytest.approx(0.25)]


@searched
@given(visited)
def test_importance_of_visited_pages_adds_up_to_one_or_a_floor_more(rows: list[tuple[int, int]]) -> None:
    found = weights([row[0] for row in rows], [float(row[1]) for row in rows])
    assert 1 - 1e-9 <= sum(found) <= 1 + FLOOR + 1e-9


def test_availability_is_a_half_at_first_and_never_quite_0_or_1() -> None:
    assert availability(np.array([0.0, 8.0, 0.0]), np.array([0.0, 8.0, 8.0])).tolist() == [0.5, 0.9, 0.1]
