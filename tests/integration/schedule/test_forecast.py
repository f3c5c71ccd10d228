"""When the schedule expects checks: what really comes first is shown first."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from driftline.cli.main import main_with
from driftline.schedule.page_table import DAY
from support.schedules import BEGIN, Schedule, terms


def shown(schedule: Schedule, **options: Any) -> list[tuple[str, float | None]]:
    """The pages in the order of the schedule, with the seconds until each is checked."""
    found = schedule.scheduler(**options).upcoming()
    names = [one.url.removeprefix("http://").strip("/") for one in found]
    times = [None if one.due_at is None else round(one.due_at - schedule.clock.now) for one in found]
    return [*zip(names, times, strict=True)]


def test_a_page_with_an_interval_comes_before_those_that_the_budget_holds_for_longer(schedule: Schedule) -> None:
    usual = schedule.add("a", "b", "c")
    (asked,) = schedule.add("asked", every=1_500.0)
    for page in (*usual, asked):
        schedule.checked(page, "new")
    found = shown(schedule)
    assert [name for name, _ in found] == ["a", "asked", "b", "c"]
    assert [seconds for _, seconds in found] == [1_200, 1_500, 2_400, 3_600], "three pages an hour"


@pytest.mark.parametrize("policy", ["value", "uniform", "intelligent"])
def test_pages_are_picked_in_the_order_and_at_the_times_that_were_shown(schedule: Schedule, policy: str) -> None:
    usual = schedule.add("a", "b", "c", "d")
    timed = [*schedule.add("often", every=900.0), *schedule.add("seldom", every=5_000.0)]
    for number, page in enumerate((*usual, *timed)):
        schedule.checked(page, "new", BEGIN - 2 * DAY * (page in usual) - number)
    scheduler = schedule.scheduler(policy=policy, every=4_000.0)
    expected = [(one.page_id, one.due_at) for one in scheduler.upcoming()]
    found: dict[int, float] = {}
    while len(found) < 6:
        for page in scheduler.pick():
            found.setdefault(page, schedule.clock.now)
            schedule.checked(page, "unchanged")
            scheduler.learn_from([page])
        schedule.clock.now += 10
    assert [page for page, _ in expected] == [*found]
    for page, at in expected:
        assert at is not None
        assert 0 <= found[page] - max(at, BEGIN) <= 10


def test_a_budget_that_all_share_is_spent_on_intervals_first(schedule: Schedule) -> None:
    (asked,) = schedule.add("asked", every=1_000.0)
    usual = schedule.add("a", "b")
    for page in (asked, *usual):
        schedule.checked(page, "new")
    (new,) = schedule.add("new")
    found = shown(schedule, budget=2 / 1_000)
    assert found == [("new", 500), ("asked", 1_000), ("a", 1_500), ("b", 2_500)]
    assert new in [one.page_id for one in schedule.scheduler().upcoming(1)], "it comes on top where no budget is set"
    starved = [("asked", 1_000), ("new", None), ("a", None), ("b", None)]
    assert shown(schedule, budget=1 / 2_000) == starved, "nothing is left of it"


def test_pages_of_a_host_are_due_one_after_the_other(schedule: Schedule) -> None:
    schedule.add("host/1", "host/2", "host/3", "other/1")
    found = shown(schedule, host_budget=1 / 60)
    assert found == [("host/1", 0), ("other/1", 0), ("host/2", 60), ("host/3", 120)]


def test_to_look_at_the_schedule_changes_nothing(schedule: Schedule) -> None:
    for page in schedule.add("a", "b"):
        schedule.checked(page, "new")
    looked_at, other = schedule.scheduler(), schedule.scheduler()
    for _ in range(5):
        schedule.clock.now += 900
        terms(looked_at)
        assert looked_at.pick() == other.pick()


def test_the_command_shows_about_when_a_page_is_checked(
    schedule: Schedule, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    schedule.clock.now = time.time()
    for page in schedule.add("a", "b"):
        schedule.checked(page, "new")
    schedule.add("new")
    assert main_with(["schedule", "--store", where]) == 0
    lines = capsys.readouterr().out.splitlines()[-3:]
    assert re.search(r"now +never checked", lines[0])
    assert all(re.search(r"about 20.* about every \d+ days; checked \d+ s ago", line) for line in lines[1:])
    schedule.catalog.edit("http://a/", every=60.0)
    assert main_with(["schedule", "--store", where, "--budget", "1/h"]) == 0
    assert "when other pages leave budget" in capsys.readouterr().out
