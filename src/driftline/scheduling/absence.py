"""Which pages are gone for good: their address or their host is no more, at several checks spread over days.

A host whose name is not found says something only if other pages could be fetched meanwhile: a machine that was offline
has not lost its pages.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Integer, cast, func, not_, or_, select

from driftline.model import FailureKind, Verdict
from driftline.versions.batches import in_batches
from driftline.versions.schema import checks, states

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.versions.store import Store

GONE_AFTER, GONE_SECONDS = 4, 3 * 86_400.0  # checks up to the last, over so long at least
_WITNESSES = 20  # good pages that are asked whether the network was there while a name was not found
_HOUR = 3_600


def gone(store: Store, page_ids: Sequence[int], now: float) -> set[int]:
    """Those of these failing pages that were not there at all checks for days.

    Checks in the future count for nothing: a clock that was wrong once makes days of minutes.
    """
    rows: list[Any] = []
    with store.read() as connection:
        for some in in_batches(page_ids):
            rows += connection.execute(_missing(some, now)).all()
    rows = [row for row in rows if row.times >= GONE_AFTER and row.last - row.first >= GONE_SECONDS]
    # it is the later half of the failures that counts: who went offline after the first of them has lost no page
    nameless = {row.page_id: ((row.first + row.last) / 2, row.last) for row in rows if row.nameless}
    online = _online(store, list(nameless.values()))
    doubtful = {page for page, so in zip(nameless, online, strict=True) if not so}
    return {row.page_id for row in rows} - doubtful


def _online(store: Store, spans: Sequence[tuple[float, float]]) -> list[bool]:
    """Whether other pages could be fetched in these times."""
    if not spans:
        return []
    begin = min(first for first, _ in spans)
    with store.read() as connection:
        hours = sorted(connection.scalars(_good_hours(begin)))
    return [bisect_left(hours, first / _HOUR) < bisect_left(hours, last / _HOUR) for first, last in spans]


def _missing(page_ids: Sequence[int], now: float) -> Any:
    """At how many checks, up to the last or now, failing pages were missing, since when, and if for want of a name."""
    nameless = func.coalesce(checks.c.failure_kind, "") == FailureKind.DNS
    absent = or_(nameless, checks.c.status.in_((404, 410)))
    failing = (
        select(checks.c.page_id, checks.c.sequence)
        .join(states, states.c.page_id == checks.c.page_id)
        .where(states.c.page_id.in_(page_ids), checks.c.sequence > states.c.sequence - states.c.failures)
    )
    other = (
        failing.with_only_columns(checks.c.page_id, func.max(checks.c.sequence).label("sequence"))
        .where(not_(absent))
        .group_by(checks.c.page_id)
        .subquery()
    )
    return (
        failing.with_only_columns(
            checks.c.page_id, func.count().label("times"), func.min(checks.c.at).label("first"),
            func.max(checks.c.at).label("last"), func.max(cast(nameless, Integer)).label("nameless"),
        )
        .outerjoin(other, other.c.page_id == checks.c.page_id)
        .where(checks.c.sequence > func.coalesce(other.c.sequence, 0), checks.c.at <= now)
        .group_by(checks.c.page_id)
    )  # fmt: skip


def _good_hours(begin: float) -> Any:
    """The hours since then, counted from 1970, in which a check of some pages was good that do not fail now."""
    good = (states.c.failures == 0, states.c.checked_at >= begin)
    witnesses = select(states.c.page_id).where(*good).order_by(states.c.page_id).limit(_WITNESSES).subquery()
    return (
        select(cast(checks.c.at, BigInteger) // _HOUR)
        .join(witnesses, witnesses.c.page_id == checks.c.page_id)
        .where(checks.c.at >= begin, checks.c.verdict != Verdict.FAILED)
        .distinct()
    )
