"""`lab scale`: how long each command takes, and how much memory, on stores of a thousand to a million pages.

A store is filled by plain SQL with what checks would have left behind: small pages that were all checked once, a tenth
of them twice. Every command then runs in a process of its own, as a user would run it.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driftline.detection.extract.document import Extraction
from driftline.detection.extract.filters import how_read
from driftline.lab.bench.local_watch_lists import LabError
from driftline.store.blobs import digest, fingerprint, pack
from driftline.store.engine import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from driftline.model.outcome import Blob

SIZES = (1_000, 10_000, 100_000, 1_000_000)
LONGEST = 900.0  # seconds that one command may take

_PAGES_PER_HOST = 20
_CHANGED_EVERY = 10  # one page in so many has a second version, and a tag
_VISITED_EVERY = 5
_SERVED = 4  # pages that are on the server of the lab; the others are never fetched
_PORTION = 5_000  # pages that are filled in at a time
_TAG = "news"
_SERVED_TAG = "served"
_BLOCKED_HOSTS = 10_000
_FIRST_VISIT = 1_780_000_000
_CONTENT_TYPE = "text/html; charset=utf-8"
_HEADERS = (
    b"HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sat, 04 Jul 2026 12:00:00 GMT\r\nContent-Type: text/html; charset=utf-8"
    b'\r\nContent-Length: 211\r\nLast-Modified: Fri, 03 Jul 2026 08:00:00 GMT\r\nETag: "6866-d3"\r\n\r\n'
)
_BODY = (
    "<!doctype html><html><head><title>Page {number:08}</title></head><body><h1>Page {number:08}</h1><p>What stands on "
    "page {number:08} is a {what} sentence of some words, so that no two pages are all alike.</p></body></html>\n"
)
_MARK = 87_654_321  # a number that stands nowhere else in a page
_QUICK = ("PRAGMA synchronous=OFF", "PRAGMA journal_mode=OFF", "PRAGMA cache_size=-200000", "PRAGMA foreign_keys=OFF")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRow:
    """A command on a store of so many pages: the seconds it took, those of them on a core, its peak memory, its status.

    `seconds` is None if it did not end in time.
    """

    command: str
    pages: int
    seconds: float | None
    cpu_s: float
    peak_mb: float
    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command as a user gives it. `shown` is what the table calls it.

    It is run on the store that was filled, unless it has an `other` one, by that name, which is empty at first.
    """

    shown: str
    arguments: tuple[str, ...]
    other: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """What is imported: as many addresses, and as many visits, as the store has pages, and a list of hosts."""

    addresses: Path
    visits: Path
    hosts: Path

    @classmethod
    def write(cls, folder: Path, pages: int) -> Files:
        """Write them to a folder line by line: the memory of this process is counted with that of its children."""
        found = cls(addresses=folder / "addresses.txt", visits=folder / "visits.csv", hosts=folder / "hosts.txt")
        with found.addresses.open("w") as addresses, found.visits.open("w") as visits:
            visits.write("url,seconds,at\n")
            for number in range(pages):
                url = f"https://import{number // _PAGES_PER_HOST}.example/{number}"
                addresses.write(f"{url}\n")
                visits.write(f"{url},{number % 60},{_FIRST_VISIT + number}\n")
        found.hosts.write_text("".join(f"0.0.0.0 unsafe{number}.example\n" for number in range(_BLOCKED_HOSTS)))
        return found


def measure(sizes: Sequence[int], only: Sequence[str] = (), folder: Path | None = None) -> Iterator[ScaleRow]:
    """Measure the commands whose names begin like one of `only`, or all, on stores of these sizes, row by row.

    Stores are made in `folder`, if one is given, and stay there.
    """
    with tempfile.TemporaryDirectory(prefix="driftline-scale-") as scratch, _server() as port:
        for pages in sizes:
            path = (folder or Path(scratch)) / f"{pages}.db"
            if path.exists():
                raise LabError(f"'{path}' exists already: give another folder, or remove it.")
            # in a process of its own too, for the same reason as in `Files.write`
            build = [sys.executable, "-m", "driftline.lab.bench.scale_bench", str(path), str(pages), str(port)]
            yield _run("(building the store)", build, pages, Path(scratch), path)
            for one in commands(port, pages, Files.write(Path(scratch), pages)):
                if not only or any(one.shown.startswith(name) for name in only):
                    store = path if one.other is None else Path(scratch) / f"{one.other}-{pages}.db"
                    command = [sys.executable, "-m", "driftline", *one.arguments]
                    yield _run(one.shown, command, pages, Path(scratch), store)
            if folder is None:
                for file in Path(scratch).glob("*.db*"):
                    file.unlink()


def commands(port: int, pages: int, files: Files) -> list[Command]:
    """Return the commands to measure, in order: the first schedule and the first search process all checks before them.

    Every command is here that uses a store, but for `run`, which goes on, and a `check` of all pages, which is a matter
    of the network: `lab speed` measures it.
    """
    page, other, third = address(10, port), address(1, port), address(2, port)
    new, other_new, site = (f"http://127.0.0.1:{port}/{path}" for path in ("new", "other-new", "site/"))
    polite = ("--host-delay", "0", "--robots", "ignore", "--allow-network", "127.0.0.0/8")
    hosts, addresses, visits = str(files.hosts), str(files.addresses), str(files.visits)
    lines = [
        ("schedule, first", ("schedule",)),
        ("schedule, again", ("schedule",)),
        ("search WORD, first", ("search", "00000010")),
        ("add URL --later", ("add", new, "--later")),
        ("add URL", ("add", other_new, *polite)),
        ("try URL", ("try", site, *polite)),
        ("report-unsafe URL", ("report-unsafe", third)),
        ("report-unsafe --list", ("report-unsafe", "--list")),
        ("run --once, one page due", ("run", "--once", "--every", "52w", *polite)),
        ("check URL", ("check", other, *polite)),
        ("check --tag", ("check", "--tag", _SERVED_TAG, *polite)),
        ("crawl SEED, one page", ("crawl", site, *polite)),
        ("edit URL --tag", ("edit", page, "--tag", "mine")),
        ("edit URL --every", ("edit", page, "--every", "1d")),
        ("access URL", ("access", page)),
        ("access URL --header", ("access", page, "--header", "X-Lab: 1")),
        ("filters --tag --ignore", ("filters", "--tag", _TAG, "--ignore", "no such line")),
        ("access --tag --header", ("access", "--tag", _TAG, "--header", "X-Lab: 1")),
        ("visit URL", ("visit", page)),
        ("show URL", ("show", page)),
        ("screenshot URL", ("screenshot", page)),
        ("changes", ("changes",)),
        ("changes --tag", ("changes", "--tag", _TAG)),
        ("history URL", ("history", page)),
        ("values URL", ("values", page)),
        ("diff URL", ("diff", page)),
        ("feedback CHANGE", ("feedback", "10-2", "--noise")),
        ("feedback --list", ("feedback", "--list")),
        ("feedback CHANGE --forget", ("feedback", "10-2", "--forget")),
        ("report-unsafe --withdraw", ("report-unsafe", third, "--withdraw")),
        ("search WORD --page URL", ("search", "second", "--page", page)),
        ("remove URL", ("remove", "--yes", third)),
        ("list --limit 20", ("list", "--limit", "20")),
        ("list --limit 20 --offset", ("list", "--limit", "20", "--offset", str(pages - 30))),
        ("list --tag, no match", ("list", "--tag", "nowhere")),
        ("list --tag, a tenth", ("list", "--tag", _TAG)),
        ("list --state failing", ("list", "--state", "failing")),
        ("list", ("list",)),
        ("list --json", ("list", "--json")),
        ("rank --limit 20", ("rank", "--limit", "20")),
        ("rank", ("rank",)),
        ("rank --json", ("rank", "--json")),
        ("rank --by value --limit 20", ("rank", "--by", "value", "--limit", "20")),
        ("rank --by value", ("rank", "--by", "value")),
        ("blocklist add FILE", ("blocklist", "add", hosts)),
        ("blocklist list", ("blocklist", "list")),
        ("schedule with a blocklist", ("schedule",)),
        ("check URL with a blocklist", ("check", other, *polite)),
        ("blocklist update", ("blocklist", "update")),
        ("blocklist remove", ("blocklist", "remove", hosts)),
        ("doctor --quick", ("doctor", "--quick")),
        ("doctor", ("doctor",)),
        ("search WORD, again", ("search", "00000010")),
        ("search WORD --tag", ("search", "00000010", "--tag", _TAG)),
        ("search WORD, in a tenth", ("search", "second")),
        ("compact, first", ("compact",)),
        ("compact, again", ("compact",)),
        ("remove --tag, a tenth", ("remove", "--yes", "--tag", _TAG)),
    ]
    imports = [
        ("import FILE", ("import", addresses), "imported"),
        ("import FILE, again", ("import", addresses), "imported"),
        ("visits import FILE", ("visits", "import", visits), "imported"),
        ("import FILE --json", ("import", addresses, "--json"), "imported-json"),
        ("visits import FILE --add", ("visits", "import", visits, "--add"), "visited"),
    ]
    filled = [Command(shown=shown, arguments=arguments) for shown, arguments in lines]
    return filled + [Command(shown=shown, arguments=given, other=other) for shown, given, other in imports]


def address(number: int, port: int) -> str:
    """Return the address of a page, by its number from 1 on."""
    if number <= _SERVED:
        return f"http://127.0.0.1:{port}/{number}"
    return f"https://host{number // _PAGES_PER_HOST}.example/articles/page-{number}.html"


def fill(path: str, count: int, port: int) -> None:
    """Make a store of this many pages at a path."""
    Store.open(path).close()
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in _QUICK:
        connection.execute(pragma)
    connection.execute("BEGIN")
    now = time.time()
    connection.execute("INSERT INTO runs (id, scope, started_at, finished_at) VALUES (1, 'all', ?, ?)", (now, now))
    make = _Maker(port, now)
    numbers = iter(range(1, count + 1))
    while some := list(islice(numbers, _PORTION)):
        rows: dict[str, list[dict[str, Any]]] = {}
        for number in some:
            for table, row in make.rows(number):
                rows.setdefault(table, []).append(row)
        for table, values in rows.items():
            _insert(connection, table, values)
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()


class _Maker:
    """Makes the rows that checks of a page leave behind. What an extractor finds is found once, for all pages."""

    def __init__(self, port: int, now: float) -> None:
        self._port = port
        self._now = now
        self._how = how_read(None)
        self._words = {what: Extraction(_body(_MARK, what), _CONTENT_TYPE).text() for what in ("first", "second")}
        self._letters = {what: Extraction(_body(_MARK, what), _CONTENT_TYPE).letters() for what in ("first", "second")}

    def rows(self, number: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the rows of a page, each with the name of its table."""
        twice = number % _CHANGED_EVERY == 0
        url = address(number, self._port)
        checked_at = self._now - number % 600
        tags = json.dumps([_TAG] if twice else [_SERVED_TAG] if number <= _SERVED else [])
        yield "pages", {"id": number, "url": url, "tags": tags, "settings": "{}", "added_at": checked_at - 9_000}
        base: Blob | None = None
        base_data, sequence, row = b"", 0, {}
        for sequence, what in enumerate(("first", "second") if twice else ("first",), start=1):
            at = checked_at if sequence == 1 + twice else checked_at - 4_000
            body = _body(number, what)
            words = self._words[what].replace(str(_MARK), f"{number:08}").encode()
            kept = pack(body, digest(body), base, base_data)
            text = pack(words, digest(words), kept, body)
            for blob in (kept, text):
                yield "blobs", _blob_row(blob, number)
            yield "checks", {
                "page_id": number, "sequence": sequence, "run_id": 1, "at": at, "status": 200, "seconds": 0.01,
                "bytes": len(body), "verdict": "new" if sequence == 1 else "changed",
            }  # fmt: skip
            yield "versions", {
                "page_id": number, "number": sequence, "sequence": sequence, "at": at, "body": kept.digest,
                "text": text.digest, "size": len(body), "title": f"Page {number:08}", "content_type": "text/html",
                "charset": "utf-8", "final_url": url, "headers": _HEADERS, "reading": self._how,
            }  # fmt: skip
            if sequence == 2:
                yield "changes", {
                    "page_id": number, "sequence": 2, "from_version": 1, "to_version": 2, "at": at, "kind": "text",
                    "score": 0.5, "reason": "first → second", "words_added": 1, "words_removed": 1,
                    "importance": "important",
                }  # fmt: skip
            letters = digest(self._letters[what].replace(str(_MARK).encode(), f"{number:08}".encode()))
            row = {
                "page_id": number, "run_id": 1, "sequence": sequence, "version": sequence, "etag": '"6866-d3"',
                "last_modified": "Fri, 03 Jul 2026 08:00:00 GMT", "wire": fingerprint(body), "body": kept.digest,
                "letters": letters, "kept_body": kept.digest, "kept_text": text.digest, "checked_at": at,
                "changed_at": at, "verdict": "new" if sequence == 1 else "changed", "failures": 0,
                "reading": self._how, "caught_up": self._how,
            }  # fmt: skip
            base, base_data = kept, body
        yield "states", row
        if number == _CHANGED_EVERY:
            yield "screenshots", {"page_id": number, "number": 1, "data": b"\x89PNG\r\n\x1a\n"}
        if number % _VISITED_EVERY == 0:
            yield "visits", {
                "url": url, "frequency": 1 + number % 50, "weightage": float(number % 997), "ttl": 1 + number % 40,
                "first_at": checked_at - 9_000, "last_at": checked_at,
            }  # fmt: skip


def _body(number: int, what: str) -> bytes:
    return _BODY.format(number=number, what=what).encode()


def _blob_row(blob: Blob, number: int) -> dict[str, Any]:
    return {
        "page_id": number, "digest": blob.digest, "base": blob.base, "depth": blob.depth, "size": blob.size,
        "data": blob.data,
    }  # fmt: skip


def _insert(connection: sqlite3.Connection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    names = list(rows[0])
    values = ", ".join("?" * len(names))
    statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values})"  # noqa: S608 the names are ours
    connection.executemany(statement, [[*row.values()] for row in rows])


def _run(shown: str, command: Sequence[str], pages: int, folder: Path, store: Path) -> ScaleRow:
    """Run a command to its end, or until its time is up."""
    environment = {
        **os.environ, "DRIFTLINE_STORE": str(store), "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder),
        "PYTHONSAFEPATH": "1",
    }  # fmt: skip
    with (folder / "output.txt").open("wb") as output:
        started = time.perf_counter()
        child = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        late = threading.Event()

        def give_up() -> None:
            late.set()
            os.killpg(child.pid, signal.SIGKILL)

        timer = threading.Timer(LONGEST, give_up)
        timer.start()
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - started
        timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
    return ScaleRow(
        command=shown, pages=pages, seconds=None if late.is_set() else seconds, cpu_s=usage.ru_utime + usage.ru_stime,
        peak_mb=usage.ru_maxrss * 1024 / 1e6, status=child.returncode,
    )  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    """Answers every address with a page of its own."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = _BODY.format(number=abs(hash(self.path)) % 10**8, what="served").encode()
        self.send_response(200)
        self.send_header("Content-Type", _CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _server() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


if __name__ == "__main__":
    fill(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
