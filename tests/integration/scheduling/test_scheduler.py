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
    assert pages["dead"] in scheduler.pick()
