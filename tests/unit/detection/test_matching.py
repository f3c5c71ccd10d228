from __future__ import annotations

from driftline.detection.matching import match


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
