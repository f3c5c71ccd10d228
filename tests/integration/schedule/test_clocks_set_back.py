"""A clock that is set back: recorded times are in the future, and no check waits for them."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from driftline.schedule.page_table import DAY
from driftline.store.engine import Store
from driftline.store.host_records import HostRecords
from driftline.store.schema import setbacks
from support.schedules import BEGIN, Schedule, terms, visited

AHEAD = BEGIN + 400 * DAY


def test_a_check_in_the_future_does_not_delay_the_next(schedule: Schedule) -> None:
    (page,) = schedule.add("page", every=600.0)
    schedule.checked(page, "new", AHEAD)
    scheduler = schedule.scheduler()
    scheduler.pick()
    schedule.clock.now += 601
    assert scheduler.pick() == [page]


@pytest.mark.parametrize("again", ["at rest", "read anew", "started anew"])
def test_a_future_time_counts_from_when_it_was_first_seen(schedule: Schedule, again: str) -> None:
    (page,) = schedule.add("page", every=600.0)
    (failing,) = schedule.add("failing")
    schedule.checked(page, "new", AHEAD)
    schedule.checked(failing, "failed", AHEAD, status=503)
    scheduler = schedule.scheduler(every=60.0)
    found: dict[int, float] = {}
    for _ in range(10):
        if again == "read anew":
            visited(schedule, f"other{schedule.clock.now}", 1, 1.0, 1)
            scheduler.refresh()
        if again == "started anew":
            scheduler = schedule.scheduler(every=60.0, policy="fixed", early=0.1)
        for picked in scheduler.pick():
            found.setdefault(picked, schedule.clock.now - BEGIN)
        schedule.clock.now += 100
    assert set(found) == {page, failing}
    assert found[page] == 600


def test_a_clock_that_is_set_back_while_running_delays_no_check(schedule: Schedule) -> None:
    (page,) = schedule.add("page", every=600.0)
    (failing,) = schedule.add("failing")
    schedule.clock.now = AHEAD
    schedule.checked(page, "new")
    schedule.checked(failing, "failed", status=503)
    scheduler = schedule.scheduler(every=60.0)
    scheduler.pick()
    schedule.clock.now = BEGIN
    picked: list[int] = []
    for _ in range(10):
        picked += scheduler.pick()
        schedule.clock.now += 100
    assert set(picked) == {page, failing}


def test_a_clock_that_is_set_back_twice_delays_no_check_until_the_first_time(schedule: Schedule) -> None:
    (page,) = schedule.add("page", every=600.0)
    schedule.checked(page, "new", AHEAD)
    schedule.clock.now = BEGIN + 100 * DAY
    schedule.scheduler()
    schedule.clock.now = BEGIN
    assert terms(schedule.scheduler())["page"].due_at == BEGIN + 600
    schedule.clock.now += 300
    assert terms(schedule.scheduler())["page"].due_at == BEGIN + 600


def test_a_clock_that_was_set_back_by_mistake_and_put_right_changes_nothing(schedule: Schedule) -> None:
    (page,) = schedule.add("page", every=600.0)
    schedule.checked(page, "new")
    schedule.clock.now = 0.0
    schedule.scheduler()
    schedule.clock.now = BEGIN + 100
    assert terms(schedule.scheduler())["page"].due_at == BEGIN + 600


def test_a_clock_that_is_set_back_a_second_time_much_later_counts_from_then(schedule: Schedule) -> None:
    (page,) = schedule.add("page", every=600.0)
    schedule.checked(page, "new", AHEAD)
    schedule.scheduler()
    schedule.clock.now += 600
    schedule.checked(page, "unchanged")
    schedule.scheduler()
    with schedule.store.read() as connection:
        assert connection.scalar(select(func.count()).select_from(setbacks)) == 0
    schedule.checked(page, "unchanged", AHEAD)
    schedule.clock.now += 300
    assert terms(schedule.scheduler())["page"].due_at == schedule.clock.now + 600


def test_the_clock_of_another_machine_that_is_a_little_fast_is_none_that_was_set_back(schedule: Schedule) -> None:
    (page,) = schedule.add("page", every=600.0)
    schedule.checked(page, "new", BEGIN + 5)
    assert terms(schedule.scheduler())["page"].due_at == BEGIN + 605
    with schedule.store.read() as connection:
        assert connection.scalar(select(func.count()).select_from(setbacks)) == 0


def test_a_store_that_can_only_be_read_is_left_as_it_is(schedule: Schedule, where: str) -> None:
    (page,) = schedule.add("page", every=600.0)
    schedule.checked(page, "new", AHEAD)
    HostRecords(schedule.store).keep({}, {"page": AHEAD + 60}, AHEAD)
    schedule.store.read_only = True
    assert terms(schedule.scheduler())["page"].due_at == BEGIN + 600
    schedule.store.read_only = False
    other = Store.open(where)
    with other.read() as connection:
        assert connection.scalar(select(func.count()).select_from(setbacks)) == 0
    other.close()


@pytest.mark.parametrize("wait", [3_600.0, 30 * DAY])
def test_a_retry_after_ends_however_often_the_program_starts(schedule: Schedule, wait: float) -> None:
    bad, beside = schedule.add("host/bad", "host/beside", every=60.0)
    schedule.checked(beside, "new")
    schedule.checked(bad, "failed", at=AHEAD, status=429, retry_at=AHEAD + wait)
    HostRecords(schedule.store).keep({}, {"host": AHEAD + wait}, AHEAD)
    ends = BEGIN + min(wait, DAY)
    while schedule.clock.now < ends:
        assert schedule.scheduler(policy="fixed").pick() == []
        schedule.clock.now += 1_200
    assert set(schedule.scheduler(policy="fixed").pick()) == {bad, beside}
