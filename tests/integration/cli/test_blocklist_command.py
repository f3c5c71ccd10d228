"""`blocklist` and `report-unsafe`, in this process, and where what they block is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from driftline.cli.main import main_with
from support.servers import Site


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DRIFTLINE_STORE", str(tmp_path / "pages.db"))


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Any:
    """What a command prints with --json."""

    def tell(*arguments: str, status: int = 0) -> Any:
        capsys.readouterr()
        assert main_with([*arguments, "--json"]) == status
        return json.loads(capsys.readouterr().out)

    return tell


def test_a_report_is_shown_wherever_the_page_is(site: Site, told: Any, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = site.put("/good", "fine"), site.put("/bad", "not fine")
    main_with(["add", good, bad])
    main_with(["check"])
    found = told("report-unsafe", bad, "--reason", "it asks for passwords")
    assert (found["votes"], found["blocked"]) == (1, True)
    reason = "This page was reported as unsafe (1 vote: it asks for passwords)."

    checked = told("check")
    assert checked["blocked"] == [{"url": bad, "reason": reason}]
    assert (checked["pages"], checked["failed"]) == (1, 0)
    assert [page["blocked"] for page in told("list")] == [None, reason]
    assert told("show", bad)["blocked"] == reason
    assert [(one["lane"], one["reason"]) for one in told("schedule")] == [("value", ""), ("unsafe", reason)]

    capsys.readouterr()
    for command in (["list"], ["check"], ["schedule"], ["check", bad]):
        assert main_with(command) == 0
        assert reason.rstrip(".") in capsys.readouterr().out
    main_with(["show", bad])
    assert reason in capsys.readouterr().err

    assert told("report-unsafe", bad, "--withdraw") == {"url": bad, "withdrawn": 1}
    assert main_with(["report-unsafe", bad, "--withdraw"]) == 1
    assert "safety" not in _first_line(capsys, "list")
    assert told("check")["unchanged"] == 2


def test_lists_are_added_shown_updated_and_removed(
    site: Site, told: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main_with(["add", site.put("/", "here")])
    listed = tmp_path / "bad.txt"
    listed.write_text("bad.example\nthis is no host\n127.0.0.1\n")
    assert main_with(["blocklist", "add", str(listed)]) == 0
    said = capsys.readouterr()
    assert "'bad.txt' blocks 2 hosts (domains)." in said.out
    assert f"blocked {site.url('/')}  The host 127.0.0.1 is on the blocklist 'bad.txt'." in said.out
    assert "bad.txt, line 2: 'this is no host' is not the name of a host" in said.err
    (shown,) = told("blocklist", "list")
    assert (shown["name"], shown["hosts"], shown["skipped"]) == ("bad.txt", 2, 1)
    assert main_with(["blocklist", "list"]) == 0

    listed.write_text("bad.example\n")
    updated = told("blocklist", "update")
    assert [one["hosts"] for one in updated["lists"]] == [1]
    assert updated["blocked"] == []
    listed.unlink()
    assert main_with(["blocklist", "update"]) == 1
    assert "the list 'bad.txt' stays as it was" in capsys.readouterr().err
    assert told("blocklist", "remove", "bad.txt") == {"removed": "bad.txt"}
    assert main_with(["blocklist", "remove", "bad.txt"]) == 2


def test_a_page_on_a_list_is_said_to_be_when_it_is_added(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = tmp_path / "bad.txt"
    listed.write_text("bad.example\n")
    main_with(["blocklist", "add", str(listed)])
    main_with(["add", "https://www.bad.example/"])
    assert "The host bad.example is on the blocklist 'bad.txt'." in capsys.readouterr().err


def test_votes_that_are_too_few_block_nothing(told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTLINE_UNSAFE_VOTES", "3")
    assert told("report-unsafe", "https://page.example/", "--votes", "2")["blocked"] is False
    assert told("report-unsafe", "https://page.example/", "--reason", "spam")["blocked"] is True
    (listed,) = told("report-unsafe", "--list")
    assert (listed["votes"], listed["reasons"], listed["blocked"]) == (3, ["spam"], True)
    assert main_with(["report-unsafe", "--list"]) == 0


def test_a_single_pass_over_blocked_pages_says_that_nothing_else_is_left(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    main_with(["add", site.put("/", "here")])
    main_with(["report-unsafe", site.url("/")])
    assert main_with(["run", "--once"]) == 0
    assert "Nothing is due. All other pages are blocked as unsafe." in capsys.readouterr().err
    assert not site.asked.is_set()


def test_rank_says_how_many_pages_are_left_out(told: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for url in ("https://good.example/", "https://bad.example/"):
        main_with(["visit", url])
    main_with(["report-unsafe", "https://bad.example/x", "--host"])
    assert [row["url"] for row in told("rank")] == ["https://good.example/"]
    main_with(["rank"])
    assert capsys.readouterr().err == "Not shown: 1 page blocked as unsafe.\n"


def test_warnings_are_shown_by_check_list_show_and_history(
    site: Site, told: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    calm = "<p>Words that stay as they are.</p>"
    url = site.put("/", calm)
    main_with(["add", url])
    main_with(["check"])
    frame = '<iframe src="https://evil.example/x" width="0" height="0"></iframe>'
    site.put("/", f"{calm}<p>Now there is more of it.</p>{frame}")
    capsys.readouterr()
    main_with(["check"])
    sentence = "A hidden frame appeared that loads https://evil.example/x."
    assert f"warning           {url}  {sentence}" in capsys.readouterr().out
    assert told("history", url)[0]["warnings"] == [{"kind": "hidden-frame", "reason": sentence}]
    assert told("list")[0]["warnings"] == told("show", url)["warnings"]
    main_with(["history", url])
    assert sentence in capsys.readouterr().out


def test_a_command_also_gets_what_a_check_found(site: Site, tmp_path: Path) -> None:
    calm = "<p>A page of some length, with words that stay as they are from day to day.</p>"
    url = site.put("/", calm)
    main_with(["add", url])
    main_with(["run", "--once", "--exec", "true"])
    frame = '<iframe src="https://evil.example/x" width="0" height="0"></iframe>'
    site.put("/", f"{calm}<p>Now there is more of it.</p>{frame}")
    events = tmp_path / "events"
    main_with(["check"])
    assert main_with(["run", "--once", "--exec", f"sh -c 'cat >> {events}'"]) == 0
    found = [json.loads(line) for line in events.read_text().splitlines()]
    warning = next(event for event in found if event["event"] == "warning")
    assert (warning["urls"], warning["kind"]) == ([url], "hidden-frame")
    assert warning["reason"] == "A hidden frame appeared that loads https://evil.example/x."


@pytest.mark.parametrize(
    "arguments",
    [
        ["report-unsafe"],
        ["report-unsafe", "https://x.example/", "--list"],
        ["report-unsafe", "--list", "--withdraw"],
        ["report-unsafe", "not an address"],
        ["report-unsafe", "https://x.example/", "--votes", "0"],
        ["blocklist", "add"],
        ["blocklist", "add", "a", "b", "--name", "c"],
    ],
)
def test_what_means_nothing_is_a_usage_error(arguments: list[str]) -> None:
    assert main_with(arguments) == 2


def _first_line(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    capsys.readouterr()
    main_with([*command])
    return capsys.readouterr().out.splitlines()[0]
