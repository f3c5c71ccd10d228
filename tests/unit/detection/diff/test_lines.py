from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from driftline.detection.diff.lines import match


def test_of_lines_that_are_as_like_the_one_that_holds_the_earlier_word_is_what_it_turned_into() -> None:
    common = "the fees and terms"
    names = [f"name{letter}" for letter in "abcdefghi"]
    old = f"{common} {' '.join(names)}"
    others = [f"{common} other{letter} another{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    new = "\n".join([*others, *(f"{common} {name}" for name in reversed(names))])
    (pair,) = [pair for pair in match(old, new).pairs if pair[0]]
    assert pair[1]
    assert pair[1].text == f"{common} namea"


def test_words_that_moved_from_one_line_to_another_are_neither_added_nor_removed() -> None:
    found = match("one two two\nthree", "three one\ntwo four")
    assert (found.words_added, found.words_removed) == (1, 1)


def test_of_a_line_that_stands_there_more_often_only_the_last_are_left_over() -> None:
    found = match("a\nb\na", "a\nb\na\nc\na\na")
    assert [line.at for _, line in found.pairs if line] == [3, 4, 5]


def test_a_copy_of_a_line_that_stands_further_down_too_is_found_where_it_was_added() -> None:
    found = match("top\nHome\nterms\nHome\nend", "top\nHome\nHome\nterms\nHome\nend")
    ((gone, come),) = found.pairs
    assert gone is None
    assert come
    assert come.at == 2


def test_a_place_is_named_by_the_lines_around_it_also_where_all_else_is_the_same() -> None:
    lines = [f"line {word}" for word in ("one", "two", "three", "four", "five")]

    def place(*texts: str) -> bytes:
        (added,) = [line for _, line in match("\n".join(lines), "\n".join(texts)).pairs if line]
        assert added.at == texts.index("new here")
        return added.place

    between = place(*lines[:2], "new here", *lines[2:])
    assert between == place(*lines[1:2], "new here", *lines[2:3])
    assert len({between, place("new here", *lines), place(*lines, "new here")}) == 3


@given(old=st.lists(st.sampled_from("abcde"), max_size=12), new=st.lists(st.sampled_from("abcde"), max_size=12))
def test_what_is_left_over_makes_one_text_of_the_other(old: list[str], new: list[str]) -> None:
    found = match("\n".join(old), "\n".join(new))
    gone = [line for line, _ in found.pairs if line]
    come = [line for _, line in found.pairs if line]
    assert Counter(old) - Counter(line.text for line in gone) == Counter(new) - Counter(line.text for line in come)
    assert all(old[line.at] == line.text for line in gone)
    assert all(new[line.at] == line.text for line in come)


@given(lines=st.lists(st.text("ab\n", max_size=4), max_size=40), line=st.text("ab", max_size=3))
def test_a_line_is_among_a_text_whether_it_is_searched_or_taken_apart(lines: list[str], line: str) -> None:
    text = "\n".join(lines)
    assert (line in match(text, "").old_lines) == (line in text.split("\n"))
