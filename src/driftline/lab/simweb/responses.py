"""The responses of the simulated web: joined from parts that are compressed already, and then cached."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from typing import TYPE_CHECKING, NamedTuple

from driftline.lab.simweb import pages_markup

if TYPE_CHECKING:
    from driftline.lab.simweb.world import ServerFailure, World

REMEMBERED_PAGES = 100_000
"""How many ready answers are kept: some 300 MB when all are there."""

_FIRST_DAY = 1_704_067_200  # 2024-01-01, when generation 0 was written
_GENERATION_SECONDS = 3600
_REASONS = {200: "OK", 304: "Not Modified", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}
_REASONS |= {421: "Misdirected Request", 500: "Internal Server Error"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Remembered:
    """A response in parts. Most of them belong to the pool, so that caching a page takes some 3 kB."""

    head: bytes
    packed: pages_markup.Packed
    ending: bytes


class PageRequest(NamedTuple):
    """One request for a page, as it was when it arrived. `head` is in lower case."""

    page: int
    generation: int
    attempt: int
    head: bytes
    gzip: bool


def response_head(status: int, headers: str, length: int | None) -> bytes:
    """Return the head of a response, without a length where there can be no body."""
    size = "" if length is None else f"Content-Length: {length}\r\n"
    return f"HTTP/1.1 {status} {_REASONS[status]}\r\nServer: driftline-lab\r\n{headers}{size}\r\n".encode()


def response(status: int, headers: str = "", body: bytes = b"") -> bytes:
    return response_head(status, headers, len(body)) + body


class Answers:
    """Turns requests for pages into bytes, and caches what will be requested again.

    Answers carry no Date, so that a response without noise is equal bytes each time.
    """

    def __init__(self, world: World, *, remembered: int = REMEMBERED_PAGES) -> None:
        self.world = world
        self._limit = remembered
        self._remembered: OrderedDict[tuple[int, int, bool], Remembered] = OrderedDict()
        self._generation = -1
        self._revisions: dict[int, int] = {}

    def failure(self, request: PageRequest) -> ServerFailure | None:
        return self.world.failure(request.page, request.generation) if self.world.error_rate else None

    def answer(self, request: PageRequest) -> bytes:
        revision = self._revision(request.page, request.generation)
        if b"\r\nif-" in request.head and self._is_unmodified(request, revision):
            return response_head(304, self._validators(request, revision), None)
        ready = self._ready(request, revision)
        if self.world.noise != "off":
            ready = self._prepare(request, revision, ready.packed)
        return b"".join((ready.head, *ready.packed.parts, ready.ending)) if request.head[:1] == b"g" else ready.head

    def prepare_all(self, generation: int) -> int:
        """Cache the compressed responses of as many pages as fit, and return how many."""
        count = min(self.world.pages, self._limit)
        for page in range(count):
            self._ready(PageRequest(page, generation, 0, b"get", True), self._revision(page, generation))
        return count

    def failed(self, failure: ServerFailure, request: PageRequest) -> bytes:
        """Return the response of a failing page; after one that is cut short, the connection must be closed."""
        kind = "Content-Type: text/html; charset=utf-8\r\n"
        if failure == "server_error":
            found = response(500, kind, b"<h1>Something went wrong on our side</h1>")
        elif failure == "not_found":
            found = response(404, kind, b"<h1>This page does not exist</h1>")
        else:
            found = self.answer(request._replace(head=b"get"))
            found = found[: len(found) // 2]
        return found if request.head[:1] == b"g" else found[: found.index(b"\r\n\r\n") + 4]

    def _revision(self, page: int, generation: int) -> int:
        if generation != self._generation:
            self._generation = generation
            self._revisions.clear()
        found = self._revisions.get(page)
        if found is None:
            found = self._revisions[page] = self.world.revision(page, generation)
        return found

    def _ready(self, request: PageRequest, revision: int) -> Remembered:
        key = (request.page, revision, request.gzip)
        ready = self._remembered.get(key)
        if ready is not None:
            self._remembered.move_to_end(key)
            return ready
        packed = pages_markup.pack(self.world.pieces(request.page, revision), gzip=request.gzip)
        ready = self._remembered[key] = self._prepare(request, revision, packed)
        if len(self._remembered) > self._limit:
            self._remembered.popitem(last=False)
        return ready

    def _prepare(self, request: PageRequest, revision: int, packed: pages_markup.Packed) -> Remembered:
        """Return the response to one request. It costs only its noise, because the other parts are cached."""
        ending = pages_markup.ending(packed, self.world.tail(request.page, request.generation, request.attempt))
        headers = "Content-Type: text/html; charset=utf-8\r\nVary: Accept-Encoding\r\n"
        if request.gzip:
            headers += "Content-Encoding: gzip\r\n"
        headers += self._validators(request, revision)
        head = response_head(200, headers, packed.length + len(ending))
        return Remembered(head=head, packed=packed, ending=ending)

    def _validators(self, request: PageRequest, revision: int) -> str:
        headers = f"ETag: {self._etag(request, revision)}\r\n" if self.world.etag else ""
        if self.world.last_modified:
            headers += f"Last-Modified: {formatdate(self._modified(request), usegmt=True)}\r\n"
        return headers

    def _etag(self, request: PageRequest, revision: int) -> str:
        """Return a strong ETag: with noise, no two responses share one."""
        fresh = f"-{request.generation}-{request.attempt}" if self.world.noise != "off" else ""
        return f'"{request.page}-{revision}{fresh}{"-gzip" if request.gzip else ""}"'

    def _modified(self, request: PageRequest) -> int:
        changed = self.world.changed_at(request.page, request.generation)
        return _FIRST_DAY + changed * _GENERATION_SECONDS

    def _is_unmodified(self, request: PageRequest, revision: int) -> bool:
        tags = header(request.head, b"if-none-match")
        if tags is not None:
            # With If-None-Match, If-Modified-Since is ignored (RFC 9110, 13.1.3).
            return self.world.etag and (tags == b"*" or self._etag(request, revision).encode() in tags)
        since = header(request.head, b"if-modified-since")
        if since is None or not self.world.last_modified:
            return False
        try:
            return self._modified(request) <= parsedate_to_datetime(since.decode("latin-1")).timestamp()
        except ValueError:
            return False


def header(lower_head: bytes, name: bytes) -> bytes | None:
    """Return the value of a header in a lower-cased request head."""
    _, found, rest = lower_head.partition(b"\r\n" + name + b":")
    return rest.partition(b"\r\n")[0].strip() if found else None
