"""What the scheduler reads from and writes to the store, one function for each statement.

Rows come by columns where there may be a million of them: one tuple for each column is what numpy takes.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Integer, Text, and_, bindparam, cast, delete, func, insert, not_, or_, select

from driftline.errors import FailureKind
from driftline.model.outcome import Verdict
from driftline.store.schema import changes, checks, distrusted, pages, rates, setbacks, states, versions, visits
from driftline.store.statements import BATCHES, BINARY, in_batches

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from sqlalchemy import ColumnElement, Select

    from driftline.store.engine import Store

    #: rows of a query, one tuple for each column
    Columns = dict[str, tuple[Any, ...]]


_HOUR = 3_600
_WITNESSES = 20  # pages whose checks show whether the network worked

#: seconds by which the clocks of two machines may differ without one of them being wrong
CLOCK_TOLERANCE = 60.0
#: columns of `states` about the last failed checks of a page
FAILURE_COLUMNS = ("failures", "checked_at", "retry_at")
#: columns of `rates`: the change rate as a gamma distribution, and which checks it was learned from
RATE_COLUMNS = ("a", "b", "at_last", "learned", "failed", "lifetime")

_RATES = (
    rates.c.a, rates.c.b, rates.c.at.label("at_last"), rates.c.sequence.label("learned"), rates.c.failed,
    rates.c.lifetime,
)  # fmt: skip
_PAGE_COLUMNS = (
    "id", "url", "settings", "version", "every", "sequence", "checked_at", "failures", "retry_at", *RATE_COLUMNS,
)  # fmt: skip
_VISIT_COLUMNS = ("visited", "id", "frequency", "weightage", "ttl")

_AFTER: ColumnElement[int] = bindparam("after", type_=Integer)
# PostgreSQL does not conclude from the condition on pages that it also holds for states and rates: without a condition
# on all three, each portion would read the other two from the first row on
_PAGES = (
    select(
        pages.c.id, pages.c.url, cast(pages.c.settings, Text), states.c.version, pages.c.every, states.c.sequence,
        states.c.checked_at, states.c.failures, states.c.retry_at, *_RATES,
    )
    .join(states, states.c.page_id == pages.c.id)
    .outerjoin(rates, and_(rates.c.page_id == pages.c.id, rates.c.page_id > _AFTER))
    .where(pages.c.id > _AFTER, states.c.page_id > _AFTER)
    .order_by(pages.c.id)
)  # fmt: skip
# each page is looked up by its address: for a join, PostgreSQL would rather read all pages
_VISITED_PAGE = select(pages.c.id).where(pages.c.url == visits.c.url).scalar_subquery()
_VISITS = (
    select(visits.c.id, _VISITED_PAGE, visits.c.frequency, visits.c.weightage, visits.c.ttl)
    .where(visits.c.id > _AFTER)
    .order_by(visits.c.id)
)

_NOT_LEARNED = and_(checks.c.page_id == states.c.page_id, checks.c.sequence > func.coalesce(rates.c.sequence, 0))
_VERSION_OF_CHECK = and_(versions.c.page_id == checks.c.page_id, versions.c.sequence == checks.c.sequence)
_CHANGE_OF_CHECK = and_(changes.c.page_id == checks.c.page_id, changes.c.sequence == checks.c.sequence)
_UNLEARNED_COLUMNS = ("page_id", *FAILURE_COLUMNS, *RATE_COLUMNS, "sequence", "at", "verdict", "headers", "importance")
_UNLEARNED = (
    select(
        states.c.page_id, states.c.failures, states.c.checked_at, states.c.retry_at, *_RATES, checks.c.sequence,
        checks.c.at, checks.c.verdict, versions.c.headers, changes.c.importance,
    )
    .outerjoin(rates, rates.c.page_id == states.c.page_id)
    .outerjoin(checks, _NOT_LEARNED)
    .outerjoin(versions, _VERSION_OF_CHECK)
    .outerjoin(changes, _CHANGE_OF_CHECK)
    .where(states.c.page_id.in_(bindparam("page_ids", expanding=True)))
    .order_by(states.c.page_id, checks.c.sequence)
    .execution_options(yield_per=BATCHES.checks)
)  # fmt: skip

_AMONG = states.c.page_id.between(bindparam("first"), bindparam("last"))
_TOTAL = select(func.count(), func.coalesce(func.sum(states.c.sequence), 0)).where(_AMONG)
_SEQUENCES = select(states.c.page_id, states.c.sequence).where(_AMONG).order_by(states.c.page_id)


def count_pages(store: Store) -> int:
    """Return the number of watched pages."""
    with store.read() as connection:
        return connection.scalar(select(func.count()).select_from(states)) or 0


def read_pages(store: Store) -> Iterator[Columns]:
    """Yield the watch list in order of page id, with what was learned, a portion of the rows at a time."""
    return _portions(store, _PAGES.limit(BATCHES.pages), _PAGE_COLUMNS)


def read_visits(store: Store) -> Iterator[Columns]:
    """Yield the visit counts of watched pages, in order of their first visit, a portion of the rows at a time."""
    for portion in _portions(store, _VISITS.limit(BATCHES.pages), _VISIT_COLUMNS):
        watched = [page_id is not None for page_id in portion["id"]]
        yield {name: tuple(compress(column, watched)) for name, column in portion.items()}


def _portions(store: Store, query: Select[Any], names: Sequence[str]) -> Iterator[Columns]:
    """Yield the rows of a query that are `after` the last one before, ordered by their first column."""
    after = 0
    while True:
        with store.read() as connection:
            # the driver's own rows: wrapping them would cost as much as reading them
            rows = connection.execute(query, {"after": after}, execution_options=BINARY).cursor.fetchall()
        if rows:
            yield dict(zip(names, zip(*rows, strict=True), strict=True))
        if len(rows) < BATCHES.pages:
            return
        after = rows[-1][0]


def read_sequences(store: Store, page_ids: NDArray[np.int64], known: NDArray[np.int32]) -> Iterator[Sequence[Any]]:
    """Yield rows of page id and number of checks for these sorted pages, a portion at a time.

    A portion is left out if all of its pages exist and their checks add up to the `known` ones: the database adds
    numbers up several times faster than it sends them.
    """
    for start in range(0, len(page_ids), BATCHES.pages):
        some = page_ids[start : start + BATCHES.pages]
        among = {"first": int(some[0]), "last": int(some[-1])}
        expected = (len(some), int(known[start : start + BATCHES.pages].sum(dtype="int64")))
        with store.read() as connection:
            as_expected = tuple(connection.execute(_TOTAL, among).one()) == expected
            rows: Sequence[Any] = [] if as_expected else connection.execute(_SEQUENCES, among).all()
        if rows:
            yield rows


def read_unlearned_checks(store: Store, page_ids: Sequence[int]) -> Iterator[Columns]:
    """Yield the state and rate of these pages, with each check that nothing was learned from yet.

    Rows are in order of page and check. A check that made a version has its headers; a page without such checks has one
    row. They come a portion at a time, all from the same snapshot.
    """
    with store.read() as connection:
        for rows in connection.execute(_UNLEARNED, {"page_ids": page_ids}).partitions(BATCHES.checks):
            yield dict(zip(_UNLEARNED_COLUMNS, zip(*rows, strict=True), strict=True))


def save_rates(store: Store, rows: Sequence[tuple[Any, ...]], also_equal: Collection[int]) -> None:
    """Save these rows of `rates`, except where another process has learned from more checks meanwhile.

    For the pages in `also_equal`, a row is also saved if it was learned from as many checks as the stored one. A row
    has the columns of the table, the page id first and the sequence fifth.
    """
    with store.write() as connection:
        saved = dict(connection.execute(saved_sequences([row[0] for row in rows])).cursor.fetchall())
        newer = [
            row for row in rows
            if row[0] in saved and row[4] - (saved[row[0]] or 0) >= (0 if row[0] in also_equal else 1)
        ]  # fmt: skip
        store.statements.rate.many(connection, newer)


def saved_sequences(page_ids: Sequence[int]) -> Select[Any]:
    """Return the query for the last check that each of these pages was learned from, which also locks the pages.

    Removing one of them waits for the transaction: a rate must not refer to a page that is gone.
    """
    learned = rates.c.sequence.label("learned")
    found = select(pages.c.id, learned).outerjoin(rates, rates.c.page_id == pages.c.id).where(pages.c.id.in_(page_ids))
    return found.order_by(pages.c.id).with_for_update(read=True, key_share=True, of=pages)


def last_checks(store: Store, page_ids: Sequence[int]) -> dict[int, float]:
    """Return when each of these pages was last checked, successfully or not, without those that never were."""
    found: dict[int, float] = {}
    with store.read() as connection:
        for some in in_batches(page_ids):
            rows = connection.execute(
                select(states.c.page_id, states.c.checked_at).where(
                    states.c.page_id.in_(some), states.c.checked_at.is_not(None)
                )
            )
            found |= {row.page_id: row.checked_at for row in rows}
    return found


def redirect_targets(store: Store, page_ids: Sequence[int]) -> dict[int, str]:
    """Return where the last check of each of these pages was redirected to, without those that were not."""
    last = and_(checks.c.page_id == states.c.page_id, checks.c.sequence == states.c.sequence)
    found: dict[int, str] = {}
    with store.read() as connection:
        for some in in_batches(page_ids):
            rows = connection.execute(
                select(checks.c.page_id, checks.c.redirected_to)
                .join(states, last)
                .where(states.c.page_id.in_(some), checks.c.redirected_to.is_not(None))
            )
            found |= {row.page_id: row.redirected_to for row in rows}
    return found


def pages_found_lately(store: Store, page_ids: Sequence[int], times: int) -> list[int]:
    """Return those of these pages whose last checks, this many of them, all succeeded."""
    good = (
        checks.c.page_id == states.c.page_id, checks.c.sequence > states.c.sequence - times,
        checks.c.verdict != Verdict.FAILED,
    )  # fmt: skip
    found = select(states.c.page_id).join(checks, and_(*good)).where(states.c.page_id.in_(page_ids))
    with store.read() as connection:
        return list(connection.scalars(found.group_by(states.c.page_id).having(func.count() == times)))


def missing_pages(store: Store, page_ids: Sequence[int], now: float) -> list[Any]:
    """Return a row for each of these failing pages that was missing at its last checks: 404, 410 or an unknown host.

    A row has `page_id`, how many `times` it was missing in a row, when that was `first` and `last` seen, and whether
    the host's name could not be resolved at any of them (`nameless`). Checks later than `now` do not count.
    """
    nameless = func.coalesce(checks.c.failure_kind, "") == FailureKind.DNS
    missing = or_(nameless, checks.c.status.in_((404, 410)))
    rows: list[Any] = []
    with store.read() as connection:
        for some in in_batches(page_ids):
            failing = (
                select(checks.c.page_id, checks.c.sequence)
                .join(states, states.c.page_id == checks.c.page_id)
                .where(states.c.page_id.in_(some), checks.c.sequence > states.c.sequence - states.c.failures)
            )
            other = (
                failing.with_only_columns(checks.c.page_id, func.max(checks.c.sequence).label("sequence"))
                .where(not_(missing))
                .group_by(checks.c.page_id)
                .subquery()
            )
            query = (
                failing.with_only_columns(
                    checks.c.page_id, func.count().label("times"), func.min(checks.c.at).label("first"),
                    func.max(checks.c.at).label("last"), func.max(cast(nameless, Integer)).label("nameless"),
                )
                .outerjoin(other, other.c.page_id == checks.c.page_id)
                .where(checks.c.sequence > func.coalesce(other.c.sequence, 0), checks.c.at <= now)
                .group_by(checks.c.page_id)
            )  # fmt: skip
            rows += connection.execute(query).all()
    return rows


def hours_online(store: Store, since: float) -> list[int]:
    """Return the hours, counted from 1970, in which some page that does not fail now was checked successfully."""
    good = (states.c.failures == 0, states.c.checked_at >= since)
    witnesses = select(states.c.page_id).where(*good).order_by(states.c.page_id).limit(_WITNESSES).subquery()
    hours = (
        select(cast(checks.c.at, BigInteger) // _HOUR)
        .join(witnesses, witnesses.c.page_id == checks.c.page_id)
        .where(checks.c.at >= since, checks.c.verdict != Verdict.FAILED)
        .distinct()
    )
    with store.read() as connection:
        return sorted(connection.scalars(hours))


def distrusted_hosts(store: Store, since: float) -> list[str]:
    """Return the hosts that changed a page earlier than their headers had promised, after this time."""
    with store.read() as connection:
        return list(connection.scalars(select(distrusted.c.host).where(distrusted.c.at > since)))


def save_distrusted_hosts(store: Store, hosts: Sequence[str], now: float) -> None:
    """Save that these hosts changed a page earlier than their headers had promised. Does nothing if read-only."""
    if store.read_only:
        return
    with store.write() as connection:
        store.statements.distrust.many(connection, [(host, now) for host in hosts])


def read_clock_skew(store: Store) -> float | None:
    """Return when recorded times in the future were first seen; None if there are none."""
    with store.read() as connection:
        found: float | None = connection.scalar(select(func.min(setbacks.c.seen_at)))
        return found


def save_clock_skew(store: Store, seen_at: float | None) -> None:
    """Save when times in the future were first seen, or None if there are none. Does nothing if read-only."""
    if store.read_only:
        return
    with store.write() as connection:
        connection.execute(delete(setbacks))
        if seen_at is not None:
            connection.execute(insert(setbacks).values(seen_at=seen_at))
