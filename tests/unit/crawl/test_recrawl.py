"""Watched sites are crawled again when they are due, and what a round found is published as it ends."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from driftline.crawl.recrawl import Rounds
from driftline.crawl.report import CrawlReport, MovedPage
from driftline.durations import utc
from driftline.errors import RunStopped, StoreBusy, StoreLocked, StoreUnavailable, UsageError
from driftline.model.event import Event, EventSource
from driftline.pipeline.stop import Stop
from driftline.store.crawls import Site

DAY = 86_400.0
FRONT = "https://site.example/"


def site(number: int = 1, round_: int = 1, started: float = 0.0, ended: float | None = 10.0, **options: Any) -> Site:
    return Site(number, [FRONT], options, "mine", round_, started, ended)


def report(number: int = 2, left: int = 0, **found: Any) -> CrawlReport:
    return CrawlReport(
        seeds=[FRONT], number=number, continued=False, found=1, fetched=1, fetched_now=1, pages=1, unmodified=0,
        redirects=0, sitemaps=0, feeds=0, left=left, watched=0, seconds=1.0, requests=1, bytes=1, tag="mine",
        limit=None, **found,
    )  # fmt: skip


class World:
    """Sites, what crawls of them find, and what is published."""

    def __init__(self, *kept: Site, every: float | None = DAY, early: float = 0.0) -> None:
        self.now = self.ticks = 0.0
        self.sites = list(kept)
        self.finds: CrawlReport | Exception = report()
        self.crawled: list[int] = []
        self.finished: list[tuple[int, int]] = []
        self.published: list[list[Event]] = []
        self.said: list[str] = []
        self.stop = Stop()
        self.rounds = Rounds(
            self, self.crawl, self.stop, self.said.append, every=every, early=early,
            clock=lambda: self.now, ticks=lambda: self.ticks,
        )  # fmt: skip

    def kept(self) -> list[Site]:
        return self.sites

    def finish(self, site_id: int, number: int, now: float, found: Sequence[Event]) -> None:
        self.finished.append((site_id, number))
        self.published.append([*found])

    def crawl(self, site: Site, stop: Stop) -> CrawlReport:
        self.crawled.append(site.id)
        if isinstance(self.finds, Exception):
            raise self.finds
        return self.finds

    def go_at(self, now: float) -> list[int]:
        """Which sites are crawled at this time."""
        self.now = now
        self.crawled.clear()
        self.rounds.go()
        return list(self.crawled)


@pytest.mark.parametrize(
    ("kept", "due"),
    [
        (site(started=100.0), DAY + 100.0),
        (site(started=100.0, every="1h"), 3_700.0),
        (site(started=100.0, ended=None, most=50), DAY + 100.0),
    ],
)
def test_a_site_is_due_an_interval_after_its_last_crawl_began(kept: Site, due: float) -> None:
    """Its own interval, or that for all; also one of which no more than so many pages are to be fetched at a time."""
    assert World(kept).go_at(due - 1) == []
    assert World(kept).go_at(due) == [1]


def test_a_crawl_that_was_cut_short_goes_on_at_once() -> None:
    assert World(site(ended=None)).go_at(1.0) == [1]


def test_who_comes_now_and_then_need_not_wait_for_the_last_seconds() -> None:
    """A job of every night finds the crawl of the last one some seconds less than a day old."""
    assert World(site(), early=0.1).go_at(DAY - 5) == [1]


def test_never_is_for_sites_without_an_interval_of_their_own() -> None:
    world = World(site(1), site(2, ended=None), site(3, every="1h"), every=None)
    assert world.go_at(10 * DAY) == [3]


def test_what_is_new_gone_and_moved_is_published_as_the_round_ends() -> None:
    world = World(site())
    moved = [MovedPage(url=f"{FRONT}old", to=f"{FRONT}place")]
    world.finds = report(new=[f"{FRONT}a"], gone=[f"{FRONT}{one}" for one in "bcde"], moved=moved)
    world.go_at(DAY)
    (events,) = world.published
    assert [(one.event, one.urls, one.to) for one in events] == [
        ("new", (f"{FRONT}a",), ()),
        ("gone", tuple(f"{FRONT}{one}" for one in "bcde"), ()),
        ("moved", (f"{FRONT}old",), (f"{FRONT}place",)),
    ]
    assert [one.reason for one in events] == [
        "It is new on the site.", f"Gone: {FRONT}b, {FRONT}c, {FRONT}d and 1 more.",
        f"Moved: {FRONT}old → {FRONT}place.",
    ]  # fmt: skip
    assert {(one.ids, one.source) for one in events} == {((), EventSource.RUN)}
    assert world.finished == [(1, 2)]


@pytest.mark.parametrize("found", [report(number=1, new=[FRONT]), report(changed=[FRONT])])
def test_a_round_without_news_ends_by_itself(found: CrawlReport) -> None:
    """In the first one all is new, and what changed is found by its check."""
    world = World(site(ended=None))
    world.finds = found
    world.now = DAY
    assert world.rounds.go() == found.changed
    assert (world.published, world.finished) == ([[]], [(1, found.number)])


def test_a_round_is_summed_up_without_saying_more_than_is_known() -> None:
    """What seems changed may be noise; and a site whose lists could not be read may have more pages."""
    world = World(site())
    world.finds = report(gone=[FRONT], changed=[FRONT], unread_lists=[(f"{FRONT}map.xml", "404")])
    world.go_at(DAY)
    assert world.said[-1] == (
        f"Crawled {FRONT}: 1 page, 1 gone, 1 to be checked for a change; 1 of its sitemaps and feeds could not be read."
    )


def test_a_round_that_is_not_done_goes_on_when_pages_had_their_turn() -> None:
    world = World(site())
    world.finds = report(left=5, new=[FRONT])
    world.go_at(DAY)
    world.sites = [site(round_=2, started=DAY, ended=None)]
    assert (world.published, world.finished) == ([], [])
    assert not world.rounds.due()
    world.ticks += 60
    assert world.rounds.due()
    world.go_at(DAY + 60)
    assert [sentence.split()[0] for sentence in world.said] == ["Crawling"]


def test_sites_that_wait_longest_come_first() -> None:
    """So that one that takes many turns leaves some to others."""
    world = World(site(1, started=9.0, ended=None), site(2, started=3.0, ended=None))
    assert world.go_at(10.0) == [2, 1]


def test_a_host_that_wants_to_be_left_alone_is() -> None:
    world = World(site(ended=None))
    world.finds = report(left=5, quiet={"site.example": utc(500.0)})
    assert world.go_at(1.0) == [1]
    assert world.go_at(499.0) == []
    assert world.go_at(500.0) == [1]


def test_a_site_that_cannot_be_crawled_any_more_is_named_once() -> None:
    world = World(site(ended=None))
    world.finds = UsageError("The seed is excluded.")
    assert world.go_at(1.0) == [1]
    assert world.go_at(DAY * 9) == []
    assert world.said[-1] == f"{FRONT} is not crawled again: The seed is excluded."


def test_a_turn_ends_when_all_is_asked_to_stop() -> None:
    world = World(site(1), site(2))

    def crawl(site: Site, turn: Stop) -> CrawlReport:
        bell = turn.listen()
        world.stop.request()
        while not turn.requested:
            bell.wait(10.0)
        world.crawled.append(site.id)
        return report(left=1)

    world.now = DAY
    Rounds(
        world, crawl, world.stop, world.said.append, every=DAY, clock=lambda: world.now
    ).go(3_600.0)  # fmt: skip
    assert world.crawled == [1]


OUTAGES = [RunStopped("Stopped."), StoreLocked("Locked."), StoreUnavailable("Away.")]


@pytest.mark.parametrize("error", OUTAGES)
def test_a_store_that_is_away_until_the_turn_ends_leaves_the_site_to_the_next_turn(error: Exception) -> None:
    world = World(site(started=0.0, ended=None))
    world.finds = error
    assert world.rounds.go(3_600.0) == []
    world.finds = report(changed=[FRONT])
    assert world.rounds.go(3_600.0) == [FRONT]


@pytest.mark.parametrize("error", OUTAGES)
def test_a_stop_while_the_store_is_away_raises_the_error_of_the_store(error: Exception) -> None:
    world = World(site(started=0.0, ended=None))

    def stopped(_site: Site, _turn: Stop) -> CrawlReport:
        world.stop.request()
        raise error

    rounds = Rounds(world, stopped, world.stop, world.said.append, every=DAY, clock=lambda: world.now)
    with pytest.raises(type(error)):
        rounds.go(3_600.0)


def test_another_process_that_checks_pages_is_no_outage() -> None:
    world = World(site(started=0.0, ended=None))
    world.finds = StoreBusy("Another run is checking.")
    with pytest.raises(StoreBusy):
        world.rounds.go(3_600.0)


def test_what_becomes_of_a_watched_site_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    world = World(site(started=0.0))
    assert repr(world.rounds) == "<Rounds every=86400.0 crawling=0 postponed=0>"
    with caplog.at_level(logging.INFO, "driftline.crawl"):
        world.finds = report(new=[FRONT])
        world.go_at(DAY)
        world.finds = UsageError("Its options make no sense.")
        world.go_at(2 * DAY)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "watched site is due: crawling it"),
        ("INFO", "round ended"),
        ("INFO", "watched site is due: crawling it"),
        ("WARNING", "watched site is not crawled again: Its options make no sense."),
    ]
    ended = vars(caplog.records[1])
    assert (ended["seed"], ended["round"], ended["pages"], ended["new"], ended["gone"]) == (FRONT, 2, 1, 1, 0)
