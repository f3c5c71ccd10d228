"""When a page counts as failing: after several failed checks in a row, until the next successful one.

One failed check says little, since there are short outages everywhere; a page that fails for weeks unnoticed is worse.
So the check that makes a page failing, and the one by which it recovers, are each recorded as a turn and reported once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from driftline.durations import utc
from driftline.errors import FailureKind
from driftline.model.change import change_id, check_of
from driftline.model.event import Turn, Turned, failing_reason, recovered_reason
from driftline.model.outcome import Failed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Row

    from driftline.model.outcome import Outcome
    from driftline.store.statements import Statements


def turn_of(outcome: Outcome, fail_after: int) -> Turned | None:
    """Return that the page is failing, after `fail_after` failed checks in a row, or has recovered; else None."""
    document = outcome.document
    failure = outcome.failure if isinstance(outcome, Failed) else None
    link = document.link
    if failure is not None and not link.failing and link.failures + 1 >= fail_after:
        turn, reason = Turn.FAILING, failing_reason(failure, link.failures + 1)
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
