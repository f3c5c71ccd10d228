from __future__ import annotations

import numpy as np
import pytest

from driftline.schedule.page_table import DAY, PROBE, PageTable
from driftline.schedule.picking import pick_pages

NOW = 100 * DAY


def seen(size: int) -> PageTable:
    table = PageTable(size)
    table.checked[:] = NOW - DAY
    return table


def picked(table: PageTable, count: int, **options: object) -> list[int]:
    return [int(place) for place in pick_pages(table, NOW, count, **options)]  # type: ignore[arg-type]


def test_heavier_faster_and_older_pages_come_first() -> None:
    table = seen(4)
    table.weight[1] = 3
    table.b[2] /= 3
    table.checked[3] -= 3 * DAY
    assert set(picked(table, 3)) == {1, 2, 3}
    assert picked(table, 10)[-1] == 0


def test_a_page_with_an_interval_is_picked_when_it_is_due_and_before_all_others() -> None:
    table = seen(4)
    table.weight[0] = 1_000
    table.every[[1, 2, 3]] = [DAY / 2, DAY / 4, 2 * DAY]
    assert picked(table, 2) == [2, 1], "the earliest deadline first"
    assert picked(table, 9) == [2, 1, 0], "one that is not due is not picked at all"


def test_a_page_that_was_never_checked_comes_before_what_is_only_worth_much() -> None:
    table = seen(3)
    table.weight[0] = 1_000
    table.checked[[1, 2]] = -np.inf
    table.weight[2] = 5
    assert picked(table, 9) == [2, 1, 0]


def test_pages_that_are_being_checked_are_not_picked_again() -> None:
    table = seen(6)
    table.every[[0, 1]] = DAY / 2
    table.checked[[2, 3]] = -np.inf
    assert picked(table, 9, without=np.array([0, 2, 4])) == [1, 3, 5]


def test_no_host_gets_more_than_its_room_and_the_others_get_what_is_left() -> None:
    table = seen(1_000)
    table.host[:] = np.arange(1_000) % 10
    table.weight[table.host == 0] = 1_000
    room = np.full(10, 7)
    room[3] = 0
    places = pick_pages(table, NOW, 60, room=room)
    counts = np.bincount(table.host[places], minlength=10)
    assert len(places) == len(set(places.tolist())) == 60
    assert counts[0] == 7
    assert counts[3] == 0
    assert counts.max() <= 7
    assert len(pick_pages(table, NOW, 500, room=room)) == 9 * 7


def test_deadlines_take_from_the_room_of_their_host() -> None:
    table = seen(6)
    table.every[:3] = 60.0
    assert len(pick_pages(table, NOW, 6, room=np.array([4]))) == 4
    assert set(picked(table, 6, room=np.array([4]))) > {0, 1, 2}


def test_failing_pages_back_off_longer_and_longer_and_nothing_is_learned() -> None:
    table = seen(1)
    before = float(table.a[0]), float(table.b[0])
    waits = []
    for _ in range(12):
        table.record_failures(np.array([0]), table.failures[:1] + 1, NOW)
        waits.append(float(table.not_before[0]) - NOW)
    assert picked(table, 1) == []
    assert waits[0] == 15 * 60
    assert waits == sorted(waits)
    assert waits[-1] == DAY
    assert (float(table.a[0]), float(table.b[0])) == before
    table.record_checks(np.array([0]), NOW, np.array([True]))
    assert table.failures[0] == 0
    assert picked(table, 1) == [0]


def test_the_lifetime_that_a_server_declares_is_trusted() -> None:
    table = seen(2)
    table.lifetime[1] = 0.9 * DAY
    assert picked(table, 2) == [0, 1]
    assert table.values(NOW)[1] < 0.1 * table.values(NOW)[0]


def test_uniform_takes_the_page_that_waited_longest() -> None:
    table = seen(5)
    table.checked[:] = NOW - DAY * np.array([3, 1, 5, 2, 4])
    table.weight[1] = 1_000
    assert picked(table, 5, policy="uniform") == [2, 4, 0, 3, 1]


def test_fixed_takes_what_is_due_and_nothing_else() -> None:
    table = seen(4)
    table.every[0] = DAY / 2
    table.every[1] = 2 * DAY
    table.checked[3] = -np.inf
    assert picked(table, 9, policy="fixed", default_every=2 * DAY) == [0, 3]
    assert picked(table, 9, policy="fixed", default_every=DAY) == [0, 2, 3]


def test_intelligent_goes_down_the_papers_order_and_probes_what_its_filter_dropped() -> None:
    table = seen(5)
    table.rank[:] = [2, 0, np.inf, 1, np.inf]
    assert picked(table, 9, policy="intelligent") == [1, 3, 0]
    assert picked(table, 9, policy="intelligent", cycle=2 * DAY) == []
    table.checked[4] = NOW - PROBE
    assert picked(table, 9, policy="intelligent") == [1, 3, 0, 4]


def test_probes_of_what_the_filter_dropped_get_their_share_and_no_more() -> None:
    table = seen(2_100)
    table.rank[:100] = np.arange(100)
    table.checked[100:] = NOW - PROBE
    assert picked(table, 50, policy="intelligent") == list(range(50))
    assert picked(table, 50, policy="intelligent", probes=5)[:45] == list(range(45))
    assert min(picked(table, 50, policy="intelligent", probes=5)[45:]) >= 100
    assert len(picked(table, 150, policy="intelligent", probes=5)) == 150, "they get what the order leaves"


@pytest.mark.parametrize("policy", ["value", "uniform", "fixed", "intelligent"])
def test_nothing_can_be_picked_from_nothing(policy: str) -> None:
    assert picked(PageTable(0), 5, policy=policy) == []
    assert picked(seen(3), 0, policy=policy) == []
