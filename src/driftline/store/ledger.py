"""Records runs and the outcomes of checks, each outcome once and a batch in one transaction; also stalls of runs."""

from __future__ import annotations

import json
import logging
import time
from collections import defaultdict
from contextlib import suppress
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from driftline.durations import utc
from driftline.errors import StoreError, StoreUnavailable
from driftline.http.headers import BUSY, retry_after, validators
from driftline.model.change import change_id
from driftline.model.event import Danger
from driftline.model.outcome import (
    SAME_VERSION,
    Changed,
    Failed,
    Lesson,
    Link,
    Outcome,
    Proof,
    Recorded,
    Unchanged,
    is_notable,
    version_made_by,
)
from driftline.noise_memory import Memory
from driftline.store.blobs import digest
from driftline.store.events import EventLog
from driftline.store.feedback import ignored_by, insert_ignored
from driftline.store.link_records import LinkRecords, has_unrecorded
from driftline.store.locks import count_revision, lock_memories, lock_pages, patiently, write_once
from driftline.store.outbox import found_by, insert_turns, put_in_outbox, stored_edits, turns_of
from driftline.store.schema import CONTINUED, RUN, checks, pages, runs, stalls, states, warnings
from driftline.store.statements import host_memories_of, memories_of, prefer_indexes
from driftline.urls import as_sent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from driftline.model.page import PageWarning
    from driftline.store.engine import Store
    from driftline.store.events import Group
    from driftline.store.outbox import Unreported

_LOG = logging.getLogger(__name__)

_NO_REQUESTS = 0.0  # `ended_at` of a run that has not sent any request yet
FAIL_AFTER = 3  # failed checks in a row that make a page failing, unless set otherwise
_RESUME_WITHIN = 3_600.0  # seconds after its start for which an interrupted run can be continued
_STALLS_KEPT = 20  # newest stalls, enough to see a pattern


class Ledger:
    """Begins and ends runs, reads the links of their pages, and records their outcomes.

    While the store is locked or unreachable it waits, until the run is `stopped`: pages that were fetched should not be
    lost. Reading links is given up earlier, at `reading_stopped`, if that is given: a run that sends no more requests
    needs none. `fail_after` failed checks in a row make a page failing. What is to be reported is put into the outbox
    in the same transaction as the check.
    """

    def __init__(
        self, store: Store, clock: Callable[[], float] = time.time, stopped: Callable[[], bool] = lambda: True,
        fail_after: int = FAIL_AFTER, *, reading_stopped: Callable[[], bool] | None = None,
    ) -> None:  # fmt: skip
        self._links = LinkRecords(store, reading_stopped or stopped)
        self._fail_after = fail_after
        self._store = store
        self._clock = clock
        self._stopped = stopped
        self._unreported: list[tuple[int, float]] = []  # earlier runs over the same pages, and since when unreported

    def __repr__(self) -> str:
        return f"<Ledger of {self._store!r} unreported_runs={len(self._unreported)}>"

    def begin(self, page_ids: Sequence[int] | None, *, fresh: bool = False) -> tuple[int, bool]:
        """Return the id of the run to work on, and whether it continues one that was interrupted.

        A run over the same pages that began within the last hour and did not check all of them is continued, unless
        `fresh`.
        """
        # exactly once: a run whose commit was not confirmed would look like one that was interrupted
        run_id, continued = write_once(
            self._store, lambda connection: self._begin(connection, page_ids, fresh=fresh), self._stopped
        )
        _LOG.info("continuing a run" if continued else "new run", extra={"run": run_id})
        return run_id, continued

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
            if recent and has_unrecorded(connection, last.id, page_ids):
                _continue_run(connection, last.id, last.ended_at, now)
                return last.id, True
        return _insert_run(connection, scope, now, unreported_since=now), False

    def found_before(self) -> Unreported:
        """Return what earlier runs over the same pages recorded that ended before they could report it."""

        def read() -> Unreported:
            with self._store.read() as connection:
                return found_by(connection, self._unreported)

        return patiently(read, self._stopped)

    def begin_without_end(self, *, idle: bool = False) -> int:
        """Return the id of a new run without a fixed list of pages, which cannot be continued.

        One that is `idle` begins without the right to check pages, and calls `note_right_taken` whenever it takes that.
        """

        def begin(connection: Connection) -> int:
            if not idle:
                self._end_killed_runs(connection)
            return _insert_run(connection, RUN, self._clock(), ended_at=_NO_REQUESTS if idle else None)

        run_id = write_once(self._store, begin, self._stopped)
        _LOG.info("new run", extra={"run": run_id})
        return run_id

    def note_right_taken(self, run_id: int) -> bool:
        """Record that the run now has the right to check. Returns whether other runs may have sent requests since.

        A run that begins marks all others as ended: this one was marked so if another began meanwhile.
        """
        this = runs.c.id == run_id
        with self._store.read() as connection:
            ended_at = connection.scalar(select(runs.c.ended_at).where(this))
        if ended_at is None:
            return False
        with self._store.write() as connection:
            self._end_killed_runs(connection)
            if ended_at != _NO_REQUESTS:  # delays of hosts count from now, by our clock: those of others may be wrong
                _insert_pause(connection, self._clock())
            connection.execute(update(runs).where(this).values(ended_at=None))
        return True

    def _end_killed_runs(self, connection: Connection) -> None:
        """Set the end of runs that were killed to now, the latest time at which they may have sent a request."""
        connection.execute(update(runs).where(runs.c.ended_at.is_(None)).values(ended_at=self._clock()))

    def note_interruption(self, run_id: int) -> None:
        """Record that requests were sent until now and that the run continues: delays of hosts count from now."""

        def note() -> None:
            with self._store.write() as connection:
                self._end_killed_runs(connection)  # others may have begun, and marked this one as ended
                now = self._clock()
                _continue_run(connection, run_id, now, now)

        patiently(note, self._stopped)

    def publish(self, run_id: int, group: Group, found: Unreported) -> None:
        """Add what the run found to the event log, with what `found_before` returns."""
        run_ids = {run_id, *(other for other, _ in self._unreported)}
        EventLog(self._store, self._stopped).publish(group, run_ids, known=found)

    def end(self, run_id: int, *, reported: bool = False) -> None:
        """Record that the run sends no more requests, complete or not; without it, the run counts as killed.

        What it recorded is left to the next report, unless that was `reported`, together with `found_before`. Then this
        waits for an unavailable store, because otherwise the next report would contain all of it again.
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
        """Mark the run as complete, so that it is not continued."""
        patiently(lambda: self._finish(run_id), self._stopped)
        _LOG.info("run complete", extra={"run": run_id})

    def _finish(self, run_id: int) -> None:
        with self._store.write() as connection:
            connection.execute(update(runs).where(runs.c.id == run_id).values(finished_at=self._clock()))

    def remain(self, run_id: int, page_ids: Sequence[int] | None) -> int:
        """Return how many of these pages the run has not recorded yet; None means every page."""
        return self._links.count_unrecorded(run_id, page_ids)

    def remaining(self, run_id: int, page_ids: Sequence[int] | None) -> Iterator[Link]:
        """Yield the links of those of these pages that the run has not recorded yet; None means every page."""
        return self._links.unrecorded(run_id, page_ids)

    def links(self, page_ids: Sequence[int]) -> list[Link]:
        """Return the current links of these pages, in this order, without those that are no longer watched."""
        return self._links.links(page_ids)

    def record(self, run_id: int, outcomes: Sequence[Outcome]) -> Recorded:
        """Commit these outcomes in one transaction. Returns those of them that were not recorded before.

        An outcome whose (page, sequence) is recorded already changes nothing, nor does one of a page that was removed
        in the meantime. If the connection was lost before the server said whether it committed them, those are returned
        that it did commit.
        """
        unsure = False

        def record() -> Recorded:
            nonlocal unsure
            try:
                return self._record(run_id, outcomes, unsure=unsure)
            except StoreUnavailable:
                unsure = True
                raise

        return patiently(record, self._stopped)

    def _record(self, run_id: int, outcomes: Sequence[Outcome], *, unsure: bool) -> Recorded:
        in_order = sorted(outcomes, key=_page_id)  # near one another in the tables, and pages in the order of `locks`
        notable = [*filter(is_notable, in_order)]
        try:
            with self._store.write() as connection:
                prefer_indexes(connection)
                lock_pages(connection, [*map(_page_id, notable)])  # rows that refer to these are inserted
                if _insert_checks(self._store, connection, run_id, in_order):
                    return self._insert_rest(connection, in_order, notable, outcomes)
                connection.rollback()
        except IntegrityError:
            pass  # a page was removed while it was being checked: what follows leaves it out
        while (recorded := self._record_new(run_id, in_order, unsure=unsure)) is None:
            pass  # the process that recorded one of them has committed it by now, so it is left out the next time
        return recorded

    def _record_new(self, run_id: int, in_order: Sequence[Outcome], *, unsure: bool) -> Recorded | None:
        """Record those of the outcomes that are not recorded yet; None if another process records one meanwhile."""
        with self._store.write() as connection:
            prefer_indexes(connection)
            keys = [*map(_page_id, in_order)]
            # a state that is behind its checks, as an earlier version may have left it, must not hold up the others
            following = and_(checks.c.page_id == states.c.page_id, checks.c.sequence == states.c.sequence + 1)
            query = select(pages.c.id, states.c.sequence).join(states, states.c.page_id == pages.c.id)
            query = query.outerjoin(checks, following).where(checks.c.page_id.is_(None))
            query = query.where(pages.c.id.in_(keys)).order_by(pages.c.id)
            # a process that removes one of them from here on waits
            query = query.with_for_update(read=True, key_share=True, of=pages)
            at = {row[0]: row[1] for row in connection.execute(query)}
            new = [one for one in in_order if at.get(_page_id(one)) == one.document.link.sequence - 1]
            left = [*{_page_id(one): one for one in new}.values()]  # each page once, or this would be tried forever
            if not _insert_checks(self._store, connection, run_id, left):
                connection.rollback()
                return None
            recorded = self._insert_rest(connection, left, [*filter(is_notable, left)], left)
            if not unsure:
                return recorded
            wrote = _written_by(connection, run_id, in_order) | {*map(_page_id, left)}
            outcomes = [outcome for outcome in in_order if _page_id(outcome) in wrote]
            notable = [*filter(is_notable, outcomes)]
            turned, dangers = turns_of(notable, self._fail_after), _dangers_of(connection, notable)
            return Recorded(outcomes, turned, dangers, ignored_by(notable))

    def _insert_rest(
        self, connection: Connection, in_order: Sequence[Outcome], notable: Sequence[Outcome],
        outcomes: Sequence[Outcome],
    ) -> Recorded:  # fmt: skip
        """Insert what the checks of these outcomes found, beside the checks themselves; `notable` found anything."""
        taught = _insert_found(self._store, connection, in_order)
        dangers = _insert_warnings(connection, notable)
        turned = insert_turns(self._store.statements, connection, notable, self._fail_after)
        recorded = Recorded(outcomes, turned, dangers, insert_ignored(connection, notable) if taught else ())
        put_in_outbox(connection, recorded)
        return recorded


def _written_by(connection: Connection, run_id: int, outcomes: Sequence[Outcome]) -> set[int]:
    """Return the pages of those outcomes that this run has recorded, in a commit whose answer was lost."""
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


def _scope(page_ids: Sequence[int] | None) -> str:
    """Return a digest of the pages of a run: runs over the same pages have the same scope."""
    return "all" if page_ids is None else digest(json.dumps(sorted(page_ids)).encode()).hex()


def _insert_run(connection: Connection, scope: str, now: float, **given: float | None) -> int:
    made = insert(runs).values(scope=scope, started_at=now, **given).returning(runs.c.id)
    return int(connection.execute(made).scalar_one())


def _continue_run(connection: Connection, run_id: int, ended_at: float, now: float) -> None:
    """Record that a run sends requests again, and in a row of its own until when it did: delays count from then."""
    since = func.coalesce(runs.c.unreported_since, now)
    connection.execute(update(runs).where(runs.c.id == run_id).values(ended_at=None, unreported_since=since))
    _insert_pause(connection, ended_at)
    count_revision(connection)


def _insert_pause(connection: Connection, at: float) -> None:
    connection.execute(insert(runs).values(scope=CONTINUED, started_at=at, finished_at=at, ended_at=at))


def _insert_checks(store: Store, connection: Connection, run_id: int, outcomes: Sequence[Outcome]) -> bool:
    """Insert the checks and update the states of their pages. Returns whether that was possible for all of them."""
    rows: list[tuple[Any, ...]] = []
    for outcome in outcomes:
        document = outcome.document
        link = document.link
        at = document.fetched_at
        verdict: str = outcome.verdict._value_
        proof = kind = sentence = None
        if isinstance(outcome, Unchanged):
            proof = outcome.proof._value_
        elif isinstance(outcome, Failed):
            kind, sentence = outcome.failure.kind.value, outcome.failure.sentence
        rows.append((
            link.page_id, link.sequence, run_id, at, verdict, document.status, document.seconds, document.size,
            proof, kind, sentence,
            as_sent(document.final_url) if document.redirects else None,
        ))  # fmt: skip
    return store.statements.record_checks(connection, rows)


def _insert_found(store: Store, connection: Connection, outcomes: Sequence[Outcome]) -> bool:
    """Insert versions, changes and validators, and what is learned about noise.

    Returns whether parts of a page are ignored from now on, which is not inserted.
    """
    same_wire: list[tuple[Any, ...]] = []
    same_text: list[tuple[Any, ...]] = []
    new: list[tuple[Any, ...]] = []
    blobs: list[tuple[Any, ...]] = []
    versions: list[tuple[Any, ...]] = []
    changes: list[tuple[Any, ...]] = []
    retries: list[tuple[Any, ...]] = []
    pictures: list[tuple[Any, ...]] = []
    lessons: list[tuple[Link, Lesson]] = []
    by_validators = Proof.VALIDATORS
    for outcome in outcomes:
        document = outcome.document
        link = document.link
        proof = None
        if isinstance(outcome, Unchanged):
            proof = outcome.proof
            if proof is by_validators:
                continue
            version, change = (None, None) if outcome.noise is None else (outcome.noise.version, outcome.noise.change)
        elif isinstance(outcome, Failed):
            wait = retry_after(document.headers, document.fetched_at) if document.status in BUSY else None
            if wait is not None:
                retries.append((document.fetched_at + wait, link.page_id))
            continue
        else:
            version, change = outcome.version, outcome.change if isinstance(outcome, Changed) else None
        # those of a redirect's target say nothing about this address
        etag, modified = (None, None) if document.redirects else validators(document.headers)
        examined = outcome.examined
        if examined is None:
            known = link.known
            if known is None or known.etag != etag or known.last_modified != modified:
                same_wire.append((etag, modified, link.page_id))
            continue
        if examined.lesson is not None:
            lessons.append((link, examined.lesson))
        if version is None:
            if proof not in SAME_VERSION:
                same_text.append((
                    etag, modified, link.page_id, examined.wire, examined.body, examined.reading, examined.recalled,
                ))  # fmt: skip
            continue
        at = document.fetched_at
        new.append((
            etag, modified, link.page_id, examined.wire, version.body, examined.reading,
            version.number, version.letters, version.body, version.text, None if proof else at,
        ))  # fmt: skip
        blobs += [(link.page_id, blob.digest, blob.base, blob.depth, blob.size, blob.data) for blob in version.blobs]
        versions.append((
            link.page_id, version.number, link.sequence, at, version.body, version.text, version.size, version.title,
            version.content_type, version.charset, as_sent(document.final_url), document.headers, examined.reading,
        ))  # fmt: skip
        if document.rendered:  # without a picture too: the row says that a browser was used
            pictures.append((link.page_id, version.number, document.screenshot or b""))
        if change is not None:
            changes.append((
                link.page_id, link.sequence, version.number - 1, version.number, at, change.kind._value_, change.score,
                change.reason, change.words_added, change.words_removed, change.importance._value_,
                change.cause or None, stored_edits(change), change.headline or None,
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
    if lessons:
        lock_memories(connection)
        statements.memory.many(connection, _with_pins(connection, lessons))
        _teach_hosts(store, connection, [(link.host, lesson.for_host) for link, lesson in lessons if lesson.for_host])
    return any(lesson.ignored is not None for _, lesson in lessons)


def _insert_warnings(connection: Connection, outcomes: Sequence[Outcome]) -> list[Danger]:
    """Insert what looks dangerous. Returns what of it was never recorded of its page before, and is to be reported.

    A page whose text stays the same is compared with the same version at every check: it is warned of once.
    """
    warned = _warned(outcomes)
    if not warned:
        return []
    dangers = _dangers_of(connection, outcomes)
    new = {(danger.id, danger.kind, danger.reason) for danger in dangers}
    rows: list[dict[str, Any]] = []
    for outcome, one in warned:
        link = outcome.document.link
        is_new = (change_id(link.page_id, link.sequence), one.kind, one.sentence) in new
        if is_new or version_made_by(outcome) is not None:
            rows.append({
                "page_id": link.page_id, "sequence": link.sequence, "kind": one.kind.value, "reason": one.sentence,
            })  # fmt: skip
    if rows:
        connection.execute(insert(warnings), rows)
    return dangers


def _dangers_of(connection: Connection, outcomes: Sequence[Outcome]) -> list[Danger]:
    """Return what looks dangerous by these outcomes and was recorded by no other check of the same page."""
    warned = [(outcome.document, one) for outcome, one in _warned(outcomes)]
    if not warned:
        return []
    columns = warnings.c.page_id, warnings.c.sequence, warnings.c.kind, warnings.c.reason
    query = select(*columns).where(warnings.c.page_id.in_({document.link.page_id for document, _ in warned}))
    sequences: dict[tuple[int, str, str], set[int]] = defaultdict(set)
    for page_id, sequence, kind, reason in connection.execute(query):
        sequences[page_id, kind, reason].add(sequence)
    return [
        Danger(
            id=change_id(document.link.page_id, document.link.sequence), url=document.link.url,
            at=utc(document.fetched_at), kind=one.kind, reason=one.sentence,
        )
        for document, one in warned
        if not sequences[document.link.page_id, one.kind.value, one.sentence] - {document.link.sequence}
    ]  # fmt: skip


def _warned(outcomes: Sequence[Outcome]) -> list[tuple[Outcome, PageWarning]]:
    """Return the warnings of these outcomes, each with its outcome."""
    read = [(one, one.examined) for one in outcomes if not isinstance(one, Failed) and one.examined is not None]
    return [(outcome, warning) for outcome, examined in read for warning in examined.warnings]


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


class StallRecord(NamedTuple):
    """When a run stalled, for how many seconds nothing had been recorded by then, and the report."""

    at: datetime
    seconds: float
    report: str


class Stalls:
    """Reports of stalled runs, kept for later diagnosis."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __repr__(self) -> str:
        return f"<Stalls of {self._store!r}>"

    def record(self, at: float, seconds: float, report: str) -> None:
        """Store a stall and remove the oldest, even while another thread is blocked in a transaction."""
        with self._store.write_aside() as connection:
            made = insert(stalls).values(at=at, seconds=seconds, report=report).returning(stalls.c.id)
            newest = connection.execute(made).scalar_one()
            connection.execute(delete(stalls).where(stalls.c.id <= newest - _STALLS_KEPT))

    def last(self) -> StallRecord | None:
        """Return the newest stall; None if there is none."""
        query = select(stalls.c.at, stalls.c.seconds, stalls.c.report).order_by(stalls.c.id.desc()).limit(1)
        with self._store.read() as connection:
            row = connection.execute(query).first()
        return None if row is None else StallRecord(utc(row.at), row.seconds, row.report)
