"""The watch list from the command line."""

from __future__ import annotations

import json
from pathlib import Path

from command import Command
from support.servers import Site


def test_added_pages_are_listed_with_their_settings(driftline: Command) -> None:
    added = driftline("add", "https://Example.com/a#part", "example.com/b", "--every", "15m", "--tag", "news")

    assert added.status == 0
    assert added.out == "Added https://example.com/a\nAdded https://example.com/b\n"
    listed = driftline.json("list")
    assert [page["url"] for page in listed] == ["https://example.com/a", "https://example.com/b"]
    assert listed[0]["every"] == 900
    assert listed[0]["tags"] == ["news"]
    assert listed[0]["added_at"].endswith("Z")
    assert listed[0]["checked_at"] is listed[0]["verdict"] is None
    table = driftline("list").out.splitlines()
    assert len(table) == 3
    assert table[1].split() == ["https://example.com/a", "15m", "never", "–", "0", "news"]


def test_a_page_that_is_watched_already_is_said_to_be(driftline: Command) -> None:
    driftline("add", "https://example.com/a")

    again = driftline("add", "https://example.com/a", "https://example.com/b", "--tag", "x")

    assert again.status == 0
    assert again.out == "Already watched: https://example.com/a\nAdded https://example.com/b\n"
    assert "driftline edit" in again.err


def test_of_several_addresses_the_good_ones_are_added_and_the_others_named(driftline: Command) -> None:
    ended = driftline("add", "https://example.com/", "ftp://example.com/", "http://https://example.com/b")

    assert (ended.status, ended.out) == (2, "Added https://example.com/\n")
    one, other = ended.err.splitlines()
    assert one.startswith("Not added: ")
    assert "only http and https" in one
    assert "two schemes" in other
    added = driftline.json("add", "https://example.com/c", "not an address", status=2)
    assert [one["url"] for one in added["passed_over"]] == ["not an address"]
    assert len(driftline.json("list")) == 2


def test_an_address_that_is_bad_and_alone_is_an_error(driftline: Command) -> None:
    ended = driftline("add", "ftp://example.com/")

    assert (ended.status, ended.out) == (2, "")
    assert "only http and https" in ended.err
    assert driftline.json("list") == []


def test_an_import_keeps_good_lines_and_tells_the_others_by_number(driftline: Command, tmp_path: Path) -> None:
    text = "# mine\r\n\nexample.com/a\nhttps://example.com/a\nnot an address\nexample.com/b # the second\n"
    (tmp_path / "list.txt").write_text(text)

    ended = driftline("import", str(tmp_path / "list.txt"), "--tag", "list", "--every", "1d")

    assert ended.status == 0
    assert ended.out == "Added 2 pages (2 lines skipped).\n"
    first, second = ended.err.splitlines()
    assert "line 4: " in first
    assert "is on line 3 already" in first
    assert "line 5: " in second
    assert [(page["url"], page["every"]) for page in driftline.json("list", "--tag", "list")] == [
        ("https://example.com/a", 86_400),
        ("https://example.com/b", 86_400),
    ]


def test_an_import_reads_standard_input_and_may_be_repeated(driftline: Command) -> None:
    assert driftline("import", "-", given="\ufeffexample.com/a\n").out == "Added 1 page.\n"
    again = driftline("import", "-", given="example.com/a\n")
    assert (again.status, again.out) == (0, "Added 0 pages (1 already watched).\n")


def test_an_edit_changes_settings_and_address(driftline: Command) -> None:
    driftline("add", "example.com/a", "--tag", "old", "--every", "1h")

    ended = driftline("edit", "example.com/a", "--every", "default", "--tag", "new", "--untag", "old")
    assert ended.out == "https://example.com/a: checked as often as the schedule decides, tagged new.\n"
    assert driftline("edit", "example.com/a", "--url", "example.com/b", "--every", "2h").status == 0

    (page,) = driftline.json("list")
    assert (page["url"], page["every"], page["tags"]) == ("https://example.com/b", 7200, ["new"])


def test_pages_are_removed_by_address_and_by_tag(driftline: Command) -> None:
    driftline("add", "example.com/a", "example.com/b", "--tag", "x")
    driftline("add", "example.com/c")

    assert driftline("remove", "example.com/a", "--yes").out == "Removed https://example.com/a\n"
    assert driftline("remove", "--tag", "x", "--yes").out == "Removed https://example.com/b\n"

    assert [page["url"] for page in driftline.json("list")] == ["https://example.com/c"]


def test_nothing_is_removed_unasked(driftline: Command) -> None:
    driftline("add", "example.com/a")

    ended = driftline("remove", "example.com/a")
    assert ended.status == 2
    assert "--yes" in ended.err
    status, shown = driftline.on_terminal("remove", "example.com/a", typed="n\n")
    assert status == 1
    assert "Remove https://example.com/a and delete" in shown
    assert len(driftline.json("list")) == 1

    status, _ = driftline.on_terminal("remove", "example.com/a", typed="y\n")
    assert (status, driftline.json("list")) == (0, [])


def test_an_empty_list_says_how_to_begin(driftline: Command) -> None:
    ended = driftline("list")

    assert (ended.status, ended.out) == (0, "")
    assert "driftline add https://" in ended.err


def test_the_store_option_names_another_store(driftline: Command, tmp_path: Path) -> None:
    driftline("add", "example.com/a", "--store", str(tmp_path / "deep" / "other.db"))

    assert driftline.json("list") == []
    assert len(driftline.json("list", "--store", str(tmp_path / "deep" / "other.db"))) == 1


def test_filters_are_kept_in_the_order_given_and_shown(driftline: Command) -> None:
    driftline("add", "example.com/a", "--drop=.ads", "--select", "main", "--ignore", "--drop", "--drop", "xpath://nav")
    driftline("add", "example.com/b")

    first, second = driftline.json("list")
    assert [(one["kind"], one["value"]) for one in first["filters"]] == [
        ("drop", ".ads"),
        ("select", "main"),
        ("ignore", "--drop"),
        ("drop", "xpath://nav"),
    ]
    assert second["filters"] == []
    assert "drop .ads, select main, ignore --drop, drop xpath://nav" in driftline("list").out


def test_an_edit_adds_filters_or_takes_them_away(driftline: Command) -> None:
    driftline("add", "example.com/a", "--select", "main")

    ended = driftline("edit", "example.com/a", "--trigger", "sold out")
    assert ended.out.endswith(", no tags, filtered by select main, trigger 'sold out'.\n")
    ended = driftline("edit", "example.com/a", "--no-filters", "--drop", "nav")
    assert ended.out.endswith(", filtered by drop nav.\n")
    ended = driftline("edit", "example.com/a", "--no-filters")
    assert ended.out == "https://example.com/a: checked as often as the schedule decides, no tags.\n"


def test_changes_of_the_list_are_told_to_programs_too(driftline: Command, tmp_path: Path) -> None:
    one, two, three = (f"https://example.com/{name}" for name in "abc")
    (tmp_path / "urls.txt").write_text(f"{two}\nnot an address\n{three}\n")

    assert driftline.json("add", one, two, "--tag", "x") == {
        "added": [one, two],
        "watched_already": [],
        "checked": [],
        "passed_over": [],
    }
    imported = driftline.json("import", str(tmp_path / "urls.txt"))
    assert (imported["added"], imported["watched_already"]) == ([three], [two])
    assert [line["line"] for line in imported["passed_over"]] == [2]
    edited = driftline.json("edit", one, "--every", "5m", "--select", "main")
    assert (edited["url"], edited["every"], edited["tags"]) == (one, 300.0, ["x"])
    assert edited["filters"] == [{"kind": "select", "value": "main"}]
    assert driftline.json("remove", "--tag", "x", "--yes") == {"removed": [one, two]}


def test_pages_are_chosen_by_state_and_tag_and_shown_a_part_at_a_time(driftline: Command, site: Site) -> None:
    good, gone = site.put("/good", "text"), site.put("/gone", "Some text that is here for now.")
    driftline("add", good, gone, "--tag", "mine")
    driftline("check", gone)
    del site.pages["/gone"]
    driftline("check")
    driftline("add", "https://example.com/later")

    def urls(*options: str) -> list[str]:
        return [page["url"] for page in driftline.json("list", *options)]

    assert urls("--state", "new") == [good]
    assert urls("--state", "failed") == [gone]
    assert urls("--state", "failing") == []
    assert urls("--state", "unchecked", "--state", "new") == [good, "https://example.com/later"]
    assert urls("--state", "unchecked", "--tag", "mine") == []
    assert urls("--limit", "1", "--offset", "1") == [gone]
    assert urls("--offset", "3") == []
    assert len(driftline("list", "--limit", "2").out.splitlines()) == 3
    assert "without --state" in driftline("list", "--state", "changed").err
    wrong = driftline("list", "--state", "broken")
    assert (wrong.status, wrong.out) == (2, "")
    assert "use unchecked, new, changed, unchanged, failed, failing" in wrong.err


def test_a_list_longer_than_what_is_read_at_once_is_whole(driftline: Command, tmp_path: Path) -> None:
    pages = [f"https://example.com/{number}" for number in range(2_300)]
    (tmp_path / "list.txt").write_text("\n".join(pages))
    assert driftline("import", str(tmp_path / "list.txt")).out == "Added 2,300 pages.\n"

    assert [page["url"] for page in driftline.json("list")] == pages
    lines = driftline("list").out.splitlines()
    assert [line.split()[0] for line in lines] == ["url", *pages]
    assert [page["url"] for page in driftline.json("list", "--offset", "1500", "--limit", "700")] == pages[1500:2200]


def test_of_a_list_that_is_no_text_to_its_end_nothing_is_added(driftline: Command, tmp_path: Path) -> None:
    good = b"".join(b"https://example.com/%d\n" % number for number in range(2_500))
    (tmp_path / "list.txt").write_bytes(good + b"https://example.com/\xff\n")

    ended = driftline("import", str(tmp_path / "list.txt"))

    assert ended.status == 1
    assert "not UTF-8 text (line 2501)" in ended.err
    assert driftline("list").out == ""


def test_an_import_as_json_of_bad_lines_only_names_them(driftline: Command, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("ftp://example.com/\nx y z\n")

    ended = driftline("import", str(tmp_path / "bad.txt"), "--json")

    assert ended.status == 1
    assert [line["line"] for line in json.loads(ended.out)["passed_over"]] == [1, 2]
    assert "has no URL" in ended.err


def test_an_import_as_json_says_on_standard_error_which_pages_will_not_be_fetched(driftline: Command) -> None:
    ended = driftline("import", "-", "--json", given="http://10.0.0.1/\n")

    assert json.loads(ended.out)["added"] == ["http://10.0.0.1/"]
    assert "--allow-network 10.0.0.0/8" in ended.err


def test_numbers_of_any_size_are_fine(driftline: Command) -> None:
    driftline("add", "https://example.com/a")
    huge = "9" * 30

    assert driftline.json("list", "--offset", huge) == []
    assert driftline.json("rank", "--by", "value", "--limit", huge) != []
