"""What is learned of pages and hosts, and how it is kept."""

from __future__ import annotations

from itertools import cycle

import pytest
from sqlalchemy import func, select

from driftline.model.change import Importance
from driftline.model.outcome import Link, Verdict
from driftline.model.page import POLICIES
from driftline.model.visit import Visit
from driftline.schedule.backoff import gone
from driftline.schedule.page_table import DAY
from driftline.schedule.scheduler import Scheduler
from driftline.store import schedule_records
from driftline.store.engine import Store
from driftline.store.host_records import HostRecords
from driftline.store.ledger import Ledger
from driftline.store.schema import rates
from driftline.store.statements import Batches
from driftline.store.visit_records import Visits
from support.making import document, failed, outcome_of, unchanged
from support.schedules import BEGIN, Schedule, terms, visited

LASTS = "Cache-Control: max-age=36000"


def test_a_server_with_a_retry_after_is_not_contacted_until_then(schedule: Schedule) -> None:
    busy, often, failing = schedule.add("busy", "often", "failing")
    schedule.catalog.edit("http://often/", every=300.0)
    for page in (busy, often):
        schedule.checked(page, "failed", status=429, retry_at=BEGIN + 7_200)
    schedule.checked(failing, "failed", status=503)
    scheduler = schedule.scheduler(every=60.0)
    schedule.clock.now += 7_190
    assert scheduler.pick() == [failing]
    schedule.clock.now += 20
    assert {busy, often} <= set(scheduler.pick()), "an interval does not shorten a Retry-After"


def test_a_retry_after_of_a_year_is_cut_to_a_day(schedule: Schedule) -> None:
    (page,) = schedule.add("page")
    schedule.checked(page, "failed", status=503, retry_at=BEGIN + 365 * DAY)
    scheduler = schedule.scheduler()
    assert terms(scheduler)["page"].due_at == BEGIN + DAY
    schedule.clock.now += DAY
    assert scheduler.pick() == [page]


def test_minor_changes_do_not_make_a_page_one_that_changes(schedule: Schedule) -> None:
    names = {"important": Importance.IMPORTANT, "minor": Importance.MINOR, "same": None}
    pages = dict(zip(schedule.add(*names), names.values(), strict=True))
    for day in range(8):
        for page, importance in pages.items():
            verdict = "new" if not day else "changed" if importance else "unchanged"
            schedule.checked(page, verdict, BEGIN + day * DAY, importance=importance if day else None)
    rates_of = {name: one.rate for name, one in terms(schedule.scheduler()).items()}
    assert rates_of["minor"] == rates_of["same"] < rates_of["important"]


def test_a_good_check_ends_the_wait(schedule: Schedule) -> None:
    (page,) = schedule.add("page")
    schedule.checked(page, "failed", status=503, retry_at=BEGIN + 7_200)
    scheduler = schedule.scheduler(every=60.0)
    schedule.checked(page, "new", retry_at=BEGIN + 7_200)
    scheduler.learn_from([page])
    schedule.clock.now += 120
    assert scheduler.pick() == [page]


def test_a_retry_after_holds_for_all_pages_of_its_host(schedule: Schedule) -> None:
    busy, beside, elsewhere = schedule.add("host/busy", "host/beside", "elsewhere", every=300.0)
    (never_checked,) = schedule.add("host/new")
    for page in (busy, beside, elsewhere):
        schedule.checked(page, "new")
    schedule.clock.now += 400
    scheduler = schedule.scheduler()
    schedule.checked(busy, "failed", status=429, retry_at=BEGIN + 7_200)
    scheduler.learn_from([busy])
    restarted = schedule.scheduler()
    for one in (scheduler, restarted):
        assert one.pick() == [elsewhere]
        shown = terms(one)
        assert [(shown[name].lane, shown[name].due_at) for name in ("host/beside", "host/new")] == [
            ("retry-after", BEGIN + 7_200)
        ] * 2
        assert shown["host/busy"].lane == "waiting", "it failed itself"
    schedule.clock.now = BEGIN + 7_201
    for one in (scheduler, restarted):
        assert {busy, beside, never_checked} <= set(one.pick())


def test_a_host_is_paused_until_the_last_retry_after_of_its_pages(schedule: Schedule) -> None:
    first, second, third = schedule.add("host/1", "host/2", "host/3")
    schedule.checked(first, "failed", status=503, retry_at=BEGIN + 3_600)
    schedule.checked(second, "failed", status=503, retry_at=BEGIN + 7_200)
    scheduler = schedule.scheduler(every=60.0)
    schedule.clock.now += 60
    schedule.checked(second, "new")
    scheduler.learn_from([second])
    assert scheduler.pick() == []
    schedule.checked(first, "new")
    scheduler.learn_from([first])
    assert third in scheduler.pick(), "both were asked for since, and are there"


def test_a_page_with_an_interval_backs_off_and_is_back_at_its_interval_after_a_good_check(schedule: Schedule) -> None:
    (page,) = schedule.add("page", every=300.0)
    scheduler = schedule.scheduler()
    waits = []
    for _ in range(6):
        schedule.checked(page, "failed", status=429)
        scheduler.learn_from([page])
        due = terms(scheduler)["page"].due_at
        waits.append(due - schedule.clock.now)
        schedule.clock.now = due - 1
        assert scheduler.pick() == []
        schedule.clock.now = due
        assert scheduler.pick() == [page]
    assert waits == [300, 600, 1_200, 2_400, 3_600, 3_600]
    schedule.checked(page, "unchanged")
    scheduler.learn_from([page])
    schedule.clock.now += 299
    assert scheduler.pick() == []
    schedule.clock.now += 1
    assert scheduler.pick() == [page]


def test_a_host_that_was_caught_is_not_believed_after_a_restart_either(schedule: Schedule) -> None:
    early, other = schedule.add("host/early", "other")
    for page in (early, other):
        schedule.checked(page, "new", headers=LASTS)
    scheduler = schedule.scheduler()
    schedule.clock.now += 600
    schedule.checked(early, "changed", headers=LASTS)
    scheduler.learn_from([early])
    schedule.clock.now += DAY
    (late,) = schedule.add("host/late")
    for page in (early, late, other):
        schedule.checked(page, "changed", headers=LASTS)
    assert {name: one.lifetime for name, one in terms(schedule.scheduler()).items()} == {
        "host/early": 0.0, "host/late": 0.0, "other": 36_000.0,
    }  # fmt: skip
    schedule.clock.now += 200 * DAY
    schedule.checked(late, "changed", headers=LASTS)
    assert terms(schedule.scheduler())["host/late"].lifetime == 36_000.0, "it has had its time"


def test_a_clock_that_was_set_back_is_no_reason_to_distrust_a_host(schedule: Schedule) -> None:
    silent, lasting = schedule.add("silent", "lasting")
    schedule.checked(silent, "new")
    schedule.checked(lasting, "new", headers=LASTS)
    scheduler = schedule.scheduler()
    schedule.clock.now -= 7_200
    for page in (silent, lasting):
        schedule.checked(page, "changed", headers=LASTS)
    scheduler.learn_from([silent, lasting])
    for one in (scheduler, schedule.scheduler()):
        assert {name: found.lifetime for name, found in terms(one).items()} == {"silent": 36_000.0, "lasting": 36_000.0}


def test_the_lifetime_of_a_page_is_the_one_of_its_last_headers(schedule: Schedule) -> None:
    names = ("same", "silent", "proved", "failing")
    pages = schedule.add(*names)
    for page in pages:
        schedule.checked(page, "new", headers=LASTS)
    scheduler = schedule.scheduler()
    schedule.clock.now += 40_000
    answers = [(200, "Cache-Control: max-age=60\r\n"), (200, ""), (304, ""), (503, "Cache-Control: max-age=60\r\n")]
    for page, (status, headers) in zip(pages, answers, strict=True):
        verdict = Verdict.FAILED if status == 503 else Verdict.UNCHANGED
        schedule.checked(page, verdict, status=status)
        answer = document(Link(page, "http://x/", 2, None), status=status, headers=headers)
        scheduler.record_lifetimes([failed(answer) if status == 503 else unchanged(answer)])
    scheduler.learn_from(pages)
    expected = {"same": 60.0, "silent": 0.0, "proved": 36_000.0, "failing": 36_000.0}
    for one in (scheduler, schedule.scheduler()):
        assert {name: found.lifetime for name, found in terms(one).items()} == expected


def test_a_lifetime_is_kept_although_its_check_was_learned_from_before(schedule: Schedule) -> None:
    (page,) = schedule.add("page")
    schedule.checked(page, "new", headers=LASTS)
    scheduler = schedule.scheduler()
    schedule.clock.now += 40_000
    schedule.checked(page, "unchanged")
    scheduler.refresh()
    answer = document(Link(page, "http://x/", 2, None), headers="Cache-Control: max-age=60\r\n")
    scheduler.record_lifetimes([unchanged(answer)])
    scheduler.learn_from([page])
    for one in (scheduler, schedule.scheduler()):
        assert terms(one)["page"].lifetime == 60.0


def test_a_page_that_visits_never_found_comes_back_when_its_last_checks_did(schedule: Schedule) -> None:
    page, other = schedule.add("page", "other")
    visited(schedule, "page", 100, 10.0, 0)
    visited(schedule, "other", 50, 10.0, 50)
    for day in range(20):
        schedule.checked(page, "failed", BEGIN + day * DAY, status=503)
    for day in range(20, 23):
        schedule.clock.now = BEGIN + day * DAY
        assert terms(schedule.scheduler(policy="intelligent"))["page"].lane != "rank"
        schedule.checked(page, "unchanged" if day > 20 else "new")
    schedule.checked(other, "new")
    schedule.clock.now += 2 * DAY
    found = terms(schedule.scheduler(policy="intelligent"))
    assert [(name, one.lane) for name, one in found.items()] == [("page", "rank"), ("other", "rank")]
    assert found["page"].weight > found["other"].weight, "its visits count, now that it is there"
    schedule.checked(page, "failed", status=503)
    schedule.clock.now += DAY
    assert terms(schedule.scheduler(policy="intelligent"))["page"].lane == "probe"


def test_each_policy_gives_the_reason_of_its_checks(schedule: Schedule) -> None:
    usual, asked = schedule.add("usual", "asked")
    schedule.catalog.edit("http://asked/", every=300.0)
    for page in (usual, asked):
        schedule.checked(page, "new")
    schedule.clock.now += 2 * DAY
    lanes = {policy: terms(schedule.scheduler(policy=policy)) for policy in POLICIES}
    assert {policy: found["usual"].lane for policy, found in lanes.items()} == {
        "value": "value", "uniform": "age", "intelligent": "rank", "fixed": "deadline",
    }  # fmt: skip
    assert {found["asked"].lane for found in lanes.values()} == {"deadline"}


def test_nothing_is_read_again_before_the_watch_list_changes(schedule: Schedule) -> None:
    schedule.add("page")
    scheduler = schedule.scheduler()
    stamp = schedule.store.stamp()
    scheduler.refresh()
    assert schedule.store.stamp() == stamp
    other = Store.open(schedule.store.engine.url.render_as_string(hide_password=False).removeprefix("sqlite:///"))
    Schedule(other).add("other")
    other.close()
    assert schedule.store.stamp() != stamp
    scheduler.refresh()
    assert len(scheduler) == 2


def test_every_change_of_the_watch_list_and_every_run_has_another_stamp(schedule: Schedule) -> None:
    catalog, visits, ledger = schedule.catalog, Visits(schedule.store), Ledger(schedule.store, schedule.clock)
    visit = Visit(url="http://page/", at=BEGIN, seconds=1.0, available=True, key=1)
    stamps = [schedule.store.stamp()]
    for change in (
        lambda: catalog.add(["http://page/"]),
        lambda: catalog.edit("http://page/", every=300.0),
        lambda: visits.record("http://page/", at=BEGIN, seconds=1.0, available=True),
        lambda: visits.record_once([visit]),
        lambda: ledger.begin(None),
        lambda: ledger.finish(1),
        lambda: catalog.remove(["http://page/"]),
    ):
        change()
        stamps.append(schedule.store.stamp())
    assert len(set(stamps)) == len(stamps)


def test_what_a_run_records_does_not_have_the_watch_list_read_again(schedule: Schedule) -> None:
    (page,) = schedule.add("page")
    ledger = Ledger(schedule.store, schedule.clock)
    run, _ = ledger.begin(None)
    scheduler = schedule.scheduler()
    stamp, edition = schedule.store.stamp(), scheduler.edition
    (link,) = ledger.remaining(run, None)
    ledger.record(run, [outcome_of(document(link, at=BEGIN))])
    HostRecords(schedule.store).keep({}, {"elsewhere": BEGIN + DAY}, BEGIN)
    assert schedule.store.stamp() == stamp
    scheduler.learn_from([page])
    assert scheduler.edition != edition, "there is a version to catch up with"


def test_a_new_retry_after_is_seen_without_reading_the_watch_list(schedule: Schedule) -> None:
    schedule.add("page")
    scheduler = schedule.scheduler()
    HostRecords(schedule.store).keep({}, {"page": BEGIN + 3_600}, BEGIN)
    scheduler.refresh()
    assert scheduler.pick() == []


def test_pages_that_are_gone_are_found_without_a_scheduler(schedule: Schedule) -> None:
    gone_page, failing, good = schedule.add("gone", "failing", "good")
    for day in range(5):
        at = BEGIN + day * DAY
        schedule.checked(gone_page, "failed", at, status=410)
        schedule.checked(failing, "failed", at, status=500)
        schedule.checked(good, "unchanged", at)
    assert gone(schedule.store, [gone_page, failing, good], BEGIN + 5 * DAY) == {gone_page}


def test_a_store_that_can_only_be_read_is_learned_from_and_left_as_it_is(schedule: Schedule) -> None:
    (page,) = schedule.add("page")
    for day in range(9):
        schedule.checked(page, "changed" if day else "new", BEGIN + day * DAY, headers=LASTS)
    made = schedule.store
    scheduler = Scheduler(Store(made.engine, made.where, made.path, read_only=True), clock=schedule.clock)
    scheduler.refresh()
    assert scheduler.upcoming()[0].rate > 0.5
    assert scheduler.upcoming()[0].lifetime == 36_000.0
    with made.read() as connection:
        assert connection.scalar(select(func.count()).select_from(rates)) == 0


@pytest.mark.parametrize("read_only", [False, True])
def test_a_long_history_is_learned_in_parts_that_may_end_in_the_middle_of_a_page(
    schedule: Schedule, batches: Batches, read_only: bool
) -> None:
    many, few, one = schedule.add("many", "few", "one")
    for page in (many, few, one):
        schedule.checked(page, "new", headers=LASTS)
    schedule.scheduler()
    for page, count in ((many, 12), (few, 3)):
        for day, verdict in zip(range(1, count + 1), cycle(["changed", "failed", "unchanged"]), strict=False):
            schedule.checked(page, verdict, BEGIN + day * DAY, headers=LASTS if verdict == "changed" else "")
    schedule.clock.now += 12 * DAY
    made = schedule.store
    reader = Store(made.engine, made.where, made.path, read_only=True)

    def learned(store: Store) -> dict[str, tuple[float, float | None, float]]:
        scheduler = Scheduler(store, clock=schedule.clock)
        scheduler.refresh()
        return {name: (found.rate, found.days, found.lifetime) for name, found in terms(scheduler).items()}

    at_once = learned(reader)
    batches.checks = 4
    parts = schedule_records.read_unlearned_checks(made, [many, few, one])
    assert [len(part["page_id"]) for part in parts] == [4, 4, 4, 4]
    in_parts = learned(reader if read_only else made)
    for name, expected in at_once.items():
        assert in_parts[name] == pytest.approx(expected, rel=0.01)
    with made.read() as connection:
        kept = connection.execute(select(rates.c.sequence, rates.c.failed).order_by(rates.c.page_id)).all()
    assert kept == ([(1, 0)] * 3 if read_only else [(13, 4), (4, 1), (1, 0)])
