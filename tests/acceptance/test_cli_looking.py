"""Looking back from the command line."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from command import Command, without_styles
from support.servers import Site


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture(scope="module")
def driftline(tmp_path_factory: pytest.TempPathFactory) -> Command:
    return Command(tmp_path_factory.mktemp("looking"))


@pytest.fixture(scope="module")
def page(driftline: Command, site: Site) -> str:
    """A page with two versions and a failure, looked at by all tests here and changed by none."""
    url = site.put("/a", "The price is five euros.")
    driftline("add", url)
    driftline("check")
    site.put("/a", "The price is six euros.", title="Second")
    driftline("check")
    body = site.pages.pop("/a")
    driftline("check")
    site.pages["/a"] = body
    return url


def test_the_history_tells_every_check(driftline: Command, page: str) -> None:
    failed, changed, new = driftline.json("history", page)

    assert [check["verdict"] for check in (failed, changed, new)] == ["failed", "changed", "new"]
    assert [check["sequence"] for check in (failed, changed, new)] == [3, 2, 1]
    assert failed["failure"] == {"kind": "status", "reason": "The server answered 404 Not Found."}
    assert changed["change"]["to_version"] == changed["version"] == 2
    assert new["at"] < changed["at"] < failed["at"]
    assert len(driftline.json("history", page, "--limit", "2")) == 2
    table = driftline("history", page).out.splitlines()
    assert len(table) == 4
    assert table[1].endswith("The server answered 404 Not Found.")


def test_noise_is_left_out_of_the_history_unless_all_is_asked_for(driftline: Command, site: Site) -> None:
    words = "The terms stay as they are, in force until further notice. " * 8
    url = site.put("/noise", f"{words}<footer>Made by Ann</footer>")
    driftline("add", url)
    driftline("check", url)
    driftline("check", url)
    site.put("/noise", f"{words}<footer>Made by Bob</footer>")
    assert driftline.json("check", url)["noisy"] == 1

    assert [check["verdict"] for check in driftline.json("history", url)] == ["new"]
    told = driftline("history", url)
    assert len(told.out.splitlines()) == 2
    hidden = "1 check that found nothing and 1 check that found only noise"
    assert told.err == f"Not shown: {hidden}. Show everything with --all.\n"

    noise, same, new = driftline.json("history", url, "--all")
    assert (noise["proof"], noise["reason"]) == ("noise", "Only the page footer changed.")
    assert (same["proof"], same["reason"], new["verdict"]) == ("wire", "", "new")
    everything = driftline("history", url, "--all")
    assert (len(everything.out.splitlines()), everything.err) == (4, "")
    assert "Only the page footer changed." in everything.out

    driftline("feedback", noise["change"]["id"], "--important")
    shown = driftline.json("history", url)
    assert [check["verdict"] for check in shown] == ["unchanged", "new"]
    assert (shown[0]["change"]["said"], shown[0]["reason"]) == ("important", "Only the page footer changed.")


def test_minor_changes_are_counted_marked_in_the_history_and_listed_on_request(driftline: Command, site: Site) -> None:
    words = "The terms stay as they are, in force until further notice. " * 8
    url = site.put("/minor", f"{words}<p>Log in to read more.</p>")
    driftline("add", url)
    driftline("check", url)
    site.put("/minor", f"{words}<p>Login to read more.</p>")
    told = driftline("check", url).out
    assert "1 changed (1 minor)" in told
    assert "minor     " not in told

    site.put("/minor", f"{words}<p>Log in to read more.</p>")
    found = driftline.json("check", url, "--min", "minor")
    assert (found["changed"], found["minor"], found["noisy"]) == (1, 1, 0)
    (change,) = found["changes"]
    assert (change["importance"], change["headline"]) == ("minor", "Login to read more. → Log in to read more.")
    assert 0.4 <= change["score"] < 0.5
    assert found["events"][0]["importance"] == "minor"

    newest, *_ = driftline.json("history", url)
    assert (newest["verdict"], newest["change"]["importance"]) == ("changed", "minor")
    assert f"change {change['id']}: (minor) {change['headline']}" in driftline("history", url).out
    assert driftline.json("changes", url) == []
    assert [event["importance"] for event in driftline.json("changes", url, "--min", "minor")] == ["minor", "minor"]
    assert f"minor     {change['id']}" in driftline("changes", url, "--min", "minor").out
    refused = driftline("changes", "--min", "noise")
    assert (refused.status, "--min" in refused.err) == (2, True)


def test_a_page_of_which_more_counts_than_its_text_tells_what_changed(driftline: Command, site: Site) -> None:
    words = "The report is published here every quarter, for everybody to read. " * 8
    part = "<a href=/{0}.pdf>Report</a> <img src=/{0}.png alt=Chart> <input placeholder='{1}'>"
    url = site.put("/also", words + part.format("spring", "Your name"))
    driftline("add", url, "--also", "links,media", "--also", "attributes")
    assert [one["value"] for one in driftline.json("list")[-1]["filters"]] == ["links", "media", "attributes"]
    driftline("check", url)
    site.put("/also", words + part.format("autumn", "Your full name"))

    (change,) = driftline.json("check", url)["changes"]
    assert (change["kind"], change["score"]) == ("links", 0.5)
    assert change["reason"].startswith("1 link, 1 image and 1 placeholder changed: Report: /spring.pdf → /autumn.pdf")
    assert driftline.json("history", url)[0]["change"]["kind"] == "links"
    assert "[link] Report → /[-spring-]{+autumn+}.pdf" in driftline("diff", url, "--words").out

    refused = driftline("edit", url, "--also", "colours")
    assert refused.status == 2
    assert "use links, media, attributes, metadata, structure or all" in refused.err


def test_a_version_is_shown_as_text_and_to_the_byte(driftline: Command, page: str, site: Site) -> None:
    assert driftline("show", page).out == "The price is six euros.\n"
    assert driftline("show", page, "--version", "1").out == "The price is five euros.\n"
    assert driftline.raw("show", page, "--raw") == site.pages["/a"]
    shown = driftline.json("show", page)
    assert (shown["version"], shown["title"], shown["text"]) == (2, "Second", "The price is six euros.")
    assert base64.b64decode(driftline.json("show", page, "--raw")["body_base64"]) == site.pages["/a"]


def test_a_difference_is_unified_when_piped_and_by_word_on_a_terminal(driftline: Command, page: str) -> None:
    lines = driftline("diff", page).out.splitlines()
    assert "-The price is five euros." in lines
    assert "+The price is six euros." in lines
    words = driftline("diff", page, "1", "2", "--words").out
    assert words.startswith(f"{page}  version 1 (")
    assert words.splitlines()[1:3] == ["line 1", "The price is [-five-]{+six+} euros."]
    status, shown = driftline.on_terminal("diff", page)
    assert status == 0
    assert "\x1b[9;31mfive\x1b[0m\x1b[2m → \x1b[0m\x1b[32msix\x1b[0m" in shown, "also without colours it is clear"
    found = driftline.json("diff", page)
    assert (found["from_version"], found["to_version"], found["equal"]) == (1, 2, False)
    assert {"kind": "removed", "text": "five"} in found["words"][0]


def test_equal_versions_and_a_single_version_are_told_apart(driftline: Command, page: str, site: Site) -> None:
    same = driftline("diff", page, "2", "2")
    assert (same.status, same.out) == (0, "Versions 2 and 2 are the same.\n")
    assert driftline.json("diff", page, "2", "2")["equal"] is True

    driftline("add", site.put("/b", "text"))
    unchecked = driftline("diff", site.url("/b"))
    assert unchecked.status == 1
    assert "has no version yet: check it with" in unchecked.err
    driftline("check", site.url("/b"))
    single = driftline("diff", site.url("/b"))
    assert single.status == 1
    assert "only one version" in single.err


def test_what_differs_besides_the_text_is_told_after_it(driftline: Command, page: str) -> None:
    told = "Also changed: the title.\n  the title: A page → Second\n"
    assert driftline("diff", page, "--words").out.endswith(told)
    piped = driftline("diff", page, "--unified")
    assert (piped.err, "Also" in piped.out) == (told, False)
    (kind,) = driftline.json("diff", page)["kinds"]
    assert (kind["kind"], kind["count"], kind["examples"]) == ("metadata", 1, ["the title: A page → Second"])


def test_versions_with_the_same_text_still_show_what_differs(driftline: Command, site: Site) -> None:
    url = site.put("/links", "The same <a href=/one>words</a>.")
    driftline("add", url)
    driftline("check", url)
    site.put("/links", "Other words altogether.")
    driftline("check", url)
    site.put("/links", "The same <a href=/two>words</a>.")
    driftline("check", url)

    shown = driftline("diff", url, "1", "3").out
    assert shown == "The text is the same; 1 link changed.\n  words: /one → /two\n"
    found = driftline.json("diff", url, "1", "3")
    assert (found["equal"], found["words"], found["kinds"][0]["kind"]) == (True, [], "links")
    assert "The text is the same; 1 link changed." in driftline("diff", url, "1", "3", "--html", "-").out


def test_a_cell_of_a_table_is_told_by_its_row_and_column(driftline: Command, site: Site) -> None:
    table = "<table><tr><th>model<th>price<tr><td>Model A<td>10 €<tr><td>Model B<td>{} €</table>"
    url = site.put("/table", table.format(12))
    driftline("add", url)
    driftline("check", url)
    site.put("/table", table.format(14))
    driftline("check", url)

    told = "1 table cell changed:\n  price / Model B: 12 € → 14 €\n"
    assert driftline("diff", url, "--words").out.endswith(told)
    piped = driftline("diff", url, "--unified")
    assert piped.err == told
    assert "@@ price / Model B" in piped.out
    (cell,) = driftline.json("diff", url)["cells"]
    assert cell == {"table": "", "row": "Model B", "column": "price", "old": "12 €", "new": "14 €"}
    shown = driftline("diff", url, "--html", "-").out
    assert "<summary>1 table cell changed</summary>" in shown
    assert "<b>price / Model B:</b> <del>12</del><ins>14</ins> €" in shown


def test_a_block_that_moved_is_shown_as_moved(driftline: Command, site: Site) -> None:
    block, rest = "This paragraph goes to the end.", "One paragraph stays.<p>So does another one.<p>And the third."
    url = site.put("/moved", f"{block}<p>{rest}")
    driftline("add", url)
    driftline("check", url)
    site.put("/moved", f"{rest}<p>{block}")
    driftline("check", url)

    shown = driftline("diff", url, "--words").out
    moved = ["line 1", f"<~moved to line 4: {block}~>", "line 4", f"<~moved from line 1: {block}~>"]
    assert shown.splitlines()[1:] == moved
    first, second = driftline.json("diff", url)["words"]
    where = {"kind": "moved", "text": block, "from_line": 1, "to_line": 4}
    assert (first, second) == ([where | {"shown_at": "from"}], [where | {"shown_at": "to"}])
    assert f"-{block}" in driftline("diff", url, "--unified").out.splitlines()


def test_a_difference_can_be_written_as_html(driftline: Command, page: str, tmp_path: Path) -> None:
    file = tmp_path / "diff.html"
    written = driftline("diff", page, "--html", str(file))
    assert (written.status, written.out) == (0, "")
    assert str(file) in written.err
    document = file.read_text(encoding="utf-8")
    assert "The price is <del>five</del><ins>six</ins> euros." in document
    assert "important, score" in document
    assert driftline("diff", page, "1", "2", "--html", "-").out == document


def test_a_document_that_cannot_be_written_is_an_error(driftline: Command, page: str, tmp_path: Path) -> None:
    for file, word in ((tmp_path, "directory"), (tmp_path / "no" / "such.html", "No such file")):
        ended = driftline("diff", page, "--html", str(file))
        assert (ended.status, ended.out, ended.err.count("\n")) == (1, "", 1)
        assert f"{file} cannot be written" in ended.err
        assert word in ended.err


def test_what_a_hostile_page_says_is_only_text(driftline: Command, site: Site) -> None:
    driftline("add", site.put("/evil", "\x1b[2Jgone \x9b31m [red]bold[/red]", title="\x1b]0;owned\x07[bold]title"))
    driftline("check")

    for command in (("list",), ("show", site.url("/evil"))):
        _, shown = driftline.on_terminal(*command)
        assert "\x1b[2J" not in shown
        assert "\x1b]0;" not in shown
        assert "\x07" not in shown
        assert "\x9b" not in shown
    assert "[red]bold[/red]" in driftline("show", site.url("/evil")).out


def test_the_blocks_of_a_page_are_shown_with_the_selectors_that_lead_to_them(driftline: Command, page: str) -> None:
    assert driftline("show", page, "--blocks").out.splitlines()[0].split() == ["role", "path", "text"]
    block = driftline.json("show", page, "--blocks")[-1]
    assert (block["text"], block["links"], block["attributes"]) == ("The price is six euros.", [], [])
    refused = driftline("show", page, "--blocks", "--raw")
    assert (refused.status, refused.err) == (2, "driftline: Give either --raw or --blocks, not both.\n")


def test_nothing_that_is_needed_is_cut_off_on_a_narrow_terminal(driftline: Command, site: Site) -> None:
    """Ids of changes, sentences about failures, selectors and the reasons of the schedule."""
    url = site.put("/a/long/address/of/a/page/that/is/watched.html", "The price is five euros.")
    driftline("add", url)
    driftline("check")
    site.put("/a/long/address/of/a/page/that/is/watched.html", "The price is six euros.")
    driftline("check")
    site.pages.clear()
    for _ in range(3):
        driftline("check")

    def shown(*arguments: str) -> str:
        lines = without_styles(driftline.on_terminal(*arguments, COLUMNS="80")[1]).splitlines()
        assert all(len(line) <= 80 for line in lines), lines
        return " ".join(" ".join(lines).split())

    history = shown("history", url)
    assert "3 checks in a row failed. The server answered 404 Not Found." in history
    assert re.search(r"change \d+-2: ", history)
    assert "failed 3 times, last " in shown("schedule")
    assert "body > p" in shown("show", url, "--blocks")
