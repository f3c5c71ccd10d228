from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from driftline.cli.add_command import ImportedLine, read_text_list
from support.properties import searched


def read(lines: list[str]) -> list[ImportedLine]:
    return list(read_text_list(lines))


def addresses(text: str) -> list[tuple[int, str | None]]:
    return [(line.number, line.url) for line in read(text.split("\n"))]


def test_every_line_is_an_address_and_blank_lines_and_comments_are_passed_over() -> None:
    text = "# ours\nhttps://a.example/\n\n   \nb.example\r\n  # theirs\n"
    assert addresses(text) == [(2, "https://a.example/"), (5, "https://b.example/")]


def test_a_comment_may_follow_an_address_and_a_fragment_is_no_comment() -> None:
    text = "https://a.example/#part\nhttps://b.example/ # the other one\nhttps://c.example/ #"
    assert addresses(text) == [(1, "https://a.example/"), (2, "https://b.example/"), (3, "https://c.example/")]


def test_a_byte_order_mark_before_the_first_line_is_not_part_of_it() -> None:
    assert addresses("\ufeffhttps://a.example/") == [(1, "https://a.example/")]
    assert addresses("\ufeff# a comment\nb.example") == [(2, "https://b.example/")]


def test_an_address_that_stands_twice_names_the_line_of_the_first() -> None:
    lines = read(["https://a.example/", "# -", "https://A.example:443/#x"])
    assert [line.url for line in lines] == ["https://a.example/", None]
    assert lines[1].number == 3
    assert lines[1].problem == "https://a.example/ is on line 1 already."


def test_a_bad_line_is_reported_with_its_number_and_the_good_ones_are_kept() -> None:
    lines = read(["a.example", "ftp://b.example/", "c.example"])
    assert [line.url for line in lines] == ["https://a.example/", None, "https://c.example/"]
    assert lines[1].number == 2
    assert lines[1].problem is not None
    assert "ftp://b.example/" in lines[1].problem


def test_an_empty_list_has_no_lines() -> None:
    assert read([]) == []


@searched
@given(st.lists(st.text(max_size=30) | st.sampled_from(["a.example", "b.example", "# c", "A.example"]), max_size=8))
def test_each_line_gives_an_address_or_a_problem_and_no_address_comes_twice(lines: list[str]) -> None:
    found = read(lines)
    assert all((line.url is None) != (line.problem is None) for line in found)
    kept = [line.url for line in found if line.url]
    assert len(kept) == len(set(kept))
    assert [line.number for line in found] == sorted({line.number for line in found})
