"""Web server logs in common and combined format: which pages visitors looked at, and for how long."""

from __future__ import annotations

import re
from array import array
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from driftline.errors import BadSetting, BadURL, UsageError
from driftline.model.visit import Visit
from driftline.urls.canonical import written
from driftline.visits.import_tally import LONGEST_STAY, ImportTally, VisitKeys, web_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_QUOTED = r'"([^"\\]*(?:\\.[^"\\]*)*)"'
LINE = re.compile(rf"(\S+) \S+ [^\[]*\[([^\]]+)\] {_QUOTED} (\d{{3}}) (?:\d+|-)(?: {_QUOTED} {_QUOTED})?")

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), start=1
    )
}
_TIME = re.compile(r"(\d{1,2})/([A-Z][a-z]{2})/(\d{4}):(\d{2}):(\d{2}):(\d{2})(?: ([+-])(\d{2})(\d{2}))?")
_ASSET = re.compile(
    r".\.(avif|bmp|css|cur|eot|gif|ico|jpe?g|m?js|m4a|map|mov|mp[34]|ogg|otf|png|svg|tiff?|ttf|wasm|wav|web[mp]|"
    r"webmanifest|woff2?)$",
    re.IGNORECASE,
)
_NO_PAGES = frozenset({"/robots.txt"})
# phones by CUBOT are not bots
_BOTS = re.compile(
    r"(?<!cu)bot|crawl|spider|slurp|archive|scan|monitor|uptime|preview|fetch|headless|lighthouse|pingdom|externalhit|"
    r"censys|zgrab|curl/|wget/|python|go-http|java/|okhttp|libwww|httpclient|axios|feed|driftline/",
    re.IGNORECASE,
)


class _Request(NamedTuple):
    """A request of a visitor for a page."""

    number: int
    visitor: str
    at: float
    target: str
    status: int
    looks: str


def read_log(lines: Callable[[], Iterable[tuple[int, str]]], site: str | None, tally: ImportTally) -> Iterator[Visit]:
    """Yield the visits of a log, in its order; UsageError if the log does not name the site and `site` is None.

    `lines` returns the numbered lines from the start each time: the log is read once to learn when each visitor moved
    on, and once more for the visits, so that a log of any length takes little memory.
    """
    origin = None if site is None else _origin(site)
    stays = _stays(_requests(lines(), ImportTally()))
    tally.total = len(stays)
    return _visits(_requests(lines(), tally), stays, origin, tally)


def _visits(
    requests: Iterable[_Request], stays: array[float], origin: str | None, tally: ImportTally
) -> Iterator[Visit]:
    keys = VisitKeys("log")
    for place, request in enumerate(requests):
        if place == len(stays):
            return  # the log grew meanwhile: the new lines are left to the next import
        address = request.target
        if address.startswith("/"):
            if origin is None:
                raise UsageError("A server log does not name its site: add --site https://example.org.")
            address = origin + address
        try:
            url = web_address(address, tally.tracking)
        except BadURL as error:
            tally.reject(request.number, str(error))
            continue
        if url is None:
            tally.skipped += 1
            continue
        key = keys.key(f"{origin} {request.looks}".encode(), request.at)
        yield Visit(url, request.at, stays[place], available=request.status < 400, key=key)


def _stays(requests: Iterable[_Request]) -> array[float]:
    """Return how long each page was looked at: until the same visitor's next request, 0 for the last one."""
    stays = array("d")
    latest: dict[str, tuple[int, float]] = {}
    for place, request in enumerate(requests):
        before = latest.get(request.visitor)
        if before is not None:
            stays[before[0]] = min(max(request.at - before[1], 0.0), LONGEST_STAY)
        latest[request.visitor] = (place, request.at)
        stays.append(0.0)
    return stays


def _requests(lines: Iterable[tuple[int, str]], tally: ImportTally) -> Iterator[_Request]:
    """Yield the requests of people for pages: no assets, no bots, no redirects (their target is requested next)."""
    for number, line in lines:
        if not line or line.isspace():
            continue
        found = LINE.match(line)
        at = None if found is None else _moment(found[2])
        if found is None or at is None:
            tally.reject(number, "it is not in common or combined log format.")
            continue
        host, when, request, code, _, agent = found.groups()
        status = int(code)
        target = _page(request)
        redirects = 300 <= status < 400 and status != 304
        if target is None or redirects or status < 200 or (agent and _is_bot(agent)):
            tally.skipped += 1
            continue
        # without the agent: a line that is still being written may be cut off there
        yield _Request(number, f"{host} {agent or ''}", at, target, status, f"{host} {when} {request} {code}")


def _page(request: str) -> str | None:
    """Return the target of a request line if that may be a page, else None."""
    method, _, target = request.partition(" ")
    target = target.partition(" ")[0]
    if method != "GET" or not target.startswith(("/", "http://", "https://")):
        return None
    path = target.partition("?")[0]
    return None if path in _NO_PAGES or _ASSET.search(path) else target


@lru_cache(4_096)
def _is_bot(agent: str) -> bool:
    return _BOTS.search(agent) is not None


@lru_cache(4_096)
def _moment(text: str) -> float | None:
    parts = _TIME.fullmatch(text)
    if parts is None or parts[2] not in _MONTHS:
        return None
    day, year, hour, minute, second = (int(parts[place]) for place in (1, 3, 4, 5, 6))
    offset = timedelta()
    if parts[7]:
        offset = timedelta(hours=int(parts[8]), minutes=int(parts[9])) * (-1 if parts[7] == "-" else 1)
    try:
        return (datetime(year, _MONTHS[parts[2]], day, hour, minute, second, tzinfo=UTC) - offset).timestamp()
    except ValueError:
        return None


def _origin(site: str) -> str:
    address = written(site)
    origin, _, path = address.rpartition("/")
    if path or origin.count("/") != 2:
        raise BadSetting(
            f"--site names the site of the log, such as https://example.org, and not a page: got '{site}'."
        )
    return origin
