"""However the pipeline is wired, what is recorded under a page came from that page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import driftline
from driftline.api import workspace_of
from driftline.lab.simweb.simweb_client import RunningWeb, serve
from driftline.lab.simweb.world import World
from driftline.pipeline.plan import Plan

PAGES = 2_000
WIRINGS = {
    "sequential": Plan(pipeline="sequential"),
    "three-section": Plan(pipeline="three-section", producers=8, slots=16, consumers=4, comparers=4),
    "two-section": Plan(pipeline="two-section", producers=8, slots=16, consumers=4),
    "two-section, 4 queues": Plan(pipeline="two-section", producers=8, slots=16, consumers=4, queues=4),
}


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    world = World(pages=PAGES, hosts=200, size_mean=6_000, change_rate=0.5)
    with serve(world) as running:
        yield running


@pytest.mark.parametrize("plan", WIRINGS.values(), ids=WIRINGS.keys())
def test_every_version_names_the_page_it_is_kept_under(plan: Plan, web: RunningWeb, tmp_path: Path) -> None:
    """The body of page 42 says so in its title, in the first and in the second version alike."""
    numbers = {url: number for number, url in enumerate(web.urls())}
    with driftline.open(str(tmp_path / "pages.db")) as pages:
        pages.add(*numbers)
        for generation in (0, 1):
            web.generation(generation)
            report = pages.check(plan=plan)
            assert (report.pages, report.failed, report.left) == (PAGES, 0, 0)
        changed = web.truth(1)
        for page in pages.pages():
            number = numbers[page.url]
            assert page.versions == (2 if number in changed else 1)
            for version_number in range(1, page.versions + 1):
                version = workspace_of(pages).repository.version(page, version_number)
                assert re.findall(rb"Page (\d+) of host", version.body)[0] == str(number).encode()
                assert version.body == web.world.body(number, version_number - 1)
