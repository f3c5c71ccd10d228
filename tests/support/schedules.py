"""A watch list for the scheduler, whose checks and visits a test writes down as if they had been made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import insert, update

from driftline.model.change import Importance
from driftline.schedule.page_table import DAY
from driftline.schedule.scheduler import Scheduler
from driftline.store.engine import Store
from driftline.store.locks import count_revision
from driftline.store.pages import Catalog
from driftline.store.schema import changes, checks, runs, states, versions, visits

BEGIN = 1_000 * DAY


class Clock:
    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> float:
        return self.now


class Schedule:
    """A store whose checks a test writes down as if they had been made."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.clock = Clock()
        self.catalog = Catalog(store, self.clock)
        self._sequence: dict[int, int] = {}

    def add(self, *names: str, every: float | None = None) -> list[int]:
        urls = [f"http://{name}/" for name in names]
        self.catalog.add(urls, every=every)
        return [page.id for page in self.catalog.find_all(urls)]

    def scheduler(self, **options: Any) -> Scheduler:
        made = Scheduler(self.store, clock=self.clock, ticks=self.clock, **options)
        made.refresh()
        return made

    def checked(
        self, page: int, verdict: str, at: float | None = None, status: int = 200, headers: str = "",
        retry_at: float | None = None, led_to: str | None = None, importance: Importance | None = None,
    ) -> None:  # fmt: skip
        """Record a check; with headers, one that made a version; with an importance, one that found such a change."""
        at = self.clock.now if at is None else at
        sequence = self._sequence[page] = self._sequence.get(page, 0) + 1
        kind = ("dns" if not status else "status") if verdict == "failed" else None
        failures = states.c.failures + 1 if kind else 0
        with self.store.write() as connection:
            connection.execute(insert(runs).values(scope="all", started_at=at, finished_at=at))
            connection.execute(
                insert(checks).values(
                    page_id=page,
                    sequence=sequence,
                    run_id=1,
                    at=at,
                    verdict=verdict,
                    status=status,
                    seconds=0.1,
                    bytes=1,
                    failure_kind=kind,
                    failure="It failed." if kind else None,
                    redirected_to=led_to,
                )
            )
            values = {
                "sequence": sequence,
                "checked_at": at,
                "verdict": verdict,
                "failures": failures,
                "failure_kind": kind,
                "failure": "It failed." if kind else None,
                "retry_at": retry_at,
            }
            connection.execute(update(states).where(states.c.page_id == page).values(**values))
            if importance is not None:
                row = {"from_version": 1, "to_version": 2, "kind": "text", "score": 0.5, "reason": "It changed."}
                row |= {"words_added": 1, "words_removed": 1, "importance": importance.value}
                connection.execute(insert(changes).values(page_id=page, sequence=sequence, at=at, **row))
            if headers:
                block = f"HTTP/1.1 200 OK\r\n{headers}\r\n\r\n".encode()
                connection.execute(
                    insert(versions).values(
                        page_id=page,
                        number=sequence,
                        sequence=sequence,
                        at=at,
                        body=b"",
                        text=b"",
                        size=0,
                        title="",
                        content_type="",
                        charset="",
                        final_url="",
                        headers=block,
                    )
                )


def visited(schedule: Schedule, name: str, frequency: int, weightage: float, ttl: int) -> None:
    url = f"http://{name}/"
    row = {"url": url, "frequency": frequency, "weightage": weightage, "ttl": ttl, "first_at": 0, "last_at": 0}
    with schedule.store.write() as connection:
        connection.execute(insert(visits).values(**row))
        count_revision(connection)


def terms(scheduler: Scheduler) -> dict[str, Any]:
    return {one.url.removeprefix("http://").strip("/"): one for one in scheduler.upcoming()}


@pytest.fixture
def schedule(where: str) -> Iterator[Schedule]:
    """An empty watch list, in a store of either kind."""
    store = Store.open(where)
    yield Schedule(store)
    store.close()
