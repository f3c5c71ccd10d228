from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text, update

import driftline
from driftline.api import workspace_of
from driftline.detection.compare import compare, recall
from driftline.errors import BrokenVersion, FailureKind, StoreError, StoreLocked, UnknownVersion
from driftline.model.outcome import Failed, Link, Outcome, Proof, Unchanged, Verdict
from driftline.model.page import Failure
from driftline.store.blobs import DEEPEST
from driftline.store.engine import Store
from driftline.store.history import Repository
from driftline.store.ledger import Ledger
from driftline.store.pages import Catalog
from driftline.store.schema import blobs
from driftline.store.statements import Batches, read_chains
from support.making import InThisProcess, document
from support.servers import Server, html

URL = "https://a.example/"


class World:
    """A store with its catalogue, and a clock that a test moves."""

    def __init__(self, where: str) -> None:
        self.now = 1_000.0
        self.store = Store.open(where)
        self.catalog = Catalog(self.store, lambda: self.now)
        self.ledger = Ledger(self.store, lambda: self.now)
        self.repository = Repository(self.store)

    def links(self, run: int, ids: list[int] | None = None) -> list[Link]:
        return list(self.ledger.remaining(run, ids))

    def outcome(self, link: Link, body: str, content_type: str = "text/html", headers: str = "") -> Outcome:
        fetched = document(link, body.encode(), content_type=content_type, headers=headers, at=self.now)
        return compare(recall([fetched], self.repository), InThisProcess(), self.repository, 10**8)[0]

    def check(self, *bodies: str) -> list[Outcome]:
        """One run in which each page, in order, had this body."""
        run, _ = self.ledger.begin(None)
        found = [self.outcome(link, body) for link, body in zip(self.links(run), bodies, strict=True)]
        self.ledger.record(run, found)
        self.ledger.finish(run)
        self.now += 60
        return found

    def everything(self) -> list[tuple[Any, ...]]:
        """Every row of every table that a check writes."""
        tables = ("pages", "states", "checks", "versions", "changes", "blobs")
        with self.store.read() as connection:
            return [tuple(row) for table in tables for row in connection.execute(text(f"SELECT * FROM {table}"))]


@pytest.fixture
def world(where: str) -> Iterator[World]:
    made = World(where)
    yield made
    made.store.close()


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[World]:
    """A world whose store is an SQLite file."""
    made = World(str(tmp_path / "pages.db"))
    yield made
    made.store.close()


def failed(link: Link) -> Outcome:
    failure = Failure(kind=FailureKind.DNS, sentence="The name of the host could not be resolved.")
    return Failed(document(link, failure=failure, status=0), failure)


def proof_of(outcome: Outcome) -> Proof | None:
    return outcome.proof if isinstance(outcome, Unchanged) else None


def test_a_page_is_new_then_unchanged_then_changed(world: World) -> None:
    world.catalog.add([URL])
    assert world.check("<p>one</p>")[0].verdict is Verdict.NEW
    assert proof_of(world.check("<p>one</p>")[0]) is Proof.WIRE
    assert proof_of(world.check("<div>one</div>")[0]) is Proof.TEXT
    assert world.check("<p>two</p>")[0].verdict is Verdict.CHANGED
    page = world.catalog.find(URL)
    assert (page.checks, page.versions, page.verdict) == (4, 2, Verdict.CHANGED)
    history = world.repository.history(page)
    assert [check.version for check in history] == [2, None, None, 1]
    assert history[0].change is not None
    assert (history[0].change.from_version, history[0].change.to_version) == (1, 2)
    assert world.repository.version(page, 1).text == b"one"
    assert world.repository.version(page).body == b"<p>two</p>"


def test_a_failure_keeps_what_the_last_good_check_left_and_counts_up(world: World) -> None:
    world.catalog.add([URL])
    world.check("<p>one</p>")
    for count in (1, 2):
        run, _ = world.ledger.begin(None)
        world.ledger.record(run, [failed(link) for link in world.links(run)])
        world.ledger.finish(run)
        assert world.catalog.find(URL).failures == count
    assert proof_of(world.check("<p>one</p>")[0]) is Proof.WIRE
    page = world.catalog.find(URL)
    assert (page.failures, page.failure, page.versions) == (0, None, 1)


@pytest.mark.parametrize(("status", "until"), [(429, 1_120.0), (503, 1_120.0), (500, None)])
def test_the_retry_after_of_a_busy_server_is_stored(world: World, status: int, until: float | None) -> None:
    world.catalog.add([URL])
    run, _ = world.ledger.begin(None)
    failure = Failure(kind=FailureKind.STATUS, sentence="The server answered.")
    asked = [
        document(link, status=status, headers="Retry-After: 120\r\n", failure=failure, at=world.now)
        for link in world.links(run)
    ]
    world.ledger.record(run, [Failed(one, failure) for one in asked])
    with world.store.read() as connection:
        assert connection.scalar(text("SELECT retry_at FROM states")) == until
    run, _ = world.ledger.begin(None, fresh=True)
    world.ledger.record(run, [failed(link) for link in world.links(run)])
    with world.store.read() as connection:
        assert connection.scalar(text("SELECT retry_at FROM states")) is None, "it was asked again, and said nothing"


def test_many_outcomes_at_once_are_recorded_as_one_by_one(world: World) -> None:
    count = 150  # more than two statements take, and a rest
    world.catalog.add([f"https://a.example/{number}" for number in range(count)])
    world.check(*[f"<p>{number}</p>" for number in range(count)])
    run, _ = world.ledger.begin(None)
    links = world.links(run)
    early = [world.outcome(link, f"<p>{link.page_id} anew</p>") for link in links[70:75]]
    assert world.ledger.record(run, early).outcomes == early
    outcomes = [failed(link) if link.page_id % 2 else world.outcome(link, f"<p>{link.page_id}</p>") for link in links]
    recorded = world.ledger.record(run, outcomes)
    assert recorded.outcomes == outcomes[:70] + outcomes[75:], "what was recorded before changes nothing"
    for link, page in zip(links, world.catalog.all(), strict=True):
        assert (page.checks, page.versions) == (2, 2 if link in links[70:75] else page.versions)
        assert page.failures == (0 if link in links[70:75] else link.page_id % 2)
        assert world.repository.history(page)[0].sequence == 2
    assert world.store.problems() == []


def test_new_validators_are_kept_although_nothing_changed(world: World) -> None:
    world.catalog.add([URL])
    for tag in ('"one"', '"two"'):
        run, _ = world.ledger.begin(None)
        found = [world.outcome(link, "<p>x</p>", headers=f"ETag: {tag}\r\n") for link in world.links(run)]
        world.ledger.record(run, found)
        world.ledger.finish(run)
    run, _ = world.ledger.begin(None)
    known = world.links(run)[0].known
    assert known is not None
    assert known.etag == '"two"'


def test_recording_the_same_outcomes_twice_changes_nothing(world: World) -> None:
    world.catalog.add([URL, "https://b.example/", "https://c.example/"])
    world.check("<p>1</p>", "<p>2</p>", "<p>3</p>")
    run, _ = world.ledger.begin(None)
    links = world.links(run)
    outcomes = [world.outcome(links[0], "<p>changed</p>"), world.outcome(links[1], "<p>2</p>"), failed(links[2])]
    assert world.ledger.record(run, outcomes).outcomes == outcomes
    before = world.everything()
    assert world.ledger.record(run, outcomes).outcomes == []
    assert world.ledger.record(run, outcomes[:1]).outcomes == []
    assert world.everything() == before


def test_a_batch_that_is_recorded_in_part_is_completed(world: World) -> None:
    world.catalog.add([URL, "https://b.example/"])
    run, _ = world.ledger.begin(None)
    one, two = world.links(run)
    first, second = world.outcome(one, "<p>1</p>"), world.outcome(two, "<p>2</p>")
    world.ledger.record(run, [first])
    assert world.ledger.record(run, [first, second]).outcomes == [second]
    assert [page.versions for page in world.catalog.all()] == [1, 1]


def test_a_page_removed_during_the_run_is_left_out_and_the_others_are_recorded(world: World) -> None:
    world.catalog.add([URL, "https://b.example/"])
    run, _ = world.ledger.begin(None)
    outcomes = [world.outcome(link, f"<p>{link.url}</p>") for link in world.links(run)]
    world.catalog.remove([URL])
    assert world.ledger.record(run, outcomes).outcomes == outcomes[1:]
    assert [page.checks for page in world.catalog.all()] == [1]
    assert world.store.problems() == []


def test_links_are_read_across_gaps_between_page_ids(world: World, batches: Batches) -> None:
    batches.links = 2
    urls = [f"https://a.example/{number}" for number in range(12)]
    world.catalog.add(urls)
    world.catalog.remove(urls[1:9])
    run, _ = world.ledger.begin(None)
    assert [link.url for link in world.links(run)] == [urls[0], *urls[9:]]


def test_a_page_removed_and_added_again_does_not_get_the_outcome_of_the_old_one(world: World) -> None:
    world.catalog.add([URL])
    run, _ = world.ledger.begin(None)
    outcomes = [world.outcome(link, "<p>old</p>") for link in world.links(run)]
    world.catalog.remove([URL])
    world.catalog.add([URL])
    assert world.ledger.record(run, outcomes).outcomes == []
    assert world.catalog.find(URL).checks == 0


def test_an_interrupted_run_continues_with_the_pages_that_are_left(world: World) -> None:
    world.catalog.add([URL, "https://b.example/"])
    run, continued = world.ledger.begin(None)
    assert not continued
    first = world.links(run)[0]
    world.ledger.record(run, [world.outcome(first, "<p>1</p>")])
    assert world.ledger.begin(None) == (run, True)
    assert [link.url for link in world.links(run)] == ["https://b.example/"]
    assert world.ledger.remain(run, None) == 1


@pytest.fixture
def changing(world: World) -> World:
    """Two pages that were checked once, each of which says something else at its next check."""
    world.catalog.add([URL, "https://b.example/"])
    run, _ = world.ledger.begin(None)
    world.ledger.record(run, [world.outcome(link, f"<p>{link.url} as it was</p>") for link in world.links(run)])
    world.ledger.finish(run)
    world.ledger.end(run, reported=True)
    world.now += 60
    return world


def record_next(world: World, run: int) -> str:
    """Record a change of the next page that the run has not got to, a minute later; its address."""
    link = world.links(run)[0]
    world.now += 30
    world.ledger.record(run, [world.outcome(link, f"<p>{link.url} says something else</p>")])
    world.now += 30
    return link.url


def unreported(world: World, *, fresh: bool = False) -> list[str]:
    """Begin a run over all pages; the pages whose changes were recorded before, and are to be in its report."""
    world.ledger = Ledger(world.store, lambda: world.now)
    world.ledger.begin(None, fresh=fresh)
    return [change.url for change in world.ledger.found_before()[0]]


@pytest.mark.parametrize("ends", [True, False])
def test_what_a_run_recorded_before_it_failed_or_was_killed_is_left_to_the_next_report(
    changing: World, ends: bool
) -> None:
    run, _ = changing.ledger.begin(None)
    url = record_next(changing, run)
    if ends:
        changing.ledger.end(run)
    assert unreported(changing) == [url]
    assert unreported(changing) == [url], "that one was killed too"
    changing.ledger.end(run, reported=True)
    assert unreported(changing) == []


@pytest.mark.parametrize("fresh", [True, False])
def test_what_a_run_recorded_is_left_to_the_next_report_although_it_does_not_go_on(
    changing: World, fresh: bool
) -> None:
    run, _ = changing.ledger.begin(None)
    urls = [record_next(changing, run) for _ in range(1 if fresh else 2)]
    assert unreported(changing, fresh=fresh) == urls
    assert unreported(changing) == urls, "that one was killed before it recorded anything"


def test_what_a_killed_run_recorded_is_reported_although_others_ran_in_between(changing: World) -> None:
    run, _ = changing.ledger.begin(None)
    url = record_next(changing, run)
    other = Ledger(changing.store, lambda: changing.now)
    one, _ = other.begin([2])
    other.finish(one)
    other.end(one, reported=True)
    other.end(other.begin_without_end())
    assert unreported(changing) == [url]


def test_what_was_reported_when_a_run_was_interrupted_is_not_reported_once_more(changing: World) -> None:
    run, _ = changing.ledger.begin(None)
    record_next(changing, run)
    changing.ledger.end(run, reported=True)
    changing.now += 10
    assert unreported(changing) == []
    second = record_next(changing, run)
    assert unreported(changing) == [second]


@pytest.mark.parametrize("between", [True, False])
def test_schedulers_see_that_a_run_continues_and_ends_complete_or_not(world: World, between: bool) -> None:
    world.catalog.add([URL, "https://b.example/"])
    run, _ = world.ledger.begin(None)
    seen = [world.store.stamp()]
    world.ledger.end(run)  # it was interrupted
    seen.append(world.store.stamp())
    if between:
        world.ledger.end(world.ledger.begin([2])[0])
        seen.append(world.store.stamp())
    assert world.ledger.begin(None) == (run, True)
    seen.append(world.store.stamp())
    world.ledger.finish(run)
    world.ledger.end(run)
    seen.append(world.store.stamp())
    assert len(set(seen)) == len(seen)
    assert world.store.stamp() == seen[-1]


def test_a_finished_run_does_not_go_on(world: World) -> None:
    world.catalog.add([URL])
    run, _ = world.ledger.begin(None)
    world.ledger.finish(run)
    assert world.ledger.begin(None) == (run + 1, False)


def test_a_run_that_got_to_every_page_does_not_go_on_although_it_was_cut_short(world: World) -> None:
    world.catalog.add([URL])
    run, _ = world.ledger.begin(None)
    world.ledger.record(run, [world.outcome(link, "<p>1</p>") for link in world.links(run)])
    assert world.ledger.begin(None) == (run + 1, False)


@pytest.mark.parametrize(("fresh", "later", "ids"), [(True, 0.0, None), (False, 3_601.0, None), (False, 0.0, [1])])
def test_a_run_does_not_go_on_afresh_too_late_or_over_other_pages(
    world: World, fresh: bool, later: float, ids: list[int] | None
) -> None:
    world.catalog.add([URL])
    run, _ = world.ledger.begin(None)
    world.now += later
    assert world.ledger.begin(ids, fresh=fresh) == (run + 1, False)


def test_more_pages_than_one_read_takes_come_out_once_each_in_order(world: World) -> None:
    world.catalog.add([f"https://a.example/{number}" for number in range(2_500)])
    run, _ = world.ledger.begin(None)
    assert [link.page_id for link in world.links(run)] == list(range(1, 2_501))
    some = list(range(2_400, 10, -1))
    assert [link.page_id for link in world.links(run, some)] == sorted(some)
    assert world.ledger.remain(run, some) == len(some)


def test_pages_with_the_same_contents_read_back_whatever_became_of_the_other(world: World) -> None:
    other = "https://b.example/"
    world.catalog.add([URL, other])
    world.check("<p>the very same page</p>", "<p>the very same page</p>")
    world.check("<p>the very same page, for a while</p>", "<p>another page</p>")
    world.check("<p>another page</p>", "<p>the very same page</p>")
    world.catalog.remove([URL])
    page = world.catalog.find(other)
    texts = [world.repository.version(page, number).text for number in (1, 2, 3)]
    assert texts == [b"the very same page", b"another page", b"the very same page"]
    assert list(world.repository.read_everything()) == []


def test_sixty_versions_of_a_page_stay_within_the_deepest_chain_and_all_read_back(world: World) -> None:
    world.catalog.add([URL])
    lines = [f"<p>line {number}</p>" for number in range(50)]
    bodies = []
    for number in range(60):
        lines[number % 50] = f"<p>version {number}</p>"
        bodies.append("".join(lines))
        world.check(bodies[-1])
    page = world.catalog.find(URL)
    assert page.versions == 60
    for number, body in enumerate(bodies, start=1):
        assert world.repository.version(page, number).body == body.encode()
        assert f"version {number - 1}".encode() in world.repository.version(page, number).text
    with world.store.read() as connection:
        assert connection.scalar(text("SELECT max(depth) FROM blobs")) == DEEPEST


def test_a_page_that_goes_back_and_forth_reads_back_every_time(world: World) -> None:
    world.catalog.add([URL])
    for number in range(50):
        world.check("<p>the page as it was</p>" if number % 2 else "<p>the page as it is now</p>")
    page = world.catalog.find(URL)
    assert page.versions == 50
    assert world.repository.version(page, 49).text == b"the page as it is now"
    with world.store.read() as connection:
        assert connection.scalar(text("SELECT count(*) FROM blobs")) == 4


def test_a_damaged_blob_is_a_broken_version_and_fails_only_its_page(world: World) -> None:
    world.catalog.add([URL])
    world.check("<p>a page with some words in it</p>")
    with world.store.write() as connection:
        connection.execute(update(blobs).values(data=b"damaged"))
    page = world.catalog.find(URL)
    with pytest.raises(BrokenVersion):
        world.repository.version(page)
    found = world.check("<p>another page</p>")[0]
    assert isinstance(found, Failed)
    assert found.failure.kind is FailureKind.INTERNAL


def test_a_version_that_is_not_there_is_named_with_those_that_are(world: World) -> None:
    world.catalog.add([URL])
    with pytest.raises(UnknownVersion, match="no version yet"):
        world.repository.version(world.catalog.find(URL))
    world.check("<p>x</p>")
    with pytest.raises(UnknownVersion, match="versions 1 to 1"):
        world.repository.version(world.catalog.find(URL), 2)


def plan_of(world: World, statement: str, parameters: Any) -> list[str]:
    with world.store.read() as connection:
        return [row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]


def scanned(steps: list[str]) -> list[str]:
    """The steps that go through a whole table; walking the rows of a common table expression is none."""
    return [step for step in steps if re.match(r"SCAN (?!chain\b|wanted\b|\d+ CONSTANT ROWS)", step)]


def statements_of(world: World, act: Any) -> list[tuple[str, Any]]:
    """Every statement with parameters that reaches the driver while `act` runs, each with one row of parameters."""
    seen: list[tuple[str, Any]] = []

    def listen(_c: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        seen.append((statement, parameters[0] if many else parameters))

    event.listen(world.store.engine, "before_cursor_execute", listen)
    try:
        act()
    finally:
        event.remove(world.store.engine, "before_cursor_execute", listen)
    return [(statement, row) for statement, row in seen if re.match(r"\s*(SELECT|INSERT|UPDATE|WITH)", statement)]


def test_no_statement_of_recording_reads_a_whole_table(embedded: World) -> None:
    embedded.catalog.add([URL, "https://b.example/", "https://c.example/", "https://d.example/"])
    embedded.check("<p>1</p>", "<p>2</p>", "<p>3</p>", "<p>4</p>")
    run, _ = embedded.ledger.begin(None)
    links = embedded.links(run)
    outcomes = [
        embedded.outcome(links[0], "<p>changed</p>"),
        embedded.outcome(links[1], "<p>2</p>"),
        embedded.outcome(links[2], "<div>3</div>"),
        failed(links[3]),
    ]
    seen = statements_of(embedded, lambda: embedded.ledger.record(run, outcomes))
    assert len(seen) == 10, (
        "checks, states, two kinds of state, blobs, versions, changes, memories read and written, the outbox"
    )
    seen += statements_of(embedded, lambda: embedded.ledger.record(run, outcomes))
    for statement, parameters in seen:
        assert scanned(plan_of(embedded, statement, parameters)) == [], statement


def test_old_versions_are_found_by_their_names(embedded: World) -> None:
    def read() -> None:
        with embedded.store.read() as connection:
            assert read_chains(connection, [(1, b"a" * 32), (2, b"b" * 32)]) == {1: {}, 2: {}}

    (seen,) = statements_of(embedded, read)
    steps = plan_of(embedded, *seen)
    assert scanned(steps) == [], steps
    assert sum(f"SEARCH {blobs.name}" in step for step in steps) == 2, steps


def test_links_are_read_by_walking_the_pages_in_order_without_sorting(embedded: World) -> None:
    seen = statements_of(embedded, lambda: embedded.links(1))
    assert len(seen) == 2, "a range of pages, and whether there are more"
    for statement in seen:
        steps = plan_of(embedded, *statement)
        assert scanned(steps) == [], steps
        assert not any("TEMP B-TREE" in step for step in steps), steps
    named = statements_of(embedded, lambda: embedded.links(1, [3, 1, 2]))
    steps = plan_of(embedded, *named[0])
    assert scanned(steps) == [], steps


def test_a_removed_page_leaves_no_contents_behind_and_another_keeps_what_is_the_same(tmp_path: Path) -> None:
    bodies = {"/one": "<p>shared</p>", "/two": "<p>shared</p>"}
    with (
        Server(lambda request: html(bodies[request.path])) as server,
        driftline.open(str(tmp_path / "s.db")) as watched,
    ):
        watched.add(server.url("/one"), server.url("/two"))
        watched.check()
        for words in ("second of one", "third of one"):
            bodies["/one"] = f"<p>{words} {'and so on ' * 50}</p>"
            watched.check()
        watched.remove(server.url("/one"))
        kept = watched.history.version(server.url("/two"))
        assert kept.text == b"shared"
        assert workspace_of(watched).repository.sizes()[:2] == (1, len(kept.body) + len(kept.text))
        watched.remove(server.url("/two"))
        assert workspace_of(watched).repository.sizes() == (0, 0, 0)


class Program:
    """Another program that keeps a store locked until somebody asked so many times whether to give up."""

    def __init__(self, path: Path, asked: int) -> None:
        self.asked = 0
        self._most = asked
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("BEGIN IMMEDIATE")

    def stopped(self) -> bool:
        self.asked += 1
        if self.asked == self._most:
            self.close()
        return False

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def hasty(impatient_store: None, tmp_path: Path) -> Iterator[World]:
    """A world with one page, whose store waits for nobody."""
    made = World(str(tmp_path / "pages.db"))
    made.catalog.add([URL])
    yield made
    made.store.close()


STEPS: list[Callable[[Ledger, int, Outcome], object]] = [
    lambda ledger, run, found: ledger.record(run, [found]),
    lambda ledger, _run, _found: ledger.begin(None),
    lambda ledger, _run, _found: ledger.begin_without_end(),
    lambda ledger, run, _found: ledger.finish(run),
]


@pytest.mark.parametrize("step", STEPS)
def test_a_run_waits_while_another_program_keeps_the_store_locked(
    hasty: World, tmp_path: Path, step: Callable[[Ledger, int, Outcome], object]
) -> None:
    run, _ = hasty.ledger.begin(None)
    found = hasty.outcome(hasty.links(run)[0], "<p>one</p>")
    program = Program(tmp_path / "pages.db", asked=3)
    step(Ledger(hasty.store, stopped=program.stopped), run, found)
    assert program.asked == 3


def test_what_was_recorded_late_is_recorded_once(hasty: World, tmp_path: Path) -> None:
    run, _ = hasty.ledger.begin(None)
    found = hasty.outcome(hasty.links(run)[0], "<p>one</p>")
    program = Program(tmp_path / "pages.db", asked=2)
    assert Ledger(hasty.store, stopped=program.stopped).record(run, [found]).outcomes == [found]
    assert hasty.catalog.find(URL).checks == 1


def test_a_run_that_was_stopped_does_not_wait_for_another_program(hasty: World, tmp_path: Path) -> None:
    program = Program(tmp_path / "pages.db", asked=2)
    with pytest.raises(StoreLocked, match="is locked"):
        hasty.ledger.begin(None)
    program.close()


def test_a_store_that_fails_otherwise_is_not_tried_again(hasty: World) -> None:
    hasty.store.close()
    with pytest.raises(StoreError, match="closed"):
        Ledger(hasty.store, stopped=lambda: pytest.fail("it was tried again")).begin(None)
