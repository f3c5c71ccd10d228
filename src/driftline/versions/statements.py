"""The statements of the hot path, each compiled once per store and run on many rows at a time."""

from __future__ import annotations

from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import Text, bindparam, case, cast, func, literal_column, null, or_, select, update
from sqlalchemy.sql.dml import Insert

from driftline.model import Blob
from driftline.versions.batches import in_batches
from driftline.versions.schema import (
    blobs,
    blocklists,
    changes,
    checks,
    distrusted,
    host_memories,
    memories,
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
    from collections.abc import Collection, Sequence

    from sqlalchemy import ColumnElement, Connection, Engine, Table
    from sqlalchemy.sql.dml import UpdateBase

CHECK_COLUMNS = tuple(column.name for column in checks.columns)
_LATER = (versions.c.unread, versions.c.reread_at)  # what is said of a version only when it is read anew
VERSION_COLUMNS = tuple(column.name for column in versions.columns if column not in set(_LATER))
TURN_COLUMNS = tuple(column.name for column in turns.columns)
CHANGE_COLUMNS = tuple(column.name for column in changes.columns)
BLOB_COLUMNS = tuple(column.name for column in blobs.columns if column is not blobs.c.level)
RATE_COLUMNS = tuple(column.name for column in rates.columns)
PAUSE_COLUMNS = tuple(column.name for column in pauses.columns)
ROBOTS_COLUMNS = tuple(column.name for column in robots.columns)
_LIST_COLUMNS = tuple(column.name for column in blocklists.columns if column is not blocklists.c.id)
VISIT_COLUMNS = tuple(column.name for column in visits.columns if column is not visits.c.id)
LINK_COLUMNS = (
    pages.c.id, pages.c.url, states.c.sequence, states.c.version, states.c.etag, states.c.last_modified, states.c.wire,
    cast(pages.c.settings, Text),  # as text on every database: most are empty, and need no parsing
    states.c.failures, states.c.failing_at,
    cast(pages.c.tags, Text),
)  # fmt: skip
OLD_COLUMNS = (
    states.c.page_id, states.c.body, states.c.letters, states.c.kept_body, states.c.kept_text, states.c.checked_at,
    memories.c.data,
    states.c.reading,
)  # fmt: skip

# written into the statement: a bound value would have to be given with every row
_NONE: ColumnElement[int] = literal_column("0")
_ONE: ColumnElement[int] = literal_column("1")

_THIS_PAGE = states.c.page_id == bindparam("key")

#: unchanged to the byte, with other validators than at the last check
SAME_WIRE = update(states).where(_THIS_PAGE).values(etag=bindparam("tag"), last_modified=bindparam("modified"))
SAME_WIRE_ROW = ("tag", "modified", "key")

_OTHER_BYTES = SAME_WIRE.values(wire=bindparam("on_wire"), body=bindparam("decoded"))
_OTHER_BYTES_ROW = (*SAME_WIRE_ROW, "on_wire", "decoded", "how")

#: unchanged in its body or in what can be seen, but sent in other bytes than at the last check; if the text in force
#: was read anew since it was recalled, nobody knows whether the page says the same in that way
_AS_RECALLED = states.c.kept_text == func.coalesce(bindparam("recalled"), states.c.kept_text)
SAME_TEXT = _OTHER_BYTES.values(reading=case((_AS_RECALLED, bindparam("how"))))
SAME_TEXT_ROW = (*_OTHER_BYTES_ROW, "recalled")

#: new or changed; noise and another reading make a version too, but leave the time of the last change as it is
NEW_VERSION = _OTHER_BYTES.values(
    reading=bindparam("how"),
    version=bindparam("number"),
    letters=bindparam("seen"),
    kept_body=bindparam("whole"),
    kept_text=bindparam("words"),
    changed_at=func.coalesce(bindparam("since"), states.c.changed_at),
    # the first version is all there is; one that is read in another way than those before leaves work to do
    caught_up=case((or_(bindparam("number") == _ONE, states.c.caught_up == bindparam("how")), bindparam("how"))),
)
NEW_VERSION_ROW = (*_OTHER_BYTES_ROW, "number", "seen", "whole", "words", "since")

#: a server that refused a check said when to ask again
RETRY = update(states).where(_THIS_PAGE).values(retry_at=bindparam("until"))
RETRY_ROW = ("until", "key")

#: a page began to fail, or recovered
TURNED = update(states).where(_THIS_PAGE).values(failing_at=bindparam("since"))
TURNED_ROW = ("since", "key")

#: in the order in which the driver wants them, for every check is such a row; version and failures must be given, and
#: are those of a page that was never checked
TOUCH_ROW = (
    "page_id", "run_id", "sequence", "version", "checked_at", "verdict", "failure_kind", "failure", "failures",
)  # fmt: skip

_TOGETHER = 64
_PAIRS_AT_ONCE = 400  # that are named in a statement

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


class Prepared:
    """A statement turned into the driver's own text once, so that a row costs what the driver costs.

    Where the driver runs it row by row, many rows to insert become one statement: the interpreter's lock changes hands
    with every one that is run.
    """

    def __init__(self, engine: Engine, statement: UpdateBase, columns: Sequence[str]) -> None:
        inserts = isinstance(statement, Insert)
        compiled = statement.compile(dialect=engine.dialect, column_keys=list(columns) if inserts else None)
        self._text = str(compiled)
        self._columns = tuple(columns)
        order = compiled.positiontup
        self._order = None if order is None else [self._columns.index(name) for name in order]
        self._in_order = self._order == list(range(len(self._columns)))
        row = f"({', '.join('?' * len(self._columns))})"
        self._together = self._text.replace(row, ", ".join([row] * _TOGETHER)) if inserts and order else ""

    def many(self, connection: Connection, rows: list[tuple[Any, ...]]) -> int:
        """Run on these rows, each in the order of the columns given at the start; how many rows it touched."""
        if not rows:
            return 0
        if self._order is None:
            named = [dict(zip(self._columns, row, strict=True)) for row in rows]
            return connection.exec_driver_sql(self._text, named).rowcount
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


class Statements:
    """Every statement that recording needs, prepared for one engine."""

    def __init__(self, engine: Engine) -> None:
        # each dialect has an INSERT of its own; importing one that is not used would slow every command
        dialect = import_module(f"sqlalchemy.dialects.{engine.dialect.name}")

        def ignoring(table: Table) -> Insert:
            statement: Insert = dialect.insert(table).on_conflict_do_nothing()
            return statement

        self.check = Prepared(engine, ignoring(checks), CHECK_COLUMNS)
        self.touch = Prepared(engine, _touch(dialect.insert(states)), TOUCH_ROW)
        self.version = Prepared(engine, ignoring(versions), VERSION_COLUMNS)
        self.change = Prepared(engine, ignoring(changes), CHANGE_COLUMNS)
        self.blob = Prepared(engine, ignoring(blobs), BLOB_COLUMNS)
        self.memory = Prepared(engine, _keep(dialect.insert(memories), "page_id"), ("page_id", "data"))
        self.host_memory = Prepared(engine, _keep(dialect.insert(host_memories), "host"), ("host", "data"))
        self.screenshot = Prepared(engine, ignoring(screenshots), ("page_id", "number", "data"))
        self.scripted_host = Prepared(engine, ignoring(scripted_hosts), ("host", "at"))
        self.rate = Prepared(engine, _replace(dialect.insert(rates), RATE_COLUMNS), RATE_COLUMNS)
        self.robots = Prepared(engine, _replace(dialect.insert(robots), ROBOTS_COLUMNS), ROBOTS_COLUMNS)
        self.pause = Prepared(engine, _replace(dialect.insert(pauses), PAUSE_COLUMNS), PAUSE_COLUMNS)
        self.distrust = Prepared(engine, _keep(dialect.insert(distrusted), "host", "at"), ("host", "at"))
        self.blocklist = _replace(dialect.insert(blocklists), _LIST_COLUMNS)
        self.tag = _hold(dialect.insert(tags), tags.c.name).returning(tags.c.settings)
        self.visit = _count(dialect.insert(visits))
        self.visits = Prepared(engine, self.visit, VISIT_COLUMNS)
        self.visit_key = Prepared(engine, _keep(dialect.insert(visit_keys), "key", "seconds"), ("key", "seconds"))
        self.same_wire = Prepared(engine, SAME_WIRE, SAME_WIRE_ROW)
        self.same_text = Prepared(engine, SAME_TEXT, SAME_TEXT_ROW)
        self.turn = Prepared(engine, ignoring(turns), TURN_COLUMNS)
        self.turned = Prepared(engine, TURNED, TURNED_ROW)
        self.retry = Prepared(engine, RETRY, RETRY_ROW)
        self.new_version = Prepared(engine, NEW_VERSION, NEW_VERSION_ROW)


def _touch(insert: Any) -> Insert:
    """Where a page stands after a check of any kind. Every page has a state: to insert it again is to update it."""
    new = insert.excluded
    statement: Insert = insert.on_conflict_do_update(
        index_elements=[states.c.page_id],
        set_={
            "run_id": new.run_id,
            "sequence": new.sequence,
            "checked_at": new.checked_at,
            "verdict": new.verdict,
            "failure_kind": new.failure_kind,
            "failure": new.failure,
            "failures": case((new.failure_kind.is_(None), _NONE), else_=states.c.failures + _ONE),
            "retry_at": null(),  # what a server asked for counts until it is asked again
        },
    )
    return statement


def _keep(insert: Any, key: str, value: str = "data") -> Insert:
    """A value in place of the one that is kept under the same key, if there is one."""
    statement: Insert = insert.on_conflict_do_update(index_elements=[key], set_={value: insert.excluded[value]})
    return statement


def _count(insert: Any) -> Insert:
    """The second paper's update of its table: visits on top of those before, with no moment in between."""
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
    """A row in place of the one that is kept under the same key, the first of the columns, if there is one."""
    key, *others = columns
    new = {name: insert.excluded[name] for name in others}
    statement: Insert = insert.on_conflict_do_update(index_elements=[key], set_=new)
    return statement


def _hold(insert: Any, key: ColumnElement[Any]) -> Insert:
    """A row, unless there is one of the same key: then that stays as it is, and is locked like one that changes."""
    statement: Insert = insert.on_conflict_do_update(index_elements=[key], set_={key.name: key})
    return statement


def memories_of(connection: Connection, page_ids: Collection[int]) -> dict[int, bytes]:
    """The memories of these pages, by page; one of which nothing is known is left out."""
    query = select(memories.c.page_id, memories.c.data).where(memories.c.page_id.in_(page_ids))
    return {row.page_id: row.data for row in connection.execute(query)}


def host_memories_of(connection: Connection, hosts: Collection[str]) -> dict[str, bytes]:
    """The memories of these hosts, by host; one of which nothing is known is left out."""
    query = select(host_memories.c.host, host_memories.c.data).where(host_memories.c.host.in_(hosts))
    return {row.host: row.data for row in connection.execute(query)}


def read_chains(connection: Connection, keys: Collection[BlobKey]) -> dict[int, dict[bytes, Blob]]:
    """Return these blobs and all that they are built on, by page and digest; a blob that is missing is left out."""
    found: dict[int, dict[bytes, Blob]] = {page_id: {} for page_id, _ in keys}
    for some in in_batches(sorted(set(keys)), _PAIRS_AT_ONCE):
        for page_id, *blob in run_on_pairs(connection, CHAINS, some, "bytea"):
            found[page_id][blob[0]] = Blob(*blob)
    return found


def run_on_pairs(
    connection: Connection, statement: str, pairs: Sequence[tuple[int, Any]], second: str = "integer"
) -> Sequence[Any]:
    """Return the rows that a statement finds, in which `{pairs}` stands for a query of these pairs.

    PostgreSQL is told of which type the `second` of a pair is. SQLAlchemy has `values` for it, but that is compiled
    anew each time, which takes longer than all the rest.
    """
    if connection.dialect.name == "postgresql":
        text = statement.format(pairs=f"SELECT * FROM unnest(%s::integer[], %s::{second}[])")  # noqa: S608 it is ours
        columns: tuple[Any, ...] = tuple(map(list, zip(*pairs, strict=True)))
        return connection.exec_driver_sql(text, columns).cursor.fetchall()
    text = statement.format(pairs=f"VALUES {', '.join(['(?, ?)'] * len(pairs))}")
    return connection.exec_driver_sql(text, tuple(chain.from_iterable(pairs))).cursor.fetchall()
