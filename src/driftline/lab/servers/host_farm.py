"""Many small hosts on loopback with a log of every request: `python -m driftline.lab.servers.host_farm JSON`.

Every host is an address of its own with a robots.txt and some pages. It ends with its standard input, and then prints
its log: for each request the host, the times at which it was complete and was answered, and the path; and how many
connections each host had open at once.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import resource
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple, cast

from driftline.lab.simweb.server import listeners, print_ready, wait_for_end_of_input
from driftline.lab.simweb.simweb_client import ready_line
from driftline.lab.simweb.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROBOTS = b"User-agent: *\nDisallow: /private/\n"
_END_SECONDS = 30.0
_EDITION = "/lab/edition/"
_TEXT = (
    "it says what always said the town council agreed yesterday to repair old bridge before winter comes a "
    "bakery opens its doors in market street and bread is cheap for week trains coast leave an hour later "
    "because of works at northern tunnel library invites readers evening with author book about rivers rain "
    "expected weekend farmers hope early harvest this year students built small satellite that will be "
    "launched from island spring"
)
_WORDS = _TEXT.split()
_NEWS = 3  # paragraphs of the last editions on a page


@dataclass(frozen=True, slots=True, kw_only=True)
class Farm:
    """This many hosts with so many pages each, and one more that robots.txt forbids; `latency` in seconds.

    If it `changes`, each page has another text from its second request on; `RunningFarm.publish` changes all of them at
    a chosen moment. The front page of each host links to its pages. If it `redirects`, the pages of all hosts but the
    first redirect to pages of that one, and one more page of each to one that its robots.txt forbids.

    With a `size` the pages are of about so many bytes, and every edition adds a paragraph to each that no other has.
    """

    hosts: int
    pages: int
    latency: float
    changes: bool = False
    redirects: bool = False
    size: int = 0

    def paths(self, host: int = 0) -> list[str]:
        """Return the paths of a host's pages, the forbidden one last."""
        away = ["/to/private"] if self.redirects and host else []
        return [*[f"/{number}" for number in range(self.pages)], *away, "/private/page"]

    def target(self, host: int, path: str) -> str | None:
        """Return the path at the first host that a page of another host redirects to, if it does."""
        if not self.redirects or host == 0 or path == "/robots.txt":
            return None
        return f"{path.removeprefix('/to')}/from/{host}"


class Request(NamedTuple):
    """A request as the server saw it."""

    host: int
    began: float
    ended: float
    path: str


@dataclass(slots=True)
class Log:
    """What the server saw; `connections` is the most that each host had open at once."""

    requests: list[Request] = field(default_factory=list)
    connections: list[int] = field(default_factory=list)


@dataclass(slots=True)
class RunningFarm:
    """A farm that is being served; its log is there once that is over."""

    farm: Farm
    port: int
    log: Log = field(default_factory=Log)

    def publish(self, edition: int) -> None:
        """Serve every page in this edition from now on."""
        connection = http.client.HTTPConnection(World(hosts=self.farm.hosts).address(0), self.port, timeout=30)
        try:
            connection.request("GET", f"{_EDITION}{edition}")
            connection.getresponse().read()
        finally:
            connection.close()

    def fronts(self) -> list[str]:
        """Return the addresses of the front pages."""
        world = World(hosts=self.farm.hosts)
        return [f"http://{world.address(host)}:{self.port}/" for host in range(self.farm.hosts)]

    def urls(self) -> list[str]:
        """Return the addresses of all pages, grouped by host: the worst order for politeness."""
        world = World(hosts=self.farm.hosts)
        return [
            f"http://{world.address(host)}:{self.port}{path}"
            for host in range(self.farm.hosts)
            for path in self.farm.paths(host)
        ]


@contextmanager
def served(farm: Farm) -> Iterator[RunningFarm]:
    """Serve a farm from a process of its own for the time of the `with` block."""
    command = [sys.executable, "-P", "-m", "driftline.lab.servers.host_farm", json.dumps(asdict(farm))]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        running = RunningFarm(farm, ready_line(child)["port"])
        yield running
        printed = json.loads(child.communicate(timeout=_END_SECONDS)[0])
        running.log = Log([Request(*one) for one in printed["requests"]], printed["connections"])
    finally:
        child.kill()
        child.communicate()


class _Connection(asyncio.Protocol):
    """One client on one host; a request that comes in before the last one is answered is answered at the same time."""

    def __init__(self, farm: Farm, log: Log, open_now: list[int], seen: _Seen, host: int) -> None:
        self._farm = farm
        self._log = log
        self._open = open_now
        self._seen = seen
        self._host = host
        self._inbox = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._open[self._host] += 1
        self._log.connections[self._host] = max(self._log.connections[self._host], self._open[self._host])

    def connection_lost(self, _exc: Exception | None) -> None:
        self._open[self._host] -= 1

    def data_received(self, data: bytes) -> None:
        self._inbox += data
        while b"\r\n\r\n" in self._inbox:
            head, _, self._inbox = self._inbox.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode("latin-1")
            if path.startswith(_EDITION):
                self._seen.edition = int(path.removeprefix(_EDITION))
                self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")
                continue
            asyncio.get_running_loop().call_later(self._farm.latency, self._answer, path, time.monotonic())

    def _answer(self, path: str, began: float) -> None:
        key = (self._host, path)
        edition = self._seen.edition + (self._farm.changes and key in self._seen.pages)
        body, kind = _body(self._farm, *key, edition), "text/html"
        self._seen.pages.add(key)
        if path == "/robots.txt":
            body, kind = _ROBOTS, "text/plain"
        self._log.requests.append(Request(self._host, began, time.monotonic(), path))
        status, target = "200 OK", self._farm.target(*key)
        if target is not None:
            port = self._transport.get_extra_info("sockname")[1]
            status = f"302 Found\r\nLocation: http://{World(hosts=self._farm.hosts).address(0)}:{port}{target}"
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)


@dataclass(slots=True)
class _Seen:
    """Which pages were requested, and which edition is served."""

    pages: set[tuple[int, str]] = field(default_factory=set)
    edition: int = 0


def _body(farm: Farm, host: int, path: str, edition: int) -> bytes:
    if path == "/":
        return _front(farm)
    return _news_page(farm, host, path, edition) if farm.size else _page(host, path, edition)


def _news_page(farm: Farm, host: int, path: str, edition: int) -> bytes:
    """Return a page with the news of its last editions, and below them a text that stays."""
    editions = range(edition, max(-1, edition - _NEWS), -1)
    news = "".join(f"<p>{_sentence(f'{host}{path}/{number}')}</p>\n" for number in editions)
    head = f"<!doctype html><title>Page {path}</title><main><h1>Page {path} of host {host}</h1>\n{news}<h2>About</h2>\n"
    return f"{head}{_background(farm.size - len(head), host % 7)}</main>".encode()


def _sentence(seed: str) -> str:
    chance = random.Random(seed)
    return " ".join(chance.choices(_WORDS, k=12)).capitalize() + "."


@cache
def _background(size: int, seed: int) -> str:
    paragraphs: list[str] = []
    while size > 0:
        paragraphs.append(f"<p>{_sentence(f'{seed}/{len(paragraphs)}')}</p>\n")
        size -= len(paragraphs[-1])
    return "".join(paragraphs)


def _page(host: int, path: str, edition: int) -> bytes:
    # no sentence comes back: one that comes and goes is rightly ignored after a while
    words = _sentence(f"edition {edition}")
    return f"<!doctype html><title>Page {path}</title><p>This is page {path} of host {host}. {words}</p>".encode()


def _front(farm: Farm) -> bytes:
    links = "".join(f'<li><a href="/{number}">Page {number}</a></li>' for number in range(farm.pages))
    return f"<!doctype html><title>All pages</title><p>These are the pages of this host.</p><ul>{links}</ul>".encode()


async def _serve(farm: Farm, log: Log, stop: threading.Event) -> None:
    loop = asyncio.get_running_loop()
    sockets = listeners(World(hosts=farm.hosts), 0)
    log.connections = [0] * farm.hosts
    open_now = [0] * farm.hosts
    seen = _Seen()
    servers = [
        await loop.create_server(partial(_Connection, farm, log, open_now, seen, host), sock=bound, backlog=64)
        for host, bound in enumerate(sockets)
    ]
    print_ready(sockets[0].getsockname()[1])
    await asyncio.to_thread(stop.wait)
    for server in servers:
        server.close()


def main() -> None:
    """Serve the farm that is named on the command line, then print its log."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    stop = threading.Event()
    threading.Thread(target=wait_for_end_of_input, args=(stop,), daemon=True).start()
    log = Log()
    asyncio.run(_serve(Farm(**json.loads(sys.argv[1])), log, stop))
    sys.stdout.write(json.dumps({"requests": log.requests, "connections": log.connections}))


if __name__ == "__main__":
    main()
