"""The watch list is read a little at a time, while picks go by what was read before."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import text

from driftline.errors import StoreError
from driftline.schedule.page_table import DAY
from driftline.schedule.scheduler import Scheduler
from driftline.store.engine import Store
from driftline.store.statements import Batches
from support.schedules import BEGIN, Schedule, terms, visited


@pytest.fixture(autouse=True)
def one_page_at_a_time(batches: Batches) -> None:
    batches.pages = 1


def rename(store: Store, table: str, name: str) -> None:
    with store.write() as connection:
        connection.execute(text(f"ALTER TABLE {table} RENAME TO {name}"))


def read_to_the_end(scheduler: Scheduler, meanwhile: Callable[[int], None] = lambda _: None) -> int:
    """Read on, one step at a time; how many it took."""
    steps = 1
    while not scheduler.refresh_until(lambda: True):
        meanwhile(steps)
        steps += 1
    return steps


def test_pages_are_picked_while_the_list_is_read_and_what_is_learned_then_is_not_lost(schedule: Schedule) -> None:
    pages = schedule.add(*[f"host{number}" for number in range(8)], every=300.0)
    scheduler = schedule.scheduler()
    for page in pages:
        schedule.checked(page, "new")
    scheduler.learn_from(pages)
    schedule.clock.now += 400
    (added,) = schedule.add("added", every=300.0)
    picked: list[int] = []

    def check_one(_step: int) -> None:
        for page in scheduler.pick(1):
            picked.append(page)
            schedule.checked(page, "changed" if page == pages[0] else "failed")
            scheduler.learn_from([page])

    assert read_to_the_end(scheduler, check_one) > len(pages)
    assert sorted(picked) == pages, "each once, and the new one only when all is read"
    assert scheduler.pick() == [added]
    as_if_read_at_once = terms(schedule.scheduler())
    found = terms(scheduler)
    assert {name: (one.lane, one.due_at) for name, one in found.items()} == {
        name: (one.lane, one.due_at) for name, one in as_if_read_at_once.items()
    }
    assert found["host0"].rate == as_if_read_at_once["host0"].rate


def test_a_retry_after_that_arrives_while_the_list_is_read_is_kept(schedule: Schedule) -> None:
    busy, beside = schedule.add("host/busy", "host/beside", every=300.0)
    for page in (busy, beside):
        schedule.checked(page, "new")
    scheduler = schedule.scheduler()
    schedule.clock.now += 400
    schedule.add("elsewhere", every=DAY)
    assert not scheduler.refresh_until(lambda: True)
    schedule.checked(busy, "failed", status=503, retry_at=BEGIN + 7_200)
    scheduler.learn_from([busy])
    assert scheduler.pick() == []
    read_to_the_end(scheduler)
    assert beside not in scheduler.pick()
    schedule.add("elsewhere/too", every=DAY)
    assert not scheduler.refresh_until(lambda: True)
    schedule.checked(busy, "unchanged")
    scheduler.learn_from([busy])
    read_to_the_end(scheduler)
    assert beside in scheduler.pick()


def test_what_another_program_learned_later_counts(schedule: Schedule) -> None:
    (page,) = schedule.add("page", every=300.0)
    schedule.checked(page, "new")
    scheduler, other = schedule.scheduler(), schedule.scheduler()
    schedule.clock.now += DAY
    schedule.checked(page, "changed")
    assert not scheduler.refresh_until(lambda: True)
    scheduler.learn_from([page])
    schedule.clock.now += DAY
    schedule.checked(page, "changed")
    other.learn_from([page])
    read_to_the_end(scheduler)
    assert terms(scheduler)["page"].due_at == schedule.clock.now + 300
    assert terms(scheduler)["page"].rate == terms(other)["page"].rate


def test_a_host_that_is_caught_while_the_list_is_read_is_believed_no_more(schedule: Schedule) -> None:
    lasts = "Cache-Control: max-age=36000"
    early, other = schedule.add("host/early", "host/other")
    for page in (early, other):
        schedule.checked(page, "new", headers=lasts)
    scheduler = schedule.scheduler()
    schedule.clock.now += 60
    visited(schedule, "host/other", 1, 1.0, 1)
    for _ in (early, other):
        assert not scheduler.refresh_until(lambda: True)
    schedule.checked(early, "changed", headers=lasts)
    scheduler.learn_from([early])
    read_to_the_end(scheduler)
    assert [one.lifetime for one in scheduler.upcoming()] == [0.0, 0.0]


def test_a_list_that_grows_and_shrinks_while_it_is_read_is_as_it_is_in_the_end(schedule: Schedule) -> None:
    schedule.add(*[f"host{number}" for number in range(4)])
    scheduler = schedule.scheduler()
    schedule.add("first")

    def change(step: int) -> None:
        if step == 2:
            schedule.add(*[f"more{number}" for number in range(20)])
            schedule.catalog.remove(["http://host3/"])

    read_to_the_end(scheduler, change)
    assert len(scheduler) == 24
    assert set(terms(scheduler)) == {"first", *[f"host{number}" for number in range(3)]} | {
        f"more{number}" for number in range(20)
    }


def test_reading_that_fails_begins_anew(schedule: Schedule) -> None:
    schedule.add("one", "two")
    scheduler = schedule.scheduler()
    schedule.add("three")
    assert not scheduler.refresh_until(lambda: True)
    rename(schedule.store, "visits", "torn")
    with pytest.raises(StoreError):
        read_to_the_end(scheduler)
    rename(schedule.store, "torn", "visits")
    read_to_the_end(scheduler)
    assert len(scheduler) == 3


def test_what_others_checked_is_followed_without_reading_the_list(schedule: Schedule) -> None:
    theirs, ours = schedule.add("theirs", "ours", every=300.0)
    for page in (theirs, ours):
        schedule.checked(page, "new")
    scheduler = schedule.scheduler()
    schedule.clock.now += 400
    schedule.add("added", every=300.0)
    schedule.checked(theirs, "unchanged")
    schedule.scheduler()  # another scheduler learns from it first
    scheduler.learn_from_others()
    assert scheduler.pick() == [ours]
    assert len(scheduler) == 2


def test_what_others_checked_is_noticed_although_they_removed_a_page_with_as_many_checks(schedule: Schedule) -> None:
    removed, theirs, ours = schedule.add("removed", "theirs", "ours", every=300.0)
    for page in (removed, theirs, ours):
        schedule.checked(page, "new")
    scheduler = schedule.scheduler()
    schedule.clock.now += 400
    schedule.catalog.remove(["http://removed/"])
    schedule.checked(theirs, "unchanged")
    scheduler.learn_from_others()
    assert scheduler.pick() == [removed, ours]


def test_what_others_checked_while_the_list_is_read_is_not_checked_again(schedule: Schedule) -> None:
    (known,) = schedule.add("known", every=300.0)
    schedule.checked(known, "new")
    scheduler = schedule.scheduler()
    schedule.clock.now += 400
    read, unread = schedule.add("read", "unread")
    for _ in range(2):
        assert not scheduler.refresh_until(lambda: True)
    for page in (known, read, unread):
        schedule.checked(page, "new")
    scheduler.learn_from_others()
    read_to_the_end(scheduler)
    assert len(scheduler) == 3
    assert scheduler.pick() == []


def test_there_is_nothing_to_follow_before_the_list_was_read(schedule: Schedule) -> None:
    (page,) = schedule.add("page")
    scheduler = Scheduler(schedule.store, clock=schedule.clock, ticks=schedule.clock)
    scheduler.learn_from_others()
    assert scheduler.pick() == [page]
