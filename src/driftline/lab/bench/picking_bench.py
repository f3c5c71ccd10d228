"""`lab picking`: how long a large watch list takes to be read, by `check` and by the scheduler, to pick and to learn.

It is what `driftline check` and `driftline run` do, on a store of its own that is filled by a few statements: pages
that were checked ten times, a fifth of them visited.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from driftline.lab.servers.postgres_server import temporary_database
from driftline.schedule.scheduler import Scheduler
from driftline.store.engine import Store
from driftline.store.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PICKS = 15
_AT_ONCE = 500
_PAGES_PER_HOST = 20
_NOW = 1_800_000_000.0
_CHECKED = 10  # times that each page was

_RUN = "INSERT INTO runs (scope, started_at, finished_at) VALUES ('all', 0, 0)"
_STATES = """INSERT INTO states (page_id, run_id, sequence, version, etag, wire, body, letters, kept_body, kept_text,
    checked_at, changed_at, verdict, failures)
    SELECT id, 1, {checked}, 2, {etag}, {wire}, {digest}, {digest}, {digest}, {digest}, {now} - {age}, 0, 'unchanged', 0
    FROM pages"""
_FILL = {
    "sqlite": (
        """WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {pages})
        INSERT INTO pages (id, url, tags, settings, added_at)
        SELECT n, 'https://host' || (n % {hosts}) || '.example/articles/2026/page-' || n || '.html', '[]', '{{}}', 0
        FROM numbers""",
        _RUN,
        _STATES,
        """INSERT INTO rates (page_id, a, b, at, sequence, failed, lifetime)
        SELECT page_id, 0.5 + abs(random() % 1000) / 100.0, 1 + abs(random() % 100000) / 100.0, checked_at, sequence,
        0, 0 FROM states""",
        """INSERT INTO visits (url, frequency, weightage, ttl, first_at, last_at)
        SELECT url, 1 + abs(random() % 50), abs(random() % 5000), 1 + abs(random() % 50), 0, 0 FROM pages
        WHERE id % 5 = 0""",
    ),
    "postgresql": (
        """INSERT INTO pages (url, tags, settings, added_at)
        SELECT 'https://host' || mod(n, {hosts}) || '.example/articles/2026/page-' || n || '.html', '[]', '{{}}', 0
        FROM generate_series(1, {pages}) AS n""",
        _RUN,
        _STATES,
        """INSERT INTO rates (page_id, a, b, at, sequence, failed, lifetime)
        SELECT page_id, 0.5 + random() * 10, 1 + random() * 1000, checked_at, sequence, 0, 0 FROM states""",
        """INSERT INTO visits (url, frequency, weightage, ttl, first_at, last_at)
        SELECT url, 1 + random() * 49, random() * 5000, 1 + random() * 49, 0, 0 FROM pages WHERE mod(id, 5) = 0""",
        "ANALYZE",
    ),
}
_RANDOM = {
    "sqlite": {
        "etag": "hex(randomblob(8))", "wire": "randomblob(8)", "digest": "randomblob(32)",
        "age": "abs(random() % 2592000)",
    },
    "postgresql": {
        "etag": "md5(random()::text)", "wire": "substr(decode(md5(random()::text), 'hex'), 1, 8)",
        "digest": "sha256(random()::text::bytea)", "age": "random() * 2592000",
    },
}  # fmt: skip
_CHECK = """INSERT INTO checks (page_id, sequence, run_id, at, verdict, status, seconds, bytes)
    VALUES ({page}, {sequence}, 2, {at}, {verdict}, 200, 0, 0)"""
_STATE = "UPDATE states SET sequence = {sequence}, checked_at = {at}, verdict = {verdict} WHERE page_id = {page}"
_PARAMETER = {"sqlite": ":{}", "postgresql": "%({})s"}  # as each driver writes a named parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class PickingRow:
    """A number of pages: seconds until a run has its first link and all of them, and until the scheduler has read them;
    milliseconds to pick 500 and to learn from their checks; and the memory of all that.
    """

    pages: int
    first_link_s: float
    links_s: float
    read_s: float
    pick_ms: float
    learn_ms: float
    peak_mb: float


def measure(pages: int, store: str | None = None) -> PickingRow:
    """Read, pick and learn in a process of its own, so that its memory can be measured alone.

    On a temporary SQLite file, or with the URL of a PostgreSQL `store` in a temporary database on its server.
    """
    with _place(store) as where:
        fill(where, pages)
        command = [sys.executable, "-m", "driftline.lab.bench.picking_bench", where]
        ran = subprocess.run(command, check=True, capture_output=True, text=True)
    return PickingRow(**json.loads(ran.stdout))


@contextmanager
def _place(store: str | None) -> Iterator[str]:
    if store is not None:
        with temporary_database(store) as url:
            yield url
    else:
        with tempfile.TemporaryDirectory(prefix="driftline-picking-") as folder:
            yield str(Path(folder) / "pages.db")


def fill(where: str, pages: int) -> None:
    """Fill an empty store with this many pages, without history."""
    store = Store.open(where)
    values = {"pages": pages, "hosts": max(1, pages // _PAGES_PER_HOST), "now": _NOW, "checked": _CHECKED}
    database = store.engine.dialect.name
    with store.write() as connection:
        for statement in _FILL[database]:
            connection.exec_driver_sql(statement.format(**values, **_RANDOM[database]))
    store.close()


def _measured(where: str) -> PickingRow:
    store = Store.open(where)
    now = _NOW
    ledger = Ledger(store, clock=lambda: now)
    began = time.perf_counter()
    run, _ = ledger.begin(None)
    links = ledger.remaining(run, None)
    next(links)
    first_link = time.perf_counter() - began
    for _ in links:
        pass
    all_links = time.perf_counter() - began
    scheduler = Scheduler(store, budget=float(_AT_ONCE), host_budget=3.0, clock=lambda: now, ticks=lambda: now)
    began = time.perf_counter()
    scheduler.refresh()
    read = time.perf_counter() - began
    checked: dict[int, int] = {}
    picks, learns = [], []
    for _ in range(_PICKS):
        now += 1.0
        began = time.perf_counter()
        page_ids = scheduler.pick()
        picks.append(time.perf_counter() - began)
        _record(store, page_ids, checked, now)
        began = time.perf_counter()
        scheduler.learn_from(page_ids)
        learns.append(time.perf_counter() - began)
    scheduler.refresh()  # for its memory: what was known is kept until all is read anew
    status = Path("/proc/self/status").read_text()
    peak = re.search(r"VmHWM:\s*(\d+) kB", status)
    assert peak is not None
    return PickingRow(
        pages=len(scheduler), first_link_s=first_link, links_s=all_links, read_s=read, pick_ms=1000 * median(picks),
        learn_ms=1000 * median(learns), peak_mb=int(peak[1]) * 1024 / 1e6,
    )  # fmt: skip


def _record(store: Store, page_ids: Sequence[int], checked: dict[int, int], now: float) -> None:
    """Record checks of these pages, as `check` does; three in ten found a change."""
    chance = random.Random(now)
    found = []
    for page in page_ids:
        checked[page] = checked.get(page, _CHECKED) + 1
        verdict = "changed" if chance.random() < 0.3 else "unchanged"
        found.append({"page": page, "sequence": checked[page], "at": now, "verdict": verdict})
    parameter = _PARAMETER[store.engine.dialect.name]
    parameters = {name: parameter.format(name) for name in ("page", "sequence", "at", "verdict")}
    with store.write() as connection:
        for statement in (_CHECK, _STATE):
            connection.exec_driver_sql(statement.format(**parameters), found)


if __name__ == "__main__":
    print(json.dumps(asdict(_measured(sys.argv[1]))))
