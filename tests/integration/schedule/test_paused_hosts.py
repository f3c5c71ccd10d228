"""Hosts under Retry-After: what that means for their pages, and for no others."""

from __future__ import annotations

import re
import sys
import time
from types import FrameType

import pytest

from driftline.cli.main import main_with
from driftline.schedule import host_table
from driftline.schedule.page_table import DAY
from driftline.schedule.scheduler import Scheduler
from driftline.store.host_records import HostRecords
from support.schedules import BEGIN, Schedule, terms


def test_after_a_clock_was_set_back_no_pause_is_longer_than_its_retry_after(schedule: Schedule) -> None:
    bad, beside = schedule.add("host/bad", "host/beside")
    ahead = BEGIN + 365 * DAY
    schedule.checked(beside, "new")
    schedule.checked(bad, "failed", at=ahead, status=429, retry_at=ahead + 30)
    scheduler = schedule.scheduler(every=10.0)
    assert terms(scheduler)["host/beside"].due_at == BEGIN + 30
    schedule.clock.now += 29
    assert scheduler.pick() == []
    schedule.clock.now += 2
    assert scheduler.pick() == [beside]


def test_pages_of_a_host_under_retry_after_are_not_counted_as_waiting(schedule: Schedule) -> None:
    bad, beside, other = schedule.add("host/bad", "host/beside", "other/1")
    scheduler = schedule.scheduler(every=10.0)
    assert scheduler.count_waiting([bad, beside, other]) == 3
    schedule.checked(bad, "failed", status=503, retry_at=BEGIN + 12)
    scheduler.learn_from([bad])
    assert scheduler.count_waiting([beside, other]) == 1
    schedule.clock.now += 13
    assert scheduler.count_waiting([beside, other]) == 2


def test_pages_that_never_failed_wait_for_their_host_and_only_as_long_as_they_must(schedule: Schedule) -> None:
    usual, soon, late = schedule.add("host/usual", "host/soon", "host/late")
    schedule.catalog.edit("http://host/soon/", every=600.0)
    schedule.catalog.edit("http://host/late/", every=DAY)
    (busy,) = schedule.add("host/busy")
    for page in (usual, soon, late):
        schedule.checked(page, "new")
    schedule.checked(busy, "failed", status=429, retry_at=BEGIN + 1_800)
    shown = terms(schedule.scheduler())
    assert {name.partition("/")[2]: (one.lane, one.due_at) for name, one in shown.items()} == {
        "usual": ("retry-after", BEGIN + 1_800),
        "soon": ("retry-after", BEGIN + 1_800),
        "late": ("deadline", BEGIN + DAY),
        "busy": ("waiting", BEGIN + 1_800),
    }


@pytest.mark.parametrize("again", [False, True], ids=["as it happens", "after a restart"])
def test_the_host_that_refused_is_paused_and_not_the_one_that_redirected_to_it(schedule: Schedule, again: bool) -> None:
    leading, beside, refusing = schedule.add("short/1", "short/2", "busy/x")
    scheduler = schedule.scheduler(every=60.0)
    for page in (beside, refusing):
        schedule.checked(page, "new")
    schedule.checked(leading, "failed", status=429, retry_at=BEGIN + 7_200, led_to="http://busy/1/")
    scheduler.learn_from([leading, beside, refusing])
    if again:
        scheduler = schedule.scheduler(every=60.0)
    schedule.clock.now += 3_600
    assert scheduler.pick() == [beside]
    shown = terms(scheduler)
    assert [(shown[name].lane, shown[name].due_at) for name in ("busy/x", "short/1")] == [
        ("retry-after", BEGIN + 7_200),
        ("waiting", BEGIN + 7_200),
    ]
    schedule.checked(leading, "new")
    scheduler.learn_from([leading])
    assert refusing in scheduler.pick(), "it answered since"


def test_the_schedule_distinguishes_pages_that_failed_from_others_of_the_paused_host(
    schedule: Schedule, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    schedule.clock.now = time.time()
    busy, beside = schedule.add("host/busy", "host/beside")
    schedule.checked(beside, "new")
    schedule.checked(busy, "failed", status=429, retry_at=schedule.clock.now + 7_200)
    assert main_with(["schedule", "--store", where]) == 0
    lines = {name: line for line in capsys.readouterr().out.splitlines() for name in ("busy", "beside") if name in line}
    assert re.search(r" 20.* its host asked us to wait \(Retry-After\)", lines["beside"])
    assert "failed 1 time, last" in lines["busy"]


def test_a_time_that_is_over_is_not_named_any_more(schedule: Schedule) -> None:
    busy, beside = schedule.add("host/busy", "host/beside")
    schedule.checked(beside, "new")
    schedule.checked(busy, "failed", status=503, retry_at=BEGIN + 7_200)
    scheduler = schedule.scheduler()
    assert terms(scheduler)["host/beside"].due_at == BEGIN + 7_200
    schedule.clock.now += 7_201
    found = terms(scheduler)["host/beside"]
    assert (found.lane, found.due_at) == ("value", schedule.clock.now), "it may be checked now"


def test_pauses_are_read_as_often_for_many_pages_as_for_few(schedule: Schedule) -> None:
    def looked_up() -> int:
        return calls_into_asked(schedule.scheduler())

    (busy,) = schedule.add("host/busy")
    schedule.checked(busy, "failed", status=503, retry_at=BEGIN + 7_200)
    few = looked_up()
    schedule.add(*(f"host/{name}" for name in range(30)))
    assert looked_up() == few


def calls_into_asked(scheduler: Scheduler) -> int:
    """How many functions there are called to show the schedule."""
    found = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal found
        found += event == "call" and frame.f_code.co_filename == host_table.__file__

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        scheduler.upcoming()
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize("again", [False, True], ids=["as it happens", "after a restart"])
def test_a_host_stays_paused_although_the_page_that_it_refused_was_removed(schedule: Schedule, again: bool) -> None:
    busy, beside = schedule.add("host/busy", "host/beside")
    schedule.checked(beside, "new")
    scheduler = schedule.scheduler(every=60.0)
    schedule.checked(busy, "failed", status=429, retry_at=BEGIN + 7_200)
    HostRecords(schedule.store).keep({}, {"host": BEGIN + 7_200}, BEGIN)
    scheduler.learn_from([busy])
    schedule.catalog.remove(["http://host/busy/"])
    if again:
        scheduler = schedule.scheduler(every=60.0)
    scheduler.refresh()
    schedule.clock.now += 3_600
    assert scheduler.pick() == []
    found = terms(scheduler)["host/beside"]
    assert (found.lane, found.due_at) == ("retry-after", BEGIN + 7_200)
    schedule.clock.now += 3_601
    assert scheduler.pick() == [beside]
