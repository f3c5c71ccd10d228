"""The state changes of a run can be followed with `-v`, also as JSON lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from driftline.cli.main import main_with
from support.servers import Site


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTLINE_STORE", str(tmp_path / "pages.db"))


def logged(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_check_and_a_run_are_followed_as_lines_of_json(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    url = site.put("/", "<p>Price: 5 euros")
    missing = site.url("/missing")
    main_with(["add", url, missing])
    capsys.readouterr()
    assert main_with(["-v", "--log-format", "json", "check"]) == 0
    found = {one["message"].partition(":")[0]: one for one in logged(capsys)}
    assert found["check started"]["pages"] == "all"
    assert (found["page failed"]["url"], found["page failed"]["kind"]) == (missing, "status")
    ended = found["check ended"]
    assert (ended["pages"], ended["new"], ended["failed"], ended["logger"]) == (2, 1, 1, "driftline.api.runs")
    assert "took the right to check" in " ".join(found)
    assert found["new run"]["run"] == found["run complete"]["run"]
    assert "pipeline started" not in found, "that is a step"
    site.put("/", "<p>Price: 4 euros")
    assert main_with(["-vv", "--log-format", "json", "run", "--once", "--every", "1s"]) == 0
    found = {one["message"].partition(":")[0]: one for one in logged(capsys)}
    assert {"run started", "run ended", "new run", "run complete", "pipeline started", "pipeline ended"} <= found.keys()
    assert found["pipeline ended"]["pipeline"] == "two-section"
    assert found["run ended"]["level"] == "info"


def test_imports_of_visits_and_blocklists_are_followed_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    visits, listed = tmp_path / "visits.csv", tmp_path / "bad.txt"
    visits.write_text("url,at\nhttps://a.example/,2026-01-01\n")
    listed.write_text("bad.example\nworse.example\n")
    follow = ["-v", "--log-format", "json"]
    assert main_with([*follow, "visits", "import", str(visits)]) == 0
    assert main_with([*follow, "blocklist", "add", str(listed)]) == 0
    found = {one["message"]: one for one in logged(capsys)}
    assert found["import of visits started"]["format"] == "csv"
    assert found["import of visits ended"]["visits"] == 1
    assert (found["blocklist read"]["blocklist"], found["blocklist read"]["hosts"]) == ("bad.txt", 2)


def test_a_run_logs_each_check_as_fields(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    url, missing = site.put("/", "<p>Price: 5 euros"), site.url("/missing")
    main_with(["add", url, missing])
    capsys.readouterr()
    assert main_with(["--log-format", "json", "run", "--once", "-v"]) == 0
    found = {one["url"]: one for one in logged(capsys) if one["message"] == "page checked"}
    assert (found[url]["verdict"], found[url]["status"], found[url]["bytes"]) == ("new", 200, 60)
    assert (found[missing]["verdict"], found[missing]["failure"]) == ("failed", "status")


@pytest.mark.parametrize("words", [("nosuch",), ("--nosuch", "list"), ("list", "--nosuch"), ("-v", "nosuch")])
def test_wrong_usage_is_a_line_of_json_too(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    for asked in (("--log-format", "json"), ("--log-format=json",)):
        assert main_with([*asked, *words]) == 2
        (line,) = logged(capsys)
        assert (line["level"], "nosuch" in line["message"]) == ("error", True)
    assert main_with(["nosuch", "--log-format", "json"]) == 2
    assert capsys.readouterr().err.startswith("driftline: ")


@pytest.mark.parametrize("option", ["-v", "--verbose", "--log-format"])
def test_an_option_of_every_command_is_said_to_stand_before_it(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main_with(["check", option]) == 2
    assert f"stands before the command: write 'driftline {option} check'." in capsys.readouterr().err


def test_a_format_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main_with(["--log-format", "xml", "list"]) == 2
    assert "'xml' is not a format of the log: use text or json." in capsys.readouterr().err
