"""What was recorded and is not in the event log yet, and by which check a page began to fail or recovered.

The transaction that records a check also names here what it found, so that nothing is lost however a process ends.
Publishing (see `events`) turns these rows into events and deletes them, in one transaction.

One failed check says little, since there are short outages everywhere; a page that fails for weeks unnoticed is worse.
So a page counts as failing after several failed checks in a row, until the next successful one. A page that was never
read is probably misspelled, or needs a login: it counts as failing after its first check.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from sqlalchemy import and_, insert, or_, select

from driftline.durations import utc
from driftline.errors import FailureKind
from driftline.model.change import Change, ChangeKind, Edit, Importance, NoiseKind, Region, change_id, check_of
from driftline.model.event import Danger, EventKind, EventSource, Turn, Turned, failing_reason, recovered_reason
from driftline.model.outcome import Failed, changes_to_report
from driftline.model.page import WarningKind
from driftline.store.feedback import stored_ignored
from driftline.store.schema import RUN, changes, checks, ignored, outbox, pages, runs, turns, warnings
from driftline.store.statements import in_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from sqlalchemy import Connection, Row, Select

    from driftline.model.change import ChangeSummary
    from driftline.model.event import Ignored
    from driftline.model.outcome import Outcome, Recorded
    from driftline.store.statements import Statements

    #: what there is to report: changes, pages that began to fail or recovered, warnings, and what is ignored
    Unreported: TypeAlias = tuple[list[Change], list[Turned], list[Danger], list[Ignored]]

_T = TypeVar("_T")
_CHANGED, _IGNORING = EventKind.CHANGED.value, EventKind.IGNORING.value
_ALL_CHANGES = (
    select(changes, pages.c.url)
    .join(pages, pages.c.id == changes.c.page_id)
    .join(checks, and_(checks.c.page_id == changes.c.page_id, checks.c.sequence == changes.c.sequence))
    .order_by(changes.c.at, changes.c.page_id)
)
_ALL_TURNS = (
    select(turns, pages.c.url, checks.c.failure_kind, checks.c.status)
    .join(pages, pages.c.id == turns.c.page_id)
    .join(checks, and_(checks.c.page_id == turns.c.page_id, checks.c.sequence == turns.c.sequence))
    .order_by(turns.c.at, turns.c.page_id)
)
_ALL_DANGERS = (
    select(warnings, pages.c.url, checks.c.at)
    .join(pages, pages.c.id == warnings.c.page_id)
    .join(checks, and_(checks.c.page_id == warnings.c.page_id, checks.c.sequence == warnings.c.sequence))
    .order_by(checks.c.at, warnings.c.page_id, warnings.c.kind)
)
_ALL_IGNORED = (
    select(ignored, ignored.c.kind.label("ignored_kind"), pages.c.url, checks.c.at)
    .join(pages, pages.c.id == ignored.c.page_id)
    .join(checks, and_(checks.c.page_id == ignored.c.page_id, checks.c.sequence == ignored.c.sequence))
    .order_by(checks.c.at, ignored.c.page_id)
)
_CHANGES = _ALL_CHANGES.join(
    outbox, and_(outbox.c.page_id == changes.c.page_id, outbox.c.sequence == changes.c.sequence)
).where(outbox.c.what == _CHANGED)
_TURNS = _ALL_TURNS.join(
    outbox,
    and_(
        outbox.c.page_id == turns.c.page_id,
        outbox.c.sequence == turns.c.sequence,
        outbox.c.what == turns.c.turn,
    ),
)
_DANGERS = _ALL_DANGERS.join(
    outbox,
    and_(
        outbox.c.page_id == warnings.c.page_id,
        outbox.c.sequence == warnings.c.sequence,
        outbox.c.what == warnings.c.kind,
    ),
)
_IGNORED = _ALL_IGNORED.join(
    outbox, and_(outbox.c.page_id == ignored.c.page_id, outbox.c.sequence == ignored.c.sequence)
).where(outbox.c.what == _IGNORING)
_IS_NEW = select(outbox.c.page_id).limit(1)
_KINDS = select(outbox.c.what).distinct()
_KEYS = select(outbox.c.page_id, outbox.c.sequence, outbox.c.what)


def put_in_outbox(connection: Connection, recorded: Recorded) -> None:
    """Insert what these outcomes, which are being recorded in the same transaction, found."""
    links = [found.document.link for found in changes_to_report(recorded.notable)]
    found = [(link.page_id, link.sequence, _CHANGED) for link in links]
    found += [(*check_of(one.id), one.turn.value) for one in recorded.turned]
    found += [(*check_of(one.id), one.kind.value) for one in recorded.dangers]
    found += [(*check_of(one.id), _IGNORING) for one in recorded.ignored]
    if found:
        rows = [{"page_id": page_id, "sequence": sequence, "what": what} for page_id, sequence, what in found]
        connection.execute(insert(outbox), rows)


def found_by(connection: Connection, recorded: Iterable[tuple[int, float]]) -> Unreported:
    """Return what these runs have found that is worth reporting, each run since the time given with it."""
    found: Unreported = [], [], [], []
    for run_id, since in recorded:
        by_this = checks.c.run_id == run_id
        changed, turned, dangers, ignoring = _read(
            connection,
            _ALL_CHANGES.where(by_this, changes.c.at >= since),
            _ALL_TURNS.where(by_this, turns.c.at >= since),
            _ALL_DANGERS.where(by_this, checks.c.at >= since),
            _ALL_IGNORED.where(by_this, checks.c.at >= since, ignored.c.is_news),
        )
        found[0].extend(changed)
        found[1].extend(turned)
        found[2].extend(dangers)
        found[3].extend(ignoring)
    return found


def stored_edits(change: ChangeSummary) -> str | None:
    """Return the edits of a change as they are stored; None for noise, which is not reported."""
    if change.importance is Importance.NOISE or not change.edits:
        return None
    kept = change.decisive_edits
    return json.dumps([[edit.before, edit.after, edit.region, edit.kind, edit.heading, edit.noise] for edit in kept])


def edits_of(stored: str | None) -> tuple[Edit, ...]:
    """Return the edits of a stored change that are as important as it is."""
    return tuple(
        Edit(
            before=before, after=after, region=Region(region) if region else None, kind=ChangeKind(kind),
            noise=NoiseKind(noise) if noise else None, heading=heading,
        )
        for before, after, region, kind, heading, noise in json.loads(stored or "[]")
    )  # fmt: skip


def is_all(connection: Connection, found: Unreported) -> bool:
    """Return whether this is exactly what there is to publish."""
    keys = _keys(found)
    return {*map(tuple, connection.execute(_KEYS.limit(len(keys) + 1)))} == {*keys}


def is_empty(connection: Connection) -> bool:
    """Return whether there is nothing to publish."""
    return connection.execute(_IS_NEW).first() is None


def read_outbox(
    connection: Connection, run_ids: Collection[int] | None, *, noise_until: float, limit: int
) -> dict[EventSource, Unreported]:
    """Return what is to be published, the oldest first, by the command that found it: `run`, or `check`.

    Only what these checks found and what others left that have ended; if `run_ids` is None, what `run` found and what
    others left. At most `limit` findings of a kind. Noise that `run` found after `noise_until` is left in the outbox,
    because it is worth reporting only if many pages share it; but what shares its cause with a change that is to be
    published belongs to the same event.
    """
    kinds = {*connection.scalars(_KINDS)}
    if not kinds:
        return {}
    by_run = runs.c.scope == RUN
    ripe = or_(changes.c.importance != Importance.NOISE.value, ~by_run, by_run.is_(None), changes.c.at <= noise_until)
    # a check that is still at work publishes all that it found at its end
    over = and_(~by_run, runs.c.ended_at.is_not(None))
    these = or_(by_run, over) if run_ids is None else or_(checks.c.run_id.in_(run_ids), over)

    def read(query: Select[Any], make: Callable[[Row[Any]], _T], *, wanted: bool) -> dict[EventSource, list[_T]]:
        found: dict[EventSource, list[_T]] = {EventSource.RUN: [], EventSource.CHECK: []}
        if wanted:  # most outboxes have changes only, and each of these queries takes some milliseconds to prepare
            query = query.add_columns(runs.c.scope).join(runs, runs.c.id == checks.c.run_id, isouter=True)
            for row in connection.execute(query.where(or_(these, runs.c.id.is_(None))).limit(limit)):
                found[EventSource.RUN if row.scope == RUN else EventSource.CHECK].append(make(row))
        return found

    changed = read(_CHANGES.where(ripe), _change, wanted=_CHANGED in kinds)
    turned = read(_TURNS, _turned, wanted=not kinds.isdisjoint(Turn))
    dangers = read(_DANGERS, _danger, wanted=not kinds.isdisjoint(WarningKind))
    ignoring = read(_IGNORED, _ignored, wanted=_IGNORING in kinds)
    changed[EventSource.RUN] = _with_same_cause(connection, changed[EventSource.RUN], noise_until, limit)
    found = {source: (changed[source], turned[source], dangers[source], ignoring[source]) for source in changed}
    return {source: some for source, some in found.items() if any(some)}


def _with_same_cause(connection: Connection, found: list[Change], noise_until: float, limit: int) -> list[Change]:
    """Return these changes of `run`, and the noise that waits although it has the same cause as one of them."""
    causes = {(one.host, one.cause) for one in found if one.cause and one.importance is not Importance.NOISE}
    if not causes or noise_until == math.inf:
        return found
    waiting = _CHANGES.join(runs, runs.c.id == checks.c.run_id).where(
        runs.c.scope == RUN, changes.c.importance == Importance.NOISE.value, changes.c.at > noise_until
    )
    joined = list(found)
    for some in in_batches(sorted({cause for _, cause in causes})):
        rows = connection.execute(waiting.where(changes.c.cause.in_(some)).limit(limit))
        joined += [one for one in map(_change, rows) if (one.host, one.cause) in causes]
    return sorted(joined, key=lambda one: one.at)


def clear_outbox(statements: Statements, connection: Connection, found: Unreported) -> None:
    """Delete what was published."""
    statements.published.many(connection, sorted(_keys(found)))


def _keys(found: Unreported) -> list[tuple[int, int, str]]:
    """Return the keys of these findings in the outbox."""
    changed, turned, dangers, ignoring = found
    named = [(one.id, _CHANGED) for one in changed]
    named += [(one.id, one.turn.value) for one in turned]
    named += [(one.id, one.kind.value) for one in dangers]
    named += [(one.id, _IGNORING) for one in ignoring]
    return [(*check_of(name), what) for name, what in named]


def _read(
    connection: Connection, changed: Select[Any], turned: Select[Any], dangers: Select[Any], ignoring: Select[Any]
) -> Unreported:  # fmt: skip
    return (
        [_change(row) for row in connection.execute(changed)],
        [_turned(row) for row in connection.execute(turned)],
        [_danger(row) for row in connection.execute(dangers)],
        [_ignored(row) for row in connection.execute(ignoring)],
    )


def _ignored(row: Row[Any]) -> Ignored:
    return stored_ignored(row.url, row)


def _turned(row: Row[Any]) -> Turned:
    return stored_turn(row.url, row, row.reason)


def _danger(row: Row[Any]) -> Danger:
    return Danger(
        id=change_id(row.page_id, row.sequence), url=row.url, at=utc(row.at), kind=WarningKind(row.kind),
        reason=row.reason,
    )  # fmt: skip


def _change(row: Row[Any]) -> Change:
    return Change(
        id=change_id(row.page_id, row.sequence), url=row.url, at=utc(row.at), from_version=row.from_version,
        to_version=row.to_version, kind=ChangeKind(row.kind), importance=Importance(row.importance), score=row.score,
        headline=row.headline or row.reason, reason=row.reason, cause=row.cause or b"", edits=edits_of(row.edits),
    )  # fmt: skip


def turn_of(outcome: Outcome, fail_after: int) -> Turned | None:
    """Return that the page is failing, by its first check or `fail_after` in a row, or has recovered; else None."""
    document = outcome.document
    failure = outcome.failure if isinstance(outcome, Failed) else None
    link = document.link
    is_first = link.sequence == 1
    if failure is not None and not link.failing and (is_first or link.failures + 1 >= fail_after):
        turn, reason = Turn.FAILING, failing_reason(failure, link.failures + 1, is_first=is_first)
    elif failure is None and link.failing:
        turn, reason = Turn.RECOVERED, recovered_reason(link.failures)
    else:
        return None
    kind = None if failure is None else failure.kind
    return Turned(
        id=change_id(link.page_id, link.sequence), url=link.url, at=utc(document.fetched_at), turn=turn, kind=kind,
        status=_status(kind, document.status), reason=reason,
    )  # fmt: skip


def stored_turn(url: str, row: Row[Any], reason: str) -> Turned:
    """Return the turn of a page by a check, whose row has the turn as well."""
    kind = FailureKind(row.failure_kind) if row.failure_kind else None
    return Turned(
        id=change_id(row.page_id, row.sequence), url=url, at=utc(row.at), turn=Turn(row.turn), kind=kind,
        status=_status(kind, row.status), reason=reason,
    )  # fmt: skip


def _status(kind: FailureKind | None, status: int) -> int | None:
    """Return the status of an answer if that is why the check failed."""
    return status if kind is FailureKind.STATUS else None


def turns_of(outcomes: Sequence[Outcome], fail_after: int) -> list[Turned]:
    """Return which pages begin to fail, or recover, by these checks."""
    return [turned for outcome in outcomes if (turned := turn_of(outcome, fail_after)) is not None]


def insert_turns(
    statements: Statements, connection: Connection, outcomes: Sequence[Outcome], fail_after: int
) -> list[Turned]:  # fmt: skip
    """Record which pages begin to fail, or recover, by these checks. Returns them, to be published after the commit."""
    rows: list[tuple[Any, ...]] = []
    states: list[tuple[Any, ...]] = []
    turns = turns_of(outcomes, fail_after)
    for turned in turns:
        page_id, sequence = check_of(turned.id)
        rows.append((page_id, sequence, turned.at.timestamp(), turned.turn.value, turned.reason))
        states.append((turned.at.timestamp() if turned.turn is Turn.FAILING else None, page_id))
    statements.turn.many(connection, rows)
    statements.turned.many(connection, states)
    return turns
