"""What is run all the time on a PostgreSQL store takes many rows in one statement, and finds them by an index.

Most of these statements have so few rows that the planner prefers an index wherever there is one that fits. Those that
a run sends for a whole batch have to find their rows by an index, too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from sqlalchemy import BigInteger, Double, Integer, LargeBinary, Text, event, select, text
from sqlalchemy.types import TypeEngine

from driftline.errors import FailureKind, StoreError
from driftline.lab.bench.picking_bench import fill
from driftline.model.outcome import Failed, Lesson, Link, Outcome, Proof, Unchanged
from driftline.model.page import Failure
from driftline.schedule.scheduler import Scheduler
from driftline.store import schedule_records
from driftline.store.drivers import encode_array
from driftline.store.engine import Store
from driftline.store.history import Repository
from driftline.store.ledger import Ledger
from driftline.store.pages import Catalog
from driftline.store.schema import blobs, rates, states
from driftline.store.statements import Batches
from support.making import EXAMINED, document, outcome_of

PAGES, SOME, BATCH, COMPARED = 10_000, 10, 500, 64
END = "end of the transaction"
LARGE = ("pages", "states", "rates", "checks", "versions", "blobs", "visits", "memories")
HISTORY = (
    """INSERT INTO checks (page_id, sequence, run_id, at, verdict, status, seconds, bytes)
    SELECT page_id, sequence, 1, checked_at, 'changed', 200, 0, 0 FROM states""",
    """INSERT INTO versions (page_id, number, sequence, at, body, text, size, title, content_type, charset, final_url,
    headers) SELECT page_id, version, sequence, checked_at, kept_body, kept_text, 1, '', '', '', '', '' FROM states""",
    """INSERT INTO blobs (page_id, digest, depth, size, data)
    SELECT page_id, kept_body, 0, 1, repeat('x', 200)::bytea FROM states""",
    """INSERT INTO blobs (page_id, digest, depth, size, data)
    SELECT page_id, kept_text, 0, 1, repeat('x', 200)::bytea FROM states""",
    "INSERT INTO memories (page_id, data) SELECT page_id, '' FROM states",
    "UPDATE visits SET ttl = frequency",
    "ANALYZE",
)


class Filled:
    """A store with pages, and what reaches its driver."""

    def __init__(self, where: str, pages: int) -> None:
        fill(where, pages)
        self.pages = pages
        self.store = Store.open(where)
        with self.store.write() as connection:
            for statement in HISTORY:
                connection.execute(text(statement))
        self.ledger = Ledger(self.store)
        self.run, _ = self.ledger.begin(None)

    def links(self, some: int = SOME) -> list[Link]:
        """Some from the middle."""
        return self.ledger.links(range(self.pages // 2, self.pages // 2 + some))

    def statements(self, act: Callable[[], object]) -> list[tuple[str, Any, bool]]:
        """Each statement that `act` runs, with its parameters, and whether it is run once for every row of them."""
        seen: list[tuple[str, Any, bool]] = []

        def listen(_c: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
            seen.append((statement, parameters, many))

        def end(_c: Any) -> None:
            seen.append((END, (), False))

        listeners: dict[str, Callable[..., None]] = {"before_cursor_execute": listen, "commit": end, "rollback": end}
        for name, listener in listeners.items():
            event.listen(self.store.engine, name, listener)
        try:
            act()
        finally:
            for name, listener in listeners.items():
                event.remove(self.store.engine, name, listener)
        return seen

    def walks(self, act: Callable[[], object]) -> list[str]:
        """The steps of the statements which `act` runs that go through a large table from its first row on."""
        found = []
        settings = ""
        ran: dict[tuple[str, str], list[Any]] = defaultdict(list)
        for statement, rows, many in self.statements(act):
            if statement == END:
                settings = ""
            elif statement.startswith("SET LOCAL"):
                settings = statement
            else:
                ran[settings, statement].append(rows[0] if many else rows)
        for (settings, statement), given in ran.items():
            parameters = given[len(given) // 2]  # in the middle of the table, where it is read in portions
            with self.store.read() as connection:
                if settings:
                    connection.exec_driver_sql(settings)
                plan = [row[0] for row in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)]
            scans = [step for step in plan if re.search(rf"Seq Scan on ({'|'.join(LARGE)})\b", step)]
            # an index that is walked without a condition reads the whole table as well
            scans += [
                step for step, after in zip(plan, [*plan[1:], ""], strict=True)
                if re.search(rf"PageTable.* Scan .*on ({'|'.join(LARGE)})\b", step) and "Cond:" not in after
            ]  # fmt: skip
            found += [f"{step.strip()} in {statement}" for step in scans]
        return found


@pytest.fixture
def large(postgres: str) -> Iterator[Filled]:
    made = Filled(postgres, PAGES)
    yield made
    made.store.close()


@pytest.fixture
def small(postgres: str) -> Iterator[Filled]:
    made = Filled(postgres, 2 * SOME)
    yield made
    made.store.close()


def read(store: Store, query: Any) -> None:
    with store.read() as connection:
        connection.execute(query).all()


def unchanged(link: Link, proof: Proof) -> Outcome:
    examined = replace(EXAMINED, wire=b"wire", body=b"body") if proof is Proof.TEXT else None
    return Unchanged(document(link, headers='ETag: "other"\r\n'), proof, examined)


def refused(link: Link) -> Outcome:
    failure = Failure(kind=FailureKind.STATUS, sentence="The server refused.")
    answer = document(link, status=429, headers="Retry-After: 60\r\n", failure=failure)
    return Failed(answer, failure)


def outcomes_of_every_kind(links: list[Link]) -> list[Outcome]:
    lesson = Lesson(memory=b"", for_host=(b"12345678",))
    found = [outcome_of(document(link, f"<p>{link.page_id}</p>".encode())) for link in links[:4]]
    new = [replace(outcome, examined=replace(outcome.examined, lesson=lesson)) for outcome in found]
    same = [unchanged(link, Proof.WIRE) for link in links[4:6]] + [unchanged(link, Proof.TEXT) for link in links[6:8]]
    return [*new, *same, *map(refused, links[8:])]


def test_links_are_found_by_an_index(large: Filled, batches: Batches) -> None:
    batches.links = 100
    assert large.walks(lambda: list(islice(large.ledger.remaining(large.run, None), 250))) == []
    assert large.walks(lambda: list(large.ledger.remaining(large.run, range(1, SOME)))) == []
    assert large.walks(large.links) == []


def test_old_versions_are_found_by_an_index(large: Filled) -> None:
    ids = [link.page_id for link in large.links()[:5]]
    repository = Repository(large.store)
    assert large.walks(lambda: repository.recall(ids)) == []
    old = repository.recall(ids)
    assert large.walks(lambda: repository.recall_contents(old, dict.fromkeys(ids, "host.example"))) == []


def test_outcomes_are_recorded_by_an_index(large: Filled) -> None:
    found = outcomes_of_every_kind(large.links())
    ledger = Ledger(large.store, fail_after=1)
    assert large.walks(lambda: ledger.record(large.run, found)) == []
    assert large.walks(lambda: ledger.record(large.run, found)) == [], "nor when they were recorded before"


def test_a_whole_batch_is_recorded_and_recalled_by_an_index(large: Filled) -> None:
    links = large.links(BATCH)
    proofs = [unchanged(link, Proof.WIRE) for link in links[: BATCH // 2]]
    news = [outcome_of(document(link, f"<p>{link.page_id}</p>".encode())) for link in links[BATCH // 2 :]]
    assert large.walks(lambda: large.ledger.record(large.run, [*proofs, *news])) == []
    repository, ids = Repository(large.store), [link.page_id for link in links[:COMPARED]]
    assert large.walks(lambda: repository.recall(ids)) == []
    old = repository.recall(ids)
    assert large.walks(lambda: repository.recall_contents(old, dict.fromkeys(ids, "host.example"))) == []


def test_how_rows_are_found_is_chosen_for_one_transaction(small: Filled) -> None:
    small.ledger.record(small.run, [unchanged(link, Proof.WIRE) for link in small.links()])
    Repository(small.store).recall([1, 2])
    with small.store.read() as connection:
        for setting in ("enable_seqscan", "enable_hashjoin", "enable_mergejoin"):
            assert connection.scalar(text(f"SHOW {setting}")) == "on"


def test_the_scheduler_reads_picks_and_learns_by_an_index(large: Filled, batches: Batches) -> None:
    batches.pages = 100
    scheduler = Scheduler(large.store)
    scheduler.refresh()
    Catalog(large.store).add(["https://added.example/"])
    links = large.links()
    large.ledger.record(large.run, outcomes_of_every_kind(links))
    assert large.walks(lambda: scheduler.learn_from([link.page_id for link in links])) == []
    assert large.walks(scheduler.refresh) == []
    assert len(scheduler) == PAGES + 1
    assert large.walks(scheduler.pick) == []
    assert large.walks(lambda: schedule_records.pages_found_lately(large.store, range(SOME), 3)) == []
    assert large.walks(scheduler.learn_from_others) == []


def test_many_outcomes_take_as_few_statements_as_one(small: Filled) -> None:
    links = small.links()
    seen = small.statements(
        lambda: small.ledger.record(small.run, [unchanged(link, Proof.WIRE) for link in links])
    )  # fmt: skip
    assert len(seen) == 4, "how to find rows, checks with states, validators, and the end"
    again = outcomes_of_every_kind(small.links())
    assert not [
        statement for statement, _, many in small.statements(lambda: small.ledger.record(small.run, again)) if many
    ]


def test_contents_are_inserted_by_page_and_digest_in_the_same_order_by_all_writers(small: Filled) -> None:
    found = outcomes_of_every_kind(small.links())
    seen = small.statements(lambda: small.ledger.record(small.run, found))
    (given,) = [row for statement, row, _ in seen if statement.startswith("INSERT INTO blobs")]
    with small.store.read() as connection:
        keys = "SELECT * FROM unnest(%(page_id)b::integer[], %(digest)b::bytea[])"
        inserted = [tuple(row) for row in connection.exec_driver_sql(keys, given)]
    assert len(inserted) > 5
    assert inserted == sorted(inserted)


def test_rows_of_one_page_are_written_one_after_the_other(small: Filled) -> None:
    statements = small.store.statements
    with small.store.write() as connection:
        rows = [("first", None, 1), ("other", None, 2), ("last", "then", 1)]
        assert statements.same_wire.many(connection, rows) == 3
        checked = [(1, number, 5, 10 + number, "unchanged", 304, 0.1, 0, "wire", *[None] * 3) for number in (11, 12)]
        assert statements.record_checks(connection, checked)
        columns = states.c.etag, states.c.last_modified, states.c.sequence, states.c.checked_at
        found = connection.execute(
            select(*columns).where(states.c.page_id.in_([1, 2])).order_by(states.c.page_id)
        ).all()
    assert found[0] == ("last", "then", 12, 22.0)
    assert found[1][:2] == ("other", None)


TYPES: dict[str, tuple[TypeEngine[Any], SearchStrategy[Any]]] = {
    "integer": (Integer(), st.integers(-(2**31), 2**31 - 1)),
    "bigint": (BigInteger(), st.integers(-(2**63), 2**63 - 1)),
    "double precision": (Double(), st.integers(-1_000, 1_000) | st.floats(allow_nan=False)),
    "text": (Text(), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))),
    "bytea": (LargeBinary(), st.binary()),
}


@pytest.mark.parametrize("name", TYPES)
def test_values_are_sent_as_the_server_reads_them(small: Filled, name: str) -> None:
    kind, one = TYPES[name]
    same = one.map(lambda value: [value] * 3)
    with small.store.read() as connection:

        @hypothesis.given(st.lists(one, min_size=1) | st.lists(one | st.none(), min_size=1) | same)
        def returned(values: list[Any]) -> None:
            query = f"SELECT array_agg(sent) FROM unnest(%(values)b::{name}[]) AS sent"
            found = connection.exec_driver_sql(query, {"values": encode_array(kind, tuple(values))}).scalar()
            # without any value the array is empty, and `unnest` fills it up beside others
            assert found == (None if set(values) == {None} else values)

        returned()


def test_a_number_too_large_for_its_column_is_an_error_of_the_store(small: Filled) -> None:
    with pytest.raises(StoreError, match="out of range"), small.store.write() as connection:
        small.store.statements.rate.many(connection, [(1, *[2**31] * (len(rates.columns) - 1))])


def test_an_outcome_of_a_removed_page_is_left_out_of_its_batch(small: Filled) -> None:
    found = [outcome_of(document(link, f"<p>{link.page_id}</p>".encode())) for link in small.links()]
    gone = found[3].document.link
    Catalog(small.store).remove([gone.url])
    assert small.ledger.record(small.run, found).outcomes == [*found[:3], *found[4:]]
    with small.store.read() as connection:
        names = {blob.digest for outcome in found[4:] for blob in outcome.version.blobs}
        assert set(connection.scalars(select(blobs.c.digest).where(blobs.c.digest.in_(names)))) == names
