from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import delete, insert, select

from driftline.errors import StoreBusy
from driftline.schedule.page_table import DAY
from driftline.store.schema import rates, visits
from support.schedules import BEGIN, Schedule, terms, visited


def test_new_pages_are_picked_at_once_and_then_those_that_are_due(schedule: Schedule) -> None:
    pages = schedule.add("a", "b", "c")
    scheduler = schedule.scheduler(every=3 * 3_600.0)
    assert sorted(scheduler.pick()) == pages
    for page in pages:
        schedule.checked(page, "new")
    scheduler.learn_from(pages)
    schedule.clock.now += 30
    first = scheduler.pick()
    assert len(first) <= 1, "as many checks in an hour as would check all in three"
    picked = []
    for _ in range(12):
        schedule.clock.now += 900
        picked += scheduler.pick()
    assert 2 <= len(picked) <= 4


def test_what_changes_often_is_checked_more_often_and_that_is_remembered(schedule: Schedule) -> None:
    fast, slow = schedule.add("fast", "slow")
    for day in range(20):
        schedule.clock.now = BEGIN + day * DAY
        schedule.checked(fast, "changed" if day else "new")
        schedule.checked(slow, "unchanged" if day else "new")
    found = terms(schedule.scheduler())
    assert found["fast"].rate > 20 * found["slow"].rate
    with schedule.store.read() as connection:
        stored = {row.page_id: row for row in connection.execute(select(rates))}
    assert stored[fast].sequence == 20
    schedule.clock.now += DAY
    again = schedule.scheduler()
    assert terms(again)["fast"].rate == pytest.approx(found["fast"].rate)
    assert terms(again)["fast"].value > terms(again)["slow"].value
    schedule.checked(slow, "changed")
    again.learn_from([slow])
    assert terms(again)["slow"].rate > found["slow"].rate


@pytest.mark.parametrize("learned", [0, 1, 4])
def test_learning_in_pieces_is_learning_at_once(schedule: Schedule, learned: int) -> None:
    (page,) = schedule.add("page")
    scheduler = schedule.scheduler()
    lasts, soon = "Cache-Control: max-age=40000", "Cache-Control: no-cache"
    history = [
        (0, "new", lasts), (48, "changed", soon), (50, "changed", soon), (60, "failed", ""), (72, "unchanged", ""),
        (84, "changed", lasts),
    ]  # fmt: skip
    stored = []
    for hours, verdict, headers in history:
        with schedule.store.read() as connection:
            stored.append(connection.execute(select(rates)).mappings().all())
        at = BEGIN + hours * 3_600
        schedule.checked(page, verdict, at, status=500 if verdict == "failed" else 200, headers=headers)
        scheduler.learn_from([page])
    with schedule.store.write() as connection:
        connection.execute(delete(rates))
        for row in stored[learned]:
            connection.execute(insert(rates).values(**row))
    found, expected = terms(schedule.scheduler())["page"], terms(scheduler)["page"]
    assert found.rate == pytest.approx(expected.rate, rel=1e-3)
    assert found.lifetime == expected.lifetime == 40_000.0, "no change came before its time"


def test_a_start_wins_no_check_and_costs_none(schedule: Schedule) -> None:
    pages = schedule.add("a", "b", "c")
    scheduler = schedule.scheduler(every=7 * DAY)
    assert sorted(scheduler.pick()) == pages
    for page in pages:
        schedule.checked(page, "new")
    scheduler.learn_from(pages)
    begin = schedule.clock.now
    picked = []
    for _ in range(4 * 7):
        for _ in range(2):
            schedule.clock.now += 1
            picked += [(schedule.clock.now - begin, page) for page in scheduler.pick()]
        for _, page in picked:
            schedule.checked(page, "unchanged")
        if picked:
            break
        schedule.clock.now += DAY / 4
        scheduler = schedule.scheduler(every=7 * DAY)
    assert [round(at / DAY, 1) for at, _ in picked] == [2.5], "three pages a week, however often it is started"


def test_a_budget_is_shared_by_all_and_kept_to(schedule: Schedule) -> None:
    for page in schedule.add(*[f"h{number}" for number in range(50)]):
        schedule.checked(page, "new")
    schedule.add(*[f"new{number}" for number in range(50)])
    scheduler = schedule.scheduler(budget=10 / 60)
    scheduler.pick()
    picked = 0
    for _ in range(30):
        schedule.clock.now += 60
        picked += len(scheduler.pick())
    assert picked == 300


def test_no_host_is_checked_more_often_than_its_budget_allows(schedule: Schedule) -> None:
    pages = schedule.add("big/1", "big/2", "big/3", "big/4", "small")
    scheduler = schedule.scheduler(host_budget=1 / 60)
    assert len(scheduler.pick()) == 2
    schedule.clock.now += 61
    assert len(set(scheduler.pick()) & set(pages[:4])) == 1


def test_a_page_is_due_whether_or_not_its_host_may_be_contacted(schedule: Schedule) -> None:
    pages = schedule.add("big/1", "big/2", "big/3", "big/4", "small")
    scheduler = schedule.scheduler(host_budget=1 / 60)
    picked = scheduler.pick()
    assert scheduler.count_due(without=picked) == 3
    assert scheduler.count_waiting([*picked, 1_000]) == 2, "there is no such page"
    for page in pages:
        schedule.checked(page, "new")
    scheduler.learn_from(pages)
    assert scheduler.count_due(without=[]) == 0


def test_the_host_is_named_whose_pages_take_longest(schedule: Schedule) -> None:
    schedule.add("small", "big/1", "big/2", "big/3", "big/4", "other/1", "other/2")
    scheduler = schedule.scheduler(host_budget=1 / 60)
    picked = scheduler.pick()
    assert scheduler.slowest_host(100.0, picked) == ("big", 3, 60.0)
    assert scheduler.slowest_host(180.0, picked) is None
    assert schedule.scheduler().slowest_host(0.0, ()) is None, "it may be asked for all of them"


def test_a_page_with_an_interval_is_checked_when_it_is_due(schedule: Schedule) -> None:
    (often,) = schedule.add("often", every=300.0)
    (other,) = schedule.add("other")
    for page in (often, other):
        schedule.checked(page, "new")
    scheduler = schedule.scheduler(every=30 * DAY)
    scheduler.pick()
    schedule.clock.now += 299
    assert often not in scheduler.pick()
    schedule.clock.now += 2
    assert often in scheduler.pick()
    assert terms(scheduler)["often"].lane == "deadline"


def test_a_failing_page_backs_off_longer_and_longer_and_one_that_is_gone_for_a_week(schedule: Schedule) -> None:
    failing, gone = schedule.add("failing", "gone")
    for page in (failing, gone):
        schedule.checked(page, "new")
    for day in range(1, 5):
        schedule.clock.now = BEGIN + day * DAY
        schedule.checked(failing, "failed", status=503)
        schedule.checked(gone, "failed", status=404)
    scheduler = schedule.scheduler(every=60.0)
    found = terms(scheduler)
    assert (found["failing"].lane, found["gone"].lane) == ("waiting", "gone")
    schedule.clock.now += DAY
    assert scheduler.pick() == [failing]
    schedule.clock.now += 6 * DAY + 60
    assert gone in scheduler.pick()
    schedule.checked(gone, "unchanged")
    scheduler.refresh()
    assert terms(scheduler)["gone"].lane == "value", "it is back"


def test_only_a_page_that_was_missing_at_every_check_for_days_is_gone(schedule: Schedule) -> None:
    names = ("mixed", "brief", "few", "late", "missing")
    mixed, brief, few, late, missing = schedule.add(*names)
    for page in (mixed, brief, few, late, missing):
        schedule.checked(page, "new")
    for hour in (96, 97, 98, 99):
        schedule.checked(brief, "failed", BEGIN + hour * 3_600, status=404)
    for day in (1, 2, 3):
        schedule.checked(few, "failed", BEGIN + day * 2 * DAY, status=410)
    for day in range(1, 7):
        at = BEGIN + day * DAY
        schedule.checked(mixed, "failed", at, status=503 if day < 6 else 404)
        schedule.checked(late, "failed", at, status=503 if day < 3 else 404)
        schedule.checked(missing, "failed", at, status=404 if day % 2 else 410)
    schedule.clock.now = BEGIN + 6 * DAY
    lanes = {name: one.lane for name, one in terms(schedule.scheduler()).items()}
    assert lanes == {"mixed": "waiting", "brief": "value", "few": "waiting", "late": "gone", "missing": "gone"}


@pytest.mark.parametrize("last_online", [0, 1, 5])
def test_a_machine_without_a_network_loses_no_pages(schedule: Schedule, last_online: int) -> None:
    gone = last_online == 5
    dead, *others = schedule.add("dead", "b", "c", "d")
    for page in (dead, *others):
        schedule.checked(page, "new")
    for day in range(1, 6):
        schedule.clock.now = BEGIN + day * DAY
        schedule.checked(dead, "failed", status=0)
        for page in others:
            online = day <= last_online
            schedule.checked(page, "unchanged" if online else "failed", status=200 if online else 0)
    scheduler = schedule.scheduler()
    assert (terms(scheduler)["dead"].lane == "gone") is gone
    schedule.clock.now += DAY / 2
    for page in others:
        schedule.checked(page, "unchanged")
    scheduler.learn_from(others)
    scheduler.refresh()
    assert (terms(scheduler)["dead"].lane == "gone") is gone, "that they are back does not count for it"


def test_a_page_that_the_filter_dropped_comes_back_when_checks_find_it(schedule: Schedule) -> None:
    (back,) = schedule.add("back")
    visited(schedule, "back", 4, 10.0, 1)
    schedule.checked(back, "new")
    schedule.clock.now += 2 * DAY
    scheduler = schedule.scheduler(policy="intelligent", budget=1.0)
    assert scheduler.pick() == []
    for _ in range(2):
        schedule.checked(back, "unchanged")
    schedule.clock.now += 2 * DAY
    scheduler.refresh()
    assert scheduler.pick() == [back]


def test_two_programs_that_learn_from_the_same_checks_learn_what_one_does(schedule: Schedule) -> None:
    (page,) = schedule.add("page")
    one, other = schedule.scheduler(), schedule.scheduler()
    verdicts = ["new", "changed", "changed", "unchanged", "changed", "changed", "unchanged", "changed"]
    for number, verdict in enumerate(verdicts):
        schedule.clock.now = BEGIN + number * DAY
        schedule.checked(page, verdict)
        (one, other)[number % 2].learn_from([page])
    with schedule.store.write() as connection:
        connection.execute(delete(rates))
    alone = terms(schedule.scheduler())["page"].rate
    assert terms(other)["page"].rate == pytest.approx(alone, rel=1e-3)
    one.learn_from([page])
    assert terms(one)["page"].rate == pytest.approx(alone, rel=1e-3)


def test_a_host_that_was_caught_is_not_believed_again(schedule: Schedule) -> None:
    early, same = schedule.add("host/early", "host/same")
    for page in (early, same):
        schedule.checked(page, "new", headers="Cache-Control: max-age=36000")
    scheduler = schedule.scheduler()
    assert terms(scheduler)["host/same"].lifetime == 36_000
    schedule.clock.now += 600
    schedule.checked(early, "changed")
    scheduler.learn_from([early])
    for again in (scheduler, schedule.scheduler()):
        again.refresh()
        assert {one.lifetime for one in again.upcoming()} == {0.0}


def test_a_page_that_was_never_checked_is_shown_with_what_its_host_does(schedule: Schedule) -> None:
    pages = schedule.add(*[f"fast/{number}" for number in range(9)])
    schedule.add("fast/new", "other")
    for day in range(9):
        schedule.clock.now = BEGIN + day * DAY
        for page in pages:
            schedule.checked(page, "changed" if day else "new")
    found = terms(schedule.scheduler())
    assert found["fast/new"].rate > 1.5 * found["other"].rate


def test_the_first_check_of_pages_does_not_count_for_their_host(schedule: Schedule) -> None:
    pages = schedule.add(*[f"host/{number}" for number in range(9)])
    for page in pages[:3]:
        for day in range(9):
            schedule.checked(page, "changed" if day else "new", BEGIN + day * DAY)
    schedule.clock.now = BEGIN + 8 * DAY
    for page in pages[3:8]:
        schedule.checked(page, "new")
    learned_at_once = terms(schedule.scheduler())["host/8"].rate
    assert terms(schedule.scheduler())["host/8"].rate == pytest.approx(learned_at_once, rel=1e-3)


def test_the_schedule_is_in_the_order_in_which_pages_are_picked(schedule: Schedule) -> None:
    (soon,) = schedule.add("soon", every=7_200.0)
    (due,) = schedule.add("due", every=600.0)
    first, second, new = schedule.add("first", "second", "new")
    visited(schedule, "second", 9, 9.0, 9)
    for number, page in enumerate((soon, due, first, second)):
        schedule.checked(page, "new", BEGIN + number)
    schedule.clock.now += 3_600
    shown = {
        policy: [one.page_id for one in schedule.scheduler(policy=policy).upcoming()]
        for policy in ("uniform", "value", "intelligent", "fixed")
    }
    assert shown["uniform"] == [due, new, first, second, soon]
    assert shown["value"] == [due, new, second, first, soon]
    assert shown["intelligent"][:2] == [due, new]
    assert shown["fixed"] == [due, new, first, second, soon]
    schedule.clock.now += 2 * DAY
    later = [one.page_id for one in schedule.scheduler(policy="intelligent").upcoming()]
    assert later == [due, soon, new, second, first]


def test_pages_that_are_added_edited_and_removed_are_followed(schedule: Schedule) -> None:
    (page,) = schedule.add("page")
    scheduler = schedule.scheduler()
    assert scheduler.pick() == [page]
    (other,) = schedule.add("other")
    schedule.catalog.remove(["http://page/"])
    scheduler.refresh()
    assert scheduler.pick() == [other]
    scheduler.learn_from([page])


def test_the_lifetime_of_a_page_is_the_one_of_its_headers_up_to_a_day(schedule: Schedule) -> None:
    hour, year, none = schedule.add("hour", "year", "none")
    schedule.checked(hour, "new", headers="Cache-Control: public, max-age=3600\r\nAge: 600")
    schedule.checked(year, "new", headers="Cache-Control: max-age=31536000")
    schedule.checked(none, "new", headers="Cache-Control: no-store, max-age=3600")
    found = terms(schedule.scheduler())
    assert {name: one.lifetime for name, one in found.items()} == {"hour": 3_000.0, "year": DAY, "none": 0.0}


def test_the_papers_order_is_gone_through_and_what_it_drops_is_probed(schedule: Schedule) -> None:
    names = ("liked", "known", "unseen", "dead")
    pages = dict(zip(names, schedule.add(*names), strict=True))
    rows = [("liked", 9, 50.0, 9), ("known", 3, 10.0, 3), ("dead", 8, 9.0, 1)]
    with schedule.store.write() as connection:
        for name, frequency, weightage, ttl in rows:
            connection.execute(
                insert(visits).values(
                    url=f"http://{name}/", frequency=frequency, weightage=weightage, ttl=ttl, first_at=0, last_at=0
                )
            )
    for page in pages.values():
        schedule.checked(page, "new")
    scheduler = schedule.scheduler(policy="intelligent", budget=3 / DAY)
    scheduler.pick()
    order = []
    for _ in range(7):
        schedule.clock.now += DAY / 3
        for page in scheduler.pick():
            order.append(page)
            schedule.checked(page, "unchanged")
        scheduler.learn_from(order[-1:])
    assert order[:3] == [pages["liked"], pages["known"], pages["unseen"]]
    assert pages["dead"] not in order
    schedule.clock.now += 7 * DAY
    later = []
    for _ in range(10):
        later += scheduler.pick()
        schedule.clock.now += DAY / 3
    assert later.count(pages["dead"]) == 1, "a tenth of the checks"


def test_a_pick_that_cannot_be_claimed_takes_nothing_of_the_budget(schedule: Schedule) -> None:
    pages = schedule.add("a", "b", "c")
    scheduler = schedule.scheduler(budget=1.0, host_budget=1.0)
    schedule.clock.now += 2

    def refuse() -> None:
        raise StoreBusy("Another run is checking.")

    for _ in range(5):
        with pytest.raises(StoreBusy):
            scheduler.pick(claim=refuse)
    assert sorted(scheduler.pick()) == pages
    assert scheduler.pick(without=pages, claim=lambda: pytest.fail("there is nothing to claim")) == []


def test_a_pick_that_is_taken_back_costs_nothing_of_the_budget(schedule: Schedule) -> None:
    pages = schedule.add("a/1", "a/2", "b", "c")
    scheduler = schedule.scheduler(budget=1.0, host_budget=1.0)
    schedule.clock.now += 3
    picked = scheduler.pick()
    assert len(picked) == 3
    assert scheduler.pick(without=picked) == []
    scheduler.refund(picked[1:])
    again = scheduler.pick(without=picked[:1])
    assert (len(again), {*again, *picked} <= {*pages}) == (2, True)


def test_what_is_being_checked_or_more_than_can_be_takes_nothing_of_the_budget(schedule: Schedule) -> None:
    pages = schedule.add(*"abcdefgh")
    for page in pages:
        schedule.checked(page, "new")
    scheduler = schedule.scheduler(budget=1.0)
    scheduler.pick(0)
    schedule.clock.now += 5
    busy = scheduler.pick(2)
    assert len(busy) == 2
    rest = scheduler.pick(without=busy)
    assert len(rest) == 3
    assert not set(rest) & set(busy)
    assert scheduler.pick() == [], "five for five seconds"


def test_who_comes_every_hour_finds_the_pages_due_that_were_checked_some_seconds_after_the_last_time(
    schedule: Schedule,
) -> None:
    hourly, often, failing = schedule.add("hourly"), schedule.add("often", every=300), schedule.add("failing")
    for _ in range(4):
        assert set(hourly + often + failing) <= set(schedule.scheduler(policy="fixed", every=3_600, early=0.1).pick())
        for page, verdict in ((hourly, "unchanged"), (often, "unchanged"), (failing, "failed")):
            schedule.checked(page[0], verdict, at=schedule.clock.now + 20)
        schedule.clock.now += 60
        assert schedule.scheduler(policy="fixed", every=3_600, early=0.1).pick() == []
        schedule.clock.now += 3_540


def test_probes_have_their_share_of_what_can_be_taken(schedule: Schedule) -> None:
    kept, dropped = schedule.add(*(f"k{number}" for number in range(60))), schedule.add("d1", "d2", "d3")
    for page in kept + dropped:
        schedule.checked(page, "new")
    for number in range(60):
        visited(schedule, f"k{number}", frequency=10, weightage=9, ttl=10)
    for number in (1, 2, 3):
        visited(schedule, f"d{number}", frequency=10, weightage=9, ttl=0)
    schedule.clock.now += 30 * DAY
    scheduler = schedule.scheduler(policy="intelligent", budget=2.0)
    scheduler.pick(0)
    schedule.clock.now += 60
    picked = scheduler.pick(20)
    assert len(picked) == 20
    assert len(set(picked) & set(dropped)) == 2


def test_a_clock_that_was_wrong_once_makes_no_page_gone(schedule: Schedule) -> None:
    (page,) = schedule.add("page")
    schedule.checked(page, "failed", status=404, at=BEGIN + 365 * DAY)
    for _ in range(3):
        schedule.clock.now += 900
        schedule.checked(page, "failed", status=404)
    assert terms(schedule.scheduler())["page"].lane == "waiting"


def test_pages_that_only_ever_failed_are_not_called_new(schedule: Schedule) -> None:
    page, other = schedule.add("page", "other")
    schedule.checked(page, "failed", status=500)
    schedule.clock.now += 3_600
    found = terms(schedule.scheduler())
    assert (found["page"].lane, found["page"].failures, found["page"].days) == ("waiting", 1, None)
    assert found["page"].tried_at == schedule.clock.now - 3_600
    assert found["page"].due_at is not None
    assert found["page"].due_at < schedule.clock.now, "it is tried again now"
    assert (found["other"].lane, found["other"].failures, found["other"].tried_at) == ("new", 0, None)
    assert sorted(schedule.scheduler().pick()) == [page, other]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "12 checks an hour at set intervals, the others about 2 checks an hour"),
        (
            {"policy": "uniform", "every": 7_200.0},
            "12 checks an hour at set intervals, the others about once an hour, the longest unchecked first",
        ),
        ({"policy": "fixed"}, "each at its interval: 14 checks an hour"),
        ({"budget": 1.0}, "at most once a second; 12 checks an hour of that at set intervals"),
        ({"budget": 1 / 3_600}, "at most once an hour; once an hour of that at set intervals"),
        ({"budget": 1.0, "policy": "fixed"}, "at most once a second, each at its interval"),
    ],
)
def test_the_description_includes_how_often_pages_are_checked(
    schedule: Schedule, options: dict[str, Any], sentence: str
) -> None:
    schedule.add("often", every=300.0)
    schedule.add("usual", "other")
    assert schedule.scheduler(**options).describe() == f"3 pages, {sentence}"


def test_the_description_of_pages_that_all_have_intervals_names_no_other_rate(schedule: Schedule) -> None:
    schedule.add("often", every=300.0)
    assert schedule.scheduler().describe() == "1 page, 12 checks an hour at set intervals"


def test_the_rate_of_a_single_page_is_named_in_words(schedule: Schedule) -> None:
    schedule.add("usual")
    assert schedule.scheduler().describe() == "1 page, about once an hour"


def test_pages_with_intervals_earn_no_checks_for_the_others(schedule: Schedule) -> None:
    (usual,) = schedule.add("usual")
    asked = schedule.add(*(f"asked{number}" for number in range(9)), every=10 * DAY)
    for page in (usual, *asked):
        schedule.checked(page, "new")
    scheduler = schedule.scheduler()
    picked: list[int] = []
    for _ in range(24 * 6):
        schedule.clock.now += 600
        picked += scheduler.pick()
    assert 20 <= len(picked) <= 25, "about one an hour, as the usual interval says"
    assert set(picked) == {usual}
