"""What users say of unsafe pages: votes with reasons, which count until they are withdrawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select

from driftline.errors import BadSetting
from driftline.store.schema import reports

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from driftline.store.engine import Store

_MOST_VOTES = 1_000_000
_LONGEST_REASON = 500  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """All that was said of one page, or with `whole_host` of all pages of a host; `at` is when it was last."""

    url: str
    whole_host: bool
    votes: int
    reasons: tuple[str, ...]
    at: float


class Reports:
    """The reports, each under the canonical address of the page that it is of."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def add(self, url: str, *, reason: str = "", votes: int = 1, whole_host: bool = False) -> Reported:
        """Count so many votes against a page; what was said of it by now."""
        if not 1 <= votes <= _MOST_VOTES:
            raise BadSetting(f"A report counts as 1 to {_MOST_VOTES:,} votes, not {votes:,}.")
        reason = " ".join(reason.split())
        if len(reason) > _LONGEST_REASON:
            raise BadSetting(f"A reason has {_LONGEST_REASON} characters at most; this one has {len(reason):,}.")
        row = {"url": url, "whole_host": int(whole_host), "votes": votes, "reason": reason, "at": self._clock()}
        with self._store.write() as connection:
            connection.execute(insert(reports).values(row))
            return next(one for one in _all(connection) if (one.url, one.whole_host) == (url, whole_host))

    def withdraw(self, url: str, *, whole_host: bool = False) -> int:
        """Forget what was said of a page; how many reports there were."""
        this = delete(reports).where(reports.c.url == url, reports.c.whole_host == int(whole_host))
        with self._store.write() as connection:
            return connection.execute(this).rowcount

    def all(self) -> list[Reported]:
        """What was said of each page, in the order of the first reports."""
        with self._store.read() as connection:
            return _all(connection)


def _all(connection: Connection) -> list[Reported]:
    found: dict[tuple[str, bool], Reported] = {}
    for row in connection.execute(select(reports).order_by(reports.c.id)):
        key = row.url, bool(row.whole_host)
        before = found.get(key)
        reasons = (*(before.reasons if before else ()), *([row.reason] if row.reason else ()))
        found[key] = Reported(
            url=row.url, whole_host=key[1], votes=row.votes + (before.votes if before else 0),
            reasons=tuple(dict.fromkeys(reasons)), at=row.at,
        )  # fmt: skip
    return list(found.values())
