"""Overruling a verdict from the command line."""

from __future__ import annotations

import pytest

from command import Command, without_styles
from support.servers import Site


@pytest.fixture
def change(driftline: Command, site: Site) -> str:
    """The id of a change that matters."""
    page = site.put("/a", "The price is five euros.")
    driftline("add", page)
    driftline("check")
    site.put("/a", "The price is six euros.")
    name: str = driftline.json("check")["changes"][0]["id"]
    return name


def test_what_was_said_is_listed_told_by_the_history_and_withdrawn(driftline: Command, site: Site, change: str) -> None:
    page = site.url("/a")
    assert "marked no change yet" in driftline("feedback", "--list").err

    assert "will no longer be reported" in driftline("feedback", change, "--noise").out

    (said,) = driftline.json("feedback", "--list")
    assert (said["change"], said["url"], said["importance"], said["found"]) == (change, page, "noise", "important")
    assert said["reason"] in driftline("feedback", "--list").out
    told = driftline("history", page, "--all").out
    assert f"change {change}: (marked as noise by you) " in told
    found = driftline.json("history", page, "--all")[0]["change"]
    assert (found["importance"], found["said"]) == ("noise", "noise")
    assert driftline.json("feedback", change, "--forget") == {"change": change, "url": page, "importance": None}
    assert driftline.json("feedback", "--list") == []
    assert "marked as" not in driftline("history", page).out
    again = driftline("feedback", change, "--forget")
    assert (again.status, again.out) == (1, "")
    assert "Nothing was said of the change" in again.err


def test_a_change_can_be_called_minor_or_important(driftline: Command, site: Site, change: str) -> None:
    assert "will count as minor" in driftline("feedback", change, "--minor").out
    assert driftline.json("feedback", "--list")[0]["importance"] == "minor"
    site.put("/a", "The price is seven euros.")
    found = driftline.json("check")
    assert (found["minor"], found["changes"]) == (1, [])
    assert "will be reported" in driftline("feedback", change, "--important").out
    site.put("/a", "The price is eight euros.")
    assert driftline.json("check")["changes"][0]["importance"] == "important"


def test_a_change_that_is_printed_leads_to_its_diff_its_text_and_feedback(driftline: Command, site: Site) -> None:
    page = site.put("/a", "The price is five euros.")
    driftline("add", page)
    driftline("check")
    site.put("/a", "The price is six euros.")
    line = driftline("check").out.splitlines()[0]
    site.put("/a", "The price is seven euros.")
    driftline("check")

    _, change, url, *_ = line.split()
    assert url == page
    assert change in driftline("changes").out
    diff = driftline("diff", change).out
    assert "-The price is five euros." in diff
    assert "+The price is six euros." in diff
    assert driftline("show", change).out.strip() == "The price is six euros."
    assert driftline("feedback", change, "--noise").status == 0


def test_a_terminal_that_is_too_narrow_gets_the_headline_on_its_own_line(driftline: Command, change: str) -> None:
    wide, narrow = (without_styles(driftline.on_terminal("changes", COLUMNS=width)[1]) for width in ("200", "70"))
    assert f" driftline diff {change}" in wide
    assert len(narrow.splitlines()) == len(wide.splitlines()) + 1
    assert wide.split() == narrow.split()
    assert max(map(len, narrow.splitlines()[:2])) <= 70


@pytest.mark.parametrize("arguments", [("diff", "1-2", "1"), ("show", "1-2", "--version", "1")])
def test_the_id_of_a_change_takes_no_version(driftline: Command, arguments: tuple[str, ...]) -> None:
    ended = driftline(*arguments)

    assert ended.status == 2
    assert "The id of a change names" in ended.err


@pytest.mark.parametrize("command", ["diff", "show"])
def test_an_id_without_a_change_is_reported(driftline: Command, command: str) -> None:
    ended = driftline(command, "1-99")

    assert ended.status == 1
    assert "There is no change 1-99" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("1-2",),
        ("1-2", "--noise", "--important"),
        ("1-2", "--noise", "--forget"),
        ("1-2", "--list"),
        ("--noise",),
        ("no-id", "--noise"),
        ("1", "--forget"),
        (),
    ],
)
def test_what_makes_no_sense_is_a_matter_of_usage(driftline: Command, arguments: tuple[str, ...]) -> None:
    ended = driftline("feedback", *arguments)

    assert (ended.status, ended.out) == (2, "")
    assert len(ended.err.splitlines()) == 1


def test_a_change_that_never_was_is_told(driftline: Command) -> None:
    ended = driftline("feedback", "1-99", "--noise")

    assert ended.status == 1
    assert "There is no change 1-99" in ended.err
