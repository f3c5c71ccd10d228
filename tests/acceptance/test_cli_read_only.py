"""A store that cannot be written can be looked at."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import driftline as package
from command import Command
from support.servers import Site


@pytest.fixture
def page(driftline: Command, site: Site, tmp_path: Path) -> str:
    """A page with two versions, in a store that has its folder for itself."""
    url = site.put("/a", "The price is five euros.")
    driftline.environment["DRIFTLINE_STORE"] = str(tmp_path / "place" / "pages.db")
    driftline("add", url)
    driftline("check")
    site.put("/a", "The price is six euros.")
    driftline("check")
    return url


@pytest.fixture
def read_only(driftline: Command, page: str, tmp_path: Path) -> Iterator[str]:
    """The same page; the store is one now that the command cannot write."""
    place = tmp_path / "place"
    if os.geteuid():
        place.chmod(0o500)
        yield page
        place.chmod(0o700)
        return
    # nothing but the file system keeps root from writing
    seen = tmp_path / "seen"
    seen.mkdir()
    steps: list[list[str | Path]] = [["--bind", place, seen], ["-o", "remount,ro,bind", seen]]
    done = [subprocess.run(["mount", *step], check=False, capture_output=True).returncode == 0 for step in steps]
    if all(done):
        driftline.environment["DRIFTLINE_STORE"] = str(seen / "pages.db")
        yield page
    if done[0]:
        subprocess.run(["umount", seen], check=True)
    if not all(done):
        pytest.skip("mounting is not allowed here")


def test_it_can_be_looked_at(driftline: Command, read_only: str) -> None:
    assert [page["versions"] for page in driftline.json("list")] == [2]
    assert [check["verdict"] for check in driftline.json("history", read_only)] == ["changed", "new"]
    assert driftline("show", read_only).out == "The price is six euros.\n"
    assert "+The price is six euros." in driftline("diff", read_only).out
    assert driftline("schedule").status == 0, "though there are checks to learn from"
    assert driftline("doctor").status == 0


@pytest.mark.parametrize("indexed", [0, 1, 2])
def test_it_can_be_searched_however_much_of_it_was_indexed(
    driftline: Command, site: Site, request: pytest.FixtureRequest, tmp_path: Path, indexed: int
) -> None:
    other = site.put("/other", "Nothing about money.")
    page: str = request.getfixturevalue("page")
    driftline("add", other)
    driftline("check")
    if indexed:
        driftline("search", "price")
    with closing(sqlite3.connect(tmp_path / "place" / "pages.db")) as connection:
        connection.execute("DELETE FROM indexed WHERE number > ?", (indexed,))
        connection.commit()
    request.getfixturevalue("read_only")

    found = driftline.json("search", "price", "six")
    assert [(one["url"], one["version"], one["kind"]) for one in found] == [(page, 2, "appeared")]
    kinds = [(one["version"], one["kind"]) for one in driftline.json("search", "five euros")]
    assert kinds == [(2, "disappeared"), (1, "appeared")]
    assert [one["url"] for one in driftline.json("search", "money", "--now")] == [other]
    assert driftline.json("search", "nowhere") == []


def test_it_can_be_looked_at_while_somebody_else_writes(driftline: Command, read_only: str, tmp_path: Path) -> None:
    place = tmp_path / "place" / "pages.db"
    place.parent.chmod(0o700)
    with package.open(str(place)) as pages:
        pages.add("https://example.com/new")
        place.parent.chmod(0o500)
        assert [page["url"] for page in driftline.json("list")] == [read_only, "https://example.com/new"]
        place.parent.chmod(0o700)


@pytest.mark.parametrize(
    "arguments", [("add", "example.com"), ("check",), ("compact",), ("run", "--once"), ("remove", "PAGE", "--yes")]
)
def test_what_would_change_it_is_refused_in_a_sentence(
    driftline: Command, read_only: str, arguments: tuple[str, ...]
) -> None:
    ended = driftline(*[read_only if argument == "PAGE" else argument for argument in arguments])

    assert (ended.status, ended.out) == (1, "")
    assert "is read-only, and this would change it" in ended.err
