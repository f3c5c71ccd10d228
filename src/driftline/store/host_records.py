"""Records about hosts that outlive a run: their robots.txt, and their Retry-After times."""

from __future__ import annotations

import math
from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, select

from driftline.errors import FailureKind
from driftline.http.headers import LONGEST_PAUSE
from driftline.model.page import Failure, Robots
from driftline.store.locks import patiently
from driftline.store.schedule_records import CLOCK_TOLERANCE
from driftline.store.schema import pages, pauses, robots, runs
from driftline.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from sqlalchemy import Row, Select

    from driftline.store.engine import Store

_CHUNK = 500
_REMOVED_AFTER = 60 * 86_400.0  # seconds after its validity at which a robots.txt is removed


class HostRecords:
    """The hosts in a store. Used by any thread.

    While another program keeps the store locked, reading waits until the run is `stopped`.
    """

    def __init__(self, store: Store, stopped: Callable[[], bool] = lambda: True) -> None:
        self._store = store
        self._stopped = stopped

    def __repr__(self) -> str:
        return f"<HostRecords of {self._store!r}>"

    def robots_of(self, origins: Sequence[str]) -> dict[str, Robots]:
        """Return the stored robots.txt of these origins, without those never fetched."""
        found: dict[str, Robots] = {}
        for start in range(0, len(origins), _CHUNK):
            query = select(robots).where(robots.c.origin.in_(origins[start : start + _CHUNK]))
            for row in self._rows(query):
                failure = None
                if row.failure_kind is not None:
                    failure = Failure(kind=FailureKind(row.failure_kind), sentence=row.failure)
                found[row.origin] = Robots(text=row.body, until=row.until, failure=failure, since=row.since)
        return found

    def pauses(self, now: float) -> dict[str, float]:
        """Return the hosts under Retry-After, and until when.

        A pause whose start is in the future, because the clock was set back, starts now. That is stored, so that it
        does not start again for every process that reads it.
        """
        rows = self._rows(select(pauses).where(pauses.c.until > now))
        in_future = {
            row.host: now + min(row.until - row.asked_at, LONGEST_PAUSE)
            for row in rows
            if row.asked_at > now + CLOCK_TOLERANCE
        }
        if in_future and not self._store.read_only:
            patiently(lambda: self.keep({}, in_future, now), self._stopped)
        return {row.host: row.until for row in rows} | in_future

    def last_end(self, now: float) -> float:
        """Return the latest time at which an earlier run may have sent a request; minus infinity if there was none."""
        (row,) = self._rows(select(func.max(runs.c.ended_at)).where(runs.c.ended_at <= now))
        return -math.inf if row[0] is None else row[0]

    def keep(self, files: Mapping[str, Robots], paused_until: Mapping[str, float], now: float) -> None:
        """Store the robots.txt of these origins, and until when these hosts are under Retry-After."""
        rows = [
            (
                origin, one.text, one.until, one.failure and one.failure.kind.value,
                one.failure and one.failure.sentence, one.since,
            )
            for origin, one in sorted(files.items(), key=itemgetter(0))
        ]  # fmt: skip
        with self._store.write() as connection:
            self._store.statements.robots.many(connection, rows)
            if paused_until:
                connection.execute(delete(pauses).where(pauses.c.until <= now))
                paused = [(host, min(until, now + LONGEST_PAUSE), now) for host, until in sorted(paused_until.items())]
                self._store.statements.pause.many(connection, paused)

    def forget(self, now: float) -> None:
        """Remove the robots.txt of hosts not contacted for long. It reads all of them: call it once in a run."""
        with self._store.write() as connection:
            connection.execute(delete(robots).where(robots.c.until < now - _REMOVED_AFTER))

    def tagged(self, tags: Collection[str]) -> dict[str, list[str]]:
        """Return which of these tags the pages of each host have."""
        found: dict[str, set[str]] = defaultdict(set)
        for row in self._rows(select(pages.c.url, pages.c.tags)) if tags else ():
            matching = [tag for tag in row.tags if tag in tags]
            if matching:
                found[host_of(row.url)].update(matching)
        return {host: sorted(named) for host, named in found.items()}

    def _rows(self, query: Select[Any]) -> Sequence[Row[Any]]:
        def read() -> Sequence[Row[Any]]:
            with self._store.read() as connection:
                return connection.execute(query).all()

        return patiently(read, self._stopped)
