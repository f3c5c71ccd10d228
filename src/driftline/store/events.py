"""The event log: everything worth reporting, in the order in which it was published.

Publishing groups what is in the outbox into events and deletes it there, in one transaction: each finding becomes part
of one event, however often it is tried. Each reader (the terminal, a command, …) has a position in the log, and a list
of the events that it has to try again; both are in the store.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import and_, delete, exists, func, insert, select, update

from driftline.durations import utc
from driftline.errors import FailureKind
from driftline.model.change import ChangeKind, Edit, Importance, NoiseKind, Region, check_of
from driftline.model.event import Event, EventKind, EventPage, EventSource
from driftline.model.page import WarningKind
from driftline.store.locks import lock_events, lock_pages, patiently, write_once
from driftline.store.outbox import clear_outbox, is_all, is_empty, read_outbox
from driftline.store.pages import carries
from driftline.store.schema import event_pages, event_readers, event_retries, events, pages, states, versions
from driftline.store.statements import in_batches

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from sqlalchemy import Connection, Row

    from driftline.model.change import Change
    from driftline.model.event import Danger, Ignored, Turned
    from driftline.store.engine import Store
    from driftline.store.outbox import Unreported
    from driftline.store.statements import Statements

#: makes events of changes, pages that began to fail or recovered, warnings, and what is ignored
Group: TypeAlias = Callable[["list[Change]", "list[Turned]", "list[Danger]", "list[Ignored]"], "list[Event]"]

_LOG = logging.getLogger(__name__)
_PORTION = 500  # events that are read at once
_AT_ONCE = 2_000  # findings of a kind that are published in one transaction: it takes less than a second
_SITE = "site"  # the kind of events that a crawl found, in JSON
_OF_SITES = frozenset({EventKind.NEW, EventKind.GONE, EventKind.MOVED})
_KINDS: dict[EventKind, type[ChangeKind | FailureKind | WarningKind | NoiseKind]] = {
    EventKind.CHANGED: ChangeKind,
    EventKind.FAILING: FailureKind,
    EventKind.WARNING: WarningKind,
    EventKind.IGNORING: NoiseKind,
}
_LISTED = select(events.c.id, events.c.source, events.c.payload)
_TITLES = (
    select(pages.c.id, pages.c.url, pages.c.tags, versions.c.title)
    .join(states, states.c.page_id == pages.c.id)
    .join(versions, and_(versions.c.page_id == pages.c.id, versions.c.number == states.c.version), isouter=True)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """An event that a reader could not deliver: how often, since when, and when it is tried again."""

    event: Event
    attempts: int
    since: float
    next_at: float
    error: str


class EventLog:
    """The event log of a store. Any thread may use it; a store that is locked or away is waited for until `stopped`."""

    def __init__(self, store: Store, stopped: Callable[[], bool] = lambda: True) -> None:
        self._store = store
        self._stopped = stopped

    def __repr__(self) -> str:
        return f"<EventLog of {self._store.where}>"

    def publish(
        self, group: Group, run_ids: Collection[int] | None = None, *, noise_until: float = math.inf,
        known: Unreported | None = None,
    ) -> int:  # fmt: skip
        """Turn what is in the outbox into events, and return how many there are.

        That is what these checks found, and others that have ended; if `run_ids` is None, also what `run` found. Noise
        that `run` found after `noise_until` waits for other pages that may share it, unless it belongs to a change that
        is published now. Each transaction takes a limited number of findings, so that any number of them takes little
        memory. A caller that still has what its checks found gives it as `known`, which saves most of the time if there
        is nothing else in the outbox.
        """
        few = known is not None and all(len(kind) < _AT_ONCE for kind in known)

        def publish(connection: Connection) -> tuple[dict[int, Event], bool]:
            lock_events(connection)
            if few and known is not None and is_all(connection, known):
                found = {EventSource.CHECK: known}
            else:
                found = read_outbox(connection, run_ids, noise_until=noise_until, limit=_AT_ONCE)
            lock_pages(connection, {check_of(one.id)[0] for some in found.values() for kind in some for one in kind})
            published: dict[int, Event] = {}
            for source, some in found.items():
                versions_of = {change.id: (change.from_version, change.to_version) for change in some[0]}
                published |= insert_events(self._store.statements, connection, group(*some), versions_of, source)
                clear_outbox(self._store.statements, connection, some)
            # of each kind, so many are read at most
            by_kind = zip(*found.values(), strict=True)
            return published, any(sum(map(len, some)) >= _AT_ONCE for some in by_kind)

        published, more = 0, not self._is_empty()
        while more and not (published and self._store.hurried):
            made, more = write_once(self._store, publish, self._stopped)
            published += len(made)
            for number, event in made.items() if _LOG.isEnabledFor(logging.INFO) else ():
                about = {"event": event.event, "event_id": number, "host": event.host, "pages": len(event.urls)}
                _LOG.info("event published: %s", event.headline, extra=about)
        return published

    def _is_empty(self) -> bool:
        def look() -> bool:
            with self._store.read() as connection:
                return is_empty(connection)

        return patiently(look, self._stopped)

    def reader(self, name: str, least: Importance = Importance.IMPORTANT) -> EventReader:
        """Return the reader of this name, for events at least as important. A new one begins with the next event."""
        return EventReader(self._store, name, self._stopped, least)

    def list(
        self, *, since: float | None = None, tag: str | None = None, page_id: int | None = None,
        limit: int | None = None, least: Importance = Importance.IMPORTANT,
    ) -> Iterator[Event]:  # fmt: skip
        """Yield the events, the newest first: those `since` a time, of pages with a tag, or of one page.

        They are at least as important as `least`.
        """
        query = _LISTED
        if least is Importance.IMPORTANT:
            query = query.where(events.c.importance == least.value)
        if since is not None:
            query = query.where(events.c.at >= since)
        if page_id is not None:
            these = select(event_pages.c.event_id).where(event_pages.c.page_id == page_id)
            query = query.where(events.c.id.in_(these))
        if tag is not None:
            of_event = and_(event_pages.c.event_id == events.c.id, pages.c.id == event_pages.c.page_id)
            query = query.where(exists().where(of_event, carries(self._store, tag)))
        query = query.order_by(events.c.id.desc())
        last: int | None = None
        left = limit
        while left is None or left > 0:
            portion = query if last is None else query.where(events.c.id < last)
            with self._store.read() as connection:
                rows = connection.execute(portion.limit(_PORTION if left is None else min(left, _PORTION))).all()
            yield from map(_event, rows)
            if not rows:
                return
            last = rows[-1].id
            left = None if left is None else left - len(rows)


class EventReader:
    """Where one reader of the event log is, kept in the store. Events less important than `least` count as read."""

    def __init__(
        self, store: Store, name: str, stopped: Callable[[], bool] = lambda: True,
        least: Importance = Importance.IMPORTANT,
    ) -> None:  # fmt: skip
        self.name = name
        self._least = least
        self._store = store
        self._stopped = stopped
        self._position = patiently(self._open, stopped)

    def __repr__(self) -> str:
        return f"<EventReader {self.name!r} position={self._position}>"

    def _open(self) -> int:
        with self._store.write() as connection:
            mine = select(event_readers.c.position).where(event_readers.c.name == self.name)
            found = connection.scalar(mine)
            if found is None:
                found = connection.scalar(select(func.coalesce(func.max(events.c.id), 0))) or 0
                connection.execute(insert(event_readers).values(name=self.name, position=found))
            return int(found)

    def read(self, limit: int = _PORTION) -> list[Event]:
        """Return the next events that are important enough, the oldest first."""

        def read() -> list[Event]:
            with self._store.read() as connection:
                following = _LISTED.where(events.c.id > self._position).order_by(events.c.id).limit(limit)
                return [_event(row) for row in connection.execute(following)]

        while found := patiently(read, self._stopped):
            wanted = [event for event in found if event.importance.reaches(self._least)]
            if wanted:
                return wanted
            self.advance(found[-1])  # so that a reader which wants them later does not get old ones
        return []

    def advance(self, event: Event) -> None:
        """Store that all events up to this one are done.

        If the store cannot be written, this process still does not read them again, but the next one does.
        """
        self._position = max(self._position, event.id)
        self._move(event.id, lambda _: None)

    def retries(self) -> list[Retry]:
        """Return the events that were not delivered yet, the oldest first."""

        def read() -> list[Retry]:
            query = select(events.c.id, events.c.source, events.c.payload, event_retries)
            query = query.join(event_retries, event_retries.c.event_id == events.c.id)
            query = query.where(event_retries.c.reader == self.name).order_by(events.c.id)
            with self._store.read() as connection:
                return [
                    Retry(
                        event=_event(row), attempts=row.attempts, since=row.since, next_at=row.next_at, error=row.error
                    )
                    for row in connection.execute(query)
                ]

        return patiently(read, self._stopped)

    def retry(self, retry: Retry) -> None:
        """Keep an event to be tried again later, and go on with the next."""
        values = {
            "attempts": retry.attempts, "since": retry.since, "next_at": retry.next_at, "error": retry.error,
        }  # fmt: skip
        mine = and_(event_retries.c.reader == self.name, event_retries.c.event_id == retry.event.id)

        def keep(connection: Connection) -> None:
            if not connection.execute(update(event_retries).where(mine).values(values)).rowcount:
                connection.execute(insert(event_retries).values(reader=self.name, event_id=retry.event.id, **values))

        self._move(retry.event.id, keep)

    def forget(self, retry: Retry) -> None:
        """Store that an event was delivered after all, or given up."""
        mine = and_(event_retries.c.reader == self.name, event_retries.c.event_id == retry.event.id)
        self._move(retry.event.id, lambda connection: connection.execute(delete(event_retries).where(mine)))

    def _move(self, event_id: int, also: Callable[[Connection], object]) -> None:
        position = max(self._position, event_id)

        def move() -> None:
            with self._store.write() as connection:
                also(connection)
                mine = event_readers.c.name == self.name
                connection.execute(update(event_readers).where(mine).values(position=position))

        patiently(move, self._stopped)
        self._position = position


def insert_events(
    statements: Statements, connection: Connection, found: Sequence[Event],
    versions_of: Mapping[str, tuple[int, int]] = MappingProxyType({}), source: EventSource | None = None,
) -> dict[int, Event]:  # fmt: skip
    """Append events to the log, with title, tags and versions of their pages; return them by their ids.

    `source` is the command that found them, if they do not say that themselves.
    """
    if not found:
        return {}
    lock_events(connection)
    pages_of = {one: check_of(one)[0] for event in found for one in event.ids}
    known = _known_pages(connection, set(pages_of.values()))
    watched = _watched_pages(connection, {url for event in found if not event.ids for url in (*event.urls, *event.to)})
    about = [
        _checked(event, pages_of, known, versions_of) if event.ids else _crawled(event, watched) for event in found
    ]
    rows = [
        {
            "kind": event.event.value, "at": event.at.timestamp(), "source": event.source or source,
            "importance": event.importance.value, "payload": _payload(event, its_pages),
        }
        for event, its_pages in zip(found, about, strict=True)
    ]  # fmt: skip
    # nobody else inserts meanwhile; RETURNING would make a statement of each row, which takes three times as long
    last = connection.scalar(select(func.coalesce(func.max(events.c.id), 0)))
    connection.execute(insert(events), rows)
    ids = connection.scalars(select(events.c.id).where(events.c.id > last).order_by(events.c.id)).all()
    links = {(page.id, number) for number, its_pages in zip(ids, about, strict=True) for page in its_pages}
    statements.event_page.many(connection, sorted(links))
    return dict(zip(ids, found, strict=True))


def _known_pages(connection: Connection, page_ids: Collection[int]) -> dict[int, Row[Any]]:
    """Return title and tags of these pages by id, without those that are not watched any more."""
    found: dict[int, Row[Any]] = {}
    for some in in_batches(sorted(page_ids)):
        found |= {row.id: row for row in connection.execute(_TITLES.where(pages.c.id.in_(some))).all()}
    return found


def _watched_pages(connection: Connection, urls: Collection[str]) -> dict[str, Row[Any]]:
    """Return title and tags of those of these pages that are watched, by URL, locked against removal."""
    page_ids: list[int] = []
    for some in in_batches(sorted(urls)):
        page_ids += connection.scalars(select(pages.c.id).where(pages.c.url.in_(some)))
    lock_pages(connection, page_ids)
    return {row.url: row for row in _known_pages(connection, page_ids).values()}


def _checked(
    event: Event, pages_of: Mapping[str, int], known: Mapping[int, Row[Any]],
    versions_of: Mapping[str, tuple[int, int]],
) -> tuple[EventPage, ...]:  # fmt: skip
    """Return the pages of an event that checks found."""
    found: list[EventPage] = []
    for check, url in zip(event.ids, event.urls, strict=True):
        row = known.get(pages_of[check])
        if row is not None:
            before, after = versions_of.get(check, (None, None))
            found.append(EventPage(
                id=row.id, url=url, title=row.title or "", tags=tuple(row.tags), check=check, from_version=before,
                to_version=after,
            ))  # fmt: skip
    return tuple(found)


def _crawled(event: Event, watched: Mapping[str, Row[Any]]) -> tuple[EventPage, ...]:
    """Return the watched pages of an event that a crawl found; of pages that moved, the old and the new ones."""
    rows = {row.id: row for url in (*event.urls, *event.to) if (row := watched.get(url)) is not None}
    return tuple(
        EventPage(id=row.id, url=row.url, title=row.title or "", tags=tuple(row.tags), check=None)
        for row in rows.values()
    )


_FIELDS = tuple(one.name for one in fields(Event) if one.name not in ("id", "source"))
_PAGE_FIELDS = tuple(one.name for one in fields(EventPage))


def event_document(event: Event) -> dict[str, Any]:
    """Return the event as a JSON object, with its time also in ISO 8601: what commands and `--json` get."""
    time_of = event.at.isoformat(timespec="seconds")
    return {"id": event.id} | _payload(event, event.pages) | {"source": event.source, "time": time_of}


def _payload(event: Event, its_pages: Sequence[EventPage]) -> dict[str, Any]:
    """Return the event with these pages as a JSON object, without what has a column of its own."""
    edits = [
        {
            "before": edit.before, "after": edit.after, "kind": edit.kind.value, "heading": edit.heading,
            "region": edit.region.name.lower() if edit.region else None, "noise": edit.noise and edit.noise.value,
        }
        for edit in event.edits
    ]  # fmt: skip
    kind = event.kind or (_SITE if event.event in _OF_SITES else "")
    # `asdict` copies every value, and takes a third of the time of publishing
    plain: dict[str, Any] = {name: getattr(event, name) for name in _FIELDS}
    of_pages = [{name: getattr(page, name) for name in _PAGE_FIELDS} for page in its_pages]
    return plain | {"kind": kind, "at": event.at.timestamp(), "pages": of_pages, "edits": edits}


def _event(row: Any) -> Event:
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in row.payload.items()
    }
    given["event"] = EventKind(given["event"])
    kinds = _KINDS.get(given["event"])
    given["kind"] = None if kinds is None else kinds(given["kind"])
    given["at"] = utc(given["at"])
    given["importance"] = Importance(given["importance"])
    given["edits"] = tuple(
        Edit(
            before=edit["before"], after=edit["after"], kind=ChangeKind(edit["kind"]),
            noise=NoiseKind(edit["noise"]) if edit["noise"] else None,
            region=Region[edit["region"].upper()] if edit["region"] else None, heading=edit["heading"],
        )
        for edit in given["edits"]
    )  # fmt: skip
    given["pages"] = tuple(EventPage(**page | {"tags": tuple(page["tags"])}) for page in given["pages"])
    return Event(id=row.id, source=EventSource(row.source), **given)
