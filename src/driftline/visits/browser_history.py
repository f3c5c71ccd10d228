"""The history databases of Chrome, Edge and other Chromium browsers, and of Firefox.

They are read from a copy, so that the browser never waits: SQLite would lock the file that it reads.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from driftline.errors import BadURL, DriftlineError
from driftline.model.visit import Visit
from driftline.visits.import_tally import LONGEST_STAY, VisitKeys, web_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from driftline.visits.import_tally import ImportTally

CHROME_TABLES = frozenset({"urls", "visits"})
FIREFOX_TABLES = frozenset({"moz_places", "moz_historyvisits"})

_MICRO = 1_000_000
_FROM_1601_TO_1970 = 11_644_473_600
_TRIES = 3
# what SQLite has not written into the database file yet is in one of these beside it
_BESIDE = ("", "-wal", "-journal")

# left out are frames within a page (3 and 4), and addresses that only redirected: a chain of redirects begins at one,
# or goes through it, and ends elsewhere
_CHROME_VISITS = """
FROM visits JOIN urls ON urls.id = visits.url
WHERE (transition & 0xFF) NOT IN (3, 4)
  AND NOT ((transition & 0xD0000000) != 0 AND (transition & 0x20000000) = 0)
"""
_CHROME = f"""
SELECT visits.id, urls.url, visits.visit_time, visits.visit_duration
{_CHROME_VISITS}
ORDER BY visits.visit_time, visits.id
"""

# left out are embedded contents (4), downloads (7), frames (8), and addresses that only redirected (5 and 6 are where
# these led to)
_FIREFOX_VISITS = """
FROM moz_historyvisits AS v JOIN moz_places AS p ON p.id = v.place_id
WHERE v.visit_type NOT IN (4, 7, 8)
  AND v.id NOT IN (SELECT from_visit FROM moz_historyvisits WHERE visit_type IN (5, 6) AND from_visit IS NOT NULL)
"""
_NO_VIEWS = "SELECT NULL AS visit, NULL AS milliseconds WHERE 0"
# Firefox stores apart from the visit how long a page was looked at, in milliseconds; it may begin to count a moment
# before the time of the visit
_VIEWS = """
SELECT (SELECT id FROM moz_historyvisits WHERE place_id = m.place_id AND visit_date <= (m.created_at + 5000) * 1000
        ORDER BY visit_date DESC LIMIT 1) AS visit, sum(m.total_view_time) AS milliseconds
FROM moz_places_metadata AS m GROUP BY visit
"""
_FIREFOX = """
WITH views AS ({views})
SELECT v.id, p.url, v.visit_date,
       coalesce(views.milliseconds * 1000, lead(v.visit_date) OVER (ORDER BY v.visit_date, v.id) - v.visit_date, 0)
{visits}
ORDER BY v.visit_date, v.id
"""


@contextmanager
def copied(path: Path, name: str) -> Iterator[sqlite3.Connection]:
    """Open a copy of a database that another program may be writing to, for a `with` block.

    `name` is what the file is called in errors.
    """
    with tempfile.TemporaryDirectory(prefix="driftline-") as folder:
        for _ in range(_TRIES):
            before = _state(path)
            for suffix in _BESIDE:
                copy = Path(folder) / f"history{suffix}"
                copy.unlink(missing_ok=True)
                try:
                    shutil.copyfile(f"{path}{suffix}", copy)
                except FileNotFoundError:
                    if not suffix:
                        raise
            whole = _state(path) == before
            if whole:
                break
        with closing(sqlite3.connect(Path(folder) / "history")) as connection:
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            try:
                yield connection
            except sqlite3.Error as error:
                raise DriftlineError(_trouble(name, error, whole=whole)) from None


def _trouble(name: str, error: sqlite3.Error, *, whole: bool) -> str:
    """Return a sentence about a copy that SQLite cannot read, and what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the last byte is the basic code
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        if not whole:
            return f"{name} was written to while it was copied ({error}): close the browser and try again."
        return f"{name} is damaged ({error}): import another copy of it, from a backup or another profile."
    if code == sqlite3.SQLITE_ERROR:
        return f"{name} has not the columns of a known browser history ({error}): export it as CSV and import that."
    return f"The copy of {name} that is read cannot be used ({error}): make sure that there is room in TMPDIR."


def tables(connection: sqlite3.Connection) -> set[str]:
    """Return the names of the tables of a database."""
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def read_chrome(connection: sqlite3.Connection, tally: ImportTally) -> Iterator[Visit]:
    """Yield the visits of a Chromium browser in order, with the seconds that it counted, up to a limit."""
    tally.total = _count(connection, _CHROME_VISITS)
    tally.skipped += _count(connection, "FROM visits") - tally.total
    return _visits("chrome", connection.execute(_CHROME), _FROM_1601_TO_1970, tally)


def read_firefox(connection: sqlite3.Connection, tally: ImportTally) -> Iterator[Visit]:
    """Yield the visits of Firefox in order, with the seconds that it counted, else those until the next visit."""
    has_views = "moz_places_metadata" in tables(connection)
    query = _FIREFOX.format(views=_VIEWS if has_views else _NO_VIEWS, visits=_with_views(_FIREFOX_VISITS))
    tally.total = _count(connection, _FIREFOX_VISITS)
    tally.skipped += _count(connection, "FROM moz_historyvisits") - tally.total
    return _visits("firefox", connection.execute(query), 0, tally)


def _visits(kind: str, rows: Iterator[tuple[object, ...]], epoch: int, tally: ImportTally) -> Iterator[Visit]:
    keys = VisitKeys(kind)
    for number, address, moment, duration in rows:
        assert isinstance(number, int)
        if not isinstance(address, str):
            tally.reject(number, "it has no address.")
            continue
        if not isinstance(moment, int) or moment <= epoch * _MICRO:
            tally.reject(number, "it has no time.")
            continue
        try:
            url = web_address(address, tally.tracking)
        except BadURL as error:
            tally.reject(number, str(error))
            continue
        if url is None:
            tally.skipped += 1
            continue
        at = moment / _MICRO - epoch
        seconds = duration / _MICRO if isinstance(duration, int) else 0.0
        key = keys.key(f"{moment} {url}".encode(), at)
        yield Visit(url, at, min(max(seconds, 0.0), LONGEST_STAY), available=True, key=key)


def _with_views(visits: str) -> str:
    return visits.replace("\nWHERE", "\nLEFT JOIN views ON views.visit = v.id\nWHERE", 1)


def _count(connection: sqlite3.Connection, source: str) -> int:
    (found,) = connection.execute(f"SELECT count(*) {source}").fetchone()
    return int(found)


def _state(path: Path) -> list[tuple[int, int] | None]:
    """Return times and sizes that differ after the browser wrote."""
    found: list[tuple[int, int] | None] = []
    for suffix in _BESIDE:
        try:
            status = Path(f"{path}{suffix}").stat()
        except FileNotFoundError:
            found.append(None)
        else:
            found.append((status.st_mtime_ns, status.st_size))
    return found
