"""Compacting a real store: it gets smaller, nothing is lost, and no writer waits long."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, text

from driftline.detection.compare import compare, recall
from driftline.store.blobs import DEEPEST, digest, pack
from driftline.store.compaction import compact
from driftline.store.engine import Store
from driftline.store.history import Repository
from driftline.store.ledger import Ledger
from driftline.store.pages import Catalog
from support.making import InThisProcess, document

ONE, TWO = "https://a.example/", "https://b.example/"
WORDS = ("price", "service", "terms", "data", "you", "we", "may", "change", "time", "notice", "fees", "apply")
# ends itself as `kill -9` would, between deleting rows and inserting them anew for the so-many-th time
KILLED = """
import os, signal, sys
from sqlalchemy import event
from driftline.store.compaction import compact
from driftline.store.engine import Store

store, left = Store.open(sys.argv[1]), int(sys.argv[2])

def count(_connection, _cursor, statement, *_rest):
    global left
    left -= statement.startswith("INSERT INTO blobs")
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

event.listen(store.engine, "before_cursor_execute", count)
compact(store)
"""


class World:
    """A store whose pages a test gives bodies."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.store = Store.open(where)
        self.repository = Repository(self.store)
        self.catalog = Catalog(self.store)
        self.catalog.add([ONE, TWO])
        self.bodies: dict[str, list[bytes]] = {ONE: [], TWO: []}

    def check(self, url: str, body: bytes) -> None:
        """A check that finds this body."""
        self.begin_check(url, body)()

    def begin_check(self, url: str, body: bytes) -> Callable[[], None]:
        """A check that has found this body, and what records it."""
        ledger, ids = Ledger(self.store), [self.catalog.find(url).id]
        run, _ = ledger.begin(ids, fresh=True)
        (link,) = ledger.remaining(run, ids)
        outcomes = compare(recall([document(link, body)], self.repository), InThisProcess(), self.repository, 10**8)

        def record() -> None:
            ledger.record(run, outcomes)
            self.bodies[url].append(body)

        return record

    def fill(self, versions: int) -> None:
        """Both pages, in so many versions."""
        for url in (ONE, TWO):
            for body in bodies(versions, url):
                self.check(url, body)

    def insist_on_every_version(self) -> None:
        """Every version that a page had is there to the byte, and the store is sound."""
        for page in self.catalog.all():
            found = [self.repository.version(page, number + 1).body for number in range(page.versions)]
            assert found == self.bodies[page.url]
        assert list(self.repository.read_everything()) == []
        assert self.store.problems() == []

    def ask(self, question: str) -> int:
        with self.store.read() as connection:
            return int(connection.scalar(text(question)) or 0)


def bodies(versions: int, seed: str) -> list[bytes]:
    """A page of some length, of which a little is different in every version."""
    chance = random.Random(seed)
    lines = [f"<p>{' '.join(chance.choices(WORDS, k=20))} {number}</p>" for number in range(60)]
    made = []
    for version in range(versions):
        lines[chance.randrange(60)] = f"<p>{' '.join(chance.choices(WORDS, k=20))} in version {version}</p>"
        made.append("\n".join(lines).encode())
    return made


@pytest.fixture
def world(where: str) -> Iterator[World]:
    made = World(where)
    yield made
    made.store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pages.db"


@pytest.fixture
def file_world(path: Path) -> Iterator[World]:
    made = World(str(path))
    yield made
    made.store.close()


LOOSE = "SELECT count(*) FROM blobs WHERE level IS NULL"
LENGTH = "SELECT sum(length(data)) FROM blobs"
DEPTH = "SELECT max(depth) FROM blobs"


def test_a_compacted_store_is_smaller_and_every_version_reads_back_to_the_byte(world: World) -> None:
    world.fill(2 * DEEPEST + 5)
    contents, length = world.ask(LOOSE), world.ask(LENGTH)
    seen: list[tuple[int, int]] = []
    done = compact(world.store, lambda *figures: seen.append(figures))
    assert (done.contents, done.removed, done.unreadable) == (contents, 0, 0)
    assert seen[-1] == (contents, contents)
    assert (done.before, done.after) == (length, world.ask(LENGTH))
    assert done.after < done.before
    assert world.ask(DEPTH) == DEEPEST
    world.insist_on_every_version()


def test_the_file_is_smaller_and_a_second_time_there_is_nothing_to_do(file_world: World, path: Path) -> None:
    file_world.fill(2 * DEEPEST)
    size = file_world.store.size()
    assert compact(file_world.store).size == path.stat().st_size < size
    before = path.read_bytes()
    done = compact(file_world.store)
    assert (done.contents, done.removed, done.before, done.after) == (0, 0, 0, 0)
    assert path.read_bytes() == before


def test_an_empty_store_is_compact(world: World) -> None:
    assert compact(world.store).contents == 0


def test_checks_go_on_upon_what_is_compacted_and_the_next_time_takes_only_what_they_kept(world: World) -> None:
    world.fill(DEEPEST - 2)
    compact(world.store)
    for body in bodies(DEEPEST, "later"):
        world.check(ONE, body)
    assert world.ask(LOOSE) == 2 * DEEPEST, "a body and a text of each version"
    world.insist_on_every_version()
    assert compact(world.store).contents == 2 * DEEPEST
    assert world.ask(DEPTH) == DEEPEST
    world.insist_on_every_version()


def test_a_check_that_was_under_way_all_the_time_is_recorded(world: World) -> None:
    world.fill(3)
    record = world.begin_check(ONE, bodies(1, "the next one")[0])
    compact(world.store)
    record()
    world.insist_on_every_version()


def test_another_process_writes_between_any_two_transactions(world: World) -> None:
    world.fill(DEEPEST)
    other = Store.open(world.where)
    added: list[str] = []

    def told(done: int, _total: int) -> None:
        added.extend(Catalog(other).add([f"https://c.example/{done}"]))

    compact(world.store, told)
    other.close()
    assert len(added) > 1
    assert len(world.catalog.all()) == 2 + len(added)


def test_contents_are_replaced_many_at_a_time(world: World) -> None:
    world.fill(DEEPEST)
    ran: list[str] = []
    event.listen(world.store.engine, "before_cursor_execute", lambda *given: ran.append(given[2].split()[0]))

    done = compact(world.store)

    transactions = -(-done.contents // 32)
    assert done.contents > 32
    assert [ran.count(word) for word in ("DELETE", "INSERT")] == [transactions, transactions]
    world.insist_on_every_version()


@pytest.mark.parametrize("moment", [1, 2])
def test_killed_in_the_middle_of_a_transaction_it_loses_nothing_and_continues_the_next_time(
    world: World, moment: int
) -> None:
    world.fill(DEEPEST)
    contents = world.ask(LOOSE)
    killed = subprocess.run([sys.executable, "-c", KILLED, world.where, str(moment)], check=False)
    assert killed.returncode == -signal.SIGKILL
    left = world.ask(LOOSE)
    assert 0 < left <= contents
    assert (left < contents) == (moment == 2), "what was committed before is done"
    world.insist_on_every_version()
    assert compact(world.store).contents == left
    world.insist_on_every_version()


def test_contents_that_no_version_needs_are_removed_and_those_that_others_are_built_on_stay(world: World) -> None:
    world.fill(3)
    loose, built_on_it = b"contents of nobody", b"contents of nobody, once more"
    base = pack(loose, digest(loose))
    child = pack(built_on_it, digest(built_on_it), base, loose)
    with world.store.write() as connection:
        rows = [(1, blob.digest, blob.base, blob.depth, blob.size, blob.data) for blob in (base, child)]
        world.store.statements.blob.many(connection, rows)
    assert compact(world.store).removed == 2
    world.insist_on_every_version()
    assert compact(world.store).removed == 0


def test_contents_that_are_removed_after_they_were_read_do_not_come_back(world: World) -> None:
    world.fill(DEEPEST)
    other = Store.open(world.where)
    removed: list[str] = []

    def before_writing(connection: Connection) -> None:
        if connection.get_execution_options().get("driftline_writes") and not removed:
            removed.extend(Catalog(other).remove([ONE]))

    event.listen(world.store.engine, "engine_connect", before_writing)
    compact(world.store)
    other.close()
    assert removed == [ONE]
    assert world.ask(LOOSE) == 0
    assert world.ask("SELECT count(*) FROM blobs") == 2 * DEEPEST, "those of the other page"
    world.insist_on_every_version()


def test_contents_that_cannot_be_read_are_left_as_they_are_and_counted_once(world: World) -> None:
    world.fill(3)
    with world.store.write() as connection:
        connection.execute(text("UPDATE blobs SET data = :nothing WHERE base IS NULL"), {"nothing": bytes(9)})
    done = compact(world.store)
    assert (done.contents, done.unreadable) == (0, 12), "everything is built on the two that are damaged"
    again = compact(world.store)
    assert (again.contents, again.unreadable) == (0, 12), "they are still damaged"


def test_a_file_that_cannot_shrink_in_steps_is_written_anew_once_unless_a_check_is_running(
    file_world: World, path: Path
) -> None:
    file_world.fill(3)
    file_world.store.close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA auto_vacuum=NONE")
        database.execute("VACUUM")
    database.close()
    file_world.store = Store.open(str(path))
    file_world.repository, file_world.catalog = Repository(file_world.store), Catalog(file_world.store)
    assert file_world.ask("PRAGMA auto_vacuum") == 0
    checking = Store.open(str(path))
    with checking.right_to_check():
        compact(file_world.store)
        assert file_world.ask("PRAGMA auto_vacuum") == 0
    checking.close()
    size = file_world.store.size()
    assert compact(file_world.store).size < size
    assert file_world.ask("PRAGMA auto_vacuum") == 2
    file_world.insist_on_every_version()
