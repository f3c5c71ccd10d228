"""Runs over pages that need a browser, beside pages that do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import driftline
from driftline.api import workspace_of
from driftline.errors import FailureKind
from driftline.model.outcome import Proof, Verdict
from driftline.model.page import Render, RenderMode
from support.browsers import PNG, drawing, insist_on_browser
from support.making import settings
from support.servers import Answer, Request, Server, answer, html


def serving(pages: dict[str, Answer]) -> Callable[[Request], Answer]:
    return lambda request: pages.get(request.path, answer(b"", "404 Not Found"))


def test_a_drawn_page_is_watched_with_pictures_and_one_that_turns_out_to_need_a_browser_gets_one(
    tmp_path: Path,
) -> None:
    insist_on_browser()
    pages = {"/drawn": drawing("<p>A lamp for 12 euros</p>"), "/auto": drawing("<p>Two</p>"), "/plain": html("plain")}
    with (
        Server(serving(pages)) as server,
        driftline.open(settings=settings(store=str(tmp_path / "pages.db"))) as watch_list,
    ):
        drawn, auto, plain = (server.url(path) for path in pages)
        watch_list.add(drawn, render=Render())
        watch_list.add(auto, render=Render(mode=RenderMode.AUTO))
        watch_list.add(plain, render=Render(mode=RenderMode.AUTO))
        assert watch_list.check().new == 3
        assert watch_list.history.version(auto).words == "Two"
        # the first was rendered at once, the others fetched; of these, only one asked for a picture and icons
        assert len(server.asked_for("/auto")) == 2
        assert len(server.asked_for("/plain")) == 1

        pages["/drawn"] = drawing("<p>A lamp for 14 euros</p>")
        report = watch_list.check()
        assert [(change.url, change.kind) for change in report.changes] == [(drawn, "price")]
        assert report.unchanged == 2
        # its host is known by now
        assert len(server.asked_for("/auto")) == 3

        first, second = (watch_list.history.screenshot(drawn, number) for number in (1, 2))
        assert first.startswith(PNG)
        assert second.startswith(PNG)
        assert first != second
        assert workspace_of(watch_list).screenshots.numbers(workspace_of(watch_list).catalog.find(drawn)) == {1, 2}
        assert "A lamp for 14 euros" in watch_list.diff(drawn)


def test_a_page_that_is_fetched_otherwise_than_before_raises_no_alarm(tmp_path: Path) -> None:
    pages = {"/": html("The words that the server sends.")}
    with (
        Server(serving(pages)) as server,
        driftline.open(settings=settings(store=str(tmp_path / "pages.db"))) as watch_list,
    ):
        url = server.url()
        watch_list.add(url)
        watch_list.check()
        workspace_of(watch_list).catalog.edit(url, render=lambda _: Render())
        workspace_of(watch_list).catalog.edit(url, render=lambda _: None)
        pages["/"] = html("Other words, as a browser would see them.")
        report = watch_list.check()
        assert (report.changed, report.unchanged) == (0, 1)
        assert watch_list.history.checks(url, 1)[0].proof is Proof.REREAD


@pytest.mark.parametrize("mode", list(RenderMode))
def test_without_a_browser_only_the_pages_that_need_one_fail_and_say_why(tmp_path: Path, mode: RenderMode) -> None:
    with (
        Server(serving({"/drawn": drawing("x"), "/plain": html("plain")})) as server,
        driftline.open(settings=settings(store=str(tmp_path / "pages.db"), browser="no-such-browser")) as watch_list,
    ):
        drawn, plain = server.url("/drawn"), server.url("/plain")
        watch_list.add(plain)
        watch_list.add(drawn, render=Render(mode=mode))
        report = watch_list.check()
        assert (report.new, report.failed) == (1, 1)
        (check,) = watch_list.history.checks(drawn)
        assert check.verdict is Verdict.FAILED
        assert check.failure is not None
        expected = FailureKind.BROWSER if mode is RenderMode.ALWAYS else FailureKind.BROKEN
        assert check.failure.kind is expected
