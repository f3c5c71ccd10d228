"""Several processes write into one PostgreSQL store at once, and none undoes what another did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import ExceptionContext, Table, event, func, select

from driftline.detection.compare import compare, recall
from driftline.detection.extract.filters import how_read
from driftline.errors import UsageError
from driftline.http.credentials import read_access
from driftline.model.change import Importance
from driftline.model.outcome import Changed, Lesson, Outcome, version_made_by
from driftline.model.page import Filter, FilterKind, Render
from driftline.noise_memory import Memory
from driftline.pipeline.reread import reread
from driftline.pipeline.stop import Stop
from driftline.safety.blocking import Reports
from driftline.safety.blocklists import Blocklists
from driftline.schedule.scheduler import Scheduler
from driftline.store.access_records import Accesses
from driftline.store.engine import Store
from driftline.store.feedback import find_change, remember
from driftline.store.history import Repository
from driftline.store.ledger import Ledger
from driftline.store.pages import Catalog
from driftline.store.rereads import Readings
from driftline.store.schema import checks, rates, versions
from driftline.store.statements import AT_ONCE
from support.making import InThisProcess, document
from support.meanwhile import meanwhile

ONE, TWO = "https://a.example/one", "https://a.example/two"
HOST = "a.example"
SAID, LEARNED = b"whatwas1", b"whatwas2"


class Process:
    """One of those who have the store open."""

    def __init__(self, where: str) -> None:
        self.store = Store.open(where)
        self.catalog = Catalog(self.store)
        self.accesses = Accesses(self.store)
        self.ledger = Ledger(self.store)
        self.repository = Repository(self.store)
        self.run = 0

    def found(self, url: str, body: str) -> Outcome:
        """What a check of the page finds that is not recorded yet."""
        ids = [self.catalog.find(url).id]
        self.run, _ = self.ledger.begin(ids, fresh=True)
        (link,) = self.ledger.remaining(self.run, ids)
        return compare(
            recall([document(link, body.encode())], self.repository), InThisProcess(), self.repository, 10**8
        )[0]

    def check(self, url: str, *bodies: str) -> None:
        for body in bodies:
            found = self.found(url, body)
            self.ledger.record(self.run, [found])


def rows_of(store: Store, table: Table) -> int:
    with store.read() as connection:
        return connection.scalar(select(func.count()).select_from(table)) or 0


@pytest.fixture
def checker(postgres: str) -> Iterator[Process]:
    process = Process(postgres)
    yield process
    process.store.close()


@pytest.fixture
def other(checker: Process, postgres: str) -> Iterator[Process]:
    process = Process(postgres)
    yield process
    process.store.close()


def test_contents_that_a_check_is_about_to_refer_to_outlive_the_page_that_had_them(
    checker: Process, other: Process
) -> None:
    checker.catalog.add([ONE, TWO])
    checker.check(ONE, "<p>What both say</p>")
    found = checker.found(TWO, "<p>What both say</p>")
    with meanwhile(checker.store, "INSERT INTO versions", lambda: other.catalog.remove([ONE])):
        checker.ledger.record(checker.run, [found])
    assert other.repository.version(other.catalog.find(TWO)).text == b"What both say"


@pytest.mark.parametrize("table", ["memories", "host_memories"])
def test_what_the_user_says_while_a_check_is_being_recorded_is_kept_beside_what_it_taught(
    checker: Process, other: Process, table: str
) -> None:
    checker.catalog.add([ONE])
    checker.check(ONE, "<p>The first words</p>", "<p>Something else</p>")
    page_id = checker.catalog.find(ONE).id
    change = find_change(other.store, f"{page_id}-2")
    found = checker.found(ONE, "<p>Something else again</p>")
    learned = Memory()
    learned.note([LEARNED], 3, 0.0)
    assert isinstance(found, Changed)
    lesson = Lesson(memory=learned.to_bytes(), for_host=(LEARNED,))
    found = replace(found, examined=replace(found.examined, lesson=lesson))

    def say() -> None:
        remember(other.store, change, [SAID], [SAID], Importance.NOISE, 1_000.0)

    with meanwhile(checker.store, f"INSERT INTO {table}", say):
        checker.ledger.record(checker.run, [found])
    old = other.repository.recall([page_id])
    contents = other.repository.recall_contents(old, {page_id: HOST})[page_id].contents
    assert contents is not None
    of_page, of_host = Memory(contents.memory), Memory(contents.host_memory)
    assert [memory.pinned(SAID) for memory in (of_page, of_host)] == [Importance.NOISE, Importance.NOISE]
    assert [memory.times(LEARNED) for memory in (of_page, of_host)] == [1, 1]


def test_a_check_and_a_reading_that_come_upon_the_same_text_do_not_wait_for_each_other(
    checker: Process, other: Process
) -> None:
    checker.catalog.add([ONE])
    checker.check(ONE, "<p>Menu one</p><main>5 euros</main>")
    checker.catalog.edit(ONE, filters=lambda _: [Filter(FilterKind.SELECT, "main")])
    found = checker.found(ONE, "<p>Menu two</p><main>5 euros</main>")
    assert version_made_by(found) is not None
    with meanwhile(other.store, "UPDATE versions", lambda: checker.ledger.record(checker.run, [found])):
        assert reread(Readings(other.store, how_read), InThisProcess(), Stop(), lambda: False).changed == 1
    page = other.catalog.find(ONE)
    assert [other.repository.version(page, number).text for number in (1, 2)] == [b"5 euros", b"5 euros"]


def test_a_page_that_is_removed_while_the_rest_of_a_batch_is_recorded_goes_after_it(
    checker: Process, other: Process
) -> None:
    checker.catalog.add([ONE, TWO])
    found = [checker.found(url, "<p>What both say</p>") for url in (ONE, TWO)]
    other.catalog.remove([ONE])
    with meanwhile(checker.store, "WITH given", lambda: other.catalog.remove([TWO]), time=2):
        assert checker.ledger.record(checker.run, found).outcomes == found[1:]
    assert list(other.catalog.all()) == []


def test_of_a_batch_that_another_records_in_part_meanwhile_the_rest_is_recorded_whole(
    checker: Process, other: Process
) -> None:
    three = "https://a.example/three"
    checker.catalog.add([ONE, TWO, three])
    found = [checker.found(url, "<p>What all say</p>") for url in (ONE, TWO, three)]
    checker.catalog.remove([three])
    theirs = other.found(TWO, "<p>What it says to the other</p>")
    with meanwhile(checker.store, "WITH given", lambda: other.ledger.record(other.run, [theirs]), time=2):
        assert checker.ledger.record(checker.run, found).outcomes == found[:1]
    assert [page.checks for page in checker.catalog.all()] == [1, 1]
    checker.check(ONE, "<p>Something else</p>")
    assert [len(checker.repository.history(page)) for page in checker.catalog.all()] == [2, 1]
    assert checker.store.problems() == []


def test_a_page_that_is_removed_while_it_is_learned_from_goes_after_it(checker: Process, other: Process) -> None:
    checker.catalog.add([ONE, TWO])
    checker.check(ONE, "<p>The first words</p>")
    checker.check(TWO, "<p>Other words</p>")
    with meanwhile(checker.store, "INSERT INTO rates", lambda: other.catalog.remove([ONE])):
        Scheduler(checker.store).refresh()
    with other.store.read() as connection:
        assert list(connection.scalars(select(rates.c.page_id))) == [other.catalog.find(TWO).id]


@pytest.mark.parametrize(
    "when", ["SELECT pages.id", "SELECT states.page_id", "DELETE FROM pages", "DELETE FROM checks"]
)
@pytest.mark.parametrize("body", ["<p>The same</p>", "<p>Changed</p>"])
def test_no_check_stays_of_a_page_that_is_removed_while_it_is_recorded(
    checker: Process, other: Process, body: str, when: str
) -> None:
    checker.catalog.add([ONE])
    checker.check(ONE, "<p>The same</p>")
    found = checker.found(ONE, body)
    with meanwhile(other.store, when, lambda: checker.ledger.record(checker.run, [found])):
        other.catalog.remove([ONE])
    assert rows_of(checker.store, checks) == 0


@pytest.mark.parametrize("body", ["<p>The same</p>", "<p>Changed</p>"])
def test_a_page_that_is_removed_before_its_state_is_written_keeps_nothing_of_the_check(
    checker: Process, other: Process, body: str
) -> None:
    checker.catalog.add([ONE])
    checker.check(ONE, "<p>The same</p>")
    found = checker.found(ONE, body)
    with meanwhile(checker.store, "WITH given", lambda: other.catalog.remove([ONE])):
        checker.ledger.record(checker.run, [found])
    assert rows_of(checker.store, checks) == rows_of(checker.store, versions) == 0


@pytest.mark.parametrize("removed_first", ["low", "high"])
@pytest.mark.parametrize("recorded_first", ["low", "high"])
def test_removing_many_pages_and_recording_a_batch_do_not_lock_each_other_out(
    checker: Process, other: Process, removed_first: str, recorded_first: str
) -> None:
    """Whoever comes upon the other's pages waits for it, and the other never for whoever waits."""
    urls = [f"https://a.example/{number}" for number in range(AT_ONCE + 1)]
    checker.catalog.add(urls)
    found = [checker.found(url, f"<p>What {url} says</p>") for url in (urls[0], urls[-1])]
    if recorded_first == "high":
        found.reverse()
    if removed_first == "high":
        urls.reverse()
    errors: list[str] = []

    def note(context: ExceptionContext) -> None:
        errors.append(str(context.original_exception))

    for process in (checker, other):
        event.listen(process.store.engine, "handle_error", note)
    with meanwhile(other.store, "SELECT pages.id \nFROM", lambda: checker.ledger.record(checker.run, found), time=2):
        assert len(other.catalog.remove(urls)) == len(urls)
    assert [error for error in errors if "deadlock" in error] == []
    assert list(other.catalog.all()) == []


def test_who_says_how_a_page_is_got_at_undoes_no_edit_of_it(checker: Process, other: Process) -> None:
    checker.catalog.add([ONE])
    page = checker.catalog.find(ONE)
    price = Filter(FilterKind.SELECT, ".price")
    with meanwhile(checker.store, "UPDATE pages", lambda: other.catalog.edit(ONE, filters=lambda _: [price])):
        checker.accesses.edit_pages([page], lambda kept: read_access(headers=["X-Key: k"]).before(kept))
    assert checker.catalog.find(ONE).filters == (price,)
    assert checker.accesses.of_page(page).headers == {"X-Key": "k"}


def test_two_who_edit_a_page_at_once_undo_nothing_of_each_other(checker: Process, other: Process) -> None:
    checker.catalog.add([ONE], tags=["old"], filters=[Filter(FilterKind.DROP, ".ad")])
    page = checker.catalog.find(ONE)

    def edit() -> None:
        other.catalog.edit(
            ONE, every=60.0, tag=["two"], filters=lambda kept: [*kept, Filter(FilterKind.DROP, ".clock")],
            render=lambda _: Render(),
        )  # fmt: skip
        other.accesses.edit_pages([page], lambda kept: read_access(bearer="b").before(kept))

    with meanwhile(checker.store, "UPDATE pages", edit):
        main = Filter(FilterKind.SELECT, "main")
        checker.catalog.edit(ONE, tag=["one"], untag=["old"], filters=lambda kept: [*kept, main])
    now = checker.catalog.find(ONE)
    assert (now.every, sorted(now.tags), now.render) == (timedelta(minutes=1), ["one", "two"], Render())
    assert {one.value for one in now.filters} == {".ad", ".clock", "main"}
    assert checker.accesses.of_page(page).bearer == "b"


@pytest.mark.parametrize("before", [[], ["X-Old: o"]])
def test_two_who_say_at_once_how_pages_of_a_tag_are_got_at_are_both_heard(
    checker: Process, other: Process, before: list[str]
) -> None:
    def send(process: Process, header: str) -> None:
        process.accesses.edit_tag("members", [], lambda kept: read_access(headers=[header]).before(kept))

    for header in before:
        send(checker, header)
    with meanwhile(checker.store, "UPDATE tags", lambda: send(other, "X-Two: 2")):
        send(checker, "X-One: 1")
    _, by_tag = checker.accesses.all()
    assert {f"{name}: {value}" for name, value in by_tag["members"].headers.items()} == {
        "X-One: 1",
        "X-Two: 2",
        *before,
    }


def test_a_page_that_two_add_at_once_is_added_by_one_of_them(checker: Process, other: Process) -> None:
    added: list[str] = []
    with meanwhile(checker.store, "INSERT INTO pages", lambda: added.extend(other.catalog.add([TWO, ONE]))):
        added += checker.catalog.add([ONE, TWO])
    assert sorted(added) == sorted(page.url for page in checker.catalog.all()) == [ONE, TWO]


def test_no_page_moves_to_where_one_is_just_being_added(checker: Process, other: Process) -> None:
    checker.catalog.add([ONE])

    def move() -> None:
        with pytest.raises(UsageError, match="watched already"):
            other.catalog.edit(ONE, move_to=TWO)

    with meanwhile(checker.store, "INSERT INTO states", move):
        checker.catalog.add([TWO])
    assert [page.url for page in checker.catalog.all()] == [ONE, TWO]


def test_a_blocklist_that_two_add_at_once_is_one_list(checker: Process, other: Process, tmp_path: Path) -> None:
    source = tmp_path / "hosts.txt"
    source.write_text("0.0.0.0 bad.example\n")
    mine, theirs = (Blocklists(one.store, lambda: 1_000.0, lambda _: b"") for one in (checker, other))
    with meanwhile(checker.store, "INSERT INTO blocklists", lambda: theirs.add(str(source))):
        mine.add(str(source))
    assert [one.hosts for one in mine.all()] == [1]


def test_a_report_is_told_even_if_it_is_withdrawn_at_once(checker: Process, other: Process) -> None:
    mine, theirs = (Reports(one.store, lambda: 1_000.0) for one in (checker, other))
    with meanwhile(checker.store, "SELECT reports", lambda: theirs.withdraw(ONE)):
        assert mine.add(ONE, votes=2).votes == 2
