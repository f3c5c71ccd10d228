"""Filters of all pages and of tags: pages have them now and later, before their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from driftline.cli.main import main_with
from support.servers import Site

Run = Callable[..., tuple[int, str, str]]
PAGE = "Words of the page.</p><p>12 people online</p><p>Our newsletter"


@pytest.fixture
def run(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DRIFTLINE_STORE", where)

    def run_command(*arguments: str) -> tuple[int, str, str]:
        status = main_with(arguments)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run_command


def filters_of(run: Run) -> dict[str, list[str]]:
    pages = json.loads(run("list", "--json")[1])
    return {
        page["url"].rpartition("/")[2]: [f"{one['kind']} {one['value']}" for one in page["filters"]] for page in pages
    }


def test_filters_of_a_tag_and_of_all_pages_come_before_those_of_a_page(site: Site, run: Run) -> None:
    run("add", site.url("/a"), "--tag", "news", "--ignore", "a")
    run("add", site.url("/b"))
    assert run("filters", "--tag", "news", "--ignore", "online")[:2] == (0, "tag news: ignore online (1 page)\n")
    assert run("filters", "--all", "--drop", ".ad")[:2] == (0, "all pages: drop .ad (2 pages)\n")
    run("add", site.url("/c"), "--tag", "news")
    assert filters_of(run) == {
        "a": ["drop .ad", "ignore online", "ignore a"], "b": ["drop .ad"], "c": ["drop .ad", "ignore online"],
    }  # fmt: skip
    assert run("filters")[1] == "all pages: drop .ad\ntag news: ignore online\n"
    run("edit", site.url("/b"), "--tag", "news", "--keep", "b")
    run("edit", site.url("/c"), "--untag", "news")
    run("edit", site.url("/a"), "--no-filters", "--ignore", "x")
    assert filters_of(run) == {
        "a": ["drop .ad", "ignore online", "ignore x"], "b": ["drop .ad", "ignore online", "keep b"], "c": ["drop .ad"],
    }  # fmt: skip
    run("filters", "--all", "--no-filters")
    run("filters", "--tag", "news", "--no-filters", "--ignore", "y")
    assert filters_of(run) == {"a": ["ignore y", "ignore x"], "b": ["ignore y", "keep b"], "c": []}


def test_a_page_overrides_what_it_can_have_only_one_of(site: Site, run: Run) -> None:
    run("add", site.url("/a"), "--tag", "news", "--only", "added")
    run("filters", "--tag", "news", "--only", "removed", "--accept", "404")
    assert filters_of(run) == {"a": ["accept 404", "only added"]}
    run("edit", site.url("/a"), "--no-filters")
    assert filters_of(run) == {"a": ["only removed", "accept 404"]}


def test_filters_of_a_tag_report_no_change_and_then_what_they_leave(site: Site, run: Run) -> None:
    url = site.put("/a", PAGE)
    run("add", url, "--tag", "news")
    run("check")
    run("filters", "--tag", "news", "--keep", "newsletter")
    assert ": 0 new, 0 changed, 1 unchanged" in run("check")[1]
    site.put("/a", PAGE.replace("Words", "Other words").replace("12", "15"))
    assert ": 0 new, 0 changed, 1 unchanged" in run("check")[1]
    site.put("/a", PAGE.replace("newsletter", "newsletter about nets and boats"))
    assert ": 0 new, 1 changed, 0 unchanged" in run("check")[1]


def test_filters_of_a_tag_leave_its_credentials_alone(site: Site, run: Run) -> None:
    run("add", site.url("/a"), "--tag", "news")
    run("access", "--tag", "news", "--header", "X-Key: 1")
    run("filters", "--tag", "news", "--ignore", "x")
    assert "X-Key" in run("access", "--tag", "news")[1]
    run("access", "--tag", "news", "--clear")
    assert run("filters", "--tag", "news")[1] == "tag news: ignore x\n"
    assert run("access")[2].startswith("Nothing is set for any page")


@pytest.mark.parametrize(
    ("own", "shared"),
    [
        (["--read", "offers"], ["--select", ".price"]),
        (["--when", "price < 3"], ["--only", "added"]),
        (["--method", "GET"], ["--data", "a=1"]),
        (["--render"], ["--data", "a=1"]),
    ],
)
def test_filters_that_a_page_cannot_have_together_are_refused_and_nothing_is_changed(
    site: Site, run: Run, own: list[str], shared: list[str]
) -> None:
    url = site.url("/a")
    assert run("add", url, "--tag", "news", *own)[0] == 0
    before = filters_of(run)
    status, _, err = run("filters", "--tag", "news", *shared)
    assert status == 2
    assert url in err
    assert filters_of(run) == before
    assert run("filters")[1] == ""
    run("filters", "--tag", "other", *shared)
    assert run("edit", url, "--tag", "other")[0] == 2


def test_a_page_that_is_requested_otherwise_is_not_compared_with_what_it_was(site: Site, run: Run) -> None:
    url = site.put("/a", "Words of the page.")
    run("add", url, "--tag", "news")
    run("check")
    site.put("/a", "An answer to what was sent, with other words.")
    run("filters", "--tag", "news", "--data", "a=1")
    assert ": 0 new, 0 changed, 1 unchanged" in run("check")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ignore", "x"], "Filters of which pages?"),
        (["--tag", "a", "--all"], "either --tag or --all"),
        (["--tag", "a b"], "is not a tag"),
        (["--all", "--select", "p["], "is not a CSS selector"),
        (["--all", "--read", "source", "--drop", ".x"], "no parts can be named"),
    ],
)
def test_what_makes_no_sense_is_refused(run: Run, arguments: list[str], message: str) -> None:
    run("add", "https://example.com/")
    status, _, err = run("filters", *arguments)
    assert status in (1, 2)
    assert message in err
