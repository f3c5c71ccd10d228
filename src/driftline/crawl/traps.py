"""Detection of crawler traps such as endless calendars, by the form of an address and by pages at similar ones.

Each rule has a name, and the report of a crawl counts the addresses that it held back, so that mistakes are seen.
"""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict

from driftline.model.page import SkipReason
from driftline.urls import without_password

_LONGEST = 1_024  # characters of an address
_DEEPEST = 16  # segments of a path
_REPEATS = 3  # times that a segment, or twice that several in a row, may stand in a path
_PARAMETERS = 10  # of one address
_SETS = 24  # of names of parameters with one path
_MOST_PATHS = 100_000  # whose parameters are remembered
_AHEAD, _EARLIEST = 2, 1990  # years that calendars are followed to
_SAME, _NEAR, _MONTHS = 25, 60, 12  # pages of one shape in a row that say nothing new, before no more are fetched
_SAME_IN_FOLDER = 100  # the same for copies in one folder, however they are called there
_LOG = logging.getLogger(__name__)
_NUMBER = re.compile(r"\d+")
_OPAQUE = re.compile(r"(?=[0-9a-z_-]*\d)(?=[0-9a-z_-]*[a-z])[0-9a-z_-]{16,}", re.IGNORECASE)
_DATE = re.compile(r"(?<!\d)([12]\d{3})[-/_.](?:0?[1-9]|1[0-2])(?:[-/_.](?:0?[1-9]|[12]\d|3[01]))?(?!\d)")
# numbers of other things look like dates too: without one of these words they are no calendar
_CALENDAR = re.compile(
    r"calend|kalend|event|agenda|archiv|schedul|termin|date|day|month|week|monat|mois", re.IGNORECASE
)
_YEAR = re.compile(r"[?&](?:y|year|jahr|annee)=(\d{1,9})(?=&|$)", re.IGNORECASE)
_MONTH = re.compile(r"[?&](?:m|month|monat|mois|week|day)=\d", re.IGNORECASE)


class Traps:
    """Judges addresses, and learns from the pages that were fetched. `year` is the present one."""

    def __init__(self, year: int) -> None:
        self._year = year
        self._sets: dict[str, set[str]] = defaultdict(set)
        self._in_a_row: Counter[str] = Counter()
        self._closed: set[str] = set()

    def __repr__(self) -> str:
        return f"<Traps year={self._year} watched={len(self._in_a_row)} closed={len(self._closed)}>"

    def why(self, url: str) -> SkipReason | None:
        """Return which trap this address looks like; None if it looks like none."""
        if len(url) > _LONGEST:
            return SkipReason.TRAP_LONG
        before, _, query = url.partition("?")
        path = before[before.find("/", 8) :]
        segments = [one for one in path.split("/") if one]
        if len(segments) > _DEEPEST:
            return SkipReason.TRAP_DEEP
        if _repeats(segments):
            return SkipReason.TRAP_REPEATING
        year = _year_of(url)
        if year is not None and not _EARLIEST <= year <= self._year + _AHEAD:
            return SkipReason.TRAP_CALENDAR
        if query and self._combines(before, query):
            return SkipReason.TRAP_PARAMETERS
        return SkipReason.TRAP_ALIKE if self.closed(url) else None

    def learn(self, url: str, *, same: bool, near: bool) -> None:
        """Learn from a page that was fetched: its text is that of another one, nearly that, or its own."""
        shape, folder = shape_of(url), _folder_of(url)
        calendar = _is_calendar(url)
        if same:
            self._in_a_row[folder] += 1
            if self._in_a_row[folder] >= _SAME_IN_FOLDER:
                self._close(folder)
        else:
            self._in_a_row.pop(folder, None)
        if not same and not near:
            self._in_a_row.pop(shape, None)
            return
        if near and not calendar and "&" not in url:
            return  # pages with few words of their own, as tables of figures, are pages all the same
        self._in_a_row[shape] += 1
        enough = _MONTHS if calendar else _SAME if same else _NEAR
        if self._in_a_row[shape] >= enough:
            self._close(shape)

    def _close(self, alike: str) -> None:
        """Skip from now on what is at addresses of this shape, or in this folder."""
        if alike not in self._closed:
            self._closed.add(alike)
            url = without_password(alike)
            _LOG.info("trap: pages such as %s say the same, and are skipped from now on", url, extra={"url": url})

    def closed(self, url: str) -> bool:
        """Return whether so many pages like this one had the same text that it is not to be fetched."""
        return bool(self._closed) and (shape_of(url) in self._closed or _folder_of(url) in self._closed)

    def _combines(self, page: str, query: str) -> bool:
        names = [one.partition("=")[0] for one in query.split("&")]
        if len(names) > _PARAMETERS:
            return True
        if len(names) < 2:
            return False
        if len(self._sets) >= _MOST_PATHS:
            self._sets.clear()
        known = self._sets[page]
        names_of = "&".join(sorted(names))
        if names_of in known:
            return False
        if len(known) >= _SETS:
            return True
        known.add(names_of)
        return False


def shape_of(url: str) -> str:
    """Return an address with placeholders for numbers and opaque parts, and only the names of its parameters."""
    before, _, query = url.partition("?")
    start = before.find("/", 8)
    path = _NUMBER.sub("0", _OPAQUE.sub("*", before[start:]))
    names = "&".join(sorted({one.partition("=")[0] for one in query.split("&")})) if query else ""
    return f"{before[:start]}{path}?{names}"


def _folder_of(url: str) -> str:
    """Return the folder of a page, written as no shape is."""
    return f"{url.partition('?')[0].rpartition('/')[0]}/…"


def _repeats(segments: list[str]) -> bool:
    """Return whether a segment occurs too often, or a sequence of several occurs twice in a row."""
    if len(segments) < _REPEATS:
        return False
    counts = Counter(segments)
    if any(many >= _REPEATS and not one.isdigit() for one, many in counts.items()):
        return True
    for length in range(2, len(segments) // 2 + 1):
        for start in range(len(segments) - 2 * length + 1):
            run = segments[start : start + length]
            if run == segments[start + length : start + 2 * length] and not all(one.isdigit() for one in run):
                return True
    return False


def _year_of(url: str) -> int | None:
    """Return the year of a calendar at this address; None if it does not look like one."""
    start = url.find("/", 8)
    if not _CALENDAR.search(url, start):
        return None
    found = _DATE.search(url, start)
    if found is None and _MONTH.search(url):
        found = _YEAR.search(url)
    return None if found is None else int(found[1])


def _is_calendar(url: str) -> bool:
    return _DATE.search(url) is not None or (_MONTH.search(url) is not None and _YEAR.search(url) is not None)
