"""Connections that are cut while a commit is on its way: nobody knows then whether the server has made it."""

from __future__ import annotations

import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import driftline
from driftline.api import workspace_of
from driftline.crawl.report import CrawlReport
from driftline.model.outcome import Recorded
from driftline.store.locks import Waits, patiently
from support.cuts import Cut, CuttingProxy
from support.events import published_urls
from support.making import settings
from support.servers import Answer, Request, Server, answer, html, redirect
from support.worlds import World

PAGES = 6
EVERY = 5  # commits from one that is cut to the next; the one in between repeats what was cut


@pytest.fixture(autouse=True)
def hasty(waits: Waits) -> None:
    """Try again at once: here every outage is over as soon as it began."""
    waits.outage = waits.right = 0.01


@pytest.fixture(params=Cut, ids=lambda cut: cut.name.lower())
def proxy(request: pytest.FixtureRequest, postgres: str) -> Iterator[CuttingProxy]:
    # a path to a socket must be short
    with tempfile.TemporaryDirectory(prefix="cut-") as folder, CuttingProxy(postgres, folder, request.param) as made:
        yield made


@contextmanager
def world_behind(proxy: CuttingProxy, folder: Path) -> Iterator[World]:
    with World(folder, store=proxy.url) as world:
        world.watch(PAGES)
        world.pages.check()
        yield world


def at_every_commit(proxy: CuttingProxy, once_more: Callable[[int], None]) -> None:
    """Do this several times, so that each of its commits is cut in one of them, and some commits in each."""
    cuts = 0
    for number in range(1, EVERY + 1):
        proxy.cut_from(number, every=EVERY)
        once_more(number)
        cuts += proxy.cuts
    assert cuts >= EVERY


def rewrite(world: World, edition: int) -> None:
    for number in range(PAGES):
        world.words[f"/{number}"] = f"page {number} says {'something else ' * edition} by now, at some length"


def checks(world: World) -> list[int]:
    return [len(world.pages.history.checks(page.url)) for page in world.pages.pages()]


def test_a_check_loses_doubles_and_hides_nothing(proxy: CuttingProxy, tmp_path: Path) -> None:
    with world_behind(proxy, tmp_path) as world:

        def check(edition: int) -> None:
            rewrite(world, edition)
            reported: Counter[str] = Counter()
            runs = workspace_of(world.pages).runs
            report = runs.check(None, recorded=lambda found: reported.update(one.document.link.url for one in found))
            assert (report.changed, report.failed, report.left) == (PAGES, 0, 0), edition
            assert sorted(reported.values()) == [1] * PAGES, edition
            assert len({change.url for change in report.changes}) == len(report.changes) == PAGES, edition
            assert checks(world) == [edition + 1] * PAGES, edition

        at_every_commit(proxy, check)
        assert world.pages.maintenance.doctor() == []


def test_a_run_loses_doubles_and_hides_nothing(proxy: CuttingProxy, tmp_path: Path) -> None:
    with world_behind(proxy, tmp_path) as world:
        ids = [page.id for page in world.pages.pages()]

        def run(edition: int) -> None:
            rewrite(world, edition)
            reported: Counter[int] = Counter()
            complete = threading.Event()

            def report(recorded: Recorded) -> None:
                reported.update(outcome.document.link.page_id for outcome in recorded.outcomes)
                if len(reported) == PAGES:
                    complete.set()

            with workspace_of(world.pages).runs.keep_checking(report) as running:
                patiently(lambda: running.feed.offer(ids), lambda: False)
                assert complete.wait(60), edition
            assert len(published_urls(world.pages)) == PAGES, edition
            assert published_urls(world.pages) == [], edition
            assert sorted(reported.values()) == [1] * PAGES, edition
            assert checks(world) == [edition + 1] * PAGES, edition

        at_every_commit(proxy, run)


def site(request: Request) -> Answer:
    """One of many small sites, each in a folder: with links, a redirect, a missing page, a trap and a picture."""
    folder, _, name = request.path[1:].partition("/")
    names = ["a", "b", "c"]
    if not name:
        listed = (*names, "old", "missing", "picture.jpg", "x/x/x/x/x/x/x/x/", "?session=1&from=old")
        return html(" ".join(f'<a href="/{folder}/{one}">{one}</a>' for one in listed))
    if name == "old":
        return redirect(f"/{folder}/new")
    if name in ("new", *names):
        return html(f"The page {name} of the site {folder} says this: {name * 9} {folder * 5}.")
    return answer(b"", "404 Not Found")


def found(report: CrawlReport) -> dict[str, Any]:
    """How much of each kind a crawl found."""
    lists: dict[str, Sized] = {
        "new": report.new,
        "failed": report.failed,
        "gone": report.gone,
        "duplicates": report.duplicates,
    }
    skipped = {why: one.count for why, one in report.skipped.items()}
    numbers = ("number", "found", "fetched", "pages", "redirects", "left", "watched")
    return {name: getattr(report, name) for name in numbers} | {name: len(one) for name, one in lists.items()} | skipped


def test_a_crawl_finds_what_an_undisturbed_one_finds(proxy: CuttingProxy) -> None:
    with Server(site) as server, driftline.open(settings=settings(store=proxy.url)) as pages:
        expected = found(pages.crawl(server.url("/site-0/"), tag="site-0"))

        def crawl(number: int) -> None:
            report = pages.crawl(server.url(f"/site-{number}/"), tag=f"site-{number}")
            assert found(report) == expected, number
            assert [page.versions for page in pages.pages(f"site-{number}")] == [1] * report.pages, number

        at_every_commit(proxy, crawl)
        assert pages.maintenance.doctor() == []
