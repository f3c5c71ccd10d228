"""A site for crawls: pages that can be found in every way there is, and endless traps.

Its responses depend on its size and the request alone, except for the session ids in its links, which are always new.
`identity` returns the page that a request is for, by the site's own rules and none of the crawler's.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, cast

from driftline.lab.simweb.server import print_ready, wait_for_end_of_input
from driftline.lab.simweb.simweb_client import ready_line

if TYPE_CHECKING:
    from collections.abc import Iterator


_TEXT = """
amber basin cedar delta ember fjord grove harbor island jetty kelp lagoon meadow nectar orchard prairie quarry reef
summit tundra upland valley willow yarrow zephyr anchor beacon canyon dune estuary fern glacier heath inlet juniper
knoll larch marsh north ocean pine quartz ridge spruce thicket umber vista wharf yew zinc bracken cove dell eddy
"""
_WORDS = _TEXT.split()
_LISTED = 2_000  # pages of a sitemap
_SHELF = 50  # pages that one list of relative links has
_BRANCHES = 8
_TRACKED = ("utm_source=mail", "gclid=abc123", "fbclid=zz9")
_CALENDAR = re.compile(r"/calendar/(\d{4})/(\d{1,2})")
_SESSIONS = re.compile(r";jsessionid=[^/?]*|/\(S\([0-9a-z]+\)\)")


class Answer(NamedTuple):
    """What the site answers."""

    status: int
    kind: str
    body: bytes
    location: str = ""
    robots: str = ""


@dataclass(frozen=True)
class LabSite:
    """A site of this many pages: a tenth is only in sitemaps, a tenth behind relative links, some in a feed."""

    pages: int

    def __post_init__(self) -> None:
        assert self.pages >= 100, "every way of finding a page needs some of them"

    @property
    def mapped(self) -> int:
        """Return how many pages only sitemaps list."""
        return self.pages // 10

    @property
    def fed(self) -> int:
        """Return how many pages only a feed lists."""
        return min(50, self.pages // 20)

    @property
    def shelved(self) -> int:
        """Return how many pages are linked only relative to a `<base>`."""
        return self.pages // 10

    @property
    def shelves(self) -> int:
        """Return how many lists of those there are, which are pages too."""
        return -(-self.shelved // _SHELF)

    @property
    def compared(self) -> int:
        """Return how many pages have two parameters."""
        return 10

    @cached_property
    def truth(self) -> frozenset[str]:
        """Return the pages of the site, each as its path and query."""
        paths = [f"/mapped/{n}" for n in range(self.mapped)] + [f"/news/{n}" for n in range(self.fed)]
        paths += [f"/library/shelf/book-{n}.html" for n in range(self.shelved)]
        paths += [f"/shelves/{n}" for n in range(self.shelves)] + [
            f"/compare/{n}?left=a&right=b" for n in range(self.compared)
        ]
        paths += ["/", "/shop", "/list"]
        articles = self.pages - len(paths)
        return frozenset([*paths, *(f"/article/{n}" for n in range(articles))])

    @cached_property
    def articles(self) -> int:
        """Return how many pages are found by links alone."""
        return sum(path.startswith("/article/") for path in self.truth)

    def identity(self, target: str) -> str | None:
        """Return the page that a request for this path and query is for, or None if it is for no page."""
        path, _, query = _SESSIONS.sub("", target).partition("?")
        parameters = sorted(
            one for one in query.split("&") if one and not re.match(r"(?:utm_\w+|gclid|fbclid|sid|PHPSESSID)=", one)
        )
        path = re.sub(r"^/sid-[0-9a-f]+(?=/)", "", path)
        meant = f"{path}?{'&'.join(parameters)}" if parameters else path
        return meant if meant in self.truth else None

    def answer(self, target: str, host: str, fresh: random.Random) -> Answer:
        """Return the response of the site to a path and query."""
        meant = self.identity(target)
        path = target.partition("?")[0]
        if meant is not None:
            return self._page(meant, fresh)
        if path == "/robots.txt":
            text = f"User-agent: *\nDisallow: /forbidden/\n\nSitemap: http://{host}/maps/index.xml.gz\n"
            return Answer(200, "text/plain", text.encode())
        if path.startswith("/maps/"):
            return self._map(path, host)
        if path == "/feed.xml":
            items = "".join(
                f"<item><title>News {n}</title><link>http://{host}/news/{n}</link></item>" for n in range(self.fed)
            )
            return Answer(
                200, "application/rss+xml", f"<rss><channel><title>News</title>{items}</channel></rss>".encode()
            )
        return self._trap(path, target, fresh)

    def _page(self, meant: str, fresh: random.Random) -> Answer:
        path = meant.partition("?")[0]
        name, _, last = path.strip("/").rpartition("/")
        number = int(re.sub(r"\D", "", last) or 0)
        links: list[str] = []
        head = ""
        if path == "/":
            head = '<link rel="alternate" type="application/rss+xml" href="/feed.xml">'
            links = ["/article/0", "/list", "/shop", "//elsewhere.example/", "mailto:somebody@example.com", "/logo.png"]
            links += [
                "/calendar/2026/11",
                "/loop/x/",
                "/endless/1",
                "/redirect/a",
                "/redirect/self",
                "/redirect/chain/1",
            ]
            links += ["/missing/1", "/missing/2", "/broken/1", "/forbidden/secret", "/quiet", "/go/1", "/go/2"]
            links += [f"/shelves/{n}" for n in range(self.shelves)]
        elif path == "/list":
            for n in range(self.compared):
                links += [f"/compare/{n}?right=b&left=a", f"/compare/{n}?left=a&right=b", f"/print/{n}"]
        elif path == "/shop":
            links = [f"/shop?{fresh.choice('abcdef')}={fresh.randrange(9)}&sort={one}" for one in range(5)]
        elif path.startswith("/shelves/"):
            first = number * _SHELF
            head = '<base href="/library/shelf/">'
            links = [f"book-{n}.html" for n in range(first, min(first + _SHELF, self.shelved))]
        elif path.startswith("/article/"):
            children = range(number * _BRANCHES + 1, number * _BRANCHES + _BRANCHES + 1)
            links = [_in_disguise(f"/article/{n}", fresh) for n in children if n < self.articles]
            links += [
                "/",
                f"/article/{max(0, number - 1)}#top",
                f"./{number}",
                f"/go/{number}" if number % 50 == 0 else "/list",
            ]
        text = "".join(f"<p>{one}</p>" for one in _text(meant))
        marked = '<a rel="nofollow" href="/forbidden/nofollowed">not to be followed</a>' if path == "/" else ""
        return _html(meant, f"<h1>{name} {last}</h1>{text}{marked}", links, head)

    def _map(self, path: str, host: str) -> Answer:
        lists = -(-self.mapped // _LISTED)
        if path == "/maps/index.xml.gz":
            entries = "".join(f"<sitemap><loc>http://{host}/maps/{n}.xml.gz</loc></sitemap>" for n in range(lists))
            text = f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</sitemapindex>'
        else:
            first = int(re.sub(r"\D", "", path)) * _LISTED
            entries = "".join(
                f"<url><loc>http://{host}/mapped/{n}</loc><lastmod>2026-0{1 + n % 9}-01</lastmod></url>"
                for n in range(first, min(first + _LISTED, self.mapped))
            )
            text = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'
        return Answer(200, "application/gzip", gzip.compress(text.encode(), mtime=0))

    def _trap(self, path: str, target: str, fresh: random.Random) -> Answer:
        """Return the response to a path that is not one of the site's pages."""
        if found := _CALENDAR.fullmatch(path):
            year, month = int(found[1]), int(found[2])
            later, before = divmod(year * 12 + month, 12), divmod(year * 12 + month - 2, 12)
            links = [f"/calendar/{one}/{other + 1}" for one, other in (later, before)]
            days = " ".join(map(str, range(1, 31)))
            return _html(
                f"{month}/{year}",
                f"<p>There is nothing in month {month} of {year}, as in every other one. {days}</p>",
                links,
            )
        if path.startswith("/loop/"):
            return _html("loop", f"<p>{' '.join(_WORDS[:30])}</p>", ["x/", "../y/"])
        if path.startswith("/endless/"):
            return _html("endless", f"<p>{' '.join(_WORDS[10:40])}</p>", [f"{path}/{fresh.randrange(10**6)}"])
        if path == "/shop":
            links = [f"{target}&{fresh.choice('abcdef')}={fresh.randrange(9)}", f"/shop?sort={fresh.randrange(10**6)}"]
            return _html("/shop", "".join(f"<p>{one}</p>" for one in _text("/shop")), links)
        if path.startswith("/redirect/chain/"):
            return Answer(302, "text/plain", b"", f"/redirect/chain/{int(path.rpartition('/')[2]) + 1}")
        if path.startswith("/redirect/"):
            return Answer(302, "text/plain", b"", {"a": "/redirect/b", "b": "/redirect/a"}.get(path[10:], path))
        if path.startswith("/go/"):
            return Answer(301, "text/plain", b"", f"/article/{path[4:]}")
        if path.startswith("/print/"):
            page = self._page(f"/compare/{path[7:]}?left=a&right=b", fresh)
            return page._replace(body=page.body.replace(b"<head>", b'<head><link rel="canonical" href="/article/0">'))
        if path == "/quiet":
            return _html("quiet", "<p>Nobody is to follow the links of this page, nor to list it.</p>",
                         ["/forbidden/quiet"])._replace(robots="noindex, nofollow")  # fmt: skip
        if path.startswith("/missing/"):
            return _html("Page not found", "<p>Sorry, the page could not be found. Try the front page.</p>", ["/"])
        return Answer(404, "text/html", b"<title>404</title><p>There is no such page.</p>")


def _in_disguise(path: str, fresh: random.Random) -> str:
    """Return a link to a page as sites write it: with a session id, with tracking, escaped, or plain."""
    session = f"{fresh.randrange(16**16):016x}"
    return fresh.choice((
        path, f"{path}?sid={session}", f"{path};jsessionid={session}", f"/(S({session})){path}",
        f"/sid-{session}{path}",
        f"{path}?PHPSESSID={session}&{fresh.choice(_TRACKED)}", f"{path}?{fresh.choice(_TRACKED)}#part",
        path.replace("article", "%61rticle"), f"/x/..{path}", f"/.{path}",
    ))  # fmt: skip


def _text(meant: str) -> list[str]:
    own = random.Random(meant)
    return [" ".join(own.choices(_WORDS, k=own.randrange(20, 40))) for _ in range(3)]


def _html(title: str, text: str, links: list[str], head: str = "") -> Answer:
    # without words of its own: whether two pages differ is decided by the text alone
    listed = "".join(f'<a href="{one}"></a>' for one in links)
    markup = f"<!doctype html><html><head>{head}<title>{title}</title></head><body>{text}{listed}</body></html>"
    return Answer(200, "text/html; charset=utf-8", markup.encode())


def bytes_of(answer: Answer) -> bytes:
    """Return a response as it goes over the wire."""
    reasons = {200: "OK", 301: "Moved Permanently", 302: "Found", 404: "Not Found"}
    lines = [f"HTTP/1.1 {answer.status} {reasons[answer.status]}", f"Content-Type: {answer.kind}"]
    lines += [f"Location: {answer.location}"] if answer.location else []
    lines += [f"X-Robots-Tag: {answer.robots}"] if answer.robots else []
    return "\r\n".join([*lines, f"Content-Length: {len(answer.body)}", "", ""]).encode() + answer.body


_END_SECONDS = 30.0


@dataclass(slots=True)
class RunningSite:
    """A site that is being served; its log is there once that is over."""

    site: LabSite
    port: int
    log: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Return the address of its front page."""
        return f"http://127.0.0.1:{self.port}/"


@contextmanager
def served(site: LabSite) -> Iterator[RunningSite]:
    """Serve a site from a process of its own for the time of the `with` block."""
    command = [sys.executable, "-P", "-m", "driftline.lab.servers.crawl_site", str(site.pages)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        running = RunningSite(site, ready_line(child)["port"])
        yield running
        running.log = json.loads(child.communicate(timeout=_END_SECONDS)[0])
    finally:
        child.kill()
        child.communicate()


class _Connection(asyncio.Protocol):
    """One client, which sends a request after the answer to the last one."""

    def __init__(self, site: LabSite, log: list[str], fresh: random.Random) -> None:
        self._site = site
        self._log = log
        self._fresh = fresh
        self._inbox = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._inbox += data
        while b"\r\n\r\n" in self._inbox:
            head, _, self._inbox = self._inbox.partition(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            target = lines[0].split(" ", 2)[1]
            host = next((line[5:].strip() for line in lines if line[:5].lower() == "host:"), "localhost")
            self._log.append(target)
            self._transport.write(bytes_of(self._site.answer(target, host, self._fresh)))


async def _serve(site: LabSite, log: list[str], stop: threading.Event) -> None:
    fresh = random.Random(site.pages)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(site, log, fresh), "127.0.0.1", 0, backlog=512)
    print_ready(server.sockets[0].getsockname()[1])
    await asyncio.to_thread(stop.wait)
    server.close()


def main() -> None:
    """Serve the site of the size that is named on the command line, then print its log."""
    stop = threading.Event()
    threading.Thread(target=wait_for_end_of_input, args=(stop,), daemon=True).start()
    log: list[str] = []
    asyncio.run(_serve(LabSite(int(sys.argv[1])), log, stop))
    sys.stdout.write(json.dumps(log))


if __name__ == "__main__":
    main()
