"""The library as a Python program uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import driftline
from driftline import Driftline, Render
from driftline.api import workspace_of
from driftline.errors import UsageError
from driftline.urls import host_of
from support.meanwhile import meanwhile
from support.worlds import World

URL = "https://a.example/"


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Driftline]:
    with driftline.open(tmp_path / "pages.db") as pages:
        yield pages


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda pages: pages.add(URL, tags="news"), "tags takes a list: write tags=['news']."),
        (lambda pages: pages.add(URL, tags=5), "tags takes a list of strings, not 5."),
        (lambda pages: pages.add(URL, tags=[5]), "tags takes a list of strings, not [5]."),
        (lambda pages: pages.edit(URL, tags="news"), "tags takes a list: write tags=['news']."),
        (lambda pages: pages.add([URL]), "add takes addresses one by one: write add(*urls) for a list of them."),
        (lambda pages: pages.add(5), "add takes addresses as strings, not 5."),
        (
            lambda pages: pages.remove([URL]),
            "remove takes addresses one by one: write remove(*urls) for a list of them.",
        ),
        (
            lambda pages: pages.add(URL, filters="main"),
            'filters takes a list of pairs: write filters=[("select", "main")].',
        ),
        (
            lambda pages: pages.add(URL, filters=["main"]),
            'A filter is a pair of a kind and a value: write filters=[("select", "main")].',
        ),
        (
            lambda pages: pages.add(URL, filters=("select", "main")),
            'A filter is a pair of a kind and a value: write filters=[("select", "main")].',
        ),
        (
            lambda pages: pages.add(URL, filters=[("select", 5), 5]),
            'A filter is a pair of a kind and a value, both strings, as ("select", "main"), not (\'select\', 5).',
        ),
        (
            lambda pages: pages.add(URL, render=True),
            "render takes a driftline.Render, such as Render(wait_for='main'), not True.",
        ),
        (
            lambda pages: pages.add(URL, render=Render(steps="click #more")),  # type: ignore[arg-type]
            "steps takes a list: write steps=['click #more'].",
        ),
        (lambda pages: pages.crawl(URL, include="/blog/*"), "include takes a list: write include=['/blog/*']."),
        (
            lambda pages: pages.crawl(URL, tag="a", watch=False),
            "A tag and an interval are for a site that is watched: give watch=True with them.",
        ),
        (lambda pages: pages.crawl(), "Say where to start: give the address of a site."),
        (
            lambda pages: pages.add(URL, every=[1]),
            "[1] is not a length of time: give '30m', a timedelta or a number of seconds.",
        ),
        (lambda pages: pages.add(URL, every=0.5), "'0.5 s' is too short: give between 1s and 520w."),
        (
            lambda pages: pages.add(URL, every=True),
            "True is not a length of time: give '30m', a timedelta or a number of seconds.",
        ),
        (
            lambda pages: pages.changes(since=[1]),
            "[1] is no moment: give a datetime, a text such as '2026-01-31' or '7d', or seconds.",
        ),
        (
            lambda pages: pages.pages(state="broken"),
            "There is no state 'broken': use unchecked, new, changed, unchanged, failed, failing.",
        ),
        (lambda pages: pages.pages(limit="3"), "limit takes a whole number, 0 or more, not '3'."),
        (lambda pages: pages.check(URL, tag="a"), "Give either URLs or a tag, not both."),
        (lambda pages: pages.check(min_importance="all"), "min_importance takes 'important' or 'minor', not 'all'."),
        (lambda pages: pages.changes(min_importance=3), "min_importance takes 'important' or 'minor', not 3."),
        (lambda pages: pages.visit(URL, seconds="3"), "A visit takes a number of seconds, not '3'."),
        (lambda pages: pages.history.feedback("1-1", "bad"), "A change is important, minor or noise, not 'bad'."),
        (
            lambda _: driftline.open(5),  # type: ignore[arg-type]
            "A store is named by a path or a postgresql:// URL, not by 5.",
        ),
        (
            lambda _: driftline.open(settings={"host_delay": 2}),  # type: ignore[arg-type]
            "settings takes a driftline.Settings: write settings=driftline.Settings(host_delay=2).",
        ),
    ],
)  # fmt: skip
def test_what_is_written_wrong_is_refused_with_one_sentence_that_says_how(
    pages: Driftline, wrong: Callable[[Any], Any], sentence: str
) -> None:
    with pytest.raises(UsageError) as error:
        wrong(pages)
    assert str(error.value) == sentence


HUGE = 10**400
NO_TEXT = "a\udcffb"  # as Python reads bytes that are not UTF-8
WRONG: list[tuple[tuple[object, ...], list[Callable[[Any, Any], Any]]]] = [
    (
        (None, 5, b"a", Path("a"), ["a"]),
        [
            lambda pages, url: pages.diff(url),
            lambda pages, url: pages.history.checks(url),
            lambda pages, url: pages.history.version(url),
            lambda pages, url: pages.history.screenshot(url),
            lambda pages, url: pages.history.diff(url),
            lambda pages, url: pages.history.word_diff(url),
            lambda pages, url: pages.history.html_diff(url),
            lambda pages, url: pages.history.table_changes(url),
            lambda pages, url: pages.history.markup_changes(url),
            lambda pages, url: pages.history.outline(url),
            lambda pages, url: pages.visit(url),
            lambda pages, url: pages.safety.report(url),
            lambda pages, url: pages.safety.withdraw_report(url),
        ],
    ),
    (
        (5, b"a", Path("a"), ["a"]),
        [
            lambda pages, url: pages.changes(url),
            lambda pages, url: pages.search("x", url=url),
            lambda pages, url: pages.edit(URL, move_to=url),
        ],
    ),
    (
        (5, 2**70, ["a"], NO_TEXT),
        [
            lambda pages, tag: pages.pages(tag),
            lambda pages, tag: pages.check(tag=tag),
            lambda pages, tag: pages.changes(tag=tag),
            lambda pages, tag: pages.search("x", tag=tag),
            lambda pages, tag: pages.crawl(URL, tag=tag, watch=True),
            lambda pages, tag: pages.add(URL, tags=[tag]),
            lambda pages, reason: pages.safety.report(URL, reason=reason),
            lambda pages, budget: pages.watch(budget=budget),
            lambda pages, budget: pages.schedule.upcoming(budget=budget),
            lambda pages, state: pages.pages(state=state),
            lambda pages, verdict: pages.history.feedback("1-1", verdict),
            lambda pages, change: pages.history.feedback(change, "noise"),
            lambda pages, change: pages.history.forget_feedback(change),
        ],
    ),
    (
        (5, "x"),
        [
            lambda pages, plan: pages.check(plan=plan),
            lambda pages, plan: pages.crawl(URL, plan=plan),
            lambda pages, stop: pages.check(stop=stop),
            lambda pages, stop: pages.crawl(URL, stop=stop),
            lambda pages, stop: pages.watch(stop=stop),
            lambda pages, stop: pages.maintenance.catch_up(stop=stop),
            lambda pages, progress: pages.check(progress=progress),
            lambda pages, progress: pages.crawl(URL, progress=progress),
            lambda pages, progress: pages.search("x", progress=progress),
            lambda pages, available: pages.visit(URL, available=available),
            lambda pages, fresh: pages.check(fresh=fresh),
            lambda pages, whole_host: pages.safety.report(URL, whole_host=whole_host),
        ],
    ),
    (("x", 0, True), [lambda _, producers: driftline.Plan(producers=producers)]),
    ((None, "x", 0), [lambda _, queues: driftline.Plan(queues=queues)]),
    ((None, 5, b"x"), [lambda pages, query: pages.search(query)]),
    ((datetime.min, HUGE, float("nan")), [lambda pages, since: pages.changes(since=since)]),  # noqa: DTZ901 as programs do
    ((HUGE, 10**5_000), [lambda pages, every: pages.add(URL, every=every)]),
    ((HUGE, "x"), [lambda pages, seconds: pages.visit(URL, seconds=seconds)]),
    ((0, ""), [lambda pages, tags: pages.edit(URL, tags=tags)]),
    ((-1, "x", 1.5), [lambda pages, limit: pages.pages(limit=limit), lambda pages, offset: pages.pages(offset=offset)]),
    (
        (None, "a\0b", 5),
        [
            lambda pages, path: pages.visits.import_file(path),
            lambda pages, source: pages.safety.add_blocklist(source),
            lambda pages, name: pages.safety.remove_blocklist(name),
        ],
    ),
    ((None, "x"), [lambda pages, votes: pages.safety.report(URL, votes=votes)]),
    (("a\0b", 5), [lambda _, store: driftline.open(store)]),
]


@pytest.mark.parametrize(("values", "calls"), WRONG)
def test_a_value_of_a_wrong_type_or_size_is_refused_with_a_short_sentence(
    pages: Driftline, values: tuple[object, ...], calls: list[Callable[[Any, Any], Any]]
) -> None:
    for value, call in product(values, calls):
        with pytest.raises(driftline.DriftlineError) as error:
            call(pages, value)
        assert str(error.value).endswith(".")
        assert len(str(error.value)) < 300
    assert pages.pages() == []


@pytest.mark.parametrize("huge", [2**70, 10**5_000], ids=["more than a database takes", "more than Python writes"])
def test_a_limit_may_be_of_any_size(pages: Driftline, huge: int) -> None:
    pages.add(URL)
    assert len(pages.pages(limit=huge)) == len(pages.schedule.upcoming(huge)) == len(pages.rank("value", huge)) == 1
    found = (pages.pages(offset=huge), pages.history.checks(URL, huge), [*pages.changes(limit=huge)])
    assert found == ([], [], [])
    assert pages.search("word", limit=huge) == []
    with pytest.raises(driftline.UnknownVersion):
        pages.history.screenshot(URL, 2**70)


@pytest.mark.parametrize("every", ["90m", "1h30m", timedelta(minutes=90), 5_400, 5_400.0])
def test_an_interval_is_a_text_a_timedelta_or_seconds(pages: Driftline, every: driftline.Duration) -> None:
    pages.add(URL, every=every)
    assert pages.pages()[0].every == timedelta(minutes=90)
    assert [one.every for one in pages.schedule.upcoming(every=every)] == [timedelta(minutes=90)]


def test_times_are_aware_and_in_utc(pages: Driftline) -> None:
    before = datetime.now(UTC)
    pages.add(URL)
    visited = pages.visit(URL, seconds=3)
    (page,) = pages.pages()
    for moment in (page.added_at, visited.first_at, visited.last_at, pages.safety.report(URL).at):
        assert moment is not None
        assert moment.tzinfo is UTC
        assert before - timedelta(seconds=1) <= moment <= datetime.now(UTC)
    assert page.checked_at is None


def test_a_moment_is_a_datetime_a_text_or_seconds(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        (url,) = world.watch(1)
        world.pages.check()
        world.words["/0"] = "Something entirely different is written here now."
        world.pages.check()
        now = datetime.now(UTC)
        for since in (now - timedelta(hours=1), "1h", (now - timedelta(hours=1)).timestamp()):
            assert [event.urls for event in world.pages.changes(since=since)] == [(url,)]
            assert world.pages.search("different", since=since)
        for later in (now + timedelta(hours=1), (now + timedelta(hours=1)).timestamp()):
            assert [*world.pages.changes(since=later)] == []
            assert world.pages.search("different", since=later) == []
        (event,) = world.pages.changes()
        newest = world.pages.history.checks(url)[0]
        assert event.at == newest.at


def test_progress_is_reported_while_pages_are_checked(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.watch(5)
        seen: list[tuple[int, int]] = []
        world.pages.check(progress=lambda done, total: seen.append((done, total)))
        assert seen[-1] == (5, 5)


@pytest.mark.parametrize("pipeline", ["two-section", "three-section", "sequential"])
def test_with_a_stop_that_was_requested_before_no_page_is_fetched(
    tmp_path: Path, pipeline: driftline.PipelineName
) -> None:
    with World(tmp_path) as world:
        world.watch(2)
        asked: list[str] = []
        world.asked = asked.append
        stop = driftline.Stop()
        stop.request()
        plan = driftline.Plan(pipeline=pipeline)
        assert [world.pages.check(stop=stop, plan=plan).pages for _ in range(3)] == [0, 0, 0]
        world.pages.crawl(world.server.url("/0"), stop=stop, plan=plan)
        assert list(world.pages.watch(stop=stop)) == []
        assert asked == []
        assert world.pages.check().pages == 2


def test_a_diff_of_fewer_than_two_versions_says_why_there_is_none(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        (url,) = world.watch(1)
        diffs = (world.pages.diff, world.pages.history.html_diff, world.pages.history.word_diff)
        for diff in diffs:
            with pytest.raises(driftline.UnknownVersion, match="has no version yet: check it with"):
                diff(url)
        world.pages.check()
        for diff in diffs:
            with pytest.raises(driftline.UnknownVersion, match="has only one version so far: there is nothing to"):
                diff(url)
            with pytest.raises(UsageError, match=r"Version 1 of .* is the first: name two versions"):
                diff(url, new=1)


def test_pages_are_chosen_by_tag_state_and_number(pages: Driftline) -> None:
    pages.add("https://a.example/", "https://b.example/", tags=["news"])
    pages.add("https://c.example/")
    assert [page.url for page in pages.pages("news", limit=1, offset=1)] == ["https://b.example/"]
    assert len(pages.pages(state="unchecked")) == 3
    assert pages.pages(state=driftline.PageState.FAILING) == []


def test_a_site_is_watched_under_its_host_unless_a_tag_is_given(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.words["/"] = "the only page"
        seed = world.server.url("/")
        world.pages.crawl(seed, watch=True, every=timedelta(days=2))
        (site,) = world.pages.schedule.sites()
        assert (site.tag, site.seeds, site.options["every"], site.complete) == (host_of(seed), [seed], "2d", True)
        assert site.crawled_at.tzinfo is UTC


def test_tags_are_replaced_though_another_program_tags_the_page_meanwhile(postgres: str) -> None:
    with driftline.open(postgres) as pages, driftline.open(postgres) as other:
        pages.add(URL, tags=["old"])

        def tag() -> None:
            other.edit(URL, tags=["old", "meanwhile"])

        # between finding the page and locking it
        with meanwhile(workspace_of(pages).store, "SELECT pages.", tag, time=2):
            assert pages.edit(URL, tags=["new"]).tags == ("new",)


def test_a_page_is_edited(tmp_path: Path) -> None:
    with driftline.open(str(tmp_path / "pages.db")) as pages:
        pages.add(URL, tags=["news", "old"], filters=[("select", "main")], every="1h")
        page = pages.edit(URL, tags=["news", "shop"], every="2h")
        assert (page.tags, page.every, [*page.filters]) == (("news", "shop"), timedelta(hours=2), [("select", "main")])
        page = pages.edit(URL, filters=[("drop", ".ad")], clear_every=True)
        assert (page.tags, page.every, [*page.filters]) == (("news", "shop"), None, [("drop", ".ad")])
        assert pages.edit(URL, tags=[], move_to="https://b.example/").tags == ()
        assert [one.url for one in pages.pages()] == ["https://b.example/"]


def test_a_report_lists_what_failed(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        url = world.server.url("/missing")
        world.pages.add(url)
        (failed,) = world.pages.check().failures
        assert (failed.url, failed.failure.kind) == (url, "status")
