"""Links that wait at their hosts, at a time that a test moves, with answers that it makes up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from driftline.errors import FailureKind
from driftline.fetch.host import PriorityRequests
from driftline.fetch.politeness import PoliteLinks
from driftline.fetch.redirects import link_to_target, target_of
from driftline.http.credentials import Access
from driftline.model.outcome import Document, Failed, Link
from driftline.model.page import Failure
from driftline.pipeline.sources import LinkQueue
from support.hosts import Records
from support.making import settings


class Queue(LinkQueue):
    """A queue that remembers what was put off."""

    def __init__(self, links: Sequence[Link]) -> None:
        super().__init__(iter(links))
        self.later: dict[int, float] = {}

    def put_off(self, page_ids: Sequence[int], seconds: float) -> None:
        self.later |= dict.fromkeys(page_ids, seconds)


@dataclass
class Run:
    """Polite links over some addresses, at a time that a test moves; page numbers count from 1."""

    urls: Sequence[str]
    records: Records = field(default_factory=Records)
    given: dict[str, Any] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    accesses: dict[int, Access] = field(default_factory=dict)
    queue: type[Queue] = Queue

    def __post_init__(self) -> None:
        self.now = 1_000.0
        self.taken: dict[str, Link] = {}
        self.outcomes: list[Failed] = []
        self.slow: list[tuple[str, int, float]] = []
        policy = {"host_delay": 1.0, "host_connections": 1, "address_connections": 8, "robots": "obey"}
        self.source = self.queue([
            Link(number, url, 1, None, access=self.accesses.get(number)) for number, url in enumerate(self.urls, 1)
        ])  # fmt: skip
        self.links = PoliteLinks(
            self.source, settings(**policy | self.given), self.records, links=self.made, record=self.outcomes.extend,
            clock=lambda: self.now, ticks=lambda: self.now, slow=lambda *host: self.slow.append(host),
        )  # fmt: skip

    def made(self, page_ids: Sequence[int]) -> list[Link]:
        return [Link(page_id, self.urls[page_id - 1], 2, None) for page_id in page_ids if page_id not in self.gone]

    def take(self, most: int = 100) -> list[str]:
        """The addresses that may be fetched now."""
        links = self.links.take(most)
        self.taken |= {link.url: link for link in links}
        return [link.url for link in links]

    def answer(
        self, url: str, body: bytes = b"", status: int = 200, *, headers: str = "", kind: FailureKind | None = None,
        final_url: str = "",
    ) -> list[Document]:  # fmt: skip
        """The answer to what was taken last; `final_url` is where a browser was by then."""
        if kind is None and status >= 300:
            kind = FailureKind.STATUS
        failure = None if kind is None else Failure(kind=kind, sentence="It did not work.")
        block = f"HTTP/1.1 {status} X\r\n{headers}\r\n".encode()
        link = self.taken[url]
        redirects = int(bool(final_url)) if link.way is None else link.way.redirects
        return self.links.done([
            Document(link, status, block, body, len(body), final_url or url, redirects, self.now, 0.01, failure)
        ])  # fmt: skip

    def later(self, seconds: float) -> list[str]:
        self.now += seconds
        return self.take()

    def redirect(
        self, url: str, location: str, requests: PriorityRequests[Any] | None = None, *, address: str = ""
    ) -> list[Document]:  # fmt: skip
        """A redirect as the answer to what was taken last."""
        return self.links.done([self.redirected(url, location, address=address)], requests)

    def redirected(self, url: str, location: str, *, address: str = "") -> Document:
        """The document of a redirect, as the answer to what was taken last."""
        link = self.taken[url]
        block = f"HTTP/1.1 302 Found\r\nLocation: {location}\r\n\r\n".encode()
        target = target_of(url, block)
        assert target
        led = link_to_target(link, target, 302, block, 0.01, [])
        assert led.way is not None
        redirects = led.way.redirects
        return Document(link, 302, block, b"", 0, url, redirects, self.now, 0.01, None, address, onward=led)


def allowed(*urls: str, queue: type[Queue] = Queue, **given: Any) -> Run:
    """A run that has read all robots.txt files, which say nothing, of one host."""
    run = Run(urls, given=given, queue=queue)
    (robots,) = run.take()
    run.answer(robots, status=404)
    run.now += 1.0
    return run
