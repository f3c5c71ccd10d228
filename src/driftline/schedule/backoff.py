"""Which pages are gone for good: their address or their host is no more, at several checks spread over days.

A host whose name is not found says something only if other pages could be fetched meanwhile: a machine that was offline
has not lost its pages.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import BigInteger, Integer, cast, func, not_, or_, select

from driftline.errors import FailureKind
from driftline.http.headers import LONGEST_PAUSE
from driftline.model import Verdict
from driftline.schedule.page_table import PROBE
from driftline.store.schedule_records import redirected
from driftline.store.schema import checks, states
from driftline.store.statements import in_batches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from driftline.schedule.clock_skew import Ahead
    from driftline.schedule.page_stats import Learned
    from driftline.schedule.page_table import Floats, Places
    from driftline.store.engine import Store


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


class Patience:
    """Says of pages whether they may be checked at all, after what their last checks were.

    `every` is the interval of all pages which have none of their own, infinite if they have none at all. `early` as in
    `Index.pick`. A server that says when to ask again means all pages of its host, which is not that of the page where
    this one leads to another.
    """

    def __init__(self, store: Store, ahead: Ahead, every: float, early: float = 0.0) -> None:
        self._store = store
        self._every = every
        self._early = early
        self._ahead = ahead
        self._judged: dict[int, tuple[int, bool]] = {}

    def stand_by(self, known: Learned, places: Places, told: dict[str, Floats], now: float) -> None:
        """Leave those of these pages alone for a while that fail, and for long if they are gone; the others not."""
        index = known.index
        failures = told["failures"]
        index.failures[places] = 0
        index.not_before[places] = -np.inf
        index.gone[places] = False
        bad = failures > 0
        known.asked.take_back(index.page[places])
        places, failures, tried, retry = places[bad], failures[bad], told["checked_at"][bad], told["retry_at"][bad]
        last = self._ahead.settled(np.where(np.isnan(tried), now, tried), now)
        index.fail(places, failures, last, every=self._every, early=self._early)
        index.gone[places] = self._are_gone(known, places, now)
        index.not_before[places[index.gone[places]]] = last[index.gone[places]] + PROBE
        # what a server asks for goes before what the user asked for; it asked for a time from when it was asked
        waits = np.minimum(retry - tried, LONGEST_PAUSE)
        asked = last + np.where(np.isnan(waits), 0.0, waits)
        index.not_before[places] = np.maximum(index.not_before[places], asked)
        held = asked > now
        self._note(known, places[held], asked[held])

    def _note(self, known: Learned, places: Places, until: Floats) -> None:
        """Leave the hosts alone that refused these pages: those which the pages lead to, where they do."""
        pages = known.index.page[places]
        hosts = known.index.host[places]
        elsewhere = redirected(self._store, pages.tolist())
        if elsewhere:
            hosts = hosts.copy()
            hosts[np.isin(pages, list(elsewhere))] = known.hosts.of(
                [elsewhere[page] for page in pages.tolist() if page in elsewhere]
            )
        known.asked.note(hosts, pages, until)

    def forget(self, known: Learned) -> None:
        """Let go of pages that fail no more, or are no more."""
        failing = set(known.index.page[known.index.failures >= GONE_AFTER].tolist())
        self._judged = {page: judged for page, judged in self._judged.items() if page in failing}

    def _are_gone(self, known: Learned, places: Places, now: float) -> NDArray[np.bool_]:
        """Which of these pages are gone; that is asked once after each check of a page."""
        often = places[known.index.failures[places] >= GONE_AFTER]
        upto = dict(zip(known.index.page[often].tolist(), known.upto[often].tolist(), strict=True))
        doubtful = [page for page, check in upto.items() if self._judged.get(page, (0, False))[0] != check]
        found = gone(self._store, doubtful, now)
        self._judged |= {page: (upto[page], page in found) for page in doubtful}
        pages = known.index.page[places].tolist()
        return np.array([page in upto and self._judged[page][1] for page in pages], np.bool_)
