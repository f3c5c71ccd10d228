"""The library as a Python program uses it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import driftline
from driftline import Driftline, Render
from driftline.errors import UsageError
from support.worlds import World

URL = "https://a.example/"


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda pages: pages.add(URL, tags="news"), r"tags takes a list: write tags=\['news'\]."),
        (lambda pages: pages.add(URL, filters="main"), "filters takes a list"),
        (lambda pages: pages.add(URL, render=Render(steps="click #more")), "steps takes a list"),  # type: ignore[arg-type]
        (lambda pages: pages.edit(URL, tags="news"), "tags takes a list"),
        (lambda pages: pages.crawl(URL, include="/blog/*"), "include takes a list"),
    ],
)
def test_a_string_in_the_place_of_a_list_is_refused(
    tmp_path: Path, wrong: Callable[[Driftline], Any], hint: str
) -> None:
    with driftline.open(str(tmp_path / "pages.db")) as pages, pytest.raises(UsageError, match=hint):
        wrong(pages)


def test_a_page_is_edited(tmp_path: Path) -> None:
    with driftline.open(str(tmp_path / "pages.db")) as pages:
        pages.add(URL, tags=["news", "old"], filters=[("select", "main")], every="1h")
        page = pages.edit(URL, tags=["news", "shop"], every="2h")
        assert (page.tags, page.every, [*page.filters]) == (("news", "shop"), 7_200.0, [("select", "main")])
        page = pages.edit(URL, filters=[("drop", ".ad")], every="default")
        assert (page.tags, page.every, [*page.filters]) == (("news", "shop"), None, [("drop", ".ad")])
        assert pages.edit(URL, tags=[], move_to="https://b.example/").tags == ()
        assert [one.url for one in pages.pages()] == ["https://b.example/"]


def test_a_report_lists_what_failed(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        url = world.server.url("/missing")
        world.pages.add(url)
        (failed,) = world.pages.check().failures
        assert (failed.url, failed.failure.kind) == (url, "status")
