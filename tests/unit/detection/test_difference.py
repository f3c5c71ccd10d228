from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from driftline.detection.difference import Piece, by_word, unified
from support.properties import searched

LINES = st.lists(st.text(alphabet="ab ,.é", max_size=8), max_size=8).map("\n".join)


def test_equal_texts_have_no_difference() -> None:
    assert unified("a\nb", "a\nb", "old", "new") == ""
    assert by_word("a\nb", "a\nb") == []


def test_a_unified_diff_names_both_sides_and_shows_the_lines() -> None:
    diff = unified("one\ntwo\nthree", "one\n2\nthree", "version 1", "version 2")
    assert diff.splitlines() == ["--- version 1", "+++ version 2", "@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"]


def test_a_changed_word_is_a_piece_between_what_stayed() -> None:
    assert by_word("costs 5 euro\nsame", "costs 6 euro\nsame") == [
        [Piece("same", "costs "), Piece("removed", "5"), Piece("added", "6"), Piece("same", " euro")]
    ]


def test_each_place_that_differs_is_a_list_of_its_own() -> None:
    old = "\n".join(["a", "b", "c", "d", "e"])
    new = "\n".join(["A", "b", "c", "d", "E"])
    assert by_word(old, new) == [
        [Piece("removed", "a"), Piece("added", "A")],
        [Piece("removed", "e"), Piece("added", "E")],
    ]


@searched
@given(LINES, LINES)
def test_each_place_reads_as_the_old_and_as_the_new_text(old: str, new: str) -> None:
    old_lines, new_lines = old.split("\n"), new.split("\n")
    for pieces in by_word(old, new):
        before = "".join(piece.text for piece in pieces if piece.kind != "added")
        after = "".join(piece.text for piece in pieces if piece.kind != "removed")
        assert before != after or not pieces
        assert before == "" or set(before.split("\n")) <= set(old_lines)
        assert after == "" or set(after.split("\n")) <= set(new_lines)


@searched
@given(LINES, LINES)
def test_without_the_context_the_diff_turns_the_old_lines_into_the_new(old: str, new: str) -> None:
    lines = unified(old, new, "o", "n", context=10_000).splitlines()[3:]
    if old.splitlines() != new.splitlines():
        assert [line[1:] for line in lines if line[:1] != "+"] == old.splitlines()
        assert [line[1:] for line in lines if line[:1] != "-"] == new.splitlines()
    else:
        assert lines == []


def test_a_place_of_very_many_words_is_shown_whole() -> None:
    old, new = "a " * 20_001, "b " * 20_001
    assert by_word(old, new) == [[Piece("removed", old), Piece("added", new)]]
