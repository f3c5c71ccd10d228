"""Overruling a verdict from the command line."""

from __future__ import annotations

import pytest

from command import Command
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
    assert "said nothing" in driftline("feedback", "--list").err

    assert "are noise from now on" in driftline("feedback", change, "--noise").out

    (said,) = driftline.json("feedback", "--list")
    assert (said["change"], said["url"], said["verdict"], said["found"]) == (change, page, "noise", "meaningful")
    assert said["reason"] in driftline("feedback", "--list").out
    told = driftline("history", page, "--all").out
    assert f"You marked this as noise. {said['reason']} (change {change})" in told
    found = driftline.json("history", page, "--all")[0]["change"]
    assert (found["verdict"], found["said"]) == ("noise", "noise")
    assert driftline.json("feedback", change, "--forget") == {"change": change, "url": page, "verdict": None}
    assert driftline.json("feedback", "--list") == []
    assert "You marked" not in driftline("history", page).out
    again = driftline("feedback", change, "--forget")
    assert (again.status, again.out) == (1, "")
    assert "Nothing was said of the change" in again.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("1-2",),
        ("1-2", "--noise", "--matters"),
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
