"""Importing the visits of a file, each once, however often the file is imported."""

from __future__ import annotations

import gzip
import io
import logging
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from stat import S_ISREG
from typing import TYPE_CHECKING, BinaryIO, cast

from driftline.errors import DriftlineError, UsageError
from driftline.urls.tracking import KNOWN
from driftline.visits import browser_history, server_logs, visit_csv
from driftline.visits.import_tally import LONGEST_LINE, ImportTally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from driftline.model.visit import Visit
    from driftline.store.visit_records import Visits
    from driftline.urls.tracking import Tracking
    from driftline.visits.import_tally import UnreadableRow

_LOG = logging.getLogger(__name__)

_AT_ONCE = 5_000
_CHUNK = 65_536
_LOOKED_AT = 20  # lines: a log may begin with some that are broken
_SQLITE = b"SQLite format 3\0"
_GZIP = b"\x1f\x8b"


class VisitFormat(StrEnum):
    """The formats that can be imported; Edge and other Chromium browsers have that of Chrome."""

    CHROME = "chrome"
    FIREFOX = "firefox"
    LOG = "log"
    CSV = "csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedVisits:
    """The result of an import: `visits` were counted, `known` had been counted before."""

    format: VisitFormat
    visits: int
    known: int
    skipped: int
    bad: int
    problems: tuple[UnreadableRow, ...]
    pages: int
    added: int


def import_visits(
    visits: Visits, path: Path, *, now: float, names: Callable[[Iterable[str]], dict[str, str]],
    tracking: Tracking = KNOWN, called: str | None = None,
    format: VisitFormat | None = None, site: str | None = None,  # noqa: A002 as the option is called
    watch: Callable[[Iterable[str]], list[str]] | None = None, progress: Callable[[int, int], None] | None = None,
) -> ImportedVisits:  # fmt: skip
    """Count the visits of a file that were never counted, and return the result.

    A few thousand visits are counted in each transaction: an import that was interrupted continues where it was when it
    is repeated. `names` returns the page of each address, as `Catalog.names` does with this `tracking`. `called` is
    what the file is called in errors, if not its path. `watch` is called with the pages that were available at least
    once, `progress` with how many of how many visits are done.
    """
    tally = ImportTally(tracking=tracking)
    counted = done = 0
    seen: set[str] = set()
    offered: set[str] = set()
    added = 0
    name = called or str(path)
    with _opened(path, name, format, site, now, tally) as (found, rows):
        _LOG.info("import of visits started", extra={"file": name, "format": found.value})
        while batch := _named(islice(rows, _AT_ONCE), names):
            counted += visits.record_once(batch)
            done += len(batch)
            seen.update(visit.url for visit in batch)
            if watch is not None:
                fresh = dict.fromkeys(visit.url for visit in batch if visit.available and visit.url not in offered)
                added += len(watch(fresh)) if fresh else 0
                offered.update(fresh)
            if progress is not None and tally.total is not None:
                progress(done, max(done, tally.total))
    figures = {"visits": counted, "known": done - counted, "skipped": tally.skipped, "bad": tally.bad}
    _LOG.info("import of visits ended", extra={"file": name, **figures})
    return ImportedVisits(
        format=found, visits=counted, known=done - counted, skipped=tally.skipped, bad=tally.bad,
        problems=tuple(tally.problems), pages=len(seen), added=added,
    )  # fmt: skip


def _named(visits: Iterable[Visit], names: Callable[[Iterable[str]], dict[str, str]]) -> list[Visit]:
    found = list(visits)
    named = names({visit.url for visit in found})
    return [visit if named[visit.url] == visit.url else visit._replace(url=named[visit.url]) for visit in found]


def require_file(path: Path, name: str) -> None:
    """Raise an error with the reason unless this is a file that can be read."""
    try:
        if not S_ISREG(path.stat().st_mode):
            raise UsageError(f"{name} is not a file: save what it holds as one, because it is read more than once.")
        path.open("rb").close()
    except OSError as error:
        raise DriftlineError(_unreadable(name, error)) from None


def _unreadable(name: str, error: OSError) -> str:
    return f"{name} cannot be read: {error.strerror or error}."


@contextmanager
def _opened(
    path: Path, name: str, given: VisitFormat | None, site: str | None, now: float, tally: ImportTally
) -> Iterator[tuple[VisitFormat, Iterator[Visit]]]:
    """Open a file for a `with` block: its format and its visits."""
    require_file(path, name)
    try:
        with path.open("rb") as stream:
            start = stream.read(len(_SQLITE))
        if start == _SQLITE:
            with browser_history.copied(path, name) as connection:
                browser = _browser(browser_history.tables(connection), name, given)
                read = browser_history.read_chrome if browser is VisitFormat.CHROME else browser_history.read_firefox
                yield browser, read(connection, tally)
            return
        found = given or _text_format(path, name)
        if found is VisitFormat.LOG:
            yield found, server_logs.read_log(lambda: enumerate(_lines(path), start=1), site, tally)
        elif found is VisitFormat.CSV:
            yield found, visit_csv.read_sheet(_lines(path), now, tally)
        else:
            raise UsageError(f"{name} is not the history database of a browser.")
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DriftlineError(f"{name} is damaged ({error}): import it again when it is whole.") from None
    except OSError as error:
        raise DriftlineError(_unreadable(name, error)) from None


def _browser(tables: set[str], name: str, given: VisitFormat | None) -> VisitFormat:
    for found, needed in (
        (VisitFormat.CHROME, browser_history.CHROME_TABLES),
        (VisitFormat.FIREFOX, browser_history.FIREFOX_TABLES),
    ):
        if needed <= tables and given in (None, found):
            return found
    raise UsageError(f"{name} is a database, but not the history of {given or 'Chrome, Edge or Firefox'}.")


def _text_format(path: Path, name: str) -> VisitFormat:
    first = list(islice((line for line in _lines(path) if line.strip()), _LOOKED_AT))
    if any(server_logs.LINE.match(line) for line in first):
        return VisitFormat.LOG
    if first and visit_csv.is_heading(first[0]):
        return VisitFormat.CSV
    raise UsageError(
        f"{name} is not the history of a browser, a server log or a table with a column 'url': give its --format."
    )


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file, gzip-compressed or not; only the start of lines that are too long."""
    with path.open("rb") as stream:
        packed = stream.peek(2)[:2] == _GZIP
        # a gzip file object has all the methods of a binary stream that are used here
        source = io.BufferedReader(cast("io.RawIOBase", gzip.GzipFile(fileobj=stream))) if packed else stream
        yield from _split(source)


def _split(source: BinaryIO | io.BufferedReader) -> Iterator[str]:
    """Yield the lines, whatever their ends; of one that is too long, a little more than the limit."""
    pending = b""
    while chunk := source.read(_CHUNK):
        # the last line may continue in the next chunk, which may begin with the second half of a line end
        *lines, pending = (pending + chunk).splitlines(keepends=True)
        for line in lines:
            yield _decoded(line)
        content = pending.rstrip(b"\r\n")
        pending = content[: LONGEST_LINE + 1] + pending[len(content) :]
    if pending:
        yield _decoded(pending)


def _decoded(line: bytes) -> str:
    return line[: LONGEST_LINE + 1].decode("utf-8", "replace")
