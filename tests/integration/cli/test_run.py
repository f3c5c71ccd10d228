"""`run`, in this process: how it ends."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import driftline
from driftline.api import workspace_of
from driftline.cli.main import main_with
from driftline.store.engine import Store
from support.servers import Site, closed_port


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DRIFTLINE_STORE", str(tmp_path / "pages.db"))


def test_the_command_gets_every_event_before_the_run_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTLINE_STOP_GRACE", "0.001")
    monkeypatch.setenv("DRIFTLINE_FAIL_AFTER", "1")
    heard = tmp_path / "heard"
    port = closed_port()
    main_with(["add", *[f"http://127.0.0.{number}:{port}/" for number in range(1, 10)]])
    assert main_with(["run", "--once", "--exec", f"sh -c 'cat >> {heard}'"]) == 0
    assert [json.loads(line)["event"] for line in heard.read_text().splitlines()] == ["failing"] * 9


def leave_a_change_unreported(site: Site, store: Path) -> str:
    """What a run leaves behind that is killed after it recorded a change; the page."""
    url = site.put("/", "Words of a page, as they were at first.")
    main_with(["add", url, "--every", "1h"])
    with driftline.open(str(store)) as pages:
        pages.check()
        site.put("/", "Words of a page, and they are others now.")
        with workspace_of(pages).runs.keep_checking(lambda _: None) as running:
            running.feed.offer([page.id for page in pages.pages()])
        assert [*pages.changes()] == []
    return url


def test_a_run_prints_what_an_earlier_one_left_once(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = leave_a_change_unreported(site, tmp_path / "pages.db")
    capsys.readouterr()
    assert main_with(["run", "--once"]) == 0
    said = capsys.readouterr()
    assert "changed" in said.out
    assert url in said.out
    assert said.err.startswith("Nothing is due.")
    assert main_with(["run", "--once"]) == 0
    assert capsys.readouterr().out == ""


def test_a_command_gets_what_an_earlier_run_left_as_one_line_with_everything_in_it(site: Site, tmp_path: Path) -> None:
    url = leave_a_change_unreported(site, tmp_path / "pages.db")
    events = tmp_path / "events"
    for _ in range(2):
        assert main_with(["run", "--once", "--exec", f"sh -c 'cat >> {events}'"]) == 0
    (line,) = events.read_text().splitlines(keepends=True)
    assert line.endswith("\n")
    event = json.loads(line)
    assert (event["event"], event["urls"], event["ids"]) == ("changed", [url], ["1-2"])
    assert (event["id"], event["pages"][0]["url"], event["pages"][0]["to_version"]) == (1, url, 2)
    assert event["headline"]
    with driftline.open(str(tmp_path / "pages.db")) as pages:
        assert event["at"] == pages.history.checks(url)[0].at.timestamp(), (
            "the time of the check, whenever it is reported"
        )


def test_what_a_command_did_not_get_is_left_to_the_next_run(site: Site, tmp_path: Path) -> None:
    leave_a_change_unreported(site, tmp_path / "pages.db")
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF, or nearly")
    broken.chmod(0o700)
    heard = tmp_path / "heard"
    assert main_with(["run", "--once", "--exec", str(broken)]) == 1
    assert main_with(["run", "--once", "--exec", f"sh -c 'cat >> {heard}'"]) == 0
    assert json.loads(heard.read_text())["event"] == "changed"


@pytest.mark.parametrize("wanted", [[], ["--min", "minor"]])
def test_minor_changes_are_given_to_the_command_on_request(site: Site, tmp_path: Path, wanted: list[str]) -> None:
    heard = tmp_path / "heard"
    run = ["run", "--once", *wanted, "--exec", f"sh -c 'cat >> {heard}'"]
    url = site.put("/", "Words of a page. Log in to read more.")
    main_with(["add", url, "--every", "1h"])
    for words in ("Words of a page. Log in to read more.", "Words of a page. Login to read more."):
        site.put("/", words)
        assert main_with(["check"]) == 0
        assert main_with(run) == 0
    told = heard.read_text() if heard.exists() else ""
    assert [json.loads(line)["importance"] for line in told.splitlines()] == ["minor"] * len(wanted[1:])


def test_what_a_check_printed_is_not_printed_by_the_next_run(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    main_with(["add", site.put("/", "Words of a page, as they were at first."), "--every", "1h"])
    main_with(["check"])
    site.put("/", "Words of a page, and they are others now.")
    main_with(["check"])
    assert "changed" in capsys.readouterr().out
    assert main_with(["run", "--once"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("how", [(), ("--once",)])
def test_it_is_refused_while_another_goes_on(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: tuple[str, ...]
) -> None:
    main_with(["add", site.put("/", "here")])
    other = Store.open(str(tmp_path / "pages.db"))
    with other.right_to_keep_checking():
        capsys.readouterr()
        assert main_with(["run", *how, "--exec", "true"]) == 1
        said = capsys.readouterr()
        assert main_with(["check"]) == 0
    other.close()
    assert said.out == ""
    assert said.err.startswith(
        f"driftline: Another 'driftline run' (process {os.getpid()}) keeps checking the pages of "
    )
    assert said.err.count("\n") == 1
    assert main_with(["run", "--once"]) == 0


def test_an_event_is_kept_for_a_command_that_fails(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_a_change_unreported(site, tmp_path / "pages.db")
    events = tmp_path / "events"
    assert main_with(["run", "--once", "--exec", "sh -c 'echo no room >&2; exit 3'"]) == 1
    said = capsys.readouterr().err
    assert "'sh' ended with status 3: no room." in said
    assert "1 event is still to be delivered to 'sh': the next run tries again." in said
    assert main_with(["run", "--once", "--exec", f"sh -c 'cat >> {events}'"]) == 0
    assert json.loads(events.read_text())["event"] == "changed"


def test_catching_up_that_fails_is_reported_and_is_no_failure(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main_with(["add", site.put("/", "here")])
    with closing(sqlite3.connect(tmp_path / "pages.db")) as torn:
        torn.execute("CREATE TABLE words (something_else)")  # where the search index should be
    assert main_with(["run", "--once"]) == 0
    err = capsys.readouterr().err
    assert "Catching up failed, and will be tried again: The store " in err
    assert "words" in err


def test_a_command_that_is_not_there_is_refused_before_anything_is_checked(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    main_with(["add", site.put("/", "here")])
    assert main_with(["run", "--once", "--exec", "no-such-program --json"]) == 2
    assert "'no-such-program' is not found" in capsys.readouterr().err
    assert not site.asked.is_set()


def test_a_single_pass_says_what_it_found_and_when_the_next_is_due(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    main_with(["add", site.put("/", "here"), site.url("/gone"), "--every", "1h"])
    assert main_with(["run", "--once"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("Checked 2 pages: 1 new, 1 failed. The next page is due at 20")
    assert main_with(["run", "--once"]) == 0
    assert capsys.readouterr().err == err.replace("Checked 2 pages: 1 new, 1 failed.", "Nothing is due.")


def test_a_single_pass_over_no_pages_says_how_to_add_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pages.db").touch()
    assert main_with(["run", "--once"]) == 0
    assert capsys.readouterr().err == "No pages are watched yet: add one with 'driftline add https://example.com/'.\n"


def test_the_schedule_says_of_a_page_that_only_ever_failed_when_it_is_tried_again(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    main_with(["add", site.url("/missing"), "--every", "1h"])
    main_with(["run", "--once"])
    capsys.readouterr()
    assert main_with(["schedule"]) == 0
    out = capsys.readouterr().out
    assert re.search(r" 20\d\d-.* failed 1 time, last \d+ s ago", out)
    assert "never" not in out
