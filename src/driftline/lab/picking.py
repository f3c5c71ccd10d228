"""`lab picking`: how long the scheduler takes to read the watch list, to pick and to learn, and what memory it needs.

It is the scheduler that `driftline run` asks, on a store of its own that is filled by a few statements: pages that were
checked ten times, a fifth of them visited.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from driftline.scheduling.scheduler import Scheduler
from driftline.versions.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

_TURNS = 15
_AT_ONCE = 500
_PAGES_PER_HOST = 20
_NOW = 1_800_000_000.0
_CHECKED = 10  # times that each page was

_FILL = (
    """WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :pages)
    INSERT INTO pages (id, url, tags, settings, added_at)
    SELECT n, 'https://host' || (n % :hosts) || '.example/articles/2026/page-' || n || '.html', '[]', '{}', 0
    FROM numbers""",
    """INSERT INTO states (page_id, run_id, sequence, version, etag, wire, body, letters, kept_body, kept_text,
    checked_at, changed_at, verdict, failures)
    SELECT id, 1, :checked, 2, hex(randomblob(8)), randomblob(8), randomblob(32), randomblob(32), randomblob(32),
    randomblob(32), :now - abs(random() % 2592000), 0, 'unchanged', 0 FROM pages""",
    """INSERT INTO rates (page_id, a, b, at, sequence, failed, lifetime)
    SELECT page_id, 0.5 + abs(random() % 1000) / 100.0, 1 + abs(random() % 100000) / 100.0, checked_at, sequence, 0, 0
    FROM states""",
    """INSERT INTO visits (url, frequency, weightage, ttl, first_at, last_at)
    SELECT url, 1 + abs(random() % 50), abs(random() % 5000), 1 + abs(random() % 50), 0, 0 FROM pages
    WHERE id % 5 = 0""",
)
_CHECK = """INSERT INTO checks (page_id, sequence, run_id, at, verdict, status, seconds, bytes)
    VALUES (?, ?, 2, ?, ?, 200, 0, 0)"""
_STAND = "UPDATE states SET sequence = ?, checked_at = ?, verdict = ? WHERE page_id = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A number of pages: seconds to read them, milliseconds to pick 500 and to learn from their checks, and memory."""

    pages: int
    read_s: float
    pick_ms: float
    learn_ms: float
    peak_mb: float


def measure(pages: int) -> Row:
    """Read, pick and learn in a process of its own, so that its memory is nobody else's."""
    with tempfile.TemporaryDirectory(prefix="driftline-picking-") as folder:
        path = str(Path(folder) / "pages.db")
        _fill(path, pages)
        command = [sys.executable, "-m", "driftline.lab.picking", path]
        ran = subprocess.run(command, check=True, capture_output=True, text=True)
    return Row(**json.loads(ran.stdout))


def _fill(path: str, pages: int) -> None:
    store = Store.open(path)
    values = {"pages": pages, "hosts": max(1, pages // _PAGES_PER_HOST), "now": _NOW, "checked": _CHECKED}
    with store.write() as connection:
        for statement in _FILL:
            connection.exec_driver_sql(statement, values)
    store.close()


def _measured(path: str) -> Row:
    store = Store.open(path)
    now = _NOW
    scheduler = Scheduler(store, budget=float(_AT_ONCE), host_budget=3.0, clock=lambda: now, ticks=lambda: now)
    began = time.perf_counter()
    scheduler.refresh()
    read = time.perf_counter() - began
    checked: dict[int, int] = {}
    picks, learns = [], []
    for _ in range(_TURNS):
        now += 1.0
        began = time.perf_counter()
        page_ids = scheduler.pick()
        picks.append(time.perf_counter() - began)
        _record(store, page_ids, checked, now)
        began = time.perf_counter()
        scheduler.follow(page_ids)
        learns.append(time.perf_counter() - began)
    scheduler.refresh()  # for its memory: what was known is kept until all is read anew
    status = Path("/proc/self/status").read_text()
    peak = re.search(r"VmHWM:\s*(\d+) kB", status)
    assert peak is not None
    return Row(
        pages=len(scheduler), read_s=read, pick_ms=1000 * median(picks), learn_ms=1000 * median(learns),
        peak_mb=int(peak[1]) * 1024 / 1e6,
    )  # fmt: skip


def _record(store: Store, page_ids: Sequence[int], checked: dict[int, int], now: float) -> None:
    """Write down checks of these pages, as `check` does; three in ten found a change."""
    chance = random.Random(now)
    found = []
    for page in page_ids:
        checked[page] = checked.get(page, _CHECKED) + 1
        found.append((page, checked[page], now, "changed" if chance.random() < 0.3 else "unchanged"))
    with store.write() as connection:
        connection.exec_driver_sql(_CHECK, found)
        connection.exec_driver_sql(_STAND, [(sequence, at, verdict, page) for page, sequence, at, verdict in found])


if __name__ == "__main__":
    print(json.dumps(asdict(_measured(sys.argv[1]))))
