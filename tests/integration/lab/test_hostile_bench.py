"""The table of hostile servers: their pages are checked together, and none may disturb the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from driftline.api import workspace_of
from driftline.crawl.survey_steps import CrawlOutcome
from driftline.lab.bench.hostile_bench import (
    TIMES,
    HostileRow,
    Stage,
    certificates,
    measure,
    outcome_of,
    settings_for,
    visit,
)
from driftline.lab.bench.local_watch_lists import open_local
from driftline.lab.servers.hostile_responses import edited, page
from driftline.lab.servers.hostile_servers import HOSTILE_SERVERS, ORDINARY, PAGE, ROBOTS, SITEMAP, HostileServer
from driftline.model.outcome import Outcome
from driftline.model.page import Page

#: those that may take much memory, unless it is time that ends them: then it depends on how fast the machine is
LARGE = [one for one in HOSTILE_SERVERS if one.mb > 30 and one.message != "longer than"]


@dataclass
class Checked:
    """What the last check of each hostile's page came to, and where its page stands."""

    outcomes: dict[str, tuple[str, str]]
    pages: dict[str, Page]
    requests: dict[str, int]


def kind_of(hostile: HostileServer) -> tuple[float, bool, bool]:
    """What hostiles have in common that can be checked together."""
    return hostile.patience, hostile.at == ROBOTS, hostile.ends == "timed-out"


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checked]:
    """A run for each kind of hostile: those that are to take too long, have their robots.txt obeyed, and so on.

    Only those have short times that are to exceed them, for how fast the others answer depends on the machine, whose
    servers are here.
    """
    with ExitStack() as stack:
        made = stack.enter_context(certificates())
        if made.authority is None:
            pytest.skip("there is no openssl command to make certificates with")
        stages = {one: stack.enter_context(Stage(one, made)) for one in (ORDINARY, *HOSTILE_SERVERS)}
        store = str(tmp_path_factory.mktemp("hostile") / "pages.db")
        found: dict[str, tuple[str, str]] = {}

        def told(outcomes: Sequence[Outcome | CrawlOutcome]) -> None:
            found.update((one.document.link.url, outcome_of(one)) for one in outcomes)

        def check(some: Iterable[HostileServer], **options: Any) -> None:
            urls = [stages[one].url for one in some]
            with open_local(store, ca_file=made.authority, **options) as watch_list:
                watch_list.add(*urls)
                workspace = workspace_of(watch_list)
                workspace.runs.check(workspace.runs.watched(urls), recorded=told)

        at_once = [one for one in stages if one.at != SITEMAP and one.checks == 1]
        for kind in dict.fromkeys(map(kind_of, at_once)):
            some = [one for one in at_once if kind_of(one) == kind]
            times = TIMES if some[0].ends == "timed-out" else {}
            check(some, worker_deadline=some[0].patience, **settings_for(some[0]), **times)
        twice = [one for one in stages if one.checks == 2]
        check(twice)
        for one in twice:
            check([one], worker_deadline=one.patience)
        with open_local(store) as watch_list:
            for one in stages:
                if one.at == SITEMAP:
                    visit(watch_list, stages[one].url, one.at, told)
            pages = {page.url: page for page in watch_list.pages()}
        yield Checked(
            outcomes={
                one.name: found[stage.url.removesuffix("/") + (SITEMAP if one.at == SITEMAP else PAGE)]
                for one, stage in stages.items()
            },
            pages={one.name: pages[stage.url] for one, stage in stages.items() if stage.url in pages},
            requests={one.name: stage.request_count() for one, stage in stages.items()},
        )


@pytest.mark.parametrize("hostile", [pytest.param(one, id=one.name) for one in (ORDINARY, *HOSTILE_SERVERS)])
def test_it_costs_one_check_with_the_reason(checked: Checked, hostile: HostileServer) -> None:
    outcome, reason = checked.outcomes[hostile.name]
    assert outcome == hostile.ends, reason
    assert hostile.message in reason
    assert checked.requests[hostile.name] <= hostile.requests, "no server gets request after request"
    assert checked.requests[hostile.name] or hostile.certificate
    if outcome in ("new", "changed"):
        assert reason == ""
    else:
        assert reason[0].isupper()
        assert reason.endswith(".")
        assert "\n" not in reason
        assert "Driftline itself" not in reason
    if hostile.at != SITEMAP:
        standing = checked.pages[hostile.name]
        kept = hostile.checks if outcome in ("new", "changed") else hostile.checks - 1
        assert (standing.checks, standing.versions) == (hostile.checks, kept), "what failed is never kept as a version"


@pytest.fixture(scope="module")
def measured() -> dict[str, HostileRow]:
    """What each of them takes, checked by a process of its own."""
    return {row.row: row for row in measure(LARGE)}


@pytest.mark.parametrize("name", [one.name for one in LARGE])
def test_it_takes_no_more_memory_than_its_limit(measured: dict[str, HostileRow], name: str) -> None:
    row = measured[name]
    assert row.peak_mb <= row.most_mb


def test_a_row_that_breaks_its_bounds_or_ends_otherwise_does_not_hold() -> None:
    large = HostileServer(name="large", act=edited(body=lambda n: b"<p>" + b"word " * 1_000_000), ends="new", mb=1)
    late = HostileServer(name="late", act=page(body=b"<p>words"), ends="new", seconds=0.0)
    other = HostileServer(name="other", act=page(body=b"<p>words"), ends="too-large")
    ordinary, *rows = measure([large, late, other])
    assert ordinary.holds
    assert [row.holds for row in rows] == [False] * 3
    assert rows[0].peak_mb > ordinary.peak_mb + 5, "what a page takes shows in the figure"
