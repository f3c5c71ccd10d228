"""The statements that record checks, prepared once and run on many rows at a time."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from sqlalchemy import (
    ARRAY,
    Integer,
    Text,
    bindparam,
    case,
    cast,
    column,
    delete,
    func,
    insert,
    literal_column,
    null,
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql.dml import Insert

from driftline.model.outcome import Blob
from driftline.store.drivers import encode_array
from driftline.store.schema import (
    blobs,
    blocklists,
    changes,
    checks,
    distrusted,
    event_pages,
    host_memories,
    memories,
    outbox,
    pages,
    pauses,
    rates,
    robots,
    screenshots,
    scripted_hosts,
    states,
    tags,
    turns,
    versions,
    visit_keys,
    visits,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Column, ColumnElement, Connection, Delete, Engine, Table, Update
    from sqlalchemy.sql.dml import UpdateBase

    #: the values of a row, by their names in a statement
    Given = Mapping[str, ColumnElement[Any]]


_Value = TypeVar("_Value")

AT_ONCE = 500  # values in the list of a statement


def in_batches(values: Iterable[_Value], most: int = AT_ONCE) -> Iterator[list[_Value]]:
    """Yield the values in their order, at most `most` at a time."""
    left = iter(values)
    while some := list(islice(left, most)):
        yield some


@dataclass(slots=True, kw_only=True)
class Batches:
    """How many rows one statement reads, or how many are read before it is tested whether to stop.

    One for all stores of this process; tests use smaller ones.
    """

    pages: int = 4_000  # of the watch list: some hundredths of a second
    checks: int = 20_000  # to learn from: fewer would make more, smaller numpy calls, and learning slower
    links: int = 1_000


BATCHES = Batches()

_LATER = {"unread", "reread_at"}  # set only when a version is extracted again
#: execution options of a query for many rows or large ones, of numbers, texts and bytes: PostgreSQL then sends them in
#: binary, from which numbers and bytes are read several times faster than from text
BINARY = {"driftline_binary": True}
VERSION_COLUMNS = tuple(column.name for column in versions.columns if column.name not in _LATER)
BLOB_COLUMNS = tuple(column.name for column in blobs.columns if column is not blobs.c.level)
VISIT_COLUMNS = tuple(column.name for column in visits.columns if column is not visits.c.id)
_LIST_COLUMNS = tuple(column.name for column in blocklists.columns if column is not blocklists.c.id)
LINK_COLUMNS = (
    pages.c.id, pages.c.url, states.c.sequence, states.c.version, states.c.etag, states.c.last_modified, states.c.wire,
    cast(pages.c.settings, Text),  # as text on every database: most are empty, and need no parsing
    states.c.failures, states.c.failing_at,
    cast(pages.c.tags, Text),
)  # fmt: skip
OLD_COLUMNS = (
    states.c.page_id, states.c.body, states.c.letters, states.c.kept_body, states.c.kept_text, states.c.checked_at,
    states.c.reading,
    versions.c.size,
)  # fmt: skip

# literals: a bound value would have to be given with every row
_NONE: ColumnElement[int] = literal_column("0")
_ONE: ColumnElement[int] = literal_column("1")

# the rows of the updates of `states`: each value under its name, and the column whose type it has
_KEY = {"key": states.c.page_id}
SAME_WIRE_ROW = {"tag": states.c.etag, "modified": states.c.last_modified, **_KEY}
_OTHER_BYTES_ROW = {**SAME_WIRE_ROW, "on_wire": states.c.wire, "decoded": states.c.body, "how": states.c.reading}
SAME_TEXT_ROW = {**_OTHER_BYTES_ROW, "recalled": states.c.kept_text}
NEW_VERSION_ROW = {
    **_OTHER_BYTES_ROW, "number": states.c.version, "seen": states.c.letters, "whole": states.c.kept_body,
    "words": states.c.kept_text, "since": states.c.changed_at,
}  # fmt: skip
RETRY_ROW = {"until": states.c.retry_at, **_KEY}
TURNED_ROW = {"since": states.c.failing_at, **_KEY}
_PUBLISHED_ROW = {"page": outbox.c.page_id, "number": outbox.c.sequence, "kind": outbox.c.what}


def _this_page(given: Given) -> Update:
    return update(states).where(states.c.page_id == given["key"])


def _same_wire(given: Given) -> Update:
    """Return the update of a state after a check whose bytes are the same and whose validators differ."""
    return _this_page(given).values(etag=given["tag"], last_modified=given["modified"])


def _other_bytes(given: Given) -> Update:
    return _same_wire(given).values(wire=given["on_wire"], body=given["decoded"])


def _same_text(given: Given) -> Update:
    """Return the update of a state after a check with other bytes, but the same body or visible text.

    If the stored text was extracted again since it was read for the comparison, it is not known whether the page still
    has the same text when extracted in that way.
    """
    as_recalled = states.c.kept_text == func.coalesce(given["recalled"], states.c.kept_text)
    return _other_bytes(given).values(reading=case((as_recalled, given["how"])))


def _new_version(given: Given) -> Update:
    """Return the update of a state after a check that made a version.

    Noise and another way of extracting make a version, too, but do not change the time of the last change.
    """
    return _other_bytes(given).values(
        reading=given["how"],
        version=given["number"],
        letters=given["seen"],
        kept_body=given["whole"],
        kept_text=given["words"],
        changed_at=func.coalesce(given["since"], states.c.changed_at),
        # a first version has no older ones; one extracted in another way than those before leaves them to do
        caught_up=case((or_(given["number"] == _ONE, states.c.caught_up == given["how"]), given["how"])),
    )


def _retry(given: Given) -> Update:
    """Return the update of a state after a refused check with a Retry-After."""
    return _this_page(given).values(retry_at=given["until"])


def _turned(given: Given) -> Update:
    """Return the update of a state after a check by which the page began to fail, or recovered."""
    return _this_page(given).values(failing_at=given["since"])


def _published(given: Given) -> Delete:
    """Return the deletion of what was published from the outbox."""
    these = outbox.c.page_id == given["page"], outbox.c.sequence == given["number"], outbox.c.what == given["kind"]
    return delete(outbox).where(*these)


#: in the order of the driver's parameters, since every check is such a row; version and failures are required, and are
#: those of a page that was never checked
_TOUCH_ROW = (
    "page_id", "run_id", "sequence", "version", "checked_at", "verdict", "failure_kind", "failure", "failures",
)  # fmt: skip

_EXISTS = "23505"  # PostgreSQL's code for a key that is there already
_TOGETHER = 64
_PAIRS_AT_ONCE = 400  # in the list of a statement

_FIND_BY_KEY = "; ".join(f"SET LOCAL enable_{other} = off" for other in ("seqscan", "hashjoin", "mergejoin"))

#: a page, and the digest of contents that it has
BlobKey: TypeAlias = tuple[int, bytes]

#: blobs with all that they are built on, found by primary key step by step
CHAINS = """
WITH RECURSIVE wanted (page_id, digest) AS ({pairs}), chain AS (
    SELECT blobs.page_id, blobs.digest, blobs.base, blobs.depth, blobs.size, blobs.data
    FROM wanted JOIN blobs ON blobs.page_id = wanted.page_id AND blobs.digest = wanted.digest
    UNION ALL
    SELECT blobs.page_id, blobs.digest, blobs.base, blobs.depth, blobs.size, blobs.data
    FROM chain JOIN blobs ON blobs.page_id = chain.page_id AND blobs.digest = chain.base
)
SELECT page_id, digest, base, depth, size, data FROM chain
"""


class PreparedRows:
    """A statement compiled to SQLite's SQL once, so that a row costs only what the driver costs.

    Many rows to insert become one statement: each statement that is run releases the interpreter lock and takes it
    again.
    """

    def __init__(self, engine: Engine, statement: UpdateBase, columns: Sequence[str]) -> None:
        inserts = isinstance(statement, Insert)
        compiled = statement.compile(dialect=engine.dialect, column_keys=list(columns) if inserts else None)
        self._text = str(compiled)
        self._order = [columns.index(name) for name in compiled.positiontup or ()]
        self._in_order = self._order == list(range(len(columns)))
        row = f"({', '.join('?' * len(columns))})"
        self._together = self._text.replace(row, ", ".join([row] * _TOGETHER)) if inserts else ""

    def __repr__(self) -> str:
        return f"<PreparedRows {self._text.partition(chr(10))[0][:60]!r}>"

    def many(self, connection: Connection, rows: list[tuple[Any, ...]]) -> int:
        """Run on these rows, each in the order of the columns given at the start. Returns how many rows it touched."""
        if not rows:
            return 0
        if not self._in_order:
            order = self._order
            rows = [tuple([row[index] for index in order]) for row in rows]
        touched = 0
        if self._together:
            whole = len(rows) // _TOGETHER * _TOGETHER
            for start in range(0, whole, _TOGETHER):
                values = tuple(chain.from_iterable(rows[start : start + _TOGETHER]))
                touched += connection.exec_driver_sql(self._together, values).rowcount
            rows = rows[whole:]
        return touched + (connection.exec_driver_sql(self._text, rows).rowcount if rows else 0)


class PreparedArrays:
    """A statement compiled to PostgreSQL's SQL once, which takes all of its rows in one round trip.

    `key` names the column of which PostgreSQL accepts each value only once in a statement, if there is one: rows with
    the same key are run one statement after the other.
    """

    def __init__(
        self, engine: Engine, statement: UpdateBase, columns: Mapping[str, Column[Any]], key: str | None
    ) -> None:  # fmt: skip
        # in binary, which takes the driver a third of the time, and the server a tenth for large contents
        self._text = str(statement.compile(dialect=engine.dialect)).replace(")s::", ")b::")
        self._types = {name: column.type for name, column in columns.items()}
        self._key = None if key is None else [*columns].index(key)

    def __repr__(self) -> str:
        return f"<PreparedArrays {self._text.partition(chr(10))[0][:60]!r}>"

    def many(self, connection: Connection, rows: list[tuple[Any, ...]]) -> int:
        """Run on these rows, each in the order of the columns given at the start. Returns how many rows it touched."""
        touched = 0
        for some in self._portions(rows):
            columns = zip(self._types.items(), zip(*some, strict=True), strict=True)
            values = {name: encode_array(kind, given) for (name, kind), given in columns}
            touched += connection.exec_driver_sql(self._text, values).rowcount
        return touched

    def _portions(self, rows: list[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows in their order, in as few portions as possible without a key twice in one of them."""
        key = self._key
        while rows:
            if key is None or len({row[key] for row in rows}) == len(rows):
                yield rows
                return
            first: dict[Any, tuple[Any, ...]] = {}
            later = [row for row in rows if first.setdefault(row[key], row) is not row]
            yield list(first.values())
            rows = later


Prepared = PreparedRows | PreparedArrays


class Statements:
    """The statements that record checks and the like, prepared for one engine."""

    def __init__(self, engine: Engine) -> None:
        # each dialect has an INSERT of its own; importing one that is not used would slow every command
        dialect = import_module(f"sqlalchemy.dialects.{engine.dialect.name}")
        takes_arrays = engine.dialect.name == "postgresql"

        def inserting(table: Table, names: Sequence[str], statement: Insert, key: str | None = None) -> Prepared:
            if not takes_arrays:
                return PreparedRows(engine, statement, names)
            row = {name: table.c[name] for name in names}
            given = _given_as_arrays(row)
            return PreparedArrays(engine, statement.from_select(names, select(*given.values())), row, key)

        def once(table: Table, names: Sequence[str] | None = None) -> Prepared:
            """Return an insert that leaves out rows whose key exists already."""
            return inserting(table, names or table.columns.keys(), dialect.insert(table).on_conflict_do_nothing())

        def replacing(table: Table) -> Prepared:
            names = table.columns.keys()
            return inserting(table, names, _replace(dialect.insert(table), names), names[0])

        def changing(
            make: Callable[[Given], UpdateBase], row: Mapping[str, Column[Any]], key: str | None = "key"
        ) -> Prepared:
            if takes_arrays:
                return PreparedArrays(engine, make(_given_as_arrays(row)), row, key)
            return PreparedRows(engine, make({name: bindparam(name) for name in row}), [*row])

        self._check: Prepared
        self._touch: Prepared | None
        if takes_arrays:
            row = dict(checks.c.items())
            self._check, self._touch = PreparedArrays(engine, _check_and_touch(row), row, "page_id"), None
        else:
            self._check = once(checks)
            self._touch = inserting(states, _TOUCH_ROW, _touch(dialect.insert(states)))
        self.version = once(versions, VERSION_COLUMNS)
        self.change = once(changes)
        self.blob = once(blobs, BLOB_COLUMNS)
        self.memory = replacing(memories)
        self.host_memory = replacing(host_memories)
        self.screenshot = once(screenshots)
        self.scripted_host = once(scripted_hosts)
        self.rate = replacing(rates)
        self.robots = replacing(robots)
        self.pause = replacing(pauses)
        self.distrust = replacing(distrusted)
        self.blocklist = _replace(dialect.insert(blocklists), _LIST_COLUMNS)
        self.tag = _hold(dialect.insert(tags), tags.c.name).returning(tags.c.settings)
        self.visit = _count(dialect.insert(visits))
        self.visits = inserting(visits, VISIT_COLUMNS, self.visit, "url")
        self.visit_key = replacing(visit_keys)
        self.same_wire = changing(_same_wire, SAME_WIRE_ROW)
        self.same_text = changing(_same_text, SAME_TEXT_ROW)
        self.turn = once(turns)
        self.turned = changing(_turned, TURNED_ROW)
        self.retry = changing(_retry, RETRY_ROW)
        self.new_version = changing(_new_version, NEW_VERSION_ROW)
        self.event_page = inserting(event_pages, ["page_id", "event_id"], dialect.insert(event_pages))
        self.published = changing(_published, _PUBLISHED_ROW, None)

    def record_checks(self, connection: Connection, rows: list[tuple[Any, ...]]) -> bool:
        """Insert these checks, and update the states of their pages.

        Returns whether all of them were new and their pages are still watched; otherwise the transaction is of no use.
        """
        if self._touch is None:
            try:
                return self._check.many(connection, rows) == len(rows)
            except IntegrityError as error:
                if getattr(error.orig, "sqlstate", None) != _EXISTS:
                    raise
                return False
        if self._check.many(connection, rows) != len(rows):
            return False
        self._touch.many(connection, [
            (page_id, run_id, sequence, 0, at, verdict, kind, sentence, 0)
            for page_id, sequence, run_id, at, verdict, _, _, _, _, kind, sentence, _ in rows
        ])  # fmt: skip
        return True


def _given_as_arrays(row: Mapping[str, Column[Any]]) -> dict[str, ColumnElement[Any]]:
    """Return the values of many rows as columns by name, from one array for each."""
    arrays = [bindparam(name, type_=ARRAY(like.type)) for name, like in row.items()]
    rows = func.unnest(*arrays).table_valued(*[column(name, like.type) for name, like in row.items()])
    return dict(rows.render_derived(name="given").c.items())


def _touch(insert: Any) -> Insert:
    """Return the statement for the state after any check. Every page has a state: the insert always is an update."""
    new = insert.excluded
    statement: Insert = insert.on_conflict_do_update(
        index_elements=[states.c.page_id], set_=_touched(new, new.checked_at)
    )
    return statement


def _check_and_touch(row: Mapping[str, Column[Any]]) -> Update:
    """Return the statement that inserts checks and updates the states of their pages, in PostgreSQL.

    One statement that neither tests for conflicts nor inserts states takes the server and us two thirds of the time of
    two that do. A check that exists already is an error, and a page that was removed is not counted. It does not lock
    the states in order, as `locks` asks for; a deadlock with one of the few others who lock several is tried again.
    """
    given = select(*_given_as_arrays(row).values()).cte("given")
    inserted = insert(checks).from_select(list(row), select(given)).cte("inserted")
    touched = update(states).where(states.c.page_id == given.c.page_id).values(_touched(given.c, given.c.at))
    return touched.add_cte(inserted)


def _touched(new: Any, at: ColumnElement[Any]) -> dict[str, Any]:
    """Return the new values of the state of a page after a check at the time `at`."""
    return {
        "run_id": new.run_id,
        "sequence": new.sequence,
        "checked_at": at,
        "verdict": new.verdict,
        "failure_kind": new.failure_kind,
        "failure": new.failure,
        "failures": case((new.failure_kind.is_(None), _NONE), else_=states.c.failures + _ONE),
        "retry_at": null(),  # a Retry-After counts until the next request
    }


def _count(insert: Any) -> Insert:
    """Return the second paper's update of its table: visits are added to those before, atomically."""
    new = insert.excluded
    statement: Insert = insert.on_conflict_do_update(
        index_elements=[visits.c.url],
        set_={
            "frequency": visits.c.frequency + new.frequency,
            "weightage": visits.c.weightage + new.weightage,
            "ttl": visits.c.ttl + new.ttl,
            "first_at": case((new.first_at < visits.c.first_at, new.first_at), else_=visits.c.first_at),
            "last_at": case((new.last_at > visits.c.last_at, new.last_at), else_=visits.c.last_at),
        },
    )
    return statement


def _replace(insert: Any, columns: Sequence[str]) -> Insert:
    """Return an insert that replaces the row of the same key, which is the first of the columns."""
    key, *others = columns
    new = {name: insert.excluded[name] for name in others}
    statement: Insert = insert.on_conflict_do_update(index_elements=[key], set_=new)
    return statement


def _hold(insert: Any, key: ColumnElement[Any]) -> Insert:
    """Return an insert that keeps the row of the same key as it is, and locks it as an update would."""
    statement: Insert = insert.on_conflict_do_update(index_elements=[key], set_={key.name: key})
    return statement


def memories_of(connection: Connection, page_ids: Collection[int]) -> dict[int, bytes]:
    """Return the noise memories of these pages, by page, without those that have none."""
    query = select(memories.c.page_id, memories.c.data).where(memories.c.page_id.in_(page_ids))
    return {row.page_id: row.data for row in connection.execute(query)}


def host_memories_of(connection: Connection, hosts: Collection[str]) -> dict[str, bytes]:
    """Return the noise memories of these hosts, by host, without those that have none."""
    query = select(host_memories.c.host, host_memories.c.data).where(host_memories.c.host.in_(hosts))
    return {row.host: row.data for row in connection.execute(query)}


def all_memories_of(
    connection: Connection, page_ids: Collection[int], hosts: Collection[str]
) -> tuple[dict[int, bytes], dict[str, bytes]]:
    """Return the noise memories of these pages and hosts, without those that have none, in one statement."""
    of_pages = select(memories.c.page_id, null().cast(Text).label("host"), memories.c.data)
    of_hosts = select(null().cast(Integer), host_memories.c.host, host_memories.c.data)
    both = union_all(of_pages.where(memories.c.page_id.in_(page_ids)), of_hosts.where(host_memories.c.host.in_(hosts)))
    rows = connection.execute(both, execution_options=BINARY).all()
    by_page = {page_id: data for page_id, _, data in rows if page_id is not None}
    return by_page, {host: data for _, host, data in rows if host is not None}


def prefer_indexes(connection: Connection) -> None:
    """Have PostgreSQL find rows by indexes, one after the other, until the end of the transaction.

    For batches of rows. Unless a table is much larger than the batch, PostgreSQL estimates that reading all of it takes
    less time, as if it had to be fetched from a disk. With 26,000 pages that took two thirds of the time of a commit.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_FIND_BY_KEY)


def read_chains(connection: Connection, keys: Collection[BlobKey]) -> dict[int, dict[bytes, Blob]]:
    """Return these blobs and all that they are built on, by page and digest, without those missing.

    Until the end of the transaction, PostgreSQL prefers indexes (see `prefer_indexes`).
    """
    prefer_indexes(connection)
    found: dict[int, dict[bytes, Blob]] = {page_id: {} for page_id, _ in keys}
    for some in in_batches(sorted(set(keys)), _PAIRS_AT_ONCE):
        for page_id, *blob in run_on_pairs(connection, CHAINS, some, "bytea"):
            found[page_id][blob[0]] = Blob(*blob)
    return found


def run_on_pairs(
    connection: Connection, statement: str, pairs: Sequence[tuple[int, Any]], second: str = "integer"
) -> Sequence[Any]:
    """Return the rows of a statement in which `{pairs}` stands for a query of these pairs.

    `second` is the type of the second element of a pair in PostgreSQL. SQLAlchemy has `values` for it, but that is
    compiled each time, which takes longer than everything else.
    """
    if connection.dialect.name == "postgresql":
        text = statement.format(pairs=f"SELECT * FROM unnest(%s::integer[], %s::{second}[])")  # noqa: S608 it is ours
        columns: tuple[Any, ...] = tuple(map(list, zip(*pairs, strict=True)))
        return connection.exec_driver_sql(text, columns, execution_options=BINARY).cursor.fetchall()
    text = statement.format(pairs=f"VALUES {', '.join(['(?, ?)'] * len(pairs))}")
    return connection.exec_driver_sql(text, tuple(chain.from_iterable(pairs))).cursor.fetchall()
