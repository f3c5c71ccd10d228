"""What the scheduler asks the store, each statement under its name."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import Integer, Text, and_, bindparam, cast, delete, func, insert, select

from driftline.model import Verdict
from driftline.store.schema import checks, distrusted, pages, rates, setbacks, states, versions, visits
from driftline.store.statements import BINARY, in_batches

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from sqlalchemy import ColumnElement, Select

    from driftline.store.engine import Store


_PORTION = 4_000  # rows: some hundredths of a second
_CHECKS = 20_000  # rows too: with fewer, less is worked out at a time, and learning takes longer

#: where a page stands that fails, and what is stored of what was learned of a page
STANDING = ("failures", "checked_at", "retry_at")
LEARNED = ("a", "b", "at_last", "learned", "failed", "lifetime")
_RATES = (
    rates.c.a, rates.c.b, rates.c.at.label("at_last"), rates.c.sequence.label("learned"), rates.c.failed,
    rates.c.lifetime,
)  # fmt: skip
_WATCHED = ("id", "url", "settings", "version", "every", "sequence", "checked_at", "failures", "retry_at", *LEARNED)
_VISITED = ("visited", "id", "frequency", "weightage", "ttl")

HOW_MANY = select(func.count()).select_from(states)
_AFTER: ColumnElement[int] = bindparam("after", type_=Integer)
# PostgreSQL does not conclude from where the pages begin that their states and rates begin there as well: unless it is
# said of all three, each portion would read the other two from the first row on
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
# each page is looked up by its address: of a join, PostgreSQL believes that it is faster with a walk through all pages
_VISITED_PAGE = select(pages.c.id).where(pages.c.url == visits.c.url).scalar_subquery()
_VISITS = (
    select(visits.c.id, _VISITED_PAGE, visits.c.frequency, visits.c.weightage, visits.c.ttl)
    .where(visits.c.id > _AFTER)
    .order_by(visits.c.id)
)

_LATER = and_(checks.c.page_id == states.c.page_id, checks.c.sequence > func.coalesce(rates.c.sequence, 0))
_MADE = and_(versions.c.page_id == checks.c.page_id, versions.c.sequence == checks.c.sequence)
_UNLEARNED_COLUMNS = ("page_id", *STANDING, *LEARNED, "sequence", "at", "verdict", "headers")
_UNLEARNED = (
    select(
        states.c.page_id, states.c.failures, states.c.checked_at, states.c.retry_at, *_RATES, checks.c.sequence,
        checks.c.at, checks.c.verdict, versions.c.headers,
    )
    .outerjoin(rates, rates.c.page_id == states.c.page_id)
    .outerjoin(checks, _LATER)
    .outerjoin(versions, _MADE)
    .where(states.c.page_id.in_(bindparam("page_ids", expanding=True)))
    .order_by(states.c.page_id, checks.c.sequence)
    .execution_options(yield_per=_CHECKS)
)  # fmt: skip

_AMONG = states.c.page_id.between(bindparam("first"), bindparam("last"))
_TALLY = select(func.count(), func.coalesce(func.sum(states.c.sequence), 0)).where(_AMONG)
_CHECKED = select(states.c.page_id, states.c.sequence).where(_AMONG).order_by(states.c.page_id)


def checked(store: Store, page_ids: NDArray[np.int64], upto: NDArray[np.int32]) -> Iterator[Sequence[Any]]:
    """How many checks there were of these pages, which are in order, a portion at a time.

    A portion is left out if its pages have as many checks together as `upto` says, and all of them are there: the
    database adds them up several times faster than it hands them out.
    """
    for start in range(0, len(page_ids), _PORTION):
        some = page_ids[start : start + _PORTION]
        among = {"first": int(some[0]), "last": int(some[-1])}
        expected = (len(some), int(upto[start : start + _PORTION].sum(dtype=np.int64)))
        with store.read() as connection:
            as_expected = tuple(connection.execute(_TALLY, among).one()) == expected
            rows: Sequence[Any] = [] if as_expected else connection.execute(_CHECKED, among).all()
        if rows:
            yield rows


def watched(store: Store) -> Iterator[dict[str, tuple[Any, ...]]]:
    """The watch list by columns, in order of page, a portion of the rows at a time: there may be a million."""
    return _portions(store, _PAGES.limit(_PORTION), _WATCHED)


def visited(store: Store) -> Iterator[dict[str, tuple[Any, ...]]]:
    """What the visits to watched pages add up to, likewise, in the order of the first visits."""
    for portion in _portions(store, _VISITS.limit(_PORTION), _VISITED):
        watched = [page_id is not None for page_id in portion["id"]]
        yield {name: tuple(compress(column, watched)) for name, column in portion.items()}


def _portions(store: Store, query: Select[Any], names: Sequence[str]) -> Iterator[dict[str, tuple[Any, ...]]]:
    """The rows by columns, a portion at a time, each from `after` the first column of the last row before it."""
    after = 0
    while True:
        with store.read() as connection:
            # the driver's own rows: wrapping them would cost as much as reading them
            rows = connection.execute(query, {"after": after}, execution_options=BINARY).cursor.fetchall()
        if rows:
            yield dict(zip(names, zip(*rows, strict=True), strict=True))
        if len(rows) < _PORTION:
            return
        after = rows[-1][0]


def addresses(store: Store, page_ids: Sequence[int]) -> dict[int, str]:
    """The addresses of these pages, of those that are still there."""
    found: dict[int, str] = {}
    with store.read() as connection:
        for some in in_batches(page_ids):
            rows = connection.execute(select(pages.c.id, pages.c.url).where(pages.c.id.in_(some)))
            found |= {row.id: row.url for row in rows}
    return found


def last_checks(store: Store, page_ids: Sequence[int]) -> dict[int, float]:
    """When each of these pages was last checked, whatever came of it; of those that were."""
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


def redirected(store: Store, page_ids: Sequence[int]) -> dict[int, str]:
    """Where the last check of each of these pages was led to, of those where it was led to another address."""
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


def unlearned(store: Store, page_ids: Sequence[int]) -> Iterator[dict[str, tuple[Any, ...]]]:
    """Where these pages stand, with what was learned of them and each check that nothing was learned from yet.

    They come by columns, in order of page and of check. A check that made a version has its headers; a page without
    such checks has one row. A portion of the rows at a time, all of them as they were at the beginning.
    """
    with store.read() as connection:
        for rows in connection.execute(_UNLEARNED, {"page_ids": page_ids}).partitions(_CHECKS):
            yield dict(zip(_UNLEARNED_COLUMNS, zip(*rows, strict=True), strict=True))


def steady(page_ids: Sequence[int], times: int) -> Any:
    """Those of these pages that were there at each of their last so many checks."""
    good = (
        checks.c.page_id == states.c.page_id, checks.c.sequence > states.c.sequence - times,
        checks.c.verdict != Verdict.FAILED,
    )  # fmt: skip
    found = select(states.c.page_id).join(checks, and_(*good)).where(states.c.page_id.in_(page_ids))
    return found.group_by(states.c.page_id).having(func.count() == times)


def stored(page_ids: Sequence[int]) -> Any:
    """Up to which check each of these pages was learned from, of those that are still there; they stay until the end.

    Whoever removes one waits for the transaction: what is stored of a page that is gone would refer to nothing.
    """
    learned = rates.c.sequence.label("learned")
    found = select(pages.c.id, learned).outerjoin(rates, rates.c.page_id == pages.c.id).where(pages.c.id.in_(page_ids))
    return found.order_by(pages.c.id).with_for_update(read=True, key_share=True, of=pages)


def distrusted_since(begin: float) -> Any:
    """The hosts that were caught since then."""
    return select(distrusted.c.host).where(distrusted.c.at > begin)


STEP = 60.0  # seconds: clocks of two machines differ, and one that is put right by less keeps nobody waiting for long


def first_seen(store: Store) -> float | None:
    """When times in the future were first seen; None if there are none."""
    with store.read() as connection:
        found: float | None = connection.scalar(select(func.min(setbacks.c.seen_at)))
        return found


def remember(store: Store, seen_at: float | None) -> None:
    """Keep that moment, or that there are no such times any more. A store that can only be read stays as it is."""
    if store.read_only:
        return
    with store.write() as connection:
        connection.execute(delete(setbacks))
        if seen_at is not None:
            connection.execute(insert(setbacks).values(seen_at=seen_at))
