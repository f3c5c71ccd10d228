from __future__ import annotations

import numpy as np

from driftline.schedule.host_table import HostBudgets, HostTable


def test_a_host_keeps_its_number_however_many_others_are_added() -> None:
    hosts = HostTable()
    first = hosts.of([f"https://host{number}/x" for number in (3, 1, 3, 2)])
    assert first[0] == first[2]
    assert sorted(set(first.tolist())) == [0, 1, 2]
    hosts.distrusted[first[1]] = True
    others = hosts.named([f"other{number}" for number in range(50)])
    assert set(others.tolist()) == set(range(3, 53))
    assert hosts.of(["http://user:word@host3/", "http://host1/y"]).tolist() == [first[0], first[1]]
    assert np.flatnonzero(hosts.distrusted).tolist() == [first[1]]
    assert len(hosts.named([])) == 0


def test_the_room_of_a_host_grows_up_to_what_a_minute_brings_and_a_new_one_has_room_for_one_page() -> None:
    budgets = HostBudgets(0.1, 0.0)
    assert budgets.refill(0.0, 2).tolist() == [1, 1]
    budgets.spend(np.array([0], np.int32))
    assert budgets.refill(5.0, 3).tolist() == [0, 1, 1]
    assert budgets.refill(10.0, 3).tolist() == [1, 2, 1]
    assert budgets.refill(1_000.0, 3).tolist() == [6, 6, 6]
    assert budgets.refill(900.0, 3).tolist() == [6, 6, 6], "a clock that goes backwards brings nothing"
