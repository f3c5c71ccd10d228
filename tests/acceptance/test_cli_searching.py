"""Searching from the command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from command import Command
from support.servers import Site


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture(scope="module")
def driftline(tmp_path_factory: pytest.TempPathFactory) -> Command:
    return Command(tmp_path_factory.mktemp("searching"))


@pytest.fixture(scope="module")
def pages(driftline: Command, site: Site) -> tuple[str, str]:
    """A page that had the words and one that has them, searched by all tests here and changed by none."""
    past, present = site.put("/past", "Our refund policy is simple."), site.put("/present", "Nothing yet.")
    driftline("add", past)
    driftline("add", present, "--tag", "shop")
    driftline("check")
    site.put("/past", "Nothing left.")
    driftline("check", past)
    site.put("/present", "A policy for every refund: \x1b[2J\x9b31m[red]none[/red].")
    driftline("check", present)
    return past, present


def test_a_search_lists_where_words_appeared_and_disappeared(driftline: Command, pages: tuple[str, str]) -> None:
    past, present = pages
    found = driftline.json("search", "Refund", "policy")
    assert [(row["url"], row["version"], row["kind"]) for row in found] == [
        (present, 2, "appeared"), (past, 2, "disappeared"), (past, 1, "appeared"),
    ]  # fmt: skip
    assert found[0]["at"] > found[1]["at"] > found[2]["at"]
    assert found[1]["excerpt"] == "Our refund policy is simple."
    assert [found[1]["excerpt"][start:end] for start, end in found[1]["marks"]] == ["refund", "policy"]


def test_words_in_quotes_are_a_phrase_for_the_shell_and_for_the_query(
    driftline: Command, pages: tuple[str, str]
) -> None:
    for arguments in (("refund policy",), ('"refund policy"',), ('simple "refund pol*"',)):
        assert {row["url"] for row in driftline.json("search", *arguments)} == {pages[0]}


def test_a_search_is_narrowed_by_its_options(driftline: Command, pages: tuple[str, str]) -> None:
    present = pages[1]
    for options in (("--now",), ("--tag", "shop"), ("--page", present), ("--limit", "1")):
        assert [row["url"] for row in driftline.json("search", "refund", *options)] == [present]
    assert len(driftline.json("search", "refund", "--since", "1h", "--until", "2200-01-01")) == 3
    assert driftline.json("search", "refund", "--until", "1h") == []
    assert driftline.json("search", "refund", "--since", "2200-01-01") == []


def test_matches_are_marked_with_colours_or_brackets(driftline: Command, pages: tuple[str, str]) -> None:
    lines = driftline("search", "refund", "policy").out.splitlines()
    assert lines[0].startswith(f"appeared    {pages[1]}  version 2, ")
    assert lines[2].startswith(f"disappeared {pages[0]}  version 2, ")
    assert lines[3] == "    Our [-refund-] [-policy-] is simple."
    assert lines[5] == "    Our {+refund+} {+policy+} is simple."
    status, shown = driftline.on_terminal("search", "refund")
    assert status == 0
    assert "\x1b[1;32mrefund\x1b[0m" in shown
    assert "\x1b[1;31mrefund\x1b[0m" in shown
    assert "[red]none[/red]" in shown
    assert "\x1b[2J" not in shown
    assert "\x9b" not in shown


def test_words_that_were_never_there_are_told_so(driftline: Command, pages: tuple[str, str]) -> None:
    ended = driftline("search", "nowhere")
    assert (ended.status, ended.out) == (0, "")
    assert ended.err == "No version found in which these words appeared or disappeared.\n"
    assert driftline.json("search", "nowhere") == []
