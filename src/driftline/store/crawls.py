"""Crawls in the store: their rounds, the addresses that were found, and the result of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Integer, bindparam, case, delete, func, insert, select, update

from driftline.model.page import AddressKind, AddressSource, AddressState, PageNote, SkipReason
from driftline.store.events import insert_events
from driftline.store.locks import write_once
from driftline.store.schema import addresses, sites, skips

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, Select

    from driftline.model.event import Event
    from driftline.store.engine import Store


KNOWN = 1_000_000.0  # the priority of pages found in earlier rounds: they come after everything new


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A round of a crawl, and whether it continues one that was interrupted.

    Its pages are watched with the `tag`, if there is one. `adopts` is True if the site is watched from now on and was
    not before, so that pages already known have to be added to the watch list.
    """

    site_id: int
    number: int
    continued: bool
    started_at: float
    tag: str | None
    adopts: bool


class Site(NamedTuple):
    """A watched site: how it is crawled, and when its last round was begun or continued.

    That round is open while `finished_at` is None.
    """

    id: int
    seeds: list[str]
    options: dict[str, Any]
    tag: str
    round: int
    started_at: float
    finished_at: float | None


class Met(NamedTuple):
    """An address that was found, to be fetched. A lower `priority` comes first."""

    key: bytes
    url: str
    kind: AddressKind
    source: AddressSource
    via: int | None
    depth: int
    hops: int
    priority: float
    lastmod: str


class FrontierEntry(NamedTuple):
    """An entry of the frontier."""

    priority: float
    id: int
    kind: AddressKind


class Address(NamedTuple):
    """An address that waits to be fetched, with what was found there in earlier rounds."""

    id: int
    url: str
    kind: AddressKind
    source: AddressSource
    depth: int
    hops: int
    priority: float
    digest: bytes | None
    good_round: int


class Result(NamedTuple):
    """The result of fetching an address. One that is no page any more keeps the values of when it was one.

    `failure` is the sentence that says why it failed. A page that is not `lasting` is not fetched in later rounds
    unless a link to it is found.
    """

    id: int
    state: AddressState
    failure: str | None = None
    status: int = 0
    target: str | None = None
    title: str = ""
    digest: bytes | None = None
    mark: int = 0
    twin: int | None = None
    changed: bool = False
    score: float = 0.0
    at: float = 0.0
    good: bool = False
    lasting: bool = True
    gone: bool = False
    url: str = ""
    note: PageNote | None = None
    skip_reason: SkipReason | None = None


class FoundAddress(NamedTuple):
    """An address of a round, with what became of it.

    `failure` is the sentence that says why it failed, empty unless it did; `twin` is the id of the page that it has the
    text of.
    """

    id: int
    url: str
    source: AddressSource
    state: AddressState
    note: PageNote | None
    failure: str
    status: int
    target: str | None
    digest: bytes | None
    twin: int | None
    changed: bool
    score: float
    first_round: int
    good_round: int
    gone_round: int


_CHUNK = 500
_EXAMPLES = 5
_ADOPTS = "adopts"  # in the options of a site, while pages found before are still to be added to the watch list
_HERE = addresses.c.id == bindparam("this")
# the values of an address that waits to be fetched again, in place of those of the last round
_NOTHING_FOUND: dict[str, Any] = {"failure": None, "note": None, "skip_reason": None, "twin": None, "changed": 0}


class Sites:
    """The crawled sites of a store.

    Each write happens exactly once, and waits for a store that is locked or cannot be reached until the crawl is
    `stopped`.
    """

    def __init__(self, store: Store, stopped: Callable[[], bool] = lambda: True) -> None:
        self._store = store
        self._stopped = stopped
        self._dialect: Any = import_module(f"sqlalchemy.dialects.{store.engine.dialect.name}")

    def __repr__(self) -> str:
        return f"<Sites of {self._store!r}>"

    def begin(
        self, key: bytes, seeds: Sequence[str], options: Mapping[str, Any], tag: str | None, now: float, *,
        fresh: bool, unwatched: bool = False,
    ) -> Begun:  # fmt: skip
        """Begin or continue a round: the one that was interrupted, unless `fresh`, or else the next.

        In the next one all known pages that are not gone are fetched again, after what is new. A watched site stays
        watched, under the same tag or another one, unless it is to be `unwatched`, and keeps its interval unless it is
        given another one.
        """

        def begin(connection: Connection) -> Begun:
            row = connection.execute(select(sites).where(sites.c.key == key)).first()
            before = None if row is None else row.tag
            watched_as = None if unwatched else tag or before
            kept = dict(options)
            if row is None:
                adopts = watched_as is not None
                values = {"seeds": list(seeds), "options": kept | {_ADOPTS: adopts}, "started_at": now}
                made = insert(sites).values(key=key, tag=watched_as, round=1, **values).returning(sites.c.id)
                site_id = int(connection.execute(made).scalar_one())
                return Begun(site_id=site_id, number=1, continued=False, started_at=now, tag=watched_as, adopts=adopts)
            site_id, number, started = row.id, row.round, row.started_at
            continued = row.finished_at is None and not fresh
            # a crawl that was interrupted before it adopted pages is to do so now
            adopts = watched_as is not None and (before is None or bool(row.options.get(_ADOPTS)))
            kept |= {"every": kept.get("every") or row.options.get("every"), _ADOPTS: adopts}
            values = {"tag": watched_as, "options": kept, "started_at": now}
            connection.execute(update(sites).where(sites.c.id == site_id).values(values))
            if not continued:
                number, started = number + 1, now
                _begin_next(connection, site_id, number, now)
            return Begun(
                site_id=site_id, number=number, continued=continued, started_at=started, tag=watched_as, adopts=adopts
            )

        return write_once(self._store, begin, self._stopped)

    def note_adopted(self, site_id: int) -> None:
        """Record that the pages found before the site was watched are on the watch list now."""

        def note(connection: Connection) -> None:
            this = sites.c.id == site_id
            options = connection.scalar(select(sites.c.options).where(this)) or {}
            connection.execute(update(sites).where(this).values(options=options | {_ADOPTS: False}))

        write_once(self._store, note, self._stopped)

    def finish(self, site_id: int, number: int, now: float, found: Sequence[Event] = ()) -> None:
        """Record that the round of this number is complete, and publish the events that it found."""
        this = (sites.c.id == site_id) & (sites.c.round == number)
        ends = update(sites).where(this, sites.c.finished_at.is_(None)).values(finished_at=now)

        def finish(connection: Connection) -> None:
            if connection.execute(ends).rowcount and found:
                insert_events(self._store.statements, connection, found)

        write_once(self._store, finish, self._stopped)

    def kept(self) -> list[Site]:
        """Return the watched sites, in the order in which they were added."""
        with self._store.read() as connection:
            rows = connection.execute(select(sites).where(sites.c.tag.is_not(None)).order_by(sites.c.id))
            return [
                Site(row.id, row.seeds, _given(row.options), row.tag, row.round, row.started_at, row.finished_at)
                for row in rows
            ]  # fmt: skip

    def waiting(self, begun: Begun) -> list[FrontierEntry]:
        """Return the frontier: the addresses that wait to be fetched."""
        columns = (addresses.c.priority, addresses.c.id, addresses.c.kind)
        query = select(*columns).where(*_of(begun), addresses.c.state == AddressState.WAITING.value)
        with self._store.read() as connection:
            return [_entry(*row) for row in connection.execute(query)]

    def keys(self, begun: Begun) -> list[bytes]:
        """Return the keys of all addresses found in this round."""
        with self._store.read() as connection:
            return list(connection.scalars(select(addresses.c.key).where(*_of(begun))))

    def marks(self, begun: Begun) -> list[tuple[int, str, bytes, int]]:
        """Return id, address, digest and simhash of the pages of this round, in the order in which they were found."""
        columns = (addresses.c.id, addresses.c.url, addresses.c.digest, addresses.c.mark)
        query = select(*columns).where(
            *_of(begun), addresses.c.state == AddressState.PAGE.value, addresses.c.digest.is_not(None)
        )
        with self._store.read() as connection:
            return [(row[0], row[1], row[2], row[3]) for row in connection.execute(query.order_by(addresses.c.id))]

    def open_ones(self, ids: Sequence[int]) -> dict[int, Address]:
        """Return those of these addresses that still wait, by id."""
        columns = (
            addresses.c.id, addresses.c.url, addresses.c.kind, addresses.c.source, addresses.c.depth,
            addresses.c.hops, addresses.c.priority, addresses.c.digest, addresses.c.good_round,
        )  # fmt: skip
        query = select(*columns).where(addresses.c.state == AddressState.WAITING.value)
        with self._store.read() as connection:
            rows = _some(connection, query, addresses.c.id, ids)
            return {
                row.id: Address(
                    row.id, row.url, AddressKind(row.kind), AddressSource(row.source), row.depth, row.hops,
                    row.priority, row.digest, row.good_round,
                )
                for row in rows
            }  # fmt: skip

    def seen(self, begun: Begun, keys: Sequence[bytes]) -> set[bytes]:
        """Return those of these keys that were found in this round already."""
        with self._store.read() as connection:
            return {
                row[0] for row in _some(connection, select(addresses.c.key).where(*_of(begun)), addresses.c.key, keys)
            }

    def record(
        self, begun: Begun, results: Sequence[Result], met: Sequence[Met],
        skipped: Mapping[SkipReason, Sequence[str]], dated: Sequence[Met] = (),
    ) -> list[FrontierEntry]:  # fmt: skip
        """Store the results of some addresses, and the addresses found there, in one transaction.

        `dated` are addresses with the time of their last change according to a sitemap, found before or not. Returns
        the new entries of the frontier.
        """

        def record(connection: Connection) -> list[FrontierEntry]:
            self._store_results(connection, begun, results)
            waiting = self._add_to_frontier(connection, begun, met)
            waiting += self._apply_dates(connection, begun, dated)
            self._count_skipped(connection, begun, skipped)
            return waiting

        return write_once(self._store, record, self._stopped)

    def _store_results(self, connection: Connection, begun: Begun, results: Sequence[Result]) -> None:
        good = [one for one in results if one.good]
        moved = [one for one in results if one.url]
        others = [one for one in results if not one.good and not one.url]
        if good:
            connection.execute(_GOOD, [_row(one, begun.number if one.lasting else 0) for one in good])
        if others:
            connection.execute(_OTHER, [_row(one, begun.number if one.gone else 0) for one in others])
        if moved:
            connection.execute(_AGAIN, [{"this": one.id, "new_url": one.url} for one in moved])

    def _add_to_frontier(self, connection: Connection, begun: Begun, met: Sequence[Met]) -> list[FrontierEntry]:
        """Add those addresses to the frontier that were not found in this round yet."""
        if not met:
            return []
        statement = self._dialect.insert(addresses)
        new = statement.excluded
        again = {
            name: new[name]
            for name in ("url", "kind", "source", "via", "depth", "hops", "priority", "lastmod", "round", "state")
        }
        statement = statement.on_conflict_do_update(
            index_elements=[addresses.c.site_id, addresses.c.key],
            set_=again | _NOTHING_FOUND,
            where=addresses.c.round < new.round,
        )  # fmt: skip
        number = begun.number
        rows = [
            one._asdict() | {
                "site_id": begun.site_id, "round": number, "first_round": number, "good_round": 0, "gone_round": 0,
                "state": AddressState.WAITING.value, "lastmod": one.lastmod or None, "kind": one.kind.value,
                "source": one.source.value,
            }
            for one in met
        ]  # fmt: skip
        connection.execute(statement, rows)
        columns = (addresses.c.priority, addresses.c.id, addresses.c.kind)
        query = select(*columns).where(*_of(begun), addresses.c.state == AddressState.WAITING.value)
        return [_entry(*row) for row in _some(connection, query, addresses.c.key, [one.key for one in met])]

    def _apply_dates(self, connection: Connection, begun: Begun, met: Sequence[Met]) -> list[FrontierEntry]:
        """Apply the dates of a sitemap to known pages: one with the same date is unchanged; others come first.

        A date is compared only for a page that was read in the round before this one. For others, it may be the date of
        a change that was never read, because the page could not be fetched or the round was abandoned.
        """
        known: dict[bytes, Any] = {}
        columns = (addresses.c.id, addresses.c.key, addresses.c.kind, addresses.c.lastmod, addresses.c.good_round)
        query = select(*columns).where(
            *_of(begun), addresses.c.state == AddressState.WAITING.value, addresses.c.priority >= KNOWN
        )
        for row in _some(connection, query, addresses.c.key, [one.key for one in met]):
            known[row.key] = row
        before = {key: row.lastmod for key, row in known.items() if row.good_round == begun.number - 1}
        same = [one for one in met if one.key in known and before.get(one.key) == one.lastmod]
        other = [one for one in met if one.key in known and before.get(one.key) != one.lastmod]
        if same:
            values = {
                "state": AddressState.PAGE.value, "note": PageNote.LASTMOD.value, "good_round": begun.number,
            }  # fmt: skip
            ids = [{"this": known[one.key].id} for one in same]
            connection.execute(update(addresses).where(_HERE).values(values), ids)
        if other:
            rows = [{"this": known[one.key].id, "when": one.lastmod, "first": one.priority} for one in other]
            values = {"lastmod": bindparam("when"), "priority": bindparam("first")}
            connection.execute(update(addresses).where(_HERE).values(values), rows)
        return [_entry(one.priority, known[one.key].id, known[one.key].kind) for one in other]

    def _count_skipped(self, connection: Connection, begun: Begun, skipped: Mapping[SkipReason, Sequence[str]]) -> None:
        if not skipped:
            return
        query = select(skips).where(skips.c.site_id == begun.site_id)
        known = {row.reason: row for row in connection.execute(query)}
        for reason, urls in skipped.items():
            before = known.get(reason.value)
            examples = list(dict.fromkeys([*(before.examples if before else ()), *urls]))[:_EXAMPLES]
            values = {"many": (before.many if before else 0) + len(urls), "examples": examples}
            if before is None:
                connection.execute(insert(skips).values(site_id=begun.site_id, reason=reason.value, **values))
            else:
                this = (skips.c.site_id == begun.site_id) & (skips.c.reason == reason.value)
                connection.execute(update(skips).where(this).values(values))

    def skipped(self, begun: Begun) -> dict[SkipReason, tuple[int, list[str]]]:
        """Return how many addresses were not followed, and the first few of them, by reason, most first."""
        with self._store.read() as connection:
            rows = connection.execute(select(skips).where(skips.c.site_id == begun.site_id))
            found = {SkipReason(row.reason): (row.many, list(row.examples)) for row in rows}
        return dict(sorted(found.items(), key=lambda item: -item[1][0]))

    def figures(self, begun: Begun) -> Counter[tuple[AddressKind, AddressState, PageNote | None]]:
        """Return how many addresses this round has, by kind, state and note."""
        columns = (addresses.c.kind, addresses.c.state, addresses.c.note)
        query = select(*columns, func.count()).where(*_of(begun)).group_by(*columns)
        found: Counter[tuple[AddressKind, AddressState, PageNote | None]] = Counter()
        with self._store.read() as connection:
            for kind, state, note, many in connection.execute(query):
                found[AddressKind(kind), AddressState(state), _note(note)] += many
        return found

    def asked(self, begun: Begun) -> int:
        """Return how many addresses of pages were requested in this round."""
        fetched = (addresses.c.kind == AddressKind.PAGE.value) & (addresses.c.status > 0)
        done = addresses.c.state != AddressState.WAITING.value
        unlike = addresses.c.note.is_(None) | (addresses.c.note != PageNote.LASTMOD.value)
        with self._store.read() as connection:
            return connection.scalar(select(func.count()).where(*_of(begun), fetched, done, unlike)) or 0

    def rows(
        self, begun: Begun, states: Sequence[AddressState], kinds: Sequence[AddressKind] = (AddressKind.PAGE,)
    ) -> Iterator[FoundAddress]:  # fmt: skip
        """Yield this round's addresses of these kinds that are in these states, in the order found."""
        of_kinds = addresses.c.kind.in_([kind.value for kind in kinds])
        in_states = addresses.c.state.in_([state.value for state in states])
        query = select(addresses).where(*_of(begun), of_kinds, in_states).order_by(addresses.c.id)
        with self._store.read() as connection:
            for row in connection.execute(query):
                yield FoundAddress(
                    row.id, row.url, AddressSource(row.source), AddressState(row.state), _note(row.note),
                    row.failure or "", row.status, row.target, row.digest, row.twin, bool(row.changed),
                    row.score or 0.0, row.first_round, row.good_round, row.gone_round,
                )  # fmt: skip

    def urls(self, ids: Iterable[int]) -> dict[int, str]:
        """Return the addresses by id."""
        with self._store.read() as connection:
            rows = _some(connection, select(addresses.c.id, addresses.c.url), addresses.c.id, list(ids))
            return {row[0]: row[1] for row in rows}


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a site is crawled with, without the internal ones that are stored with them."""
    return {name: value for name, value in options.items() if name != _ADOPTS}


def _entry(priority: float, number: int, kind: str) -> FrontierEntry:
    return FrontierEntry(priority, number, AddressKind(kind))


def _note(stored: str | None) -> PageNote | None:
    return None if stored is None else PageNote(stored)


def _begin_next(connection: Connection, site_id: int, number: int, now: float) -> None:
    values = {"round": number, "started_at": now, "finished_at": None}
    connection.execute(update(sites).where(sites.c.id == site_id).values(values))
    connection.execute(delete(skips).where(skips.c.site_id == site_id))
    known = (addresses.c.site_id == site_id) & (addresses.c.good_round > 0) & (addresses.c.gone_round == 0)
    again = {
        "round": number, "state": AddressState.WAITING.value, "source": AddressSource.KNOWN.value, "hops": 0,
        "priority": KNOWN + addresses.c.depth,
    } | _NOTHING_FOUND  # fmt: skip
    connection.execute(update(addresses).where(known).values(again))


def _of(begun: Begun) -> tuple[ColumnElement[bool], ...]:
    return addresses.c.site_id == begun.site_id, addresses.c.round == begun.number


def _some(connection: Connection, query: Select[Any], column: ColumnElement[Any], values: Sequence[Any]) -> list[Any]:
    """Return the rows of a query in which a column has one of many values."""
    found: list[Any] = []
    for start in range(0, len(values), _CHUNK):
        found += connection.execute(query.where(column.in_(values[start : start + _CHUNK])))
    return found


def _row(result: Result, number: int) -> dict[str, Any]:
    values = {f"new_{name}": value for name, value in result._asdict().items()}
    stored = {
        "new_state": result.state.value, "new_note": result.note and result.note.value,
        "new_skip_reason": result.skip_reason and result.skip_reason.value,
    }  # fmt: skip
    return values | stored | {"this": result.id, "of": number}


_SETTLED: dict[str, Any] = {
    "state": bindparam("new_state"), "failure": bindparam("new_failure"), "note": bindparam("new_note"),
    "skip_reason": bindparam("new_skip_reason"), "status": bindparam("new_status"),
    "target": bindparam("new_target"), "fetched_at": bindparam("new_at"),
}  # fmt: skip
_GOOD = update(addresses).where(_HERE).values(
    **_SETTLED, title=bindparam("new_title"), digest=bindparam("new_digest"), mark=bindparam("new_mark"),
    twin=bindparam("new_twin"), changed=bindparam("new_changed"), score=bindparam("new_score"),
    good_round=bindparam("of"), gone_round=0,
)  # fmt: skip
_OTHER = (
    update(addresses)
    .where(_HERE)
    .values(
        **_SETTLED,
        # gone is reported once, and stays until it is a page again
        gone_round=case((addresses.c.gone_round == 0, bindparam("of", type_=Integer)), else_=addresses.c.gone_round),
    )
)
_AGAIN = update(addresses).where(_HERE).values(url=bindparam("new_url"), hops=addresses.c.hops + 1)
