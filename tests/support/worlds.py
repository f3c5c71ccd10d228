"""A small web and a watch list over it, and pipelines wired without a store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

import driftline
from driftline import Plan, Stop
from driftline.detection.worker_pool import WorkerPool
from driftline.errors import FailureKind
from driftline.fetch.politeness import PoliteLinks
from driftline.model import Document, Failure, Link, Old, Outcome
from driftline.pipeline.browser_lane import BrowserLane
from driftline.pipeline.confirmer import Confirmer
from driftline.pipeline.consumer import Steps
from driftline.pipeline.recorder import Recorder
from driftline.pipeline.sources import LinkQueue
from driftline.pipeline.threads import Parts
from driftline.pipeline.topologies import wire
from support.hosts import Records
from support.making import document, settings
from support.servers import Answer, Request, Server, answer, html

WIRINGS = [
    pytest.param(Plan(pipeline="sequential"), id="sequential"),
    pytest.param(Plan(pipeline="three-section", slots=8, consumers=2, comparers=2), id="three-section"),
    pytest.param(Plan(slots=8, consumers=2), id="two-section"),
    pytest.param(Plan(producers=2, slots=4, consumers=3, queues=3, capacity=5), id="two-section with three queues"),
]


class World:
    """A web site whose pages a test rewrites, and a watch list over them."""

    def __init__(self, folder: Path, store: str | None = None, **given: Any) -> None:
        self.words: dict[str, str] = {}
        self.held: set[str] = set()
        self.busy: dict[str, int] = {}  # pages that ask not to be asked again for so many seconds
        self.asked: Callable[[str], None] = lambda _: None
        self.server = Server(self._answer)
        self.settings = settings(store=store or str(folder / "pages.db"), **given)
        self.pages = driftline.open(settings=self.settings)

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pages.close()
        self.server.__exit__(kind, error, trace)

    def watch(self, count: int) -> list[str]:
        for number in range(count):
            self.words[f"/{number}"] = f"page {number} as it is"
        return self.pages.add(*[self.server.url(path) for path in self.words])

    def _answer(self, request: Request) -> Answer:
        self.asked(request.path)
        if request.path in self.held:
            return answer(b"", length=10, hold=True)
        if request.path in self.busy:
            return answer(b"", "429 Too Many Requests", f"Retry-After: {self.busy[request.path]}")
        words = self.words.get(request.path)
        return answer(b"", "404 Not Found") if words is None else html(words)


class Memory:
    """A ledger that keeps outcomes in a list."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def record(self, run_id: int, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        self.outcomes += outcomes
        return outcomes


class Untrustworthy:
    """Old versions of which one raises when it is asked for."""

    def __init__(self, bad: int) -> None:
        self.bad = bad

    def recall(self, page_ids: Sequence[int]) -> dict[int, Old]:
        if self.bad in page_ids:
            raise RuntimeError("no such luck")
        return {}

    def host_memories(self, hosts: Collection[str]) -> dict[str, bytes]:
        return {}


class Painter:
    """A browser that draws what it is given, and knows what it has drawn; it fails at what it is not given."""

    def __init__(self, pages: dict[str, bytes], hosts: Iterable[str] = ()) -> None:
        self.pages = pages
        self.hosts = set(hosts)
        self.used: set[tuple[int, int]] = set()
        self.drawn: list[str] = []
        self.closed = False

    def render(self, link: Link) -> Document:
        self.drawn.append(link.url)
        body = self.pages.get(link.url)
        if body is None:
            failure = Failure(kind=FailureKind.BROWSER, sentence="There is no browser.")
            return document(link, b"", 0, failure=failure)
        drawn = document(link, body)
        drawn.screenshot = b"a picture of " + body
        return drawn

    def stop(self) -> None:
        """It is never busy."""

    def close(self) -> None:
        self.closed = True

    def needed_at(self, host: str) -> bool:
        return host in self.hosts

    def need_at(self, host: str) -> None:
        self.hosts.add(host)

    def was_used(self, page_id: int, version: int) -> bool:
        return (page_id, version) in self.used


def wire_up(plan: Plan, links: LinkQueue, versions: Untrustworthy) -> list[Outcome]:
    """Run a plan over these links, with this in the place of the version repository."""
    memory = Memory()
    given = settings()
    recorder = Recorder(memory, 1, lambda _: None)
    workers = WorkerPool(most=2, deadline=20.0, memory=given.worker_memory)
    steps = Steps(versions, workers, given.max_body)
    polite = PoliteLinks(links, given, Records(), links=lambda _: [], record=recorder.add)
    confirmer = Confirmer(steps, recorder, given, polite)
    stop, painter = Stop(), Painter({})
    rendering = BrowserLane(steps, recorder, confirmer, polite, given, stop, painter, lambda: painter)
    parts = Parts(
        links=polite, steps=steps, workers=workers, recorder=recorder, confirmer=confirmer, rendering=rendering,
        settings=given, stop=stop,
    )  # fmt: skip
    try:
        wire(plan, parts)
    finally:
        rendering.close()
        confirmer.close()
        workers.close()
        recorder.close()
    return memory.outcomes
