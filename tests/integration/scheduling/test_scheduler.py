from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update

from driftline.pages.catalog import Catalog
from driftline.scheduling.index import DAY
from driftline.scheduling.scheduler import Scheduler
from driftline.versions.schema import checks, rates, states, versions, visits
from driftline.versions.store import Store

BEGIN = 1_000 * DAY


class Clock:
    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> float:
        return self.now


class World:
    """A store whose checks a test writes down as if they had been made."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.clock = Clock()
        self.catalog = Catalog(store, self.clock)
        self._sequence: dict[int, int] = {}

    def add(self, *names: str, every: float | None = None) -> list[int]:
        urls = [f"http://{name}/" for name in names]
        self.catalog.add(urls, every=every)
        return [page.id for page in self.catalog.find_all(urls)]

    def scheduler(self, **options: Any) -> Scheduler:
        made = Scheduler(self.store, clock=self.clock, ticks=self.clock, **options)
        made.refresh()
        return made

    def checked(self, page: int, verdict: str, at: float | None = None, status: int = 200, headers: str = "") -> None:
        """Record a check; with headers, one that made a version."""
        at = self.clock.now if at is None else at
        sequence = self._sequence[page] = self._sequence.get(page, 0) + 1
        kind = ("dns" if not status else "status") if verdict == "failed" else None
        failures = states.c.failures + 1 if kind else 0
        with self.store.write() as connection:
            connection.execute(
                insert(checks).values(
                    page_id=page,
                    sequence=sequence,
                    run_id=1,
                    at=at,
                    verdict=verdict,
                    status=status,
                    seconds=0.1,
                    bytes=1,
                    failure_kind=kind,
                    failure="It failed." if kind else None,
                )
            )
            values = {
                "sequence": sequence,
                "checked_at": at,
                "verdict": verdict,
                "failures": failures,
                "failure_kind": kind,
            }
            connection.execute(update(states).where(states.c.page_id == page).values(**values))
            if headers:
                block = f"HTTP/1.1 200 OK\r\n{headers}\r\n\r\n".encode()
                connection.execute(
                    insert(versions).values(
                        page_id=page,
                        number=sequence,
                        sequence=sequence,
                        at=at,
                        body=b"",
                        text=b"",
                        size=0,
                        title="",
                        content_type="",
                        charset="",
                        final_url="",
                        headers=block,
                    )
                )


@pytest.fixture
def world(tmp_path: Path) -> Any:
    store = Store.open(str(tmp_path / "pages.db"))
    yield World(store)
    store.close()


def terms(scheduler: Scheduler) -> dict[str, Any]:
    return {one.url.removeprefix("http://").strip("/"): one for one in scheduler.terms()}


def test_new_pages_are_picked_at_once_and_then_those_whose_turn_it_is(world: World) -> None:
    pages = world.add("a", "b", "c")
    scheduler = world.scheduler(every=3 * 3_600.0)
    assert sorted(scheduler.pick()) == pages
    for page in pages:
        world.checked(page, "new")
    scheduler.follow(pages)
    world.clock.now += 30
    first = scheduler.pick()
    assert len(first) <= 1, "as many checks in an hour as would check all in three"
    picked = []
    for _ in range(12):
        world.clock.now += 900
        picked += scheduler.pick()
    assert 2 <= len(picked) <= 4


def test_what_changes_often_is_checked_more_often_and_that_is_remembered(world: World) -> None:
    fast, slow = world.add("fast", "slow")
    for day in range(20):
        world.clock.now = BEGIN + day * DAY
        world.checked(fast, "changed" if day else "new")
        world.checked(slow, "unchanged" if day else "new")
    found = terms(world.scheduler())
    assert found["fast"].rate > 20 * found["slow"].rate
    with world.store.read() as connection:
        stored = {row.page_id: row for row in connection.execute(select(rates))}
    assert stored[fast].sequence == 20
    world.clock.now += DAY
    again = world.scheduler()
    assert terms(again)["fast"].rate == pytest.approx(found["fast"].rate)
    assert terms(again)["fast"].value > terms(again)["slow"].value
    world.checked(slow, "changed")
    again.follow([slow])
    assert terms(again)["slow"].rate > found["slow"].rate


def test_learning_in_pieces_is_learning_at_once(world: World) -> None:
    (page,) = world.add("page")
    scheduler = world.scheduler()
    for number, verdict in enumerate(["new", "changed", "unchanged", "failed", "unchanged", "changed"]):
        world.checked(page, verdict, BEGIN + number * DAY / 2, status=500 if verdict == "failed" else 200)
        scheduler.follow([page])
    with world.store.write() as connection:
        connection.execute(delete(rates))
    assert terms(world.scheduler())["page"].rate == pytest.approx(terms(scheduler)["page"].rate, rel=1e-3)


def test_a_budget_is_shared_by_all_and_kept_to(world: World) -> None:
    for page in world.add(*[f"h{number}" for number in range(50)]):
        world.checked(page, "new")
    world.add(*[f"new{number}" for number in range(50)])
    scheduler = world.scheduler(budget=10 / 60)
    scheduler.pick()
    picked = 0
    for _ in range(30):
        world.clock.now += 60
        picked += len(scheduler.pick())
    assert picked == 300


def test_no_host_is_asked_more_often_than_its_budget_allows(world: World) -> None:
    pages = world.add("big/1", "big/2", "big/3", "big/4", "small")
    scheduler = world.scheduler(host_budget=1 / 60)
    assert len(scheduler.pick()) == 2
    world.clock.now += 61
    assert len(set(scheduler.pick()) & set(pages[:4])) == 1


def test_a_page_with_an_interval_is_checked_when_it_is_due(world: World) -> None:
    (often,) = world.add("often", every=300.0)
    (other,) = world.add("other")
    for page in (often, other):
        world.checked(page, "new")
    scheduler = world.scheduler(every=30 * DAY)
    scheduler.pick()
    world.clock.now += 299
    assert often not in scheduler.pick()
    world.clock.now += 2
    assert often in scheduler.pick()
    assert terms(scheduler)["often"].lane == "deadline"


def test_a_failing_page_is_left_alone_longer_and_longer_and_one_that_is_gone_for_a_week(world: World) -> None:
    failing, gone = world.add("failing", "gone")
    for page in (failing, gone):
        world.checked(page, "new")
    for day in range(1, 5):
        world.clock.now = BEGIN + day * DAY
        world.checked(failing, "failed", status=503)
        world.checked(gone, "failed", status=404)
    scheduler = world.scheduler(every=60.0)
    found = terms(scheduler)
    assert (found["failing"].lane, found["gone"].lane) == ("waiting", "gone")
    world.clock.now += DAY
    assert scheduler.pick() == [failing]
    world.clock.now += 6 * DAY + 60
    assert gone in scheduler.pick()
    world.checked(gone, "unchanged")
    scheduler.refresh()
    assert terms(scheduler)["gone"].lane == "value", "it is back"


def test_a_clock_that_is_set_back_keeps_nobody_waiting(world: World) -> None:
    (page,) = world.add("page", every=600.0)
    world.checked(page, "new", BEGIN + 400 * DAY)
    scheduler = world.scheduler()
    scheduler.pick()
    world.clock.now += 601
    assert scheduler.pick() == [page]


@pytest.mark.parametrize("again", [False, True], ids=["at rest", "read anew"])
def test_a_future_time_counts_from_when_it_was_first_seen(world: World, again: bool) -> None:
    (page,) = world.add("page", every=600.0)
    (failing,) = world.add("failing")
    world.checked(page, "new", BEGIN + 400 * DAY)
    world.checked(failing, "failed", BEGIN + 400 * DAY, status=503)
    scheduler = world.scheduler(every=60.0)
    picked: list[int] = []
    for _ in range(10):
        if again:
            scheduler.refresh()
        picked += scheduler.pick()
        world.clock.now += 100
    assert set(picked) == {page, failing}


def test_a_clock_that_is_set_back_while_running_keeps_nobody_waiting(world: World) -> None:
    (page,) = world.add("page", every=600.0)
    (failing,) = world.add("failing")
    world.clock.now += 400 * DAY
    world.checked(page, "new")
    world.checked(failing, "failed", status=503)
    scheduler = world.scheduler(every=60.0)
    scheduler.pick()
    world.clock.now = BEGIN
    picked: list[int] = []
    for _ in range(10):
        picked += scheduler.pick()
        world.clock.now += 100
    assert set(picked) == {page, failing}


def test_only_a_page_that_was_missing_at_every_check_for_days_is_gone(world: World) -> None:
    names = ("mixed", "brief", "few", "late", "missing")
    mixed, brief, few, late, missing = world.add(*names)
    for page in (mixed, brief, few, late, missing):
        world.checked(page, "new")
    for hour in (96, 97, 98, 99):
        world.checked(brief, "failed", BEGIN + hour * 3_600, status=404)
    for day in (1, 2, 3):
        world.checked(few, "failed", BEGIN + day * 2 * DAY, status=410)
    for day in range(1, 7):
        at = BEGIN + day * DAY
        world.checked(mixed, "failed", at, status=503 if day < 6 else 404)
        world.checked(late, "failed", at, status=503 if day < 3 else 404)
        world.checked(missing, "failed", at, status=404 if day % 2 else 410)
    world.clock.now = BEGIN + 6 * DAY
    lanes = {name: one.lane for name, one in terms(world.scheduler()).items()}
    assert lanes == {"mixed": "waiting", "brief": "value", "few": "waiting", "late": "gone", "missing": "gone"}


@pytest.mark.parametrize("last_online", [0, 1, 5])
def test_a_machine_without_a_network_loses_no_pages(world: World, last_online: int) -> None:
    gone = last_online == 5
    dead, *others = world.add("dead", "b", "c", "d")
    for page in (dead, *others):
        world.checked(page, "new")
    for day in range(1, 6):
        world.clock.now = BEGIN + day * DAY
        world.checked(dead, "failed", status=0)
        for page in others:
            online = day <= last_online
            world.checked(page, "unchanged" if online else "failed", status=200 if online else 0)
    scheduler = world.scheduler()
    assert (terms(scheduler)["dead"].lane == "gone") is gone
    world.clock.now += DAY / 2
    for page in others:
        world.checked(page, "unchanged")
    scheduler.follow(others)
    scheduler.refresh()
    assert (terms(scheduler)["dead"].lane == "gone") is gone, "that they are back says nothing about it"


def visited(world: World, name: str, frequency: int, weightage: float, ttl: int) -> None:
    url = f"http://{name}/"
    row = {"url": url, "frequency": frequency, "weightage": weightage, "ttl": ttl, "first_at": 0, "last_at": 0}
    with world.store.write() as connection:
        connection.execute(insert(visits).values(**row))


def test_a_page_that_the_filter_dropped_comes_back_when_checks_find_it(world: World) -> None:
    (back,) = world.add("back")
    visited(world, "back", 4, 10.0, 1)
    world.checked(back, "new")
    world.clock.now += 2 * DAY
    scheduler = world.scheduler(policy="intelligent", budget=1.0)
    assert scheduler.pick() == []
    for _ in range(2):
        world.checked(back, "unchanged")
    world.clock.now += 2 * DAY
    scheduler.refresh()
    assert scheduler.pick() == [back]


def test_two_programs_that_learn_from_the_same_checks_learn_what_one_does(world: World) -> None:
    (page,) = world.add("page")
    one, other = world.scheduler(), world.scheduler()
    verdicts = ["new", "changed", "changed", "unchanged", "changed", "changed", "unchanged", "changed"]
    for number, verdict in enumerate(verdicts):
        world.clock.now = BEGIN + number * DAY
        world.checked(page, verdict)
        (one, other)[number % 2].follow([page])
    with world.store.write() as connection:
        connection.execute(delete(rates))
    alone = terms(world.scheduler())["page"].rate
    assert terms(other)["page"].rate == pytest.approx(alone, rel=1e-3)
    one.follow([page])
    assert terms(one)["page"].rate == pytest.approx(alone, rel=1e-3)


def test_a_host_that_was_caught_is_not_believed_again(world: World) -> None:
    early, same = world.add("host/early", "host/same")
    for page in (early, same):
        world.checked(page, "new", headers="Cache-Control: max-age=36000")
    scheduler = world.scheduler()
    assert terms(scheduler)["host/same"].lifetime == 36_000
    world.clock.now += 600
    world.checked(early, "changed")
    scheduler.follow([early])
    for again in (scheduler, world.scheduler()):
        again.refresh()
        assert {one.lifetime for one in again.terms()} == {0.0}


def test_a_page_that_was_never_checked_is_shown_with_what_its_host_does(world: World) -> None:
    pages = world.add(*[f"fast/{number}" for number in range(9)])
    world.add("fast/new", "other")
    for day in range(9):
        world.clock.now = BEGIN + day * DAY
        for page in pages:
            world.checked(page, "changed" if day else "new")
    found = terms(world.scheduler())
    assert found["fast/new"].rate > 1.5 * found["other"].rate


def test_the_first_check_of_pages_says_nothing_about_their_host(world: World) -> None:
    pages = world.add(*[f"host/{number}" for number in range(9)])
    for page in pages[:3]:
        for day in range(9):
            world.checked(page, "changed" if day else "new", BEGIN + day * DAY)
    world.clock.now = BEGIN + 8 * DAY
    for page in pages[3:8]:
        world.checked(page, "new")
    learned_at_once = terms(world.scheduler())["host/8"].rate
    assert terms(world.scheduler())["host/8"].rate == pytest.approx(learned_at_once, rel=1e-3)


def test_the_schedule_is_in_the_order_in_which_pages_are_picked(world: World) -> None:
    (soon,) = world.add("soon", every=7_200.0)
    (due,) = world.add("due", every=600.0)
    first, second, new = world.add("first", "second", "new")
    visited(world, "second", 9, 9.0, 9)
    for number, page in enumerate((soon, due, first, second)):
        world.checked(page, "new", BEGIN + number)
    world.clock.now += 3_600
    shown = {
        policy: [one.page_id for one in world.scheduler(policy=policy).terms()]
        for policy in ("uniform", "value", "intelligent", "fixed")
    }
    assert shown["uniform"] == [due, new, first, second, soon]
    assert shown["value"] == [due, new, second, first, soon]
    assert shown["intelligent"][:2] == [due, new]
    assert shown["fixed"] == [due, new, first, second, soon]
    world.clock.now += 2 * DAY
    later = [one.page_id for one in world.scheduler(policy="intelligent").terms()]
    assert later == [due, soon, new, second, first]


def test_pages_that_are_added_edited_and_removed_are_followed(world: World) -> None:
    (page,) = world.add("page")
    scheduler = world.scheduler()
    assert scheduler.pick() == [page]
    (other,) = world.add("other")
    world.catalog.remove(["http://page/"])
    scheduler.refresh()
    assert scheduler.pick() == [other]
    scheduler.follow([page])


def test_how_long_a_page_lasts_is_what_its_server_says_up_to_a_day(world: World) -> None:
    hour, year, none = world.add("hour", "year", "none")
    world.checked(hour, "new", headers="Cache-Control: public, max-age=3600\r\nAge: 600")
    world.checked(year, "new", headers="Cache-Control: max-age=31536000")
    world.checked(none, "new", headers="Cache-Control: no-store, max-age=3600")
    found = terms(world.scheduler())
    assert {name: one.lifetime for name, one in found.items()} == {"hour": 3_000.0, "year": DAY, "none": 0.0}


def test_the_papers_order_is_gone_through_and_what_it_drops_is_probed(world: World) -> None:
    names = ("liked", "known", "unseen", "dead")
    pages = dict(zip(names, world.add(*names), strict=True))
    rows = [("liked", 9, 50.0, 9), ("known", 3, 10.0, 3), ("dead", 8, 9.0, 1)]
    with world.store.write() as connection:
        for name, frequency, weightage, ttl in rows:
            connection.execute(
                insert(visits).values(
                    url=f"http://{name}/", frequency=frequency, weightage=weightage, ttl=ttl, first_at=0, last_at=0
                )
            )
    for page in pages.values():
        world.checked(page, "new")
    scheduler = world.scheduler(policy="intelligent", budget=3 / DAY)
    scheduler.pick()
    order = []
    for _ in range(7):
        world.clock.now += DAY / 3
        for page in scheduler.pick():
            order.append(page)
            world.checked(page, "unchanged")
        scheduler.follow(order[-1:])
    assert order[:3] == [pages["liked"], pages["known"], pages["unseen"]]
    assert pages["dead"] not in order
    world.clock.now += 7 * DAY
    later = []
    for _ in range(10):
        later += scheduler.pick()
        world.clock.now += DAY / 3
    assert later.count(pages["dead"]) == 1, "a tenth of the checks"
