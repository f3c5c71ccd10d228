"""One page in several spellings from the command line, which runs in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from driftline.cli.main import main_with
from support.servers import Site

SHOWN = "https://münchen.example/~anna?b=2&a=1"
NAME = "https://xn--mnchen-3ya.example/~anna?b=2&a=1"
SHARED = "https://München.example:443/x/../%7eanna?b=2&utm_source=mail&a=1&fbclid=x#top"

Told = Callable[..., str]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Told:
    """Runs the command and gives what it told on both streams; its status must be the one that is asked for."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("DRIFTLINE_STORE", str(tmp_path / "pages.db"))
    monkeypatch.setenv("DRIFTLINE_ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("DRIFTLINE_HOST_DELAY", "0")
    monkeypatch.setenv("DRIFTLINE_ROBOTS", "ignore")

    def tell(*arguments: str, status: int = 0) -> str:
        assert main_with(arguments) == status
        captured = capsys.readouterr()
        return captured.out + captured.err

    return tell


def watched(told: Told) -> list[str]:
    return [page["url"] for page in json.loads(told("list", "--json"))]


def test_a_page_that_is_added_in_another_spelling_is_watched_already(told: Told) -> None:
    assert told("add", NAME) == f"Added {SHOWN}\n"

    assert told("add", SHARED) == f"Already watched: {SHOWN}\n"
    added = json.loads(told("add", SHARED, NAME, "--json"))
    assert added == {"added": [], "watched_already": [NAME], "checked": [], "passed_over": []}
    assert watched(told) == [NAME]


def test_both_spellings_at_once_are_one_page(told: Told) -> None:
    assert told("add", SHARED, NAME) == f"Added {SHOWN}\n"
    assert watched(told) == [NAME]


@pytest.mark.parametrize("command", ["history", "show", "diff", "check"])
def test_what_looks_for_a_page_knows_every_spelling(told: Told, command: str) -> None:
    told("add", "https://other.example/")
    said = f'driftline: {SHOWN} is not watched: add it with "driftline add {quote(SHOWN)}".\n'
    assert told(command, SHARED, status=1) == said


def test_what_is_suggested_can_be_pasted_into_a_shell(told: Told) -> None:
    page = "https://example.com/?a=1&b='2'~"
    added = told("add", page).removeprefix("Added ").strip()
    assert f'"driftline check {quote(added)}"' in told("history", added)
    assert f'check it with "driftline check {quote(added)}".' in told("show", added, status=1)
    told("remove", added, "--yes")
    assert f'add it with "driftline add {quote(added)}".' in told("show", added, status=1)


def test_a_page_is_shown_edited_and_removed_in_any_spelling(told: Told) -> None:
    told("add", NAME)

    assert "was never checked" in told("history", SHARED)
    assert f"{SHOWN} has no version yet" in told("show", SHARED, status=1)
    assert json.loads(told("edit", SHARED, "--tag", "x", "--json"))["url"] == NAME
    assert json.loads(told("visit", SHARED, "--json"))["watched"]
    assert told("remove", SHARED, "--yes") == f"Removed {SHOWN}\n"


def test_an_import_names_the_line_where_a_page_stood_before(told: Told, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(f"{NAME}\n{SHARED}\nexample.com/a?gclid=1\n")

    said = told("import", str(tmp_path / "list.txt"))

    assert f"line 2: {SHOWN} is on line 1 already." in said
    assert "Added 2 pages (1 line skipped)." in said
    assert watched(told) == [NAME, "https://example.com/a"]


def test_a_part_of_an_application_is_a_page_that_says_where_it_stands(told: Told, site: Site) -> None:
    page = site.put("/a", '<link rel="canonical" href="/elsewhere"><p>Words of the application</p>')
    told("add", f"{page}?gclid=1#/inbox")
    told("check")

    shown = json.loads(told("show", f"{page}#/inbox", "--json"))

    assert (shown["url"], shown["canonical"]) == (f"{page}#/inbox", site.url("/elsewhere"))


def test_the_environment_changes_which_parameters_are_dropped(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTLINE_TRACKING", "ref, -utm_*")

    told("add", "example.com/?ref=a&utm_source=b&gclid=c")

    assert watched(told) == ["https://example.com/?utm_source=b"]
    rows: list[dict[str, Any]] = json.loads(told("settings", "--json"))
    assert next(row["value"] for row in rows if row["name"] == "tracking") == ["ref", "-utm_*"]


def test_the_settings_file_changes_which_parameters_are_dropped(told: Told, tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "driftline"
    folder.mkdir(parents=True)
    (folder / "driftline.toml").write_text('tracking = ["ref", "-gclid"]\n')
    (tmp_path / "list.txt").write_text("example.com/?ref=a&gclid=c\nexample.com/?gclid=c\n")

    assert "line 2: https://example.com/?gclid=c is on line 1" in told("import", str(tmp_path / "list.txt"))
    assert watched(told) == ["https://example.com/?gclid=c"]


@pytest.mark.parametrize("names", ["*", "a b", "a=1", "--ref", "a*b", "-", "utm_**", "a&b"])
def test_what_names_no_parameter_is_refused(told: Told, monkeypatch: pytest.MonkeyPatch, names: str) -> None:
    monkeypatch.setenv("DRIFTLINE_TRACKING", names)

    said = told("add", "example.com", status=2)

    assert "The setting 'tracking' is not valid" in said
    assert "write names as ref or utm_*, and -name for one to keep" in said


def test_the_doctor_names_a_page_that_is_called_as_it_would_not_be_today(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    told("add", "example.com/?id=1")
    assert "Addresses: every page has its canonical URL." in told("doctor")

    monkeypatch.setenv("DRIFTLINE_TRACKING", "id")

    would = "1 page would get another URL if added today, such as https://example.com/?id=1:"
    assert f"Addresses: {would} move one with 'driftline edit URL --url NEW'." in told("doctor")
    told("edit", "example.com/?id=1", "--url", "example.com/?id=1")
    assert watched(told) == ["https://example.com/"]


def test_a_bad_address_leaves_no_store_behind(told: Told, tmp_path: Path) -> None:
    assert "only http and https" in told("add", "ftp://example.com/", status=2)
    assert not (tmp_path / "pages.db").exists()
