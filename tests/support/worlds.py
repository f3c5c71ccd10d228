"""A small web and a watch list over it, and pipelines wired without a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

import driftline
from driftline import Plan, Stop
from driftline.errors import FailureKind
from driftline.fetch.politeness import PoliteLinks
from driftline.model.outcome import Document, Link, Old, Outcome
from driftline.model.page import Failure
from driftline.pipeline.browser_lane import BrowserLane
from driftline.pipeline.confirmer import Confirmer
from driftline.pipeline.consumer import ConfirmingSteps, Steps
from driftline.pipeline.pipeline import Pipeline, Stages, open_workers
from driftline.pipeline.recorder import Recorder
from driftline.pipeline.sources import LinkQueue
from driftline.pipeline.stop import Ending
from driftline.settings import Settings
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
    """A sink that keeps outcomes in a list."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def record(self, outcomes: Sequence[Outcome]) -> None:
        self.outcomes += outcomes

    def settle(self, outcomes: Sequence[Outcome]) -> None:
        """Nobody waits for it."""


class Untrustworthy:
    """Old versions of which one raises when it is asked for."""

    def __init__(self, bad: int) -> None:
        self.bad = bad

    def recall(self, page_ids: Sequence[int]) -> dict[int, Old]:
        if self.bad in page_ids:
            raise RuntimeError("no such luck")
        return {}

    def recall_contents(self, old: Mapping[int, Old], hosts: Mapping[int, str]) -> dict[int, Old]:
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
        return replace(document(link, body), rendered=True, screenshot=b"a picture of " + body)

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


class StagesWith:
    """The optional stages of a check, with a painter for a browser."""

    def __init__(self, steps: ConfirmingSteps, given: Settings, stop: Stop, painter: Painter) -> None:
        self._steps = steps
        self._given = given
        self._stop = stop
        self._painter = painter

    def build(self, recorder: Recorder[Outcome], links: PoliteLinks) -> Stages[Outcome]:
        confirmer = Confirmer(self._steps, recorder, self._given, links)
        browser = BrowserLane(
            self._steps, recorder, confirmer, links, self._given, self._stop, self._painter, lambda: self._painter
        )
        return Stages(browser=browser, confirmer=confirmer)


def wire_up(plan: Plan, links: LinkQueue, versions: Untrustworthy) -> list[Outcome]:
    """Run a plan over these links, with this in the place of the version repository."""
    memory, given, stop = Memory(), settings(), Stop()
    with open_workers(given) as workers:
        steps = Steps(versions, workers, given.max_body)
        pipeline = Pipeline(
            links, steps, memory, plan=plan, settings=given, ending=Ending(stop), workers=workers, hosts=Records(),
            relink=lambda _: [], stages=StagesWith(steps, given, stop, Painter({})),
        )  # fmt: skip
        with pipeline:
            pipeline.run()
    return memory.outcomes
