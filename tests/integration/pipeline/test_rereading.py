"""Versions are read anew when the filters of their page or the extractor changed, and nobody is alarmed by it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import pytest
from sqlalchemy import Connection, event, text

import driftline
from driftline.api import workspace_of
from driftline.detection.examine import examine
from driftline.detection.extract.filters import how_read
from driftline.detection.jobs import Finding, Job, OldVersions
from driftline.detection.worker_pool import WorkerPool
from driftline.errors import FailureKind, RunStopped
from driftline.model.outcome import Check, Proof, Verdict
from driftline.model.page import Failure, Filter, FilterKind
from driftline.pipeline.reread import reread
from driftline.pipeline.stop import Bell, Stop
from driftline.store.blobs import unpack
from driftline.store.engine import Store
from driftline.store.history import Repository
from driftline.store.rereads import Readings
from support.making import settings
from support.servers import Answer, Request, Server, answer

PAGE = "<title>Shop</title><nav>Menu {menu}</nav><main><p class=price>{price} euros</p><p class=ad>{ad}</p></main>"
PRICE = [Filter(FilterKind.SELECT, ".price")]
ROWS = "SELECT (SELECT count(*) FROM checks) + (SELECT count(*) FROM changes) + (SELECT count(*) FROM versions)"
# ends itself as `kill -9` would, when it writes into a version for the so-many-th time
KILLED = """
import os, signal, sys
from sqlalchemy import event
import driftline
from driftline.api import workspace_of
from driftline.settings import load_settings

pages, left = driftline.open(settings=load_settings(store=sys.argv[1])), int(sys.argv[2])

def count(_connection, _cursor, statement, *_rest):
    global left
    left -= statement.startswith("UPDATE versions")
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

event.listen(workspace_of(pages).store.engine, "before_cursor_execute", count)
workspace_of(pages).catch_up()
"""


class Shop:
    """One page that a test rewrites."""

    def __init__(self, where: str) -> None:
        self.body = PAGE.format(price=5, ad="Buy it", menu="one")
        self.server = Server(self._answer)
        self.where = where
        self.pages = driftline.open(settings=settings(store=where, confirm=False))
        self.store = Store.open(where)
        self.url = self.server.url("/")
        self.bodies: list[bytes] = []

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(self, *ended: object) -> None:
        self.store.close()
        self.pages.close()
        self.server.__exit__(None, None, None)

    def _answer(self, _request: Request) -> Answer:
        return answer(self.body.encode(), "200 OK", "Content-Type: text/html; charset=utf-8")

    def sell(self, *prices: int, ad: str = "Buy it", menu: str = "one") -> Check:
        """Checks that find the page at these prices, one after the other; the last of them."""
        for price in prices:
            self.body = PAGE.format(price=price, ad=ad, menu=menu)
            found = self.check()
            if found.version:
                self.bodies.append(self.body.encode())
        return found

    def check(self) -> Check:
        self.pages.check(fresh=True)
        return self.pages.history.checks(self.url, 1)[0]

    def texts(self) -> list[str]:
        numbers = range(1, self.pages.pages()[0].versions + 1)
        return [self.pages.history.version(self.url, number).text.decode() for number in numbers]

    def insist_on_every_body(self) -> None:
        numbers = range(1, self.pages.pages()[0].versions + 1)
        assert [self.pages.history.version(self.url, number).body for number in numbers] == self.bodies
        assert self.pages.maintenance.doctor() == []

    def ask(self, question: str) -> Any:
        with self.store.read() as connection:
            return connection.scalar(text(question))

    def tell(self, statement: str, **values: Any) -> None:
        with self.store.write() as connection:
            connection.execute(text(statement), values)

    def mentions(self, query: str) -> list[tuple[int, str]]:
        return [(found.version, found.kind.value) for found in self.pages.search(query)]


@pytest.fixture
def shop(where: str) -> Iterator[Shop]:
    with Shop(where) as shop:
        shop.pages.add(shop.url)
        yield shop


@pytest.fixture
def file_shop(tmp_path: Path) -> Iterator[Shop]:
    with Shop(str(tmp_path / "pages.db")) as shop:
        shop.pages.add(shop.url)
        yield shop


@pytest.fixture(scope="module")
def sold_out(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A shop that sold at forty prices and is closed: checking so often takes long, so that it is done once."""
    with Shop(str(tmp_path_factory.mktemp("sold-out") / "pages.db")) as shop:
        shop.pages.add(shop.url)
        shop.sell(*range(1, 41))
    return shop


@pytest.fixture
def full_shop(sold_out: Shop, tmp_path: Path) -> Iterator[Shop]:
    """A copy of that shop, for a test of its own."""
    where = shutil.copyfile(sold_out.where, tmp_path / "pages.db")
    with Shop(str(where)) as shop:
        shop.url, shop.bodies = sold_out.url, sold_out.bodies
        yield shop


def test_after_an_edit_of_the_filters_every_version_is_read_anew_and_nothing_else_happens(shop: Shop) -> None:
    shop.sell(5, 6, 7)
    assert shop.mentions("buy") == [(1, "appeared")]
    assert workspace_of(shop.pages).left_to_read() == (0, 0)
    rows, changed_at = shop.ask(ROWS), shop.pages.pages()[0].changed_at
    workspace_of(shop.pages).catalog.edit(shop.url, filters=lambda _: PRICE)
    assert workspace_of(shop.pages).left_to_read() == (3, 0)
    assert not any(check.reread_at for check in shop.pages.history.checks(shop.url))
    told: list[tuple[int, int]] = []
    done = workspace_of(shop.pages).catch_up(progress=lambda *figures: told.append(figures))
    assert (done.versions, done.changed, done.unread, done.finished) == (3, 3, 0, True)
    assert told[:2] == [(0, 1), (1, 1)], "pages, before versions are indexed"
    assert shop.texts() == ["5 euros", "6 euros", "7 euros"]
    shop.insist_on_every_body()
    assert shop.ask(ROWS) == rows
    assert all(check.reread_at for check in shop.pages.history.checks(shop.url))
    assert shop.pages.pages()[0].changed_at == changed_at
    assert (shop.mentions("buy"), shop.mentions("7")) == ([], [(3, "appeared")])
    assert workspace_of(shop.pages).left_to_read() == (0, 0)
    found = shop.check()
    assert (found.verdict, found.proof) == (Verdict.UNCHANGED, Proof.BODY), "the version in force needs no reading"
    assert shop.check().proof is Proof.WIRE
    assert shop.sell(7, ad="Buy two").proof is Proof.TEXT
    assert shop.sell(8).verdict is Verdict.CHANGED
    assert workspace_of(shop.pages).catch_up().versions == 0
    shop.insist_on_every_body()


def test_what_another_extractor_read_is_read_by_that_of_today(shop: Shop) -> None:
    shop.sell(5, 6)
    as_it_was = shop.texts()
    # the older one took the name of the first text for all that there is to see
    shop.tell("UPDATE versions SET text = (SELECT text FROM versions WHERE number = 1), reading = '1'")
    shop.tell("UPDATE states SET reading = '1', caught_up = '1'")
    assert workspace_of(shop.pages).left_to_read() == (2, 0)
    done = workspace_of(shop.pages).catch_up()
    assert (done.versions, done.changed) == (2, 1)
    assert shop.texts() == as_it_was
    second, first = shop.pages.history.checks(shop.url)
    assert (first.reread_at, bool(second.reread_at)) == (None, True), "only the second says something else now"
    assert shop.ask("SELECT count(*) FROM versions WHERE reading = '1'") == 0
    assert shop.check().verdict is Verdict.UNCHANGED


def test_a_version_that_has_nothing_of_what_is_selected_now_stays_as_it_was_and_is_counted(shop: Shop) -> None:
    shop.body = "<p>Coming soon</p>"
    shop.check()
    shop.bodies.append(shop.body.encode())
    shop.sell(5)
    workspace_of(shop.pages).catalog.edit(shop.url, filters=lambda _: PRICE)
    done = workspace_of(shop.pages).catch_up()
    assert (done.versions, done.changed, done.unread, done.finished) == (2, 1, 1, True)
    assert shop.texts() == ["Coming soon", "5 euros"]
    assert workspace_of(shop.pages).left_to_read() == (0, 1)
    assert workspace_of(shop.pages).catch_up().versions == 0, "it is not tried again in the same way"
    workspace_of(shop.pages).catalog.edit(shop.url, filters=lambda _: [Filter(FilterKind.SELECT, "p")])
    assert workspace_of(shop.pages).left_to_read() == (2, 0)
    assert workspace_of(shop.pages).catch_up().unread == 0
    assert workspace_of(shop.pages).left_to_read() == (0, 0)
    shop.insist_on_every_body()


def test_what_changed_unseen_before_an_edit_that_shows_it_is_no_news_after_it(shop: Shop) -> None:
    workspace_of(shop.pages).catalog.edit(shop.url, filters=lambda kept: [*kept, Filter(FilterKind.DROP, ".ad")])
    shop.sell(5)
    assert shop.sell(5, ad="Buy two").proof is Proof.TEXT
    workspace_of(shop.pages).catalog.edit(shop.url, filters=lambda _: [])
    workspace_of(shop.pages).catch_up()
    assert shop.texts() == ["Menu one\n5 euros\nBuy it"], "the body in force is the first one"
    assert shop.check().verdict is Verdict.UNCHANGED
    assert shop.texts()[-1] == "Menu one\n5 euros\nBuy two"


def test_a_check_that_was_under_way_all_the_time_raises_no_alarm(shop: Shop) -> None:
    shop.sell(5)
    served = shop.server
    done: list[int] = []

    def meanwhile(_connection: Connection) -> None:
        # between the fetch and the commit of the check
        if len(served.requests) == 2 and not done:
            done.append(1)
            with driftline.open(settings=settings(store=shop.where)) as other:
                workspace_of(other).catalog.edit(shop.url, filters=lambda _: PRICE)
                workspace_of(other).catch_up()

    event.listen(workspace_of(shop.pages).store.engine, "engine_connect", meanwhile)
    assert shop.check().verdict is Verdict.UNCHANGED
    event.remove(workspace_of(shop.pages).store.engine, "engine_connect", meanwhile)
    assert done
    assert shop.check().verdict is Verdict.UNCHANGED
    assert shop.texts()[0] == "5 euros"
    assert shop.sell(6).verdict is Verdict.CHANGED
    workspace_of(shop.pages).catch_up()
    assert workspace_of(shop.pages).left_to_read() == (0, 0)
    assert shop.texts()[-1] == "6 euros"


def test_a_check_that_was_under_way_while_filters_came_and_went_raises_no_alarm(shop: Shop) -> None:
    shop.sell(5)
    shop.body += "<!-- of the second check -->"
    done: list[int] = []

    def before_recording(connection: Connection) -> None:
        writes = connection.get_execution_options().get("driftline_writes")
        if writes and len(shop.server.requests) == 2 and not done:
            done.append(1)
            with driftline.open(settings=settings(store=shop.where)) as other:
                workspace_of(other).catalog.edit(shop.url, filters=lambda _: PRICE)
                reread_all(other)
                workspace_of(other).catalog.edit(shop.url, filters=lambda _: [])

    event.listen(workspace_of(shop.pages).store.engine, "engine_connect", before_recording)
    assert shop.check().proof is Proof.TEXT
    event.remove(workspace_of(shop.pages).store.engine, "engine_connect", before_recording)
    assert done
    assert shop.texts() == ["5 euros"]
    shop.body += "<!-- of the third check -->"
    assert shop.check().verdict is Verdict.UNCHANGED
    assert shop.sell(6).verdict is Verdict.CHANGED
    workspace_of(shop.pages).catch_up()
    assert shop.texts()[0] == "Menu one\n5 euros\nBuy it"


def test_an_index_that_is_made_meanwhile_has_the_new_texts(shop: Shop) -> None:
    shop.sell(5, 6)
    workspace_of(shop.pages).catalog.edit(shop.url, filters=lambda _: PRICE)
    done: list[int] = []

    def before_writing(connection: Connection) -> None:
        if connection.get_execution_options().get("driftline_writes") and not done:
            done.append(1)
            with driftline.open(settings=settings(store=shop.where)) as other:
                reread_all(other)

    shop.mentions("nothing")
    shop.tell("DELETE FROM indexed")
    event.listen(workspace_of(shop.pages).store.engine, "engine_connect", before_writing)
    assert (shop.mentions("buy"), shop.mentions("5")) == ([], [(2, "disappeared"), (1, "appeared")])
    assert done


def reread_all(pages: driftline.Driftline) -> None:
    """Read everything anew, and leave the index alone."""
    workers = WorkerPool(most=1, deadline=20.0, memory=pages.settings.worker_memory)
    reread(Readings(workspace_of(pages).store, how_read), workers, Stop(), lambda: False)
    workers.close()


def after_a_few() -> Callable[[], bool]:
    asked = iter([False])
    return lambda: next(asked, True)


def test_it_goes_on_where_it_was_when_it_was_enough_and_others_write_in_between(shop: Shop) -> None:
    shop.sell(*range(1, 41))
    workspace_of(shop.pages).catalog.edit(shop.url, filters=lambda _: PRICE)
    left: list[int] = []
    while not (done := workspace_of(shop.pages).catch_up(enough=after_a_few())).finished:
        assert 0 < done.versions < 40
        left.append(workspace_of(shop.pages).left_to_read()[0])
        shop.pages.add(f"https://page-{left[-1]}.example/")
    assert left == sorted(left, reverse=True)
    assert len(left) > 1
    assert shop.texts() == [f"{price} euros" for price in range(1, 41)]


@pytest.mark.parametrize("moment", [1, 10, 30])
def test_killed_in_the_middle_of_a_transaction_it_loses_nothing_and_goes_on_the_next_time(
    full_shop: Shop, moment: int
) -> None:
    workspace_of(full_shop.pages).catalog.edit(full_shop.url, filters=lambda _: PRICE)
    killed = subprocess.run([sys.executable, "-c", KILLED, full_shop.where, str(moment)], check=False)
    assert killed.returncode == -signal.SIGKILL
    left, _ = workspace_of(full_shop.pages).left_to_read()
    assert (left < 40) == (moment == 30), "what was committed before is done"
    full_shop.insist_on_every_body()
    assert workspace_of(full_shop.pages).catch_up().versions == left
    assert full_shop.texts() == [f"{price} euros" for price in range(1, 41)]
    full_shop.insist_on_every_body()


def test_a_removed_page_is_no_longer_read(shop: Shop) -> None:
    shop.sell(5)
    workspace_of(shop.pages).catalog.edit(shop.url, filters=lambda _: PRICE)
    readings = Readings(shop.store, how_read)
    (page,) = readings.behind()
    some = readings.some(page)
    shop.pages.remove(shop.url)
    assert readings.keep(page, [(stale, None) for stale in some]) == 0
    readings.finish(page)
    assert workspace_of(shop.pages).catch_up().versions == 0
    assert shop.ask("SELECT count(*) FROM versions") == 0


def test_contents_that_were_extracted_anew_since_their_digests_were_read_are_those_of_now(shop: Shop) -> None:
    shop.sell(5)
    repository, page = Repository(shop.store), workspace_of(shop.pages).catalog.find(shop.url)
    before = repository.recall([page.id])
    workspace_of(shop.pages).catalog.edit(shop.url, filters=lambda _: PRICE)
    workspace_of(shop.pages).catch_up()
    shop.pages.maintenance.compact()  # which deletes the text as it was extracted before
    old = repository.recall_contents(before, {page.id: "shop.example"})[page.id]
    assert old.contents is not None
    assert old.kept_text != before[page.id].kept_text
    assert unpack(old.kept_text, old.contents.blobs) == b"5 euros"


def test_contents_of_a_page_that_was_removed_since_its_digests_were_read_are_left_out(shop: Shop) -> None:
    shop.sell(5)
    repository, page = Repository(shop.store), workspace_of(shop.pages).catalog.find(shop.url)
    before = repository.recall([page.id])
    shop.pages.remove(shop.url)
    assert repository.recall_contents(before, {page.id: "shop.example"}) == {}


class Hanging(WorkerPool):
    """Workers that come to no end by themselves."""

    def __init__(self, begun: Callable[[], None]) -> None:
        self._begun = begun
        self._ended = threading.Event()

    def examine(self, jobs: Sequence[Job], old: OldVersions | None = None) -> list[Finding]:
        self._begun()
        self._ended.wait()
        raise RunStopped("The run was stopped before the page was read.")

    def stop(self) -> None:
        self._ended.set()


def test_a_version_that_hangs_ends_with_the_run(file_shop: Shop) -> None:
    file_shop.sell(5)
    workspace_of(file_shop.pages).catalog.edit(file_shop.url, filters=lambda _: PRICE)
    stop = Stop()
    done = reread(Readings(file_shop.store, how_read), Hanging(stop.request), stop, lambda: False)
    assert (done.versions, done.finished) == (0, False)
    assert workspace_of(file_shop.pages).left_to_read() == (1, 0)


def test_a_version_that_hangs_ends_when_it_is_interrupted(file_shop: Shop) -> None:
    file_shop.sell(5)
    workspace_of(file_shop.pages).catalog.edit(file_shop.url, filters=lambda _: PRICE)

    class Interrupted(Bell):
        def wait(self, timeout: float) -> bool:
            raise KeyboardInterrupt

    stop = Stop()
    stop.bell = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        reread(Readings(file_shop.store, how_read), Hanging(lambda: None), stop, lambda: False)
    assert workspace_of(file_shop.pages).left_to_read() == (1, 0)


class Overloaded(WorkerPool):
    """Workers that pass their deadline with one of the jobs."""

    def __init__(self, which: int) -> None:
        self._which = which

    def examine(self, jobs: Sequence[Job], old: OldVersions | None = None) -> list[Finding]:
        why = Failure(kind=FailureKind.HOSTILE, sentence="Reading the page took longer than 20 seconds.")
        late = Finding(failure=why)
        return [late if number == self._which else examine(job) for number, job in enumerate(jobs)]


def test_a_version_that_a_busy_machine_cannot_read_is_skipped_and_tried_by_the_next_process(shop: Shop) -> None:
    shop.sell(5, 6, 7)
    workspace_of(shop.pages).catalog.edit(shop.url, filters=lambda _: PRICE)
    done = reread(Readings(shop.store, how_read), Overloaded(1), Stop(), lambda: False)
    assert (done.versions, done.unread, done.skipped, done.finished) == (2, 0, 1, True)
    assert workspace_of(shop.pages).left_to_read() == (1, 0)
    assert workspace_of(shop.pages).catch_up().changed == 1
    assert shop.texts() == ["5 euros", "6 euros", "7 euros"]
    assert workspace_of(shop.pages).left_to_read() == (0, 0)


def test_nothing_to_do_starts_no_worker(file_shop: Shop) -> None:
    file_shop.sell(5, 6)

    class NoWorker(WorkerPool):
        def __init__(self) -> None:
            pass

    never: Callable[[], bool] = lambda: False  # noqa: E731 shorter than a function
    assert reread(Readings(file_shop.store, how_read), NoWorker(), Stop(), never).finished
