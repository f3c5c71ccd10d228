"""Whole sites are crawled: every page once, from sitemaps, feeds and links; it ends, goes on, and comes again."""

from __future__ import annotations

import gzip
import logging
import math
import random
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import driftline
from driftline import Driftline, Plan, Stop
from driftline.api import workspace_of
from driftline.crawl.crawl import Crawl
from driftline.crawl.crawl_options import Limits, Options
from driftline.errors import UsageError
from driftline.http.credentials import read_access
from driftline.lab.bench.server_log_bench import measure_crawl
from driftline.model.page import SkipReason
from driftline.store.engine import Store
from driftline.store.host_records import HostRecords
from support.making import settings
from support.servers import Answer, Request, Server, answer, html, redirect

WORDS = [f"{one}{other}" for one in ("al", "be", "ga", "de", "ep") for other in ("pha", "ta", "mma", "lta", "silon")]


def text(name: str) -> str:
    """Some words of its own for each name."""
    start = sum(map(ord, name)) % len(WORDS)
    return " ".join([*WORDS[start:], *WORDS[:start], name] * 3)


class SmallSite:
    """A site that a test writes down: by path, the words of a page and its links, or a whole answer."""

    def __init__(self) -> None:
        self.pages: dict[str, Answer] = {}
        self.server = Server(self._answer)

    def put(self, path: str, *links: str, words: str = "", head: str = "") -> None:
        listed = "".join(f'<a href="{link}"></a>' for link in links)
        markup = f"<!doctype html><title>{path}</title>{head}<p>{words or text(path)}</p>{listed}"
        self.pages[path] = answer(markup.encode(), "200 OK", "Content-Type: text/html; charset=utf-8")

    def sitemap(self, **dates: str) -> None:
        entries = "".join(
            f"<url><loc>{self.server.url('/' + name)}</loc><lastmod>{date}</lastmod></url>"
            for name, date in dates.items()
        )
        markup = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'
        self.pages["/sitemap.xml"] = answer(markup.encode(), "200 OK", "Content-Type: text/xml")

    def url(self, path: str = "/") -> str:
        return self.server.url(path)

    def asked(self) -> Counter[str]:
        """How often each path was asked for since this was last asked."""
        paths = Counter(request.path for request in self.server.requests)
        self.server.requests.clear()
        return paths

    def _answer(self, request: Request) -> Answer:
        return self.pages.get(request.path, answer(b"nothing here", "404 Not Found"))


@contextmanager
def when_logged(message: str, do: Callable[[], object]) -> Iterator[None]:
    """Do something at the moment at which this is logged, within the block."""

    class Observer(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage() == message:
                do()

    log, observer = logging.getLogger("driftline"), Observer()
    before = log.level
    log.setLevel(logging.INFO)
    log.addHandler(observer)
    try:
        yield
    finally:
        log.removeHandler(observer)
        log.setLevel(before)


@pytest.fixture
def small() -> Iterator[SmallSite]:
    site = SmallSite()
    with site.server:
        yield site


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Driftline]:
    with driftline.open(settings=settings(store=str(tmp_path / "pages.db"))) as opened:
        yield opened


def test_a_site_with_traps_is_crawled_to_its_end_and_no_page_twice() -> None:
    """As the log of its server says: 200 pages in every place, and calendars, sessions and loops that never end."""
    found = measure_crawl(200)
    assert (found.found, found.missed, found.twice) == (200, [], [])
    assert (found.repeated, found.forbidden, found.report.left) == (0, 0, 0)
    assert found.others < 300
    report = found.report
    assert {one.url.rpartition("/")[0].rpartition("/")[2] for one in report.duplicates} >= {"print"}
    assert [one.url for one in report.near if "/calendar/" not in one.url] == []
    assert len(report.soft) == 2
    assert {
        SkipReason.ROBOTS, SkipReason.NO_INDEX, SkipReason.NO_FOLLOW, SkipReason.OUT_OF_SCOPE, SkipReason.NOT_A_PAGE,
        SkipReason.TRAP_REPEATING,
    } <= report.skipped.keys()  # fmt: skip


def test_the_same_crawl_works_on_every_store(small: SmallSite, where: str) -> None:
    """What is found, kept and reported does not depend on the database."""
    small.put("/", "/a", "/b?x=1&y=2", "/b?y=2&x=1", "/r")
    small.put("/a", "/")
    small.put("/b?x=1&y=2")
    small.pages["/r"] = redirect("/a")
    small.sitemap(only="2026-01-01")
    small.put("/only")
    with driftline.open(settings=settings(store=where)) as opened:
        first = opened.crawl(small.url(), tag="site")
        assert sorted(first.new) == sorted(small.url(path) for path in ("/", "/a", "/b?x=1&y=2", "/only"))
        assert max(small.asked().values()) == 1
        del small.pages["/a"]
        small.put("/", "/b?x=1&y=2", "/new")
        small.put("/new")
        second = opened.crawl(small.url(), tag="site")
    assert (second.new, second.gone, second.unmodified) == ([small.url("/new")], [small.url("/a")], 1)


def test_pages_are_watched_with_what_was_fetched_as_their_first_version(small: SmallSite, pages: Driftline) -> None:
    """A check right after finds them unchanged; copies of a page are named, and not watched."""
    small.put("/", "/a", "/copy")
    small.put("/a", words=text("the same"))
    small.put("/copy", words=text("the same"))
    report = pages.crawl(small.url(), tag="mine")
    assert [(one.url, one.like) for one in report.duplicates] in (
        [(small.url("/copy"), small.url("/a"))],
        [(small.url("/a"), small.url("/copy"))],
    )
    assert report.watched == 2
    assert [(page.tags, page.versions, page.checks) for page in pages.pages()] == [(("mine",), 1, 1)] * 2
    checked = pages.check()
    assert (checked.unchanged, checked.pages) == (2, 2)


def test_a_site_that_is_kept_watched_stays_so(small: SmallSite, pages: Driftline) -> None:
    """What later crawls find is watched too, but for what was taken off the list; until it is not to be any more."""
    small.put("/", "/a", "/b")
    for name in ("a", "b", "c", "d"):
        small.put(f"/{name}")
    pages.crawl(small.url(), tag="mine")
    assert [site.seeds for site in pages.schedule.sites()] == [[small.url()]]
    pages.remove(small.url("/b"))
    small.put("/", "/a", "/b", "/c")
    assert pages.crawl(small.url()).watched == 1
    assert sorted(page.url for page in pages.pages()) == [small.url(path) for path in ("/", "/a", "/c")]
    small.put("/", "/a", "/b", "/c", "/d")
    assert pages.crawl(small.url(), watch=False).watched == 0
    assert pages.schedule.sites() == []
    assert len(pages.pages()) == 3


def test_a_watched_page_that_a_crawl_finds_changed_is_checked(small: SmallSite, pages: Driftline) -> None:
    """So that what changed can be looked at; one that is not watched is only named."""
    small.put("/", "/a", "/b")
    small.put("/a")
    small.put("/b")
    pages.crawl(small.url(), tag="mine")
    pages.remove(small.url("/b"))
    small.put("/a", words=text("/a") + " and something new")
    small.put("/b", words=text("/b") + " and something new")
    again = pages.crawl(small.url())
    assert sorted(again.changed) == [small.url("/a"), small.url("/b")]
    assert [change.url for change in again.changes] == [small.url("/a")]
    assert "something new" in pages.diff(small.url("/a"))


def test_a_change_that_is_noise_is_not_reported(small: SmallSite, pages: Driftline) -> None:
    """Nor one that a check reported before; and the next crawl does not report it either."""
    small.put("/", "/clock", "/checked", "/news")
    small.put("/clock", words=text("/clock") + "</p><p>Updated 3 minutes ago")
    small.put("/checked")
    small.put("/news")
    pages.crawl(small.url(), tag="mine")
    small.put("/checked", words=text("/checked") + " and something new")
    pages.check()
    small.put("/clock", words=text("/clock") + "</p><p>Updated 9 minutes ago")
    small.put("/news", words=text("/news") + " and something new")
    again = pages.crawl(small.url())
    assert again.changed == [small.url("/news")]
    assert [change.url for change in again.changes] == [small.url("/news")]
    assert pages.crawl(small.url()).changed == []


def test_what_a_crawl_found_is_reported_though_another_process_has_its_turn_by_then(
    small: SmallSite, pages: Driftline
) -> None:
    """The changed pages are left to whoever checks meanwhile."""
    small.put("/")
    pages.crawl(small.url(), tag="mine")
    small.put("/", words=text("/") + " and something new")
    with (
        closing(Store.open(workspace_of(pages).store.where)) as other,
        ExitStack() as turn,
        when_logged("crawl ended", lambda: turn.enter_context(other.right_to_check())),
    ):
        again = pages.crawl(small.url())
    assert (again.changed, again.changes) == ([small.url()], [])


def test_a_site_that_was_crawled_before_can_be_watched(small: SmallSite, pages: Driftline) -> None:
    """With the pages that an earlier crawl found, also if this one only goes on."""
    chain(small, 5)
    pages.crawl(small.url(), most=3)
    assert pages.crawl(small.url(), tag="mine").watched == 7
    assert len(pages.pages("mine")) == 7


def test_without_a_tag_nothing_is_watched(small: SmallSite, pages: Driftline) -> None:
    """A crawl only looks."""
    small.put("/", "/a")
    small.put("/a")
    assert pages.crawl(small.url()).pages == 2
    assert pages.pages() == []


def test_the_next_crawl_tells_what_is_new_gone_moved_and_changed(small: SmallSite, pages: Driftline) -> None:
    """Moved is what redirects, or says at a new address what it said at one that is gone."""
    names = ("stays", "goes", "redirected", "elsewhere", "edited")
    small.put("/", *(f"/{name}" for name in names))
    for name in names:
        small.put(f"/{name}")
    pages.crawl(small.url())
    small.pages["/new-place"] = small.pages.pop("/elsewhere")
    small.put("/target")
    small.pages["/redirected"] = redirect("/target", status="301 Moved Permanently")
    small.put("/edited", words=text("edited") + " and more")
    del small.pages["/goes"]
    small.put("/", "/stays", "/edited", "/new-place", "/redirected")
    again = pages.crawl(small.url())
    assert again.number == 2
    assert again.new == [], "where a page moved to is reported with it"
    assert again.gone == [small.url("/goes")]
    assert sorted((one.url, one.to) for one in again.moved) == [
        (small.url("/elsewhere"), small.url("/new-place")), (small.url("/redirected"), small.url("/target")),
    ]  # fmt: skip
    assert small.url("/edited") in again.changed
    assert small.url("/stays") not in again.changed
    assert again.failed == []
    third = pages.crawl(small.url())
    assert (third.new, third.gone, third.moved, third.changed) == ([], [], [], [])


def test_pages_of_a_long_list_that_are_nearly_the_same_did_not_move(small: SmallSite, pages: Driftline) -> None:
    listed = {f"/page/{number}": text("the list") + f" Page {number} of it." for number in range(1, 9)}
    old, new = [*listed][:5], [*listed][5:]
    small.put("/", *old)
    for path in old:
        small.put(path, words=listed[path])
    pages.crawl(small.url())
    for path in ("/page/3", "/page/4"):
        del small.pages[path]
    for path in new:
        small.put(path, words=listed[path])
    small.put("/", "/page/1", "/page/2", "/page/5", *new)
    again = pages.crawl(small.url())
    assert again.moved == []
    assert sorted(again.new) == [small.url(path) for path in new]
    assert sorted(again.gone) == [small.url("/page/3"), small.url("/page/4")]


def test_a_page_that_the_sitemap_calls_unmodified_is_not_fetched_again(small: SmallSite, pages: Driftline) -> None:
    """And one with a new date is, though nothing links to it."""
    small.put("/")
    small.sitemap(old="2026-01-01", newer="2026-01-01")
    small.put("/old")
    small.put("/newer")
    pages.crawl(small.url())
    small.asked()
    small.sitemap(old="2026-01-01", newer="2026-02-02")
    small.put("/newer", words=text("something else"))
    again = pages.crawl(small.url())
    asked = small.asked()
    assert (asked["/old"], asked["/newer"]) == (0, 1)
    assert again.unmodified == 1
    assert again.changed == [small.url("/newer")]


def test_a_new_date_counts_until_the_page_was_read(small: SmallSite, pages: Driftline) -> None:
    """What changed is found by a later crawl if it could not be fetched by the first whose sitemap named it."""
    small.put("/")
    small.sitemap(page="2026-01-01")
    small.put("/page")
    pages.crawl(small.url())
    small.sitemap(page="2026-02-02")
    small.pages["/page"] = answer(b"", "500 Internal Server Error")
    assert len(pages.crawl(small.url()).failed) == 1
    small.put("/page", words=text("something else"))
    assert pages.crawl(small.url()).changed == [small.url("/page")]
    small.asked()
    assert pages.crawl(small.url()).unmodified == 1
    assert small.asked()["/page"] == 0


def test_a_new_date_counts_although_the_round_that_met_it_is_given_up(small: SmallSite, pages: Driftline) -> None:
    """What that round did not get to is fetched by the next."""
    small.put("/")
    small.sitemap(a="2026-01-01", b="2026-01-01")
    small.put("/a")
    small.put("/b")
    pages.crawl(small.url())
    small.sitemap(a="2026-02-02", b="2026-02-02")
    small.put("/a", words=text("something else"))
    small.put("/b", words=text("of its own"))
    cut = pages.crawl(small.url(), most=1)
    again = pages.crawl(small.url(), fresh=True)
    assert sorted([*cut.changed, *again.changed]) == [small.url("/a"), small.url("/b")]


@pytest.mark.parametrize("tag", [None, "mine"])
def test_every_crawl_leaves_word_when_it_last_asked(small: SmallSite, tmp_path: Path, tag: str | None) -> None:
    """Also one that found nothing new: what comes next lets the hosts have their rest."""
    small.put("/")
    given = settings(store=str(tmp_path / "ends.db"))
    ends = []
    with driftline.open(settings=given) as opened:
        for _ in range(2):
            opened.crawl(small.url(), tag=tag)
            with closing(Store.open(given.store)) as store:
                ends.append(HostRecords(store).last_end(time.time()))
    assert -math.inf < ends[0] < ends[1]


def test_what_a_site_asks_of_crawlers_is_not_done_where_its_host_is_ones_own(small: SmallSite, tmp_path: Path) -> None:
    """By the settings of that host, whatever holds for all others."""
    small.put("/", "/a", head='<meta name="robots" content="nofollow">')
    small.put("/a", head='<meta name="robots" content="noindex">')
    own = {"127.0.0.1": {"robots": "ignore"}}
    with driftline.open(settings=settings(store=str(tmp_path / "own.db"), robots="obey", hosts=own)) as opened:
        assert sorted(opened.crawl(small.url()).new) == [small.url("/"), small.url("/a")]
    with driftline.open(settings=settings(store=str(tmp_path / "others.db"), robots="obey")) as opened:
        assert opened.crawl(small.url()).new == [small.url("/")]


def test_no_more_addresses_wait_than_there_is_room_for(small: SmallSite, pages: Driftline) -> None:
    """The rest is counted, and met again by the next crawl."""
    names = [f"p{number}" for number in range(40)]
    small.put("/", "/linked")
    small.sitemap(**dict.fromkeys(names, "2026-01-01"))
    for name in ("linked", *names):
        small.put(f"/{name}")
    workspace = workspace_of(pages)
    crawl = Crawl(workspace.store, workspace.catalog, pages.settings, Plan(), Stop(), workspace.unsafe)
    first = crawl.run([small.url()], Options(most=2), limits=Limits(pages=2, waiting=20, lists=10))
    assert (first.found, first.left, first.limit) == (22, 20, 2)
    assert first.skipped[SkipReason.QUEUE_FULL].count == 20
    pages.crawl(small.url())
    assert pages.crawl(small.url()).pages == 42


def test_no_more_sitemaps_are_read_than_the_pages_to_fetch_are_worth(small: SmallSite, pages: Driftline) -> None:
    small.put("/")
    maps = "".join(f"<sitemap><loc>{small.url(f'/{number}.xml')}</loc></sitemap>" for number in range(20))
    index = f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{maps}</sitemapindex>'
    small.pages["/sitemap.xml"] = answer(index.encode(), "200 OK", "Content-Type: text/xml")
    report = pages.crawl(small.url(), most=1)
    assert sum(path.endswith(".xml") for path in small.asked()) == 10
    assert report.skipped[SkipReason.TOO_MANY_SITEMAPS].count == 11


class Stopping:
    """Asks a crawl to stop once so many outcomes are recorded."""

    def __init__(self, after: int) -> None:
        self.stop = Stop()
        self._after = after

    def on_progress(self, done: int, waiting: int) -> None:
        if done >= self._after:
            self.stop.request()


def chain(small: SmallSite, length: int) -> None:
    small.put("/", "/0")
    for number in range(length):
        small.put(f"/{number}", f"/{number + 1}")
    small.put(f"/{length}")


def test_a_crawl_that_was_stopped_goes_on_where_it_was(small: SmallSite, pages: Driftline) -> None:
    """Nothing is asked for twice, and all is reported in the end as if it had never stopped."""
    chain(small, 30)
    first = Stopping(10)
    cut = pages.crawl(small.url(), stop=first.stop, progress=first.on_progress)
    assert cut.left > 0
    rest = pages.crawl(small.url())
    assert rest.continued
    assert (rest.left, rest.pages, rest.number) == (0, 32, 1)
    assert (cut.fetched_now + rest.fetched_now, cut.fetched_now) == (rest.fetched, cut.fetched)
    assert rest.pages_per_s == rest.fetched_now / rest.seconds
    assert max(small.asked().values()) == 1


def test_fresh_starts_over(small: SmallSite, pages: Driftline) -> None:
    """A crawl that was cut short is forgotten for a new round."""
    chain(small, 10)
    first = Stopping(3)
    pages.crawl(small.url(), stop=first.stop, progress=first.on_progress)
    again = pages.crawl(small.url(), fresh=True)
    assert (again.continued, again.number, again.pages) == (False, 2, 12)


def test_the_rounds_of_a_crawl_are_logged(
    small: SmallSite, pages: Driftline, caplog: pytest.LogCaptureFixture
) -> None:  # fmt: skip
    chain(small, 4)
    with caplog.at_level(logging.INFO, "driftline.crawl"):
        pages.crawl(small.url(), most=2)
        pages.crawl(small.url())
        pages.crawl(small.url())
    rounds = [(record.getMessage(), vars(record)["round"]) for record in caplog.records]
    assert rounds == [
        ("round begun", 1), ("round left open", 1), ("round continued", 1), ("round ended", 1), ("round begun", 2),
        ("round ended", 2),
    ]  # fmt: skip


def test_no_more_pages_are_fetched_than_was_asked_for_and_the_next_crawl_goes_on(
    small: SmallSite, pages: Driftline
) -> None:
    """`most` is for one crawl."""
    small.put("/", *(f"/{number}" for number in range(9)))
    for number in range(9):
        small.put(f"/{number}")
    first = pages.crawl(small.url(), most=4)
    assert (first.fetched, first.left) == (4, 6)
    second = pages.crawl(small.url(), most=4)
    assert (second.continued, second.fetched, second.fetched_now, second.left) == (True, 8, 4, 2)


def test_links_further_away_than_allowed_are_counted(small: SmallSite, pages: Driftline) -> None:
    """The seed is 0 links away."""
    chain(small, 5)
    report = pages.crawl(small.url(), depth=2)
    assert report.pages == 3
    assert report.skipped[SkipReason.TOO_DEEP].examples == [small.url("/2")]


def test_keywords_decide_what_comes_first(small: SmallSite, pages: Driftline) -> None:
    """Of many links those are fetched that are about them, and lead there."""
    names = [f"other-{number}" for number in range(60)]
    small.put("/", *names[:30], "/privacy-hub", *names[30:])
    for name in names:
        small.put(f"/{name}")
    small.put("/privacy-hub", "/deep/privacy-policy", words=text("hub") + " privacy" * 5)
    small.put("/deep/privacy-policy", words=text("policy") + " privacy" * 5)
    report = pages.crawl(small.url(), keywords=["privacy"], most=20)
    asked = [request.path for request in small.server.requests]
    assert {"/privacy-hub", "/deep/privacy-policy"} <= set(asked)
    assert [url for url, _ in report.best] == [small.url("/privacy-hub"), small.url("/deep/privacy-policy")]


def test_robots_txt_is_obeyed_and_its_sitemaps_are_read(small: SmallSite, tmp_path: Path) -> None:
    """It is asked for once, and what it forbids is not."""
    small.put("/", "/private/a", "/open")
    small.put("/open")
    small.put("/listed")
    robots = f"User-agent: *\nDisallow: /private/\nSitemap: {small.url('/map.txt')}\n"
    small.pages["/robots.txt"] = answer(robots.encode(), "200 OK", "Content-Type: text/plain")
    small.pages["/map.txt"] = answer(small.url("/listed").encode(), "200 OK", "Content-Type: text/plain")
    given = settings(store=str(tmp_path / "polite.db"), robots="obey")
    with driftline.open(settings=given) as opened:
        report = opened.crawl(small.url())
    asked = small.asked()
    assert (asked["/robots.txt"], asked["/private/a"], asked["/listed"], asked["/sitemap.xml"]) == (1, 0, 1, 0)
    assert report.skipped[SkipReason.ROBOTS].count == 1
    assert sorted(report.new) == [small.url("/"), small.url("/listed"), small.url("/open")]


def test_lists_that_cannot_be_read_are_named_with_the_reason(small: SmallSite, pages: Driftline) -> None:
    """Those that the site names: what only they list is missing. What stands in the others is found all the same."""
    bad = {
        "/missing.xml": None,
        "/cut.xml.gz": gzip.compress(random.Random(7).randbytes(9_000))[:3_000],
        "/bomb.xml.gz": gzip.compress(bytes(60_000_000)),
        "/page.xml": b"<!doctype html><title>Hello</title><p>not a sitemap",
    }
    names = [*bad, "/broken.xml"]
    index = "".join(f"<sitemap><loc>{small.url(name)}</loc></sitemap>" for name in names)
    small.put("/")
    small.put("/whole")
    small.put("/oops")
    small.pages["/sitemap.xml"] = answer(f"<sitemapindex>{index}</sitemapindex>".encode())
    small.pages["/broken.xml"] = answer(
        f"<urlset><url><loc>{small.url('/whole')}</loc></url><url><loc>oops & <b></urlset>".encode()
    )
    small.pages |= {name: answer(body) for name, body in bad.items() if body is not None}
    report = pages.crawl(small.url())
    why = dict(report.unread_lists)
    assert sorted(why) == sorted(small.url(name) for name in bad)
    assert "404" in why[small.url("/missing.xml")]
    assert why[small.url("/page.xml")] == "It is no sitemap and no feed."
    assert sorted(report.new) == [small.url("/"), small.url("/whole")]


@pytest.mark.parametrize(
    ("found", "reported"),
    [
        (None, False),
        (answer(b"<!doctype html><title>Our shop</title>"), False),
        (redirect("/nowhere.html"), False),
        (answer(b"", "500 Internal Server Error"), True),
        (answer(gzip.compress(bytes(9_000))[:20]), True),
    ],
)
def test_a_sitemap_that_nothing_names_may_be_missing(
    small: SmallSite, pages: Driftline, found: Answer | None, reported: bool
) -> None:
    """It is only guessed where it could be; one that is there and cannot be read is reported."""
    small.put("/")
    if found is not None:
        small.pages["/sitemap.xml"] = found
    report = pages.crawl(small.url())
    assert [url for url, _ in report.unread_lists] == ([small.url("/sitemap.xml")] if reported else [])


def test_the_access_of_a_tag_is_used_at_the_origins_of_the_seeds_only(pages: Driftline) -> None:
    """Wherever links, redirects and sitemaps lead a crawl. A robots.txt is for everybody."""

    def other(path: str) -> str:
        return f"http://other.localhost:{server.port}{path}"

    def reply(request: Request) -> Answer:
        if request.path == "/robots.txt":
            return answer(f"Sitemap: {other('/map.xml')}\n".encode(), "200 OK", "Content-Type: text/plain")
        at_home = not request.headers["host"].startswith("other.")
        if at_home and request.headers.get("authorization") != f"Basic {b64encode(b'me:x').decode()}":
            return answer(b"", "401 Unauthorized")
        if request.path == "/away":
            return redirect(other("/led"))
        links = f"<a href='/a'></a><a href='/away'></a><a href='{other('/there')}'></a>" if request.path == "/" else ""
        return html(f"{text(request.path)}{links}") if len(request.path) < 7 else answer(b"", "404 Not Found")

    workspace_of(pages).accesses.edit_tag("mine", [], lambda _: read_access(basic="me:x", cookies=["key=k"]))
    with Server(reply) as server:
        seed = f"http://localhost:{server.port}/"
        [(_, refused)] = pages.crawl(seed, scope="prefix").failed
        assert "401" in refused
        server.requests.clear()
        report = pages.crawl(seed, scope="domain", tag="mine")
        assert set(report.new) == {seed, f"{seed}a", other("/there"), other("/led")}
        shown = {
            f"{request.headers['host'].partition(':')[0]}{request.path}"
            for request in server.requests
            if {"authorization", "cookie"} & request.headers.keys()
        }
    assert {one for one in shown if "no-page" not in one} == {"localhost/", "localhost/a", "localhost/away"}
    assert all(one.startswith("localhost/") for one in shown)


def test_a_site_cannot_lead_a_crawl_into_a_private_network(small: SmallSite, pages: Driftline) -> None:
    """Neither by a sitemap that robots.txt names, nor by a redirect, nor to another scheme."""
    small.put("/", "/inside", "/file")
    robots = b"Sitemap: http://10.1.2.3/map.xml\nSitemap: http://169.254.169.254/latest/meta-data/\n"
    small.pages["/robots.txt"] = answer(robots, "200 OK", "Content-Type: text/plain")
    small.pages["/inside"] = redirect("http://192.168.0.1/admin")
    small.pages["/file"] = redirect("file:///etc/passwd")
    report = pages.crawl(small.url(), scope="domain")
    assert (report.pages, report.sitemaps, report.left) == (1, 0, 0)
    assert report.failed == [(small.url("/file"), "It redirects to nowhere.")]
    assert report.skipped[SkipReason.OUT_OF_SCOPE].examples == ["http://192.168.0.1/admin"]


def test_a_host_that_wants_to_be_left_alone_is_and_the_crawl_goes_on_later(small: SmallSite, pages: Driftline) -> None:
    """What was not fetched waits, and is named."""
    small.put("/", "/busy", "/a", "/b")
    small.pages["/busy"] = answer(b"", "503 Service Unavailable", "Retry-After: 3600")
    workspace_of(pages).settings = pages.settings.model_copy(update={"host_connections": 1})
    report = pages.crawl(small.url())
    assert list(report.quiet) == [small.url().split("/")[2]]
    assert report.left > 0
    assert small.asked()["/busy"] == 1


def test_a_site_that_answers_every_address_is_found_out(small: SmallSite, pages: Driftline) -> None:
    """What it says of a page that cannot exist is no page anywhere else."""
    shell = SmallSite.put
    small.put("/", "/a", "/lost")
    small.put("/a")
    shell(small, "/lost", words="We are sorry that you came here in vain today, please look at something else instead.")
    nowhere = small.pages["/lost"]
    small.pages["/driftline-asks-for-no-page-1"] = nowhere
    report = pages.crawl(small.url())
    assert report.soft == [small.url("/lost")]
    assert sorted(report.new) == [small.url("/"), small.url("/a")]


def test_a_site_that_answers_its_front_page_for_every_address_has_one_page(pages: Driftline) -> None:
    """As applications that run in the browser do: the seed is a page all the same, and its links are followed."""
    markup = f'<!doctype html><title>App</title><p>{text("app")}</p><a href="/a"></a><a href="/b"></a>'.encode()
    with Server(lambda _: answer(markup, "200 OK", "Content-Type: text/html")) as server:
        report = pages.crawl(server.url())
    assert report.new == [server.url()]
    assert len(report.soft) + len(report.duplicates) == 2


def test_redirects_that_lead_around_in_a_circle_cost_a_request_each(small: SmallSite, pages: Driftline) -> None:
    """And the page behind a redirect is fetched once, however it is come by."""
    small.put("/", "/one", "/self", "/go", "/a")
    small.pages["/one"] = redirect("/two")
    small.pages["/two"] = redirect("/one")
    small.pages["/self"] = redirect("/self")
    small.pages["/go"] = redirect("/a")
    small.put("/a")
    report = pages.crawl(small.url())
    assert max(small.asked().values()) == 1
    assert (report.pages, report.redirects) == (2, 3)


@pytest.mark.parametrize(
    "wrong", [{"scope": "galaxy"}, {"depth": -1}, {"most": 0}, {"keywords": [","]}, {"exclude": ["/*"]}]
)
def test_what_means_nothing_is_refused_before_anything_is_fetched(
    small: SmallSite, pages: Driftline, wrong: dict[str, Any]
) -> None:
    """A seed that is excluded would find nothing."""
    with pytest.raises(UsageError):
        pages.crawl(small.url(), **wrong)
    assert small.server.requests == []


def test_pages_that_are_blocked_as_unsafe_are_not_asked_for(small: SmallSite, pages: Driftline) -> None:
    small.put("/", "/good", "/bad")
    small.put("/good")
    small.put("/bad")
    pages.safety.report(small.url("/bad"))
    report = pages.crawl(small.url())
    assert small.asked()["/bad"] == 0
    assert report.skipped[SkipReason.UNSAFE].count == 1
    assert report.pages == 2
