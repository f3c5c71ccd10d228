"""Extracting the texts of stored versions again, after the extractor or the filters of a page changed.

Then the texts of all versions are out of date, while their bodies, which are kept, are not. This module finds the
versions to be extracted again, and stores their new texts: a few in each transaction, in which a version must still be
as it was when it was read. So checks continue meanwhile, and the process may be killed at any moment. It records no
check, no change and no version.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sqlalchemy import Text, and_, case, cast, func, null, or_, select, update

from driftline.store.blobs import chain_of
from driftline.store.locks import lock_index
from driftline.store.schema import pages, states, versions
from driftline.store.search_index import forget_from
from driftline.store.statements import read_chains

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sqlalchemy import ColumnElement, Connection

    from driftline.model.outcome import Blob
    from driftline.store.engine import Store

Filters: TypeAlias = "list[list[str]] | None"

_AT_ONCE = 16  # versions to a transaction
_NO_SETTINGS = "{}"


class Behind(NamedTuple):
    """A page with versions that were not extracted in the current way, which is named `reading`."""

    page_id: int
    filters: Filters
    reading: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """A version to be extracted again: the digests of its contents, the blobs of its body, and its headers."""

    number: int
    body: bytes
    text: bytes
    headers: bytes
    blobs: dict[bytes, Blob]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """The result of extracting a version again: the digest of its text, with a blob if that is new, and so on.

    A version that cannot be extracted has none of it.
    """

    text: bytes
    blobs: tuple[Blob, ...]
    letters: bytes
    title: str
    content_type: str
    charset: str


class Readings:
    """Finds versions that are out of date. `how` names the current way to extract a page with these filters."""

    def __init__(self, store: Store, how: Callable[[Filters], str], clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._how = how
        self._clock = clock
        self._skipped: defaultdict[tuple[int, str], set[int]] = defaultdict(set)

    def __repr__(self) -> str:
        return f"<Readings of {self._store!r} skipped_versions={sum(map(len, self._skipped.values()))}>"

    def behind(self) -> list[Behind]:
        """Return the pages that may have versions to extract again."""
        settings = cast(pages.c.settings, Text)
        query = (
            select(pages.c.id, settings, states.c.caught_up)
            .join(states, states.c.page_id == pages.c.id)
            .where(states.c.version > 0)
            .where(or_(states.c.caught_up.is_distinct_from(self._how(None)), settings != _NO_SETTINGS))
            .order_by(pages.c.id)
        )
        found: list[Behind] = []
        with self._store.read() as connection:
            for page_id, stored, caught_up in connection.execute(query):
                filters = _filters(stored)
                reading = self._how(filters)
                if reading != caught_up:
                    found.append(Behind(page_id, filters, reading))
        return found

    def some(self, page: Behind) -> list[Stale]:
        """Return the oldest versions of the page to extract again that were not skipped; none if that is done."""
        query = (
            select(versions.c.number, versions.c.body, versions.c.text, versions.c.headers)
            .where(_stale(page))
            .where(versions.c.number.not_in(self._skipped[page.page_id, page.reading]))
        )
        with self._store.read() as connection:
            rows = connection.execute(query.order_by(versions.c.number).limit(_AT_ONCE)).all()
            blobs = read_chains(connection, [(page.page_id, row.body) for row in rows]).get(page.page_id, {})
        return [
            Stale(
                number=row.number, body=row.body, text=row.text, headers=row.headers, blobs=chain_of([row.body], blobs)
            )
            for row in rows
        ]

    def skip(self, page: Behind, numbers: Iterable[int]) -> None:
        """Do not try these versions again in this process, in the same way."""
        self._skipped[page.page_id, page.reading].update(numbers)

    def keep(self, page: Behind, read: Sequence[tuple[Stale, Fresh | None]]) -> int:
        """Store the new texts in one transaction. Returns how many versions have another text now.

        A version that could not be extracted stays as it is, and is not tried again in the same way. One that is gone
        or was changed by another process in the meantime is not changed.
        """
        with self._store.write() as connection:
            lock_index(connection)
            _hold_page(connection, page)
            there = _texts(connection, page, [stale.number for stale, _ in read])
            valid = [(stale, fresh) for stale, fresh in read if there.get(stale.number) == (stale.body, stale.text)]
            blobs = [blob for _, fresh in valid if fresh for blob in fresh.blobs]
            rows = [(page.page_id, blob.digest, blob.base, blob.depth, blob.size, blob.data) for blob in blobs]
            self._store.statements.blob.many(
                connection, sorted(rows, key=itemgetter(0, 1))
            )  # in the order of locks, see `locks`
            changed = [stale.number for stale, fresh in valid if fresh and fresh.text != stale.text]
            for stale, fresh in valid:
                this = and_(versions.c.page_id == page.page_id, versions.c.number == stale.number)
                if fresh is None:
                    connection.execute(update(versions).where(this).values(unread=page.reading))
                    continue
                values: dict[str, Any] = {
                    "reading": page.reading,
                    "unread": None,
                    "text": fresh.text,
                    "title": fresh.title,
                }
                values |= {"content_type": fresh.content_type, "charset": fresh.charset}
                if fresh.text != stale.text:
                    values["reread_at"] = self._clock()
                connection.execute(update(versions).where(this).values(**values))
                _take_over(connection, page, stale, fresh)
            if changed:
                forget_from(connection, page.page_id, changed[0])
        return len(changed)

    def finish(self, page: Behind) -> None:
        """Store that all versions of the page are done, unless one to extract again was added in the meantime."""
        this = states.c.page_id == page.page_id
        with self._store.write() as connection:
            connection.execute(select(states.c.page_id).where(this).with_for_update())
            left = select(versions.c.number).where(_stale(page)).exists()
            connection.execute(update(states).where(this, ~left).values(caught_up=page.reading))

    def left(self) -> tuple[int, int]:
        """Return how many versions are to be extracted again, and how many cannot be extracted in the current way."""
        stale = unread = 0
        # pages with the same settings and readings are counted by the database: there are few kinds of them
        columns = cast(pages.c.settings, Text), versions.c.reading, versions.c.unread
        query = select(*columns, func.count()).join(versions, versions.c.page_id == pages.c.id).group_by(*columns)
        with self._store.read() as connection:
            for settings, reading, tried, count in connection.execute(query):
                today = self._how(_filters(settings))
                if tried == today:
                    unread += count
                elif reading != today:
                    stale += count
        return stale, unread


def _filters(settings: str) -> Filters:
    return None if settings == _NO_SETTINGS else json.loads(settings).get("filters")


def _stale(page: Behind) -> ColumnElement[bool]:
    return and_(
        versions.c.page_id == page.page_id,
        versions.c.reading.is_distinct_from(page.reading),
        versions.c.unread.is_distinct_from(page.reading),
    )


def _hold_page(connection: Connection, page: Behind) -> None:
    """Lock the page against removal and checks until the end of the transaction.

    Those lock its rows first, too: if blobs came before them here, each could wait for the other.
    """
    this = select(pages.c.id).where(pages.c.id == page.page_id)
    connection.execute(this.with_for_update(read=True, key_share=True))
    state = select(states.c.page_id).where(states.c.page_id == page.page_id)
    connection.execute(state.with_for_update(key_share=True))


def _texts(connection: Connection, page: Behind, numbers: Sequence[int]) -> dict[int, tuple[bytes, bytes]]:
    query = select(versions.c.number, versions.c.body, versions.c.text).where(
        and_(versions.c.page_id == page.page_id, versions.c.number.in_(numbers))
    )
    return {number: (body, text) for number, body, text in connection.execute(query.with_for_update())}


def _take_over(connection: Connection, page: Behind, stale: Stale, fresh: Fresh) -> None:
    """Compare with the new text from now on, if the version is the current one.

    Where the last check found another body with the same text, the new way of extracting may find different texts in
    the two. Then the state forgets how the page was extracted, so that the next check reads both bodies.
    """
    in_force = and_(
        states.c.page_id == page.page_id, states.c.version == stale.number, states.c.kept_text == stale.text
    )
    same = states.c.body == states.c.kept_body
    values = {
        "kept_text": fresh.text,
        "letters": case((same, fresh.letters), else_=states.c.letters),
        "reading": case((same, page.reading), else_=null()),
    }
    connection.execute(update(states).where(in_force).values(**values))
