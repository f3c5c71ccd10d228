"""Pages with `also` filters, from a real server to the history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

import driftline
from driftline import Plan
from driftline.api import workspace_of
from driftline.model.change import Importance
from driftline.model.outcome import Check, Proof, Verdict
from driftline.model.page import Filter, FilterKind
from support.making import settings
from support.servers import Answer, Request, Server, html
from support.worlds import WIRINGS

FILLER = "<p>" + "A paragraph that says the same at every check, so that the page is not a small one. " * 6 + "</p>"


class Site:
    """One page whose part after the filler a test rewrites, or makes anew for every request."""

    def __init__(self, folder: Path) -> None:
        self.part: str | Callable[[], str] = ""
        self.instead: Answer | None = None
        self.server = Server(self._answer)
        self.pages = driftline.open(settings=settings(store=str(folder / "pages.db"), confirm=True))
        self.url = self.server.url("/")

    def _answer(self, _request: Request) -> Answer:
        if self.instead is not None:
            return self.instead
        part = self.part if isinstance(self.part, str) else self.part()
        return html(f"<title>Files</title><main>{FILLER}{part}<p>The end.</p></main>")

    def check(self, part: str | Callable[[], str], plan: Plan | None = None) -> Check:
        self.part = part
        self.pages.check(plan=plan, fresh=True)
        return self.pages.history.checks(self.url, 1)[0]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    with made.server, made.pages:
        yield made


def link(to: str) -> str:
    return f"<p>Get the <a href='{to}'>price list</a>.</p>"


@pytest.mark.parametrize("plan", WIRINGS)
def test_a_link_to_a_new_file_is_reported_if_links_count(site: Site, plan: Plan) -> None:
    site.pages.add(site.url, filters=[("also", "links")])
    site.check(link("/2025.pdf"), plan)
    found = site.check(link("/2026.pdf?utm_source=mail"), plan)
    assert (found.verdict, found.version) == (Verdict.CHANGED, 2)
    assert found.change is not None
    assert (found.change.kind, found.change.importance, found.change.score) == ("links", Importance.IMPORTANT, 0.5)
    assert found.reason == "1 link changed: price list: /2025.pdf → /2026.pdf."
    assert "-[link] price list → /2025.pdf" in site.pages.diff(site.url).splitlines()
    same = site.check(link("/2026.pdf?utm_source=other"), plan)
    assert (same.verdict, same.proof, same.version) == (Verdict.UNCHANGED, Proof.TEXT, None)


def test_only_text_counts_without_an_also_filter(site: Site) -> None:
    site.pages.add(site.url)
    site.check(link("/2025.pdf"))
    assert site.check(link("/2026.pdf")).proof is Proof.TEXT


def test_only_added_links_are_reported_if_only_they_are_wanted(site: Site) -> None:
    site.pages.add(site.url, filters=[("also", "links"), ("only", "added")])
    site.check(link("/2025.pdf") + link("/2026.pdf"))
    assert site.check(link("/2025.pdf")).verdict is Verdict.UNCHANGED
    assert site.check(link("/2025.pdf") + link("/2027.pdf")).verdict is Verdict.CHANGED


def test_that_more_counts_from_now_on_is_no_change(site: Site) -> None:
    site.pages.add(site.url)
    site.check(link("/2025.pdf"))
    workspace_of(site.pages).catalog.edit(
        site.url, filters=lambda _: [Filter(FilterKind.ALSO, "links"), Filter(FilterKind.ALSO, "media")]
    )
    reread = site.check(link("/2025.pdf"))
    assert (reread.verdict, reread.proof) == (Verdict.UNCHANGED, Proof.REREAD)
    assert site.check(link("/2026.pdf")).verdict is Verdict.CHANGED
    workspace_of(site.pages).catalog.edit(site.url, filters=lambda _: [])
    assert site.check(link("/2026.pdf")).verdict is Verdict.UNCHANGED


def test_a_picture_that_is_another_at_every_fetch_is_noise_and_a_link_beside_it_is_not(site: Site) -> None:
    numbers = count()
    site.pages.add(site.url, filters=[("also", "all")])
    site.check(lambda: f"<img src=/{next(numbers)}.jpg>{link('/a')}")
    found = site.check(lambda: f"<img src=/{next(numbers)}.jpg>{link('/a')}")
    assert (found.verdict, found.proof, found.version) == (Verdict.UNCHANGED, Proof.NOISE, None)
    assert found.reason == "What differed was different again when the page was fetched once more."
    outcome = site.check(lambda: f"<img src=/{next(numbers)}.jpg>{link('/b')}")
    assert outcome.change is not None
    assert (outcome.verdict, outcome.change.kind) == (Verdict.CHANGED, "links")


def test_a_wall_before_a_page_of_which_more_counts_is_still_a_failure(site: Site) -> None:
    site.pages.add(site.url, filters=[("also", "links")])
    site.check(link("/a"))
    site.instead = html("<title>Just a moment...</title><p>Checking that you are not a robot")
    assert site.check("").verdict is Verdict.FAILED
