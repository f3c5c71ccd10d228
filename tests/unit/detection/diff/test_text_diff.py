from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.detection.diff.text_diff import Move, WordPiece, by_word, in_line, starts, unified
from support.properties import searched

MOVED = "A paragraph that goes elsewhere."
LINES = st.lists(st.text(alphabet="ab ,.é", max_size=8), max_size=8).map("\n".join)


@pytest.mark.parametrize(
    ("old", "new", "removed", "added"),
    [
        ("Price: €39.99 with VAT", "Price: €29.99 with VAT", "€39.99", "€29.99"),
        ("It costs 1,299.00 now", "It costs 1,199.00 now", "1,299.00", "1,199.00"),
        ("Version 2.5.3 is out", "Version 2.5.4 is out", "2.5.3", "2.5.4"),
        ("Open until 18:30 today", "Open until 19:30 today", "18:30", "19:30"),
        ("It takes 3 days.", "It takes 4 days.", "3", "4"),
        ("See page 3.", "See page 4.", "3", "4"),
    ],
)
def test_a_number_is_replaced_as_a_whole(old: str, new: str, removed: str, added: str) -> None:
    changed = [(piece.kind, piece.text) for piece in in_line(old, new) if piece.kind != "same"]
    assert changed == [("removed", removed), ("added", added)]


@given(old=LINES, new=LINES)
def test_each_place_that_differs_begins_at_a_line_of_the_new_text_or_at_its_end(old: str, new: str) -> None:
    found = starts(old, new)
    assert len(found) == len(by_word(old, new))
    assert found == sorted(found)
    assert all(0 <= start <= len(new.split("\n")) for start in found)


def test_places_begin_where_lines_were_added_replaced_or_removed() -> None:
    assert starts("a\nb\nc\nd", "x\na\nB b\nd\ne") == [0, 2, 4]
    assert starts("a\nb", "a") == [1]


def test_equal_texts_have_no_difference() -> None:
    assert unified("a\nb", "a\nb", "old", "new") == ""
    assert by_word("a\nb", "a\nb") == []


def test_a_unified_diff_names_both_sides_and_shows_the_lines() -> None:
    diff = unified("one\ntwo\nthree", "one\n2\nthree", "version 1", "version 2")
    assert diff.splitlines() == ["--- version 1", "+++ version 2", "@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"]


def test_a_changed_word_is_a_piece_between_what_stayed() -> None:
    assert by_word("costs 5 euro\nsame", "costs 6 euro\nsame") == [
        [WordPiece("same", "costs "), WordPiece("removed", "5"), WordPiece("added", "6"), WordPiece("same", " euro")]
    ]


def test_each_place_that_differs_is_a_list_of_its_own() -> None:
    old = "\n".join(["a", "b", "c", "d", "e"])
    new = "\n".join(["A", "b", "c", "d", "E"])
    assert by_word(old, new) == [
        [WordPiece("removed", "a"), WordPiece("added", "A")],
        [WordPiece("removed", "e"), WordPiece("added", "E")],
    ]


def is_old(piece: WordPiece) -> bool:
    return piece.kind in ("same", "removed") or (piece.move is not None and not piece.move.arrived)


def is_new(piece: WordPiece) -> bool:
    return piece.kind in ("same", "added") or (piece.move is not None and piece.move.arrived)


@searched
@given(LINES, LINES)
def test_each_place_reads_as_the_old_and_as_the_new_text(old: str, new: str) -> None:
    old_lines, new_lines = old.split("\n"), new.split("\n")
    for pieces in by_word(old, new):
        before = "".join(piece.text for piece in pieces if is_old(piece))
        after = "".join(piece.text for piece in pieces if is_new(piece))
        assert before != after or not pieces
        assert before == "" or set(before.split("\n")) <= set(old_lines)
        assert after == "" or set(after.split("\n")) <= set(new_lines)


PARAGRAPHS = st.lists(
    st.sampled_from([f"Paragraph {letter * 4} is long enough to be known." for letter in "abcdef"] + ["Home", "x y"]),
    min_size=1,
    max_size=10,
).map("\n".join)


@searched
@given(PARAGRAPHS, PARAGRAPHS)
def test_the_places_turn_the_old_text_into_the_new_one_and_back(old: str, new: str) -> None:
    places = by_word(f"first\n{old}\nlast", f"first\n{new}\nlast")
    removed = Counter(line for pieces in places for line in lines_of(pieces, is_old))
    added = Counter(line for pieces in places for line in lines_of(pieces, is_new))
    before, after = Counter(old.split("\n")), Counter(new.split("\n"))
    assert removed - added == before - after
    assert added - removed == after - before


def lines_of(pieces: list[WordPiece], belongs: Callable[[WordPiece], bool]) -> list[str]:
    side = [piece.text for piece in pieces if belongs(piece)]
    return "".join(side).split("\n") if side else []


@searched
@given(st.text(alphabet="ab ,.é値段\t", max_size=30), st.text(alphabet="ab ,.é値段\t", max_size=30))
def test_the_pieces_of_a_line_read_as_both_of_its_texts(old: str, new: str) -> None:
    pieces = in_line(old, new)
    assert "".join(piece.text for piece in pieces if is_old(piece)) == old
    assert "".join(piece.text for piece in pieces if is_new(piece)) == new


def test_a_block_that_moved_is_shown_where_it_was_and_where_it_is() -> None:
    block = "This paragraph goes to the end.\nThis one goes with it."
    rest = "One paragraph stays.\nSo does another one.\nAnd so does the third."
    assert by_word(f"{block}\n{rest}", f"{rest}\n{block}") == [
        [WordPiece("moved", block, Move(from_line=1, to_line=4, arrived=False))],
        [WordPiece("moved", block, Move(from_line=1, to_line=4, arrived=True))],
    ]


def test_words_that_stayed_by_chance_do_not_tear_a_sentence_apart() -> None:
    old, new = "We may share data with partners of ours.", "We never sell anything with strings of any sort."
    kinds = [piece.kind for piece in in_line(old, new)]
    assert kinds == ["same", "removed", "added", "same"]


def test_each_character_is_a_word_where_words_are_not_spaced() -> None:
    assert in_line("価格は五百円です。", "価格は六百円です。") == [
        WordPiece("same", "価格は"), WordPiece("removed", "五"), WordPiece("added", "六"),
        WordPiece("same", "百円です。"),
    ]  # fmt: skip


@searched
@given(LINES, LINES)
def test_without_the_context_the_diff_turns_the_old_lines_into_the_new(old: str, new: str) -> None:
    lines = unified(old, new, "o", "n", context=10_000).splitlines()[3:]
    if old != new:
        assert [line[1:] for line in lines if line[:1] != "+"] == (old.split("\n") if old else [])
        assert [line[1:] for line in lines if line[:1] != "-"] == (new.split("\n") if new else [])
    else:
        assert lines == []


def test_a_line_end_of_another_kind_is_a_difference() -> None:
    assert unified("One\u2028two", "One\ntwo", "o", "n").splitlines()[2:3] == ["@@ -1 +1,2 @@"]


def test_a_place_of_a_unified_difference_may_have_a_head() -> None:
    printed = unified("a\nb\nc", "a\nd\nc", "o", "n", headed=lambda lost, gained: f"{lost} {gained}")
    assert printed.splitlines()[2] == "@@ -1,3 +1,3 @@ ['b'] ['d']"


def test_a_place_of_very_many_words_is_shown_whole() -> None:
    old, new = "a " * 20_001, "b " * 20_001
    assert by_word(old, new) == [[WordPiece("removed", old), WordPiece("added", new)]]
