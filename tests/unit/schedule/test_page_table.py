from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from driftline.schedule.change_model import USUAL
from driftline.schedule.page_table import DAY, PageTable

NOW = 100 * DAY


def seen(size: int) -> PageTable:
    table = PageTable(size)
    table.checked[:] = NOW - DAY
    return table


@pytest.mark.parametrize(
    ("every", "first", "longest"), [(30.0, 30.0, 3_600.0), (3_600.0, 900.0, 8 * 3_600.0), (7 * DAY, 900.0, DAY)]
)
def test_a_page_with_an_interval_backs_off_longer_and_longer_too_but_not_for_as_long(
    every: float, first: float, longest: float
) -> None:
    table = seen(1)
    table.every[0] = every
    waits = []
    for _ in range(2_000):
        table.record_failures(np.array([0]), table.failures[:1] + 1, NOW)
        waits.append(float(table.not_before[0]) - NOW)
    assert waits[:2] == [first, 2 * first]
    assert all(after == min(2 * before, longest) for before, after in pairwise(waits))
    assert waits[-1] == longest


def test_a_new_page_is_expected_to_be_like_the_others_of_its_host() -> None:
    table = PageTable(60)
    table.host[:] = np.arange(60) % 2
    everyone = np.arange(50)
    table.record_checks(everyone, 0.0, np.zeros(50, bool))
    for day in range(1, 30):
        table.record_checks(everyone, day * DAY, table.host[everyone] == 1)
    table.record_checks(np.array([50, 51]), 30 * DAY, np.zeros(2, bool))
    slow, fast = (float(table.a[place] / table.b[place]) for place in (50, 51))
    assert fast > 20 * slow


def test_the_prior_of_a_page_does_not_count_for_its_host() -> None:
    table = PageTable(30)
    most = np.arange(1, 30)
    table.set_rates(most, np.full(29, 0.5), np.full(29, 0.05), np.full(29, NOW), np.zeros(29, bool))
    table.apply_priors()
    assert table.a[0] / table.b[0] == pytest.approx(USUAL)
    table.set_rates(most, np.full(29, 0.5), np.full(29, 0.05), np.full(29, NOW), np.ones(29, bool))
    table.apply_priors()
    assert table.a[0] / table.b[0] > 50 * USUAL
    known = table.a[0] / table.b[0]
    table.set_rates(most, np.full(29, 0.5), np.full(29, 0.05), np.full(29, NOW), np.ones(29, bool))
    table.apply_priors()
    assert table.a[0] / table.b[0] == pytest.approx(known), "no page counts twice"
