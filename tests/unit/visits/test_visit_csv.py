"""Visits in a table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import UsageError
from driftline.model.visit import Visit
from driftline.visits.import_tally import LONGEST_LINE, ImportTally
from driftline.visits.visit_csv import read_sheet
from support.properties import searched

NOW = 1_800_000_000.0


def read(text: str) -> tuple[list[Visit], ImportTally]:
    tally = ImportTally()
    return list(read_sheet(text.splitlines(keepends=True), NOW, tally)), tally


def test_every_row_is_a_visit() -> None:
    visits, _ = read(
        "url,seconds,available,at\nhttps://a.example/x,12.5,1,2026-03-01T12:00:00Z\nhttps://b.example/,3,no,1772366400\n"
    )
    assert [visit[:4] for visit in visits] == [
        ("https://a.example/x", 1_772_366_400.0, 12.5, True),
        ("https://b.example/", 1_772_366_400.0, 3.0, False),
    ]


def test_missing_cells_mean_no_seconds_available_and_now() -> None:
    visits, _ = read("url\na.example\n")
    assert visits[0][:4] == ("https://a.example/", NOW, 0.0, True)


@pytest.mark.parametrize("heading", ["\ufeffURL;At;Seconds", '"url"\tat\tseconds\tnotes', "seconds,url"])
def test_columns_may_come_in_any_order_and_be_parted_as_spreadsheets_do(heading: str) -> None:
    mark = max(",;\t", key=heading.count)
    cells = {"url": "https://a.example/", "at": "5", "seconds": "7", "notes": "x"}
    names = heading.strip("\ufeff").replace('"', "").lower().split(mark)
    visits, tally = read(f"{heading}\n{mark.join(cells[name] for name in names)}\n")
    assert [(visit.url, visit.seconds) for visit in visits] == [("https://a.example/", 7.0)]
    assert tally.bad == 0


@pytest.mark.parametrize(
    "row", ["https://a.example/,-1,1,", "https://a.example/,nan,1,", "https://a.example/,86401,1,",
            "https://a.example/,1e308,1,", "https://a.example/,1,perhaps,",
            "https://a.example/,1,1,yesterday", "https://a.example/,1,1,1800100000", ",5,1,", "not an address,1,1,"],
)  # fmt: skip
def test_a_bad_row_is_reported_by_its_line_and_the_others_count(row: str) -> None:
    visits, tally = read(f"url,seconds,available,at\nhttps://a.example/,1,1,\n\n{row}\nhttps://b.example/,1,1,\n")
    assert [visit.url for visit in visits] == ["https://a.example/", "https://b.example/"]
    assert [problem.line for problem in tally.problems] == [4]
    assert tally.problems[0].sentence.endswith(".")


def test_a_column_of_times_may_be_called_so() -> None:
    visits, tally = read("url,time\na.example,1772366400\na.example,soon\na.example,\n")
    assert [visit.at for visit in visits] == [1_772_366_400.0, NOW]
    assert [(problem.line, problem.sentence.partition(":")[0]) for problem in tally.problems] == [
        (3, "'soon' is not a time")
    ]
    visits, tally = read("url,time,at\na.example,of day,1772366400\n")
    assert ([visit.at for visit in visits], tally.bad) == ([1_772_366_400.0], 0), "what is called 'at' is meant"


def test_addresses_off_the_web_are_skipped() -> None:
    visits, tally = read("url\nabout:blank\nfile:///etc/passwd\nlocalhost:8080/x\n")
    assert [visit.url for visit in visits] == ["https://localhost:8080/x"]
    assert (tally.skipped, tally.bad) == (2, 0)


def test_a_table_without_addresses_is_refused() -> None:
    with pytest.raises(UsageError, match="url among them"):
        read("seconds,at\n1,2\n")


def test_equal_rows_are_different_visits_and_the_same_when_they_are_read_again() -> None:
    first = [visit.key for visit in read("url,seconds\na.example,1\na.example,1\n")[0]]
    assert len(set(first)) == 2
    assert [visit.key for visit in read("url,seconds\na.example,1\nb.example,1\na.example,1\n")[0]][::2] == first


@searched
@given(st.lists(st.lists(st.text(max_size=10) | st.sampled_from(["a.example", "1", "0"]), max_size=5), max_size=5))
def test_whatever_stands_in_a_row_nothing_breaks(rows: list[list[str]]) -> None:
    visits, _ = read("url,seconds,available,at\n" + "\n".join(",".join(row) for row in rows))
    assert all(visit.seconds >= 0 and visit.at >= 0 for visit in visits)


@pytest.mark.parametrize("stray", ['"a.example', 'a.example,5\nb.example,"x'], ids=range(2))
def test_an_unclosed_quotation_mark_affects_no_other_row(stray: str) -> None:
    rows = "".join(f"https://c.example/{number},1\n" for number in range(300))
    visits, tally = read(f"url,seconds\nhttps://first.example/,1\n{stray}\n{rows}")
    assert sum(visit.url.startswith("https://c.example/") for visit in visits) == 300
    problem = tally.problems[-1]
    assert (problem.line, problem.sentence) == (2 + stray.count("\n") + 1, "A quotation mark in it is not closed.")


def test_a_quotation_mark_that_is_never_closed_does_not_hold_up_the_end_of_the_table() -> None:
    visits, tally = read('url,notes\na.example,"one\ntwo"\nb.example,"three\nc.example,four\n')
    assert [visit.url for visit in visits] == ["https://a.example/", "https://c.example/"]
    assert [problem.line for problem in tally.problems] == [4]


def test_a_line_that_is_too_long_is_rejected_and_affects_no_other_row() -> None:
    long = f'a.example,"{"x" * LONGEST_LINE}'
    visits, tally = read(f'url,notes\n{long}\nb.example,y\nc.example,"z\n{long}\nd.example,z\n')
    assert [visit.url for visit in visits] == ["https://b.example/", "https://d.example/"]
    assert [(problem.line, problem.sentence) for problem in tally.problems] == [
        (2, "It is longer than 65,536 bytes."),
        (4, "A quotation mark in it is not closed."),
        (5, "It is longer than 65,536 bytes."),
    ]


def test_a_row_that_no_reader_takes_costs_its_first_line() -> None:
    lines = "".join(f"https://c.example/{number}{'x' * 40_000}\n" for number in range(5))
    visits, tally = read(f'url,notes\na.example,"z\n{lines}b.example,y\n')
    assert visits[-1].url == "https://b.example/"
    assert (tally.bad, tally.problems[0]) == (6, (2, "It is no row of a table."))
