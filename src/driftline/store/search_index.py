"""The search index: which words each version of a page added and removed, in the database's own text search.

A version adds a word if it has the word more often than the version before. The other words of new lines are indexed
with a prefix, since a phrase can be new without any of its words being so; likewise for removed lines. So a word is
stored once for each time it is added or removed, and not with every version.

Checks do not touch the index, and are not slowed down by it: it is updated in idle time, and every search first adds
the versions that are missing. It can be rebuilt from the versions at any time. SQLite cannot delete the words of a
removed page, or of a text that was extracted again, since it does not store them; results never contain them, and once
more than half of the index is of that kind, it is rebuilt.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from sqlalchemy import Integer, and_, bindparam, delete, func, insert, inspect, literal, select, text, union_all

from driftline.store.locks import lock_index
from driftline.store.schema import indexed, states, versions
from driftline.store.statements import run_on_pairs
from driftline.store.words import count_words, lines_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sqlalchemy import Connection, Select, SelectBase, TextualSelect

    from driftline.store.engine import Store
    from driftline.store.history import Repository

KEPT = "="  # prefix of a word in a line that is new or gone, if the word is as frequent as before
GAINED, LOST = _SIDES = 0, 1  # the two sides of a version

_AT_ONCE = 64  # versions in one transaction: others write in between
_TABLE = "words"
_PAGES_AT_ONCE = 1_000
_VECTOR = 500_000  # bytes of words: PostgreSQL takes no vector of more than a megabyte

_Key: TypeAlias = tuple[int, int]  # a page and the number of its version
_Sides: TypeAlias = tuple[list[str], list[str]]  # the words that it gained and lost


_NAMES = """
WITH wanted (page_id, number) AS ({pairs})
SELECT versions.page_id, versions.number, versions.text
FROM wanted JOIN versions ON versions.page_id = wanted.page_id AND versions.number = wanted.number
"""
_NOT_INDEXED = """
WITH wanted (page_id, number) AS ({pairs})
SELECT versions.page_id, versions.number
FROM wanted JOIN versions ON versions.page_id = wanted.page_id AND versions.number = wanted.number
LEFT JOIN indexed ON indexed.page_id = versions.page_id AND indexed.number = versions.number
WHERE indexed.id IS NULL
"""
_newest = select(func.max(indexed.c.number)).where(indexed.c.page_id == states.c.page_id).scalar_subquery()
_last = func.coalesce(_newest, 0)
_MISSING = select(states.c.page_id, _last.label("last"), states.c.version).where(states.c.version > _last)


class WordQuery(NamedTuple):
    """A word to look up, or all words that start with it if it `is_prefix`."""

    word: str
    is_prefix: bool


class _Words(NamedTuple):
    """The words of one side of a version."""

    key: int
    side: int
    words: list[str]


class _Kept(Protocol):
    """How a database stores words, and finds them."""

    def make(self, connection: Connection) -> None:
        """Create the tables, which do not exist."""

    def add(self, connection: Connection, rows: Sequence[_Words]) -> None:
        """Add words."""

    def hits(self, words: Sequence[WordQuery]) -> TextualSelect:
        """Return a query for the sides (`key`, `side`) that have any of these words."""


class WordIndex:
    """Finds the versions in which words were added or removed. Several processes may update it at once."""

    def __init__(self, store: Store, repository: Repository) -> None:
        self._store = store
        self._repository = repository
        self._kept: _Kept = _TextSearch() if store.path is None else _Fts5()

    def __repr__(self) -> str:
        return f"<WordIndex of {self._store!r}>"

    def update(
        self, progress: Callable[[int, int], None] | None = None, enough: Callable[[], bool] | None = None,
        page_id: int | None = None,
    ) -> None:  # fmt: skip
        """Add every version that is missing, or those of one page.

        `progress` is called after each commit with how many of how many are done. The update ends early once `enough`
        returns True. What was added stays, also if the process ends early. A read-only store is not changed: see
        `sides`.
        """
        if self._store.read_only:
            return
        self._make()
        if self._store.path is not None:
            self._clear_if_mostly_obsolete()
        while not self._add_missing(progress, enough, page_id):
            pass

    def _add_missing(
        self, progress: Callable[[int, int], None] | None, enough: Callable[[], bool] | None, page_id: int | None
    ) -> bool:
        """Return whether all are added; if not, texts were extracted again meanwhile, and must be read again."""
        total, done = self._count_missing(page_id) if progress is not None else 0, 0
        keys = (
            (page, number) for page, last, newest in self._missing(page_id) for number in range(last + 1, newest + 1)
        )
        while some := list(islice(keys, _AT_ONCE)):
            if enough is not None and enough():
                return True
            names = self._names_of(some)
            if not self._add(self._words_of(some, names), names):
                return False
            done += len(some)
            if progress is not None:
                progress(min(done, total), total)
        return True

    def sides(self, words: Sequence[WordQuery]) -> SelectBase:
        """Return a query for `page_id`, `number` and `side` of versions that added or removed any of these words.

        In a read-only store, it also finds all versions that are not indexed, since they may be such.
        """
        if not self._store.read_only:
            return self._hits(words)
        unindexed = [_unindexed(side) for side in _SIDES]
        return union_all(*unindexed, self._hits(words)) if self._is_made() else union_all(*unindexed)

    def _hits(self, words: Sequence[WordQuery]) -> Select[tuple[int, int, int]]:
        hits = self._kept.hits(words).subquery()
        found = select(indexed.c.page_id, indexed.c.number, hits.c.side).select_from(indexed)
        return found.join(hits, hits.c.key == indexed.c.id)

    def _is_made(self) -> bool:
        with self._store.read() as connection:
            if not inspect(connection).has_table(_TABLE):
                return False
            connection.execute(text("SELECT 1 FROM words LIMIT 0"))
            return True

    def _make(self) -> None:
        if self._is_made():
            return
        with self._store.write() as connection:
            lock_index(connection)
            if not inspect(connection).has_table(_TABLE):
                connection.execute(delete(indexed))
                self._kept.make(connection)

    def _missing(self, page_id: int | None) -> Iterator[tuple[int, int, int]]:
        """Yield pages with versions that are not indexed: page id, the newest version indexed, the newest version.

        They are read a portion at a time: there may be a million, and time for only a few.
        """
        query = _MISSING if page_id is None else _MISSING.where(states.c.page_id == page_id)
        after = 0
        while True:
            with self._store.read() as connection:
                portion = query.where(states.c.page_id > after).order_by(states.c.page_id).limit(_PAGES_AT_ONCE)
                rows = connection.execute(portion).all()
            yield from (tuple(row) for row in rows)
            if len(rows) < _PAGES_AT_ONCE:
                return
            after = rows[-1].page_id

    def _count_missing(self, page_id: int | None) -> int:
        query = _MISSING if page_id is None else _MISSING.where(states.c.page_id == page_id)
        missing = query.subquery()
        with self._store.read() as connection:
            return connection.scalar(select(func.sum(missing.c.version - missing.c.last))) or 0

    def _names_of(self, keys: Sequence[_Key]) -> dict[_Key, bytes]:
        """Return the digests of the texts of these versions, and of those before them."""
        with self._store.read() as connection:
            return _names(connection, keys)

    def _words_of(self, keys: Sequence[_Key], names: dict[_Key, bytes]) -> dict[_Key, _Sides]:
        """Return the words that these versions added and removed. A text that cannot be read counts as empty."""
        texts = self._repository.texts({(page, name) for (page, _), name in names.items()})
        lines = {key: lines_of(texts[name]) for key, name in names.items() if name in texts}
        sides: dict[_Key, _Sides] = {}
        for page, number in keys:
            new = lines.get((page, number))
            sides[page, number] = (
                ([], []) if new is None else _added_and_removed(lines.get((page, number - 1), []), new)
            )
        return sides

    def _add(self, words: dict[_Key, _Sides], names: dict[_Key, bytes]) -> bool:
        """Add these words and return True; add none and return False if a text was replaced since they were read."""
        # a page may have been removed since its texts were read, or another process may have indexed it
        with self._store.write() as connection:
            lock_index(connection)
            if any(names.get(key) != name for key, name in _names(connection, words).items()):
                return False
            lock = "FOR KEY SHARE OF versions" if self._store.path is None else ""
            left = run_on_pairs(connection, _NOT_INDEXED + lock, list(words))
            fresh = [{"page_id": page, "number": number} for page, number in left]
            if fresh:
                made = connection.execute(insert(indexed).returning(indexed), fresh)
                rows = [_Words(row.id, side, words[row.page_id, row.number][side]) for row in made for side in _SIDES]
                self._kept.add(connection, [row for row in rows if row.words])
        return True

    def _clear_if_mostly_obsolete(self) -> None:
        ever = text("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'indexed'")
        with self._store.read() as connection:
            added = connection.scalar(ever) or 0
            valid = connection.scalar(select(func.count()).select_from(indexed)) or 0
        if added - valid <= valid:
            return
        with self._store.write() as connection:
            connection.execute(delete(indexed))
            connection.execute(text("DELETE FROM sqlite_sequence WHERE name = 'indexed'"))
            connection.execute(text("INSERT INTO words(words) VALUES ('delete-all')"))


def forget_from(connection: Connection, page_id: int, number: int) -> None:
    """Remove the versions of a page from this number on, to be indexed again. The index must be locked."""
    connection.execute(delete(indexed).where(and_(indexed.c.page_id == page_id, indexed.c.number >= number)))


def _names(connection: Connection, keys: Iterable[_Key]) -> dict[_Key, bytes]:
    """Return the digests of the texts of these versions, and of those before them."""
    both = {(page, one) for page, number in keys for one in (number, number - 1) if one}
    return {(page, number): name for page, number, name in run_on_pairs(connection, _NAMES, list(both))}


def _unindexed(side: int) -> Select[tuple[int, int, int]]:
    """Return a query for the versions that are not indexed, with this side."""
    same = and_(indexed.c.page_id == versions.c.page_id, indexed.c.number == versions.c.number)
    query = select(versions.c.page_id, versions.c.number, literal(side).label("side"))
    return query.select_from(versions).outerjoin(indexed, same).where(indexed.c.id.is_(None))


def differing(old: Sequence[str], new: Sequence[str]) -> tuple[Counter[str], Counter[str]]:
    """Return the lines that are only in the new text, and those only in the old; a line that moved is in neither."""
    before, after = Counter(old), Counter(new)
    return after - before, before - after


def _added_and_removed(old: Sequence[str], new: Sequence[str]) -> _Sides:
    """Return the words of one version, as they are stored for both of its sides."""
    new_lines, old_lines = differing(old, new)
    added, removed = count_words(new_lines.elements()), count_words(old_lines.elements())
    return (
        [word if count > removed[word] else KEPT + word for word, count in added.items()],
        [word if count > added[word] else KEPT + word for word, count in removed.items()],
    )


class _Fts5:
    """SQLite: a row for each side of a version, of which FTS5 stores only the positions of words.

    Words are made by the module `words`: the tokenizer must not change them, and the one for ASCII does not.
    """

    def make(self, connection: Connection) -> None:
        connection.exec_driver_sql(
            f"CREATE VIRTUAL TABLE {_TABLE} USING fts5("
            f"word, content='', columnsize=0, detail=none, tokenize=\"ascii tokenchars '{KEPT}'\")"
        )

    def add(self, connection: Connection, rows: Sequence[_Words]) -> None:
        values = [(row.key * 2 + row.side, " ".join(row.words)) for row in rows]
        if values:
            connection.exec_driver_sql("INSERT INTO words (rowid, word) VALUES (?, ?)", values)

    def hits(self, words: Sequence[WordQuery]) -> TextualSelect:
        query = " OR ".join(f'"{word}"{" *" if is_prefix else ""}' for word, is_prefix in words)
        found = text("SELECT rowid >> 1 AS key, rowid & 1 AS side FROM words WHERE words MATCH :query")
        return found.bindparams(bindparam("query", query, unique=True)).columns(key=Integer, side=Integer)


class _TextSearch:
    """PostgreSQL: the words of a side as text search vectors, several where there are too many for one."""

    def make(self, connection: Connection) -> None:
        connection.exec_driver_sql(
            f"CREATE TABLE {_TABLE} (key integer NOT NULL REFERENCES indexed (id) ON DELETE CASCADE, "
            "side smallint NOT NULL, part integer NOT NULL, words tsvector NOT NULL, PRIMARY KEY (key, side, part))"
        )
        connection.exec_driver_sql(f"CREATE INDEX ix_words_words ON {_TABLE} USING gin (words)")

    def add(self, connection: Connection, rows: Sequence[_Words]) -> None:
        values = [(row.key, row.side, part, some) for row in rows for part, some in enumerate(_vectors(row.words))]
        if values:
            statement = "INSERT INTO words (key, side, part, words) VALUES (%s, %s, %s, array_to_tsvector(%s::text[]))"
            connection.exec_driver_sql(statement, values)

    def hits(self, words: Sequence[WordQuery]) -> TextualSelect:
        query = " | ".join(f"'{word}'{':*' if is_prefix else ''}" for word, is_prefix in words)
        found = text("SELECT DISTINCT key, side FROM words WHERE words @@ CAST(:query AS tsquery)")
        return found.bindparams(bindparam("query", query, unique=True)).columns(key=Integer, side=Integer)


def _vectors(words: Iterable[str]) -> Iterator[list[str]]:
    some: list[str] = []
    size = 0
    for word in words:
        some.append(word)
        size += len(word.encode()) + 8
        if size > _VECTOR:
            yield some
            some, size = [], 0
    if some:
        yield some
