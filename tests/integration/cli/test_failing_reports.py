"""What the commands print of a page that fails again and again, and recovers; in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import driftline
from driftline.cli.main import main_with
from support.servers import Site

Told = Callable[..., str]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Told:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DRIFTLINE_STORE", str(tmp_path / "pages.db"))

    def tell(*arguments: str) -> str:
        assert main_with(arguments) == 0
        return capsys.readouterr().out

    return tell


def events(found: str) -> list[tuple[str, list[str]]]:
    return [(event["event"], sorted(event["urls"])) for event in json.loads(found)["events"]]


def test_a_check_reports_that_pages_of_a_host_began_to_fail_and_recovered(site: Site, told: Told) -> None:
    urls = [site.put(path, f"Words of {path}, which are some.") for path in ("/a", "/b")]
    told("add", *urls)
    pages = dict(site.pages)
    assert events(told("check", "--json")) == []
    site.pages.clear()
    assert events(told("check", "--json")) == []
    assert [line[:8] for line in told("check").splitlines()[:2]] == ["failed  "] * 2
    assert events(told("check", "--json")) == [("failing", urls)], "one event, though two pages fail"
    assert events(told("check", "--json")) == []
    site.pages.update(pages)
    assert events(told("check", "--json")) == [("recovered", urls)]
    rows: list[dict[str, Any]] = json.loads(told("history", urls[0], "--json"))
    assert [row["turned"] for row in rows] == ["recovered", None, "failing", None, None, None]
    recovered, _, failing = told("history", urls[0]).splitlines()[1:4]
    assert " recovered " in recovered
    assert " failing " in failing


def test_a_check_says_so_in_words_and_names_no_page_twice(
    site: Site, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFTLINE_FAIL_AFTER", "2")
    url = site.put("/gone", "It is here, and says so in some words.")
    told("add", url)
    told("check")
    site.pages.clear()
    told("check")
    lines = told("check").splitlines()
    assert lines[0] == f"failing           {url}  2 checks in a row failed. The server answered 404 Not Found."
    assert [line for line in lines if url in line] == lines[:1]
    site.put("/gone", "It is here, and says so in some words.")
    lines = told("check").splitlines()
    assert lines[0] == f"recovered         {url}  The page could be read again, after 2 checks that failed."


def test_run_reports_a_page_that_fails_from_its_first_check_also_to_a_command(
    site: Site, told: Told, tmp_path: Path
) -> None:
    heard = tmp_path / "heard"
    url = site.url("/gone")
    told("add", url, "--every", "1s", "--later")
    command = f"sh -c 'cat >> {heard}'"
    assert "failing" in told("run", "--once", "--exec", command)
    [event] = [json.loads(line) for line in heard.read_text().splitlines()]
    with driftline.open(str(tmp_path / "pages.db")) as pages:
        assert event.pop("at") == pages.history.checks(url)[0].at.timestamp()
    assert event.pop("ids") == ["1-1"]
    assert event.items() >= {
        "event": "failing", "host": url.split("/")[2], "kind": "status", "score": 1.0,
        "reason": "Its first check failed. The server answered 404 Not Found.",
    }.items()  # fmt: skip
    assert event["urls"] == [url]


def test_a_wall_is_never_a_version_and_is_named_when_the_page_fails(
    site: Site, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFTLINE_FAIL_AFTER", "2")
    url = site.put("/", "".join(f"<p>Report {number} of what the council said of nets.</p>" for number in range(20)))
    told("add", url)
    told("check")
    wall = b"<title>Just a moment...</title><script>window._cf_chl_opt={}</script><p>Checking your browser"
    site.pages["/"] = wall
    assert json.loads(told("check", "--json"))["failures"][0]["kind"] == "broken"
    assert told("check").splitlines()[0] == (
        f"failing           {url}  2 checks in a row failed. The site shows a block page of Cloudflare instead of "
        "the page: it wants proof that a person is there. "
        "If it is the page from now on, 'driftline check URL --accept' takes it so."
    )
    assert json.loads(told("list", "--json"))[0]["versions"] == 1


def test_what_a_page_became_is_taken_for_it_once_its_user_accepts_it(
    site: Site, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFTLINE_FAIL_AFTER", "1")
    url = site.put("/", "".join(f"<p>Report {number} of what the council said of nets.</p>" for number in range(20)))
    other = site.put("/other", "Words of another page, which stay the same.")
    told("add", url, other)
    told("check")
    site.put("/", "<title>Page not found</title><p>Page not found</p>")
    assert "'driftline check URL --accept'" in told("check").splitlines()[0]
    accepted = json.loads(told("check", url, "--accept", "--json"))
    assert (accepted["failed"], accepted["pages"]) == (0, 1)
    assert [event["event"] for event in accepted["events"]] == ["recovered"]
    assert told("show", url).strip().endswith("Page not found")
    assert json.loads(told("history", url, "--json", "--all"))[0]["reason"] == "You accepted the page as it is now."
    site.put("/", "<title>Page not found</title><p>Page not found</p><p>It was moved to the library.</p>")
    assert json.loads(told("check", "--json"))["changed"] == 1, "from then on it is watched like any other"


def test_only_pages_that_are_named_can_be_accepted(told: Told) -> None:
    told("add", "http://127.0.0.1:9/")
    assert main_with(["check", "--accept"]) == 2
