"""What was recorded and is still to be told, so that no end of a run, however sudden, leaves it untold.

An event is put here in the transaction that records its check, and is taken out once it was told. A run that ends in
between leaves it to the next one, which tells it again: at least once, and hardly ever twice. Only what is to be told
costs anything, and what a `check` finds, which its own report tells, is never here.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import and_, bindparam, delete, insert, select

from driftline.errors import StoreError
from driftline.model import Change, Danger, Matter, Turn, Turned, Verdict, WarningKind, change_id
from driftline.store.locks import patiently
from driftline.store.process_locks import FileClaim
from driftline.store.schema import changes, checks, outbox, pages, turns, warnings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sqlalchemy import Connection, Select

    from driftline.model import Outcome
    from driftline.store.engine import Store
    from driftline.store.process_locks import Claim

    #: what there is to report: changes, pages that began to fail or recovered, and warnings
    Found: TypeAlias = tuple[list[Change], list[Turned], list[Danger]]

_CHANGED = Verdict.CHANGED.value
_ALL_CHANGES = (
    select(changes, pages.c.url)
    .join(pages, pages.c.id == changes.c.page_id)
    .join(checks, and_(checks.c.page_id == changes.c.page_id, checks.c.sequence == changes.c.sequence))
    .order_by(changes.c.at, changes.c.page_id)
)
_ALL_TURNS = (
    select(turns, pages.c.url, checks.c.failure_kind)
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
_TAKE = delete(outbox).where(
    and_(
        outbox.c.page_id == bindparam("page"),
        outbox.c.sequence == bindparam("number"),
        outbox.c.what == bindparam("what"),
    )
)


def put_in_outbox(connection: Connection, outcomes: Sequence[Outcome]) -> None:
    """Have told what these outcomes, which are being recorded, amount to."""
    told = [(outcome, _CHANGED) for outcome in outcomes if outcome.may_be_news]
    told += [(outcome, outcome.turned.turn.value) for outcome in outcomes if outcome.turned is not None]
    told += [(outcome, alarm.kind.value) for outcome in outcomes for alarm in outcome.alarms]
    if told:
        links = [(outcome.document.link, what) for outcome, what in told]
        rows = [{"page_id": link.page_id, "sequence": link.sequence, "what": what} for link, what in links]
        connection.execute(insert(outbox), rows)


def found_by(connection: Connection, recorded: Iterable[tuple[int, float]]) -> Found:
    """Return what is worth a report of what these runs have recorded, each since the time given with it."""
    found: Found = [], [], []
    for run_id, since in recorded:
        by_this = checks.c.run_id == run_id
        changed, turned, dangers = _read(
            connection,
            _ALL_CHANGES.where(by_this, changes.c.at >= since),
            _ALL_TURNS.where(by_this, turns.c.at >= since),
            _ALL_DANGERS.where(by_this, checks.c.at >= since),
        )
        found[0].extend(changed)
        found[1].extend(turned)
        found[2].extend(dangers)
    return found


def _read(connection: Connection, changed: Select[Any], turned: Select[Any], dangers: Select[Any]) -> Found:
    return (
        [
            Change(
                id=change_id(row.page_id, row.sequence), url=row.url, at=row.at, from_version=row.from_version,
                to_version=row.to_version, kind=row.kind, verdict=Matter(row.verdict), score=row.score,
                reason=row.reason, cause=row.cause or b"",
            )
            for row in connection.execute(changed)
        ],
        [
            Turned(
                id=change_id(row.page_id, row.sequence), url=row.url, at=row.at, turn=Turn(row.turn),
                kind=row.failure_kind or "", reason=row.reason,
            )
            for row in connection.execute(turned)
        ],
        [
            Danger(
                id=change_id(row.page_id, row.sequence), url=row.url, at=row.at, kind=WarningKind(row.kind),
                reason=row.reason,
            )
            for row in connection.execute(dangers)
        ],
    )  # fmt: skip


class Outbox:
    """The events that are still to be told; for the one run that has the right to keep checking. Used by any thread.

    `claim` is that right.
    """

    def __init__(self, store: Store, stopped: Callable[[], bool] = lambda: True, claim: Claim | None = None) -> None:
        self.claim: Claim = claim or FileClaim()
        self._store = store
        self._stopped = stopped

    def left(self) -> Found:
        """What is to be told, in the order in which it was found."""

        def read() -> Found:
            with self._store.read() as connection:
                return _read(connection, _CHANGES, _TURNS, _DANGERS)

        return patiently(read, self._stopped)

    def take_out(self, told: Iterable[tuple[str, str]]) -> None:
        """These were told: each a change, a turn or a danger, by its id, and what it was told as.

        What cannot be taken out stays, to be told once more by the next run: that must end nothing.
        """
        keys = sorted((*map(int, name.split("-")), what) for name, what in told)
        rows = [{"page": page, "number": number, "what": what} for page, number, what in keys]
        if not rows:
            return

        def take() -> None:
            with self._store.write() as connection:
                connection.execute(_TAKE, rows)

        with suppress(StoreError):
            patiently(take, self._stopped)
