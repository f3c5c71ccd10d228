"""Visits and rank as a user has them."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from command import Command
from support.histories import Seen, make_chrome, make_firefox

AT = 1_772_366_400.0
LINE = '203.0.113.7 - - [01/Mar/2026:12:00:{second:02} +0000] "GET /{page} HTTP/1.1" {status} 512 "-" "Firefox/140.0"\n'
WITHOUT_MATPLOTLIB = "import sys; sys.modules['matplotlib'] = None; from driftline.cli.main import main_with; "


def test_visits_are_counted_and_ranked(driftline: Command) -> None:
    for _ in range(2):
        assert driftline("visit", "example.com/a", "--seconds", "1.5").status == 0
    last = driftline("visit", "example.com/a", "--unavailable")
    assert last.out == "https://example.com/a: 3 visits, 3 s in all, available 2 times.\n"
    assert "add it with --add" in last.err
    driftline("visit", "example.com/b", "--seconds", "70", "--unavailable", "--add")
    keys = ("rank", "url", "frequency", "weightage", "ttl", "kept", "watched")
    rows = [tuple(row[key] for key in keys) for row in driftline.json("rank", "--by", "frequency")]
    assert rows == [
        (1, "https://example.com/a", 3, 3.0, 2, True, False),
        (2, "https://example.com/b", 1, 70.0, 0, False, True),
    ]
    assert [page["url"] for page in driftline.json("list")] == ["https://example.com/b"]
    filtered = driftline("rank")
    assert "example.com/a" in filtered.out
    assert "example.com/b" not in filtered.out
    assert filtered.err == "Not shown: 1 page available at 50 % of the visits or less (TTL filter).\n"


def test_the_threshold_of_the_filter_is_a_setting(driftline: Command) -> None:
    kept = driftline("rank", "--example", "--json", DRIFTLINE_RANK_THRESHOLD="0")
    assert len(json.loads(kept.out)) == 18
    assert driftline("rank", DRIFTLINE_RANK_THRESHOLD="1").status == 2


@pytest.mark.parametrize(
    ("by", "length", "first"),
    [
        ("frequency", 23, [11, 22, 8, 14, 23, 7, 12, 13]),
        ("weightage", 23, [19, 21, 18, 22, 4, 10, 8, 5]),
        ("intelligent", 14, [11, 14, 13, 7, 12, 10, 1]),
    ],
)
def test_the_example_gives_the_papers_tables(driftline: Command, by: str, length: int, first: list[int]) -> None:
    rows = driftline.json("rank", "--example", "--by", by)
    assert len(rows) == length
    assert [row["url"] for row in rows[: len(first)]] == [f"http://trdinfotech.com/page{sno}" for sno in first]
    assert (driftline.folder / "pages.db").stat().st_size == 0


def test_a_rank_can_be_had_as_table_csv_and_in_part(driftline: Command) -> None:
    table = driftline("rank", "--example", "--by", "frequency", "--limit", "2").out.splitlines()
    assert [line.split() for line in table] == [
        ["rank", "sno", "url", "frequency", "weightage", "ttl", "filter"],
        ["1", "11", "http://trdinfotech.com/page11", "100", "34", "80", "kept"],
        ["2", "22", "http://trdinfotech.com/page22", "100", "75", "0", "dropped"],
    ]
    rows = list(csv.DictReader(io.StringIO(driftline("rank", "--example", "--csv").out)))
    assert len(rows) == 14
    assert (rows[0]["url"], rows[0]["frequency"], rows[0]["ttl"]) == ("http://trdinfotech.com/page11", "100", "80")


def test_a_rank_is_drawn_as_svg_and_png(driftline: Command, tmp_path: Path) -> None:
    driftline("visit", "https://example.com/$a$/", "--seconds", "5000")
    for name, start in (("rank.svg", b"<?xml"), ("rank.png", b"\x89PNG")):
        ended = driftline("rank", "--plot", str(tmp_path / name))
        assert (ended.status, ended.err) == (0, f"Saved {tmp_path / name}.\n")
        assert (tmp_path / name).read_bytes().startswith(start)
    assert driftline("rank", "--plot", str(tmp_path / "rank.pdf")).status == 2
    nowhere = driftline("rank", "--example", "--plot", str(tmp_path / "no" / "rank.svg"))
    assert nowhere.status == 1
    assert "cannot be written" in nowhere.err


def test_without_the_extra_a_drawing_says_what_to_install(tmp_path: Path) -> None:
    call = f"raise SystemExit(main_with(['rank', '--example', '--plot', '{tmp_path / 'rank.svg'}']))"
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_MATPLOTLIB + call], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "driftline[lab]" in ended.stderr


def test_histories_of_browsers_are_imported_once(driftline: Command, tmp_path: Path) -> None:
    visits = [Seen("https://a.example/", AT, 30), Seen("https://b.example/", AT + 40, 5), Seen("about:blank", AT + 50)]
    chrome = make_chrome(tmp_path / "History", visits)
    firefox = make_firefox(tmp_path / "places.sqlite", visits)
    told = driftline("visits", "import", str(chrome)).out
    assert told == "Counted 2 visits to 2 pages (1 skipped: not visits to web pages).\n"
    again = driftline.json("visits", "import", str(chrome), "--add")
    assert (again["format"], again["visits"], again["known"], again["added"]) == ("chrome", 0, 2, 2)
    assert driftline.json("visits", "import", str(firefox), "--format", "firefox")["visits"] == 2
    rows = driftline.json("rank")
    assert [(row["url"], row["frequency"], row["weightage"]) for row in rows] == [
        ("https://a.example/", 2, 60.0),
        ("https://b.example/", 2, 10.0),
    ]


def test_bad_lines_are_told_by_their_number(driftline: Command, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(
        LINE.format(second=1, page="a", status=200) + "nonsense\n" * 12 + LINE.format(second=9, page="b", status=404)
    )
    ended = driftline("visits", "import", str(log), "--site", "https://a.example")
    assert ended.status == 0
    assert ended.out == "Counted 2 visits to 2 pages (12 unreadable).\n"
    remarks = ended.err.splitlines()
    assert remarks[0] == f"{log}, line 2: it is not in common or combined log format."
    assert len(remarks) == 11
    assert remarks[-1] == "2 more lines could not be read."
    rows = driftline.json("rank", "--by", "frequency")
    assert [(row["weightage"], row["ttl"]) for row in rows] == [(8.0, 1), (0.0, 0)]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("visit", "ftp://a.example/"), 2, "only http and https"),
        (("visit", "a.example", "--seconds=-1"), 2, "0 or more"),
        (("visit", "a.example", "--seconds", "1e308"), 2, "a day at most"),
        (("visit", "a.example", "--seconds", "86400.5"), 2, "a day at most"),
        (("visits", "import", "nowhere"), 1, "cannot be read"),
        (("visits", "import", "/dev/null"), 2, "is not a file"),
        (("visits", "import", __file__), 2, "--format"),
        (("rank", "--by", "beauty"), 2, "frequency, weightage, intelligent"),
        (("rank", "--json", "--csv"), 2, "not both"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    driftline: Command, arguments: tuple[str, ...], status: int, said: str
) -> None:
    ended = driftline(*arguments)
    assert (ended.status, ended.out) == (status, "")
    assert said in ended.err
    assert ended.err.count("\n") == 1


def test_visits_come_on_standard_input_too(driftline: Command) -> None:
    table = "url,time\nhttps://a.example/,1772366400\nhttps://a.example/,soon\n"
    ended = driftline("visits", "import", "-", given=table)
    assert (ended.status, ended.out) == (0, "Counted 1 visit to 1 page (1 unreadable).\n")
    assert ended.err.startswith("Standard input, line 3: 'soon' is not a time")
    ended = driftline("visits", "import", "-", given="dear diary\n")
    assert ended.err.startswith("driftline: Standard input is not the history of a browser")


def test_a_rank_by_value_of_pages_that_are_not_watched_says_why_it_is_empty(driftline: Command) -> None:
    assert (
        driftline("rank", "--by", "value").err
        == "No pages are watched yet: add one with 'driftline add https://example.com/'.\n"
    )
    driftline("visit", "a.example")
    ended = driftline("rank", "--by", "value")
    assert (ended.status, ended.out) == (0, "")
    assert "1 visited page is not watched: add one with 'driftline add URL'" in ended.err


def test_without_visits_there_is_nothing_to_rank(driftline: Command) -> None:
    assert driftline.json("rank") == []
    assert "No visits yet: count them with" in driftline("rank").err
