"""Runs and what they record: one transaction per batch of outcomes, and nothing twice."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from contextlib import suppress
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, and_, cast, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from driftline.errors import StoreError, StoreUnavailable
from driftline.http.credentials import Access
from driftline.http.headers import retry_after, validators
from driftline.model import Known, Lesson, Link, Outcome, Proof, Verdict, stored_render
from driftline.noise_memory import Memory
from driftline.store.blobs import digest
from driftline.store.events import EventLog
from driftline.store.failing_pages import insert_turns
from driftline.store.locks import count_revision, lock_memories, lock_pages, patiently, write_once
from driftline.store.outbox import found_by, put_in_outbox, stored_edits
from driftline.store.schema import CONTINUED, RUN, checks, pages, runs, states, tags, warnings
from driftline.store.statements import BINARY, LINK_COLUMNS, host_memories_of, in_batches, memories_of
from driftline.store.tunables import BATCHES
from driftline.urls.parts import as_sent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import ColumnElement, Connection, Select

    from driftline.store.engine import Store
    from driftline.store.events import Group
    from driftline.store.outbox import Found

_BUSY = (429, 503)  # answers that may say when to ask again
_NO_REQUESTS = 0.0  # when a run has ended that has not sent any request yet
FAIL_AFTER = 3  # failures in a row, unless it is set
_RESUME_WITHIN = 3_600.0  # seconds: a run that stopped longer ago is history, and its pages are due again


class Ledger:
    """Gives out what a run must check, and records what came of it.

    While another program keeps the store locked it waits, until the run is `stopped`: work that is at hand is not to be
    thrown away for that. Links are waited for until `reading_stopped`, if that is given: a run that may send no more
    requests needs none. So many failures in a row make a page a failing one, as `fail_after` says. What
    is worth reporting is put into the outbox in the same transaction.
    """

    def __init__(
        self, store: Store, clock: Callable[[], float] = time.time, stopped: Callable[[], bool] = lambda: True,
        fail_after: int = FAIL_AFTER, *, reading_stopped: Callable[[], bool] | None = None,
    ) -> None:  # fmt: skip
        self._reading_stopped = reading_stopped or stopped
        self._fail_after = fail_after
        self._store = store
        self._clock = clock
        self._stopped = stopped
        self._unreported: list[tuple[int, float]] = []  # runs over the same pages, and since when nobody reported them

    def begin(self, page_ids: Sequence[int] | None, *, fresh: bool = False) -> tuple[int, bool]:
        """The run to work on, and whether it is one that was cut short and goes on now.

        A run over the same pages that began within the last hour and never got to all of them is continued, unless
        `fresh`.
        """
        # once: a run that was inserted in a commit of which nobody heard would be taken for one that was cut short
        return write_once(self._store, lambda connection: self._begin(connection, page_ids, fresh=fresh), self._stopped)

    def _begin(self, connection: Connection, page_ids: Sequence[int] | None, *, fresh: bool) -> tuple[int, bool]:
        scope = _scope(page_ids)
        same = runs.c.scope == scope
        newest = select(runs.c.id, runs.c.started_at, runs.c.finished_at, runs.c.ended_at).where(same)
        newest = newest.order_by(runs.c.id.desc()).limit(1)
        unreported = select(runs.c.id, runs.c.unreported_since).where(same, runs.c.unreported_since.is_not(None))
        self._unreported = [(row[0], row[1]) for row in connection.execute(unreported.order_by(runs.c.id))]
        self._end_killed_runs(connection)
        last = connection.execute(newest).first()
        now = self._clock()
        if last is not None and not fresh and last.finished_at is None:
            recent = 0 <= now - last.started_at < _RESUME_WITHIN
            if recent and _remains(connection, last.id, page_ids):
                _continue_run(connection, last.id, last.ended_at, now)
                return last.id, True
        return _insert_run(connection, scope, now, unreported_since=now), False

    def found_before(self) -> Found:
        """Return what runs over the same pages recorded that failed or were killed before they could report it."""

        def read() -> Found:
            with self._store.read() as connection:
                return found_by(connection, self._unreported)

        return patiently(read, self._stopped)

    def begin_without_end(self, *, idle: bool = False) -> int:
        """A run that checks pages as they come, any of them many times: there is nothing to continue it by.

        One that is `idle` begins without the right to check pages, and calls `take_turn` whenever it takes that.
        """

        def begin(connection: Connection) -> int:
            if not idle:
                self._end_killed_runs(connection)
            return _insert_run(connection, RUN, self._clock(), ended_at=_NO_REQUESTS if idle else None)

        return write_once(self._store, begin, self._stopped)

    def take_turn(self, run_id: int) -> bool:
        """Note that the run has the right to check, and return whether others may have sent requests before.

        Whoever begins a run notes that all others have ended: that is how it is known that they had a turn.
        """
        this = runs.c.id == run_id
        with self._store.read() as connection:
            ended_at = connection.scalar(select(runs.c.ended_at).where(this))
        if ended_at is None:
            return False
        with self._store.write() as connection:
            self._end_killed_runs(connection)
            if ended_at != _NO_REQUESTS:  # their clocks may be wrong: hosts rest from now on, by our own
                _insert_pause(connection, self._clock())
            connection.execute(update(runs).where(this).values(ended_at=None))
        return True

    def _end_killed_runs(self, connection: Connection) -> None:
        """Note that runs which did not end themselves sent requests until now, as far as anybody knows."""
        connection.execute(update(runs).where(runs.c.ended_at.is_(None)).values(ended_at=self._clock()))

    def note_interruption(self, run_id: int) -> None:
        """Note that requests were sent until now, and that the run goes on: hosts rest before they are asked again."""

        def note() -> None:
            with self._store.write() as connection:
                self._end_killed_runs(connection)  # others may have begun, and noted that this one has ended
                now = self._clock()
                _continue_run(connection, run_id, now, now)

        patiently(note, self._stopped)

    def publish(self, run_id: int, group: Group) -> None:
        """Add what the run found to the event log, with what `found_before` returns."""
        run_ids = {run_id, *(other for other, _ in self._unreported)}
        EventLog(self._store, self._stopped).publish(group, run_ids)

    def end(self, run_id: int, *, reported: bool = False) -> None:
        """Note that the run sends no more requests, complete or not. What is not noted is taken for a killed run.

        What it recorded is left to the next report, unless it is `reported` now, together with `found_before`: then a
        store that is away is waited for, or the next report would name all of it again.
        """

        def end() -> None:
            with self._store.write() as connection:
                connection.execute(update(runs).where(runs.c.id == run_id).values(ended_at=self._clock()))
                if reported:
                    these = {run_id, *(other for other, _ in self._unreported)}
                    connection.execute(update(runs).where(runs.c.id.in_(these)).values(unreported_since=None))
                count_revision(connection)

        with suppress(StoreError):
            patiently(end, self._stopped if reported else lambda: True)

    def finish(self, run_id: int) -> None:
        """Mark the run as complete, so that the next one starts afresh."""
        patiently(lambda: self._finish(run_id), self._stopped)

    def _finish(self, run_id: int) -> None:
        with self._store.write() as connection:
            connection.execute(update(runs).where(runs.c.id == run_id).values(finished_at=self._clock()))

    def remain(self, run_id: int, page_ids: Sequence[int] | None) -> int:
        """How many pages the run has not recorded yet."""
        query = select(func.count()).select_from(states).where(_open_pages(run_id))

        def count() -> int:
            with self._store.read() as connection:
                if page_ids is None:
                    return connection.scalar(query) or 0
                found = (connection.scalar(query.where(states.c.page_id.in_(some))) for some in in_batches(page_ids))
                return sum(one or 0 for one in found)

        return patiently(count, self._stopped)

    def remaining(self, run_id: int, page_ids: Sequence[int] | None) -> Iterator[Link]:
        """The links of the pages that the run has not recorded yet, read a thousand at a time in order of page."""
        if page_ids is not None:
            for some in in_batches(sorted(page_ids), BATCHES.links):
                yield from self._made(self._rows(open_links(run_id).where(pages.c.id.in_(some))))
            return
        after: int | None = 0
        while after is not None:
            up_to = after + BATCHES.links
            yield from self._made(self._rows(open_links(run_id, (after, up_to))))
            after = self._last_before_next(up_to)

    def _last_before_next(self, page_id: int) -> int | None:
        """Return the id just before the next page after `page_id`, as ids may have wide gaps; None if there is none."""
        found = self._rows(select(func.min(pages.c.id)).where(pages.c.id > page_id))[0][0]
        return None if found is None else int(found) - 1

    def links(self, page_ids: Sequence[int]) -> list[Link]:
        """The links of these pages as they are now, in this order, without those that are watched no more."""
        found: dict[int, Link] = {}
        for some in in_batches(page_ids, BATCHES.links):
            rows = self._rows(_LINKS.where(pages.c.id.in_(some)))
            found.update((link.page_id, link) for link in self._made(rows))
        return [found[page_id] for page_id in page_ids if page_id in found]

    def _made(self, rows: Sequence[Any]) -> Iterator[Link]:
        """The links of these rows, with what the servers of their pages want to see."""
        if all(row[-1] == _NO_TAGS for row in rows):
            return map(_link, rows)
        by_tag = {name: access for name, settings in self._rows(_TAGS) if (access := _access(settings))}
        return (_let_in(_link(row), row[-1], by_tag) for row in rows)

    def _rows(self, query: Select[Any]) -> Sequence[Any]:
        """What a query finds, as the driver's own rows: wrapping them would cost as much as reading them."""

        def read() -> Sequence[Any]:
            with self._store.read() as connection:
                return connection.execute(query, execution_options=BINARY).cursor.fetchall()

        return patiently(read, self._reading_stopped)

    def record(self, run_id: int, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """Commit these outcomes in one transaction; those of them that were not recorded before.

        An outcome whose (page, sequence) is recorded already changes nothing, nor does one of a page that was removed
        in the meantime. Where the server was lost before it said whether it committed them, those count that it did.
        """
        unsure = False

        def record() -> Sequence[Outcome]:
            nonlocal unsure
            try:
                return self._record(run_id, outcomes, unsure=unsure)
            except StoreUnavailable:
                unsure = True
                raise

        return patiently(record, self._stopped)

    def _record(self, run_id: int, outcomes: Sequence[Outcome], *, unsure: bool) -> Sequence[Outcome]:
        in_order = sorted(outcomes, key=_page_id)  # as `locks` asks for: each check locks the state of its page
        try:
            with self._store.write() as connection:
                lock_pages(connection, [_page_id(outcome) for outcome in in_order if _has_more_rows(outcome)])
                if _insert_checks(self._store, connection, run_id, in_order):
                    self._insert_rest(connection, in_order)
                    return outcomes
                connection.rollback()
        except IntegrityError:
            pass  # a page was removed while it was being checked: what follows leaves it out
        while (recorded := self._record_new(run_id, in_order, unsure=unsure)) is None:
            pass  # whoever recorded one of them has committed it by now, so that it is left out the next time
        return recorded

    def _record_new(self, run_id: int, in_order: Sequence[Outcome], *, unsure: bool) -> Sequence[Outcome] | None:
        """Record those of the outcomes that are not recorded yet; None, and none, if one of them is meanwhile."""
        with self._store.write() as connection:
            keys = [*map(_page_id, in_order)]
            # a state that is behind its checks, as an earlier version may have left it, must not hold up the others
            following = and_(checks.c.page_id == states.c.page_id, checks.c.sequence == states.c.sequence + 1)
            query = select(pages.c.id, states.c.sequence).join(states, states.c.page_id == pages.c.id)
            query = query.outerjoin(checks, following).where(checks.c.page_id.is_(None))
            query = query.where(pages.c.id.in_(keys)).order_by(pages.c.id)
            # whoever removes one of them from here on waits
            query = query.with_for_update(read=True, key_share=True, of=pages)
            at = {row[0]: row[1] for row in connection.execute(query)}
            new = [one for one in in_order if at.get(_page_id(one)) == one.document.link.sequence - 1]
            left = [*{_page_id(one): one for one in new}.values()]  # each page once, or this would be tried forever
            if not _insert_checks(self._store, connection, run_id, left):
                connection.rollback()
                return None
            self._insert_rest(connection, left)
            if not unsure:
                return left
            wrote = _written_by(connection, run_id, in_order) | {*map(_page_id, left)}
            return [outcome for outcome in in_order if _page_id(outcome) in wrote]

    def _insert_rest(self, connection: Connection, outcomes: Sequence[Outcome]) -> None:
        _insert_found(self._store, connection, outcomes)
        insert_turns(self._store.statements, connection, outcomes, self._fail_after)
        put_in_outbox(connection, outcomes)


def _written_by(connection: Connection, run_id: int, outcomes: Sequence[Outcome]) -> set[int]:
    """Return the pages of those outcomes that this run has recorded, in a commit of which it never heard."""
    query = select(checks.c.page_id, checks.c.sequence, checks.c.at).where(
        checks.c.run_id == run_id, checks.c.page_id.in_([*map(_page_id, outcomes)])
    )
    written = {tuple(row) for row in connection.execute(query)}
    return {
        outcome.document.link.page_id for outcome in outcomes
        if (outcome.document.link.page_id, outcome.document.link.sequence, outcome.document.fetched_at) in written
    }  # fmt: skip


def _page_id(outcome: Outcome) -> int:
    return outcome.document.link.page_id


def _has_more_rows(outcome: Outcome) -> bool:
    """Return whether rows that refer to the page are inserted, beside its check and its state."""
    return (
        outcome.verdict is not Verdict.UNCHANGED or outcome.version is not None or outcome.lesson is not None
        or bool(outcome.warnings) or outcome.document.link.failing
    )  # fmt: skip


_TAGS = select(tags.c.name, cast(tags.c.settings, Text))
_NO_TAGS = "[]"
_LINKS = select(*LINK_COLUMNS).join(states, states.c.page_id == pages.c.id)


def open_links(run_id: int, within: tuple[int, int] | None = None) -> Select[Any]:
    """Select the links of pages that the run has not recorded yet, in order of page: all, or those `within` two ids.

    A range, not a LIMIT: without statistics of the tables, PostgreSQL would sort all later pages for each batch. And
    it does not conclude from a range of pages that their states are in it as well: so it is said of both.
    """
    query = _LINKS.where(_open_pages(run_id)).order_by(pages.c.id)
    if within is None:
        return query
    after, up_to = within
    return query.where(pages.c.id > after, pages.c.id <= up_to, states.c.page_id > after, states.c.page_id <= up_to)


def _scope(page_ids: Sequence[int] | None) -> str:
    """What a run is over, in few bytes: two runs over the same pages have the same scope."""
    return "all" if page_ids is None else digest(json.dumps(sorted(page_ids)).encode()).hex()


def _insert_run(connection: Connection, scope: str, now: float, **given: float | None) -> int:
    made = insert(runs).values(scope=scope, started_at=now, **given).returning(runs.c.id)
    return int(connection.execute(made).scalar_one())


def _continue_run(connection: Connection, run_id: int, ended_at: float, now: float) -> None:
    """Note that a run sends requests again, and in a row of its own when it had stopped: hosts rest from then on."""
    since = func.coalesce(runs.c.unreported_since, now)
    connection.execute(update(runs).where(runs.c.id == run_id).values(ended_at=None, unreported_since=since))
    _insert_pause(connection, ended_at)
    count_revision(connection)


def _insert_pause(connection: Connection, at: float) -> None:
    connection.execute(insert(runs).values(scope=CONTINUED, started_at=at, finished_at=at, ended_at=at))


def _open_pages(run_id: int) -> ColumnElement[bool]:
    return or_(states.c.run_id.is_(None), states.c.run_id != run_id)


def _remains(connection: Connection, run_id: int, page_ids: Sequence[int] | None) -> bool:
    """Whether there is a page that the run has not recorded yet."""
    query = select(states.c.page_id).where(_open_pages(run_id)).limit(1)
    if page_ids is None:
        return connection.scalar(query) is not None
    found = (connection.scalar(query.where(states.c.page_id.in_(some))) for some in in_batches(page_ids))
    return any(page_id is not None for page_id in found)


def _link(row: tuple[Any, ...]) -> Link:
    page_id, url, sequence, version, etag, last_modified, wire, settings, failures, failing_at, _ = row
    known = Known(version, etag, last_modified, wire) if version else None
    failing = failing_at is not None
    if settings == "{}":
        return Link(page_id, url, sequence + 1, known, None, failures, failing)
    given = json.loads(settings)
    access, render = _access(settings), stored_render(given)
    return Link(page_id, url, sequence + 1, known, given.get("filters"), failures, failing, access, render)


def _access(settings: str) -> Access | None:
    stored = json.loads(settings).get("access")
    return Access.from_stored(stored) if stored else None


def _let_in(link: Link, tags: str, by_tag: dict[str, Access]) -> Link:
    """The link with what the tags of its page say, unless the page itself says otherwise."""
    for tag in json.loads(tags):
        if tag in by_tag:
            link.access = by_tag[tag] if link.access is None else link.access.before(by_tag[tag])
    return link


def _insert_checks(store: Store, connection: Connection, run_id: int, outcomes: Sequence[Outcome]) -> bool:
    """Insert the checks and bring the states up to them; whether all of them were new."""
    rows: list[tuple[Any, ...]] = []
    touched: list[tuple[Any, ...]] = []
    for outcome in outcomes:
        document = outcome.document
        link = document.link
        at = document.fetched_at
        verdict: str = outcome.verdict._value_
        kind = sentence = None
        if outcome.failure is not None:
            kind, sentence = outcome.failure.kind.value, outcome.failure.sentence
        rows.append((
            link.page_id, link.sequence, run_id, at, verdict, document.status, document.seconds, document.size,
            outcome.proof and outcome.proof._value_, kind, sentence,
            as_sent(document.final_url) if document.redirects else None,
        ))  # fmt: skip
        touched.append((link.page_id, run_id, link.sequence, 0, at, verdict, kind, sentence, 0))
    if store.statements.check.many(connection, rows) != len(rows):
        return False
    store.statements.touch.many(connection, touched)
    return True


def _insert_found(store: Store, connection: Connection, outcomes: Sequence[Outcome]) -> None:
    """What the checks found, beside the checks themselves."""
    same_wire: list[tuple[Any, ...]] = []
    same_text: list[tuple[Any, ...]] = []
    new: list[tuple[Any, ...]] = []
    blobs: list[tuple[Any, ...]] = []
    versions: list[tuple[Any, ...]] = []
    changes: list[tuple[Any, ...]] = []
    retries: list[tuple[Any, ...]] = []
    pictures: list[tuple[Any, ...]] = []
    failed, by_validators, by_wire, by_noise = Verdict.FAILED, Proof.VALIDATORS, Proof.WIRE, Proof.NOISE
    for outcome in outcomes:
        if outcome.proof is by_validators:
            continue
        if outcome.verdict is failed:
            document = outcome.document
            wait = retry_after(document.headers, document.fetched_at) if document.status in _BUSY else None
            if wait is not None:
                retries.append((document.fetched_at + wait, document.link.page_id))
            continue
        if outcome.proof is by_noise and outcome.version is None:
            continue  # it is to be compared with the version in force again
        document = outcome.document
        link = document.link
        # those of a redirect's target say nothing about this address
        etag, modified = (None, None) if document.redirects else validators(document.headers)
        if outcome.proof is by_wire:
            known = link.known
            if known is None or known.etag != etag or known.last_modified != modified:
                same_wire.append((etag, modified, link.page_id))
            continue
        if outcome.version is None:
            same_text.append((
                etag, modified, link.page_id, outcome.wire, outcome.body, outcome.reading, outcome.recalled,
            ))  # fmt: skip
            continue
        version = outcome.version
        at = document.fetched_at
        new.append((
            etag, modified, link.page_id, outcome.wire, version.body, outcome.reading,
            version.number, version.letters, version.body, version.text, None if outcome.proof else at,
        ))  # fmt: skip
        blobs += [(link.page_id, blob.digest, blob.base, blob.depth, blob.size, blob.data) for blob in version.blobs]
        versions.append((
            link.page_id, version.number, link.sequence, at, version.body, version.text, version.size, version.title,
            version.content_type, version.charset, as_sent(document.final_url), document.headers, outcome.reading,
        ))  # fmt: skip
        if document.screenshot is not None:
            pictures.append((link.page_id, version.number, document.screenshot))
        if outcome.change is not None:
            change = outcome.change
            changes.append((
                link.page_id, link.sequence, version.number - 1, version.number, at, change.kind._value_, change.score,
                change.reason, change.words_added, change.words_removed, change.verdict._value_,
                change.cause or None, stored_edits(change),
            ))  # fmt: skip
    statements = store.statements
    statements.retry.many(connection, retries)
    statements.same_wire.many(connection, same_wire)
    statements.same_text.many(connection, same_text)
    statements.blob.many(connection, sorted(blobs, key=itemgetter(0, 1)))  # as `locks` asks for
    statements.version.many(connection, versions)
    statements.screenshot.many(connection, pictures)
    statements.change.many(connection, changes)
    statements.new_version.many(connection, new)
    warned = [outcome for outcome in outcomes if outcome.warnings]
    if warned:
        _keep_warnings(connection, warned)
    lessons = [(outcome.document.link, outcome.lesson) for outcome in outcomes if outcome.lesson is not None]
    if lessons:
        lock_memories(connection)
        statements.memory.many(connection, _with_pins(connection, lessons))
        _teach_hosts(store, connection, [(link.host, lesson.for_host) for link, lesson in lessons if lesson.for_host])


def _keep_warnings(connection: Connection, warned: Sequence[Outcome]) -> None:
    """Record what looks dangerous; only what was never recorded of its page is left to be told.

    A page whose text stays the same is compared with the same version at every check: it is warned of once.
    """
    keys = [outcome.document.link.page_id for outcome in warned]
    columns = warnings.c.page_id, warnings.c.kind, warnings.c.reason
    known = {tuple(row) for row in connection.execute(select(*columns).where(warnings.c.page_id.in_(keys)))}
    rows: list[dict[str, Any]] = []
    for outcome in warned:
        link = outcome.document.link
        fresh = tuple(one for one in outcome.warnings if (link.page_id, one.kind.value, one.sentence) not in known)
        kept = outcome.warnings if outcome.version is not None else fresh
        rows += [
            {"page_id": link.page_id, "sequence": link.sequence, "kind": one.kind.value, "reason": one.sentence}
            for one in kept
        ]
        outcome.alarms = fresh
    if rows:
        connection.execute(insert(warnings), rows)


def _with_pins(connection: Connection, lessons: Sequence[tuple[Link, Lesson]]) -> list[tuple[Any, ...]]:
    """The new memories of the pages, with what their user said while they were being checked."""
    stored = memories_of(connection, [link.page_id for link, _ in lessons])
    rows: list[tuple[Any, ...]] = []
    for link, lesson in lessons:
        memory = Memory(lesson.memory)
        memory.keep_pins_of(Memory(stored.get(link.page_id, b"")))
        rows.append((link.page_id, memory.to_bytes()))
    return rows


def _teach_hosts(store: Store, connection: Connection, lessons: Sequence[tuple[str, tuple[bytes, ...]]]) -> None:
    """Count in the memory of each host what one more of its pages learned."""
    if not lessons:
        return
    by_host: dict[str, list[tuple[bytes, ...]]] = defaultdict(list)
    for host, keys in lessons:
        by_host[host].append(keys)
    known = host_memories_of(connection, by_host)
    rows: list[tuple[str, bytes]] = []
    for host, found in by_host.items():
        memory = Memory(known.get(host, b""))
        for keys in found:
            memory.count(keys)
        rows.append((host, memory.to_bytes()))
    store.statements.host_memory.many(connection, rows)
