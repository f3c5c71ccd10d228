from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from driftline.detection.diff.align import AlignedLine, align, gaps, matching
from support.properties import searched

LONG = "A paragraph that is long enough to be known when it stands elsewhere, number"
LINE = st.one_of(st.sampled_from(["a", "b", ""]), st.integers(0, 5).map(lambda number: f"{LONG} {number}."))
LINES = st.lists(LINE, max_size=12)


def paragraphs(*numbers: int) -> list[str]:
    return [f"{LONG} {number}." for number in numbers]


def kinds(old: list[str], new: list[str]) -> list[str]:
    return [row.kind for row in align(old, new)]


@searched
@given(LINES, LINES)
def test_the_rows_hold_every_line_of_both_texts_in_order(old: list[str], new: list[str]) -> None:
    rows = align(old, new)
    assert [row.old for row in rows if row.kind not in ("added", "came")] == list(range(len(old)))
    assert [row.new for row in rows if row.kind not in ("removed", "left")] == list(range(len(new)))


@searched
@given(LINES, LINES)
def test_what_stayed_and_what_moved_is_the_same_in_both(old: list[str], new: list[str]) -> None:
    rows = align(old, new)
    for row in rows:
        if row.kind in ("same", "left", "came"):
            assert old[row.old] == new[row.new]
        elif row.kind == "edited":
            assert old[row.old] != new[row.new]
    left = {(row.old, row.new) for row in rows if row.kind == "left"}
    assert left == {(row.old, row.new) for row in rows if row.kind == "came"}


@searched
@given(LINES, LINES)
def test_what_matches_is_equal_and_the_gaps_are_everything_else(old: list[str], new: list[str]) -> None:
    pairs = matching(old, new)
    assert all(old[i] == new[k] for i, k in pairs)
    assert pairs == sorted(pairs)
    assert sum(gap.j - gap.i for gap in gaps(old, new)) == len(old) - len(pairs)
    assert sum(gap.m - gap.k for gap in gaps(old, new)) == len(new) - len(pairs)


def test_a_block_that_stands_elsewhere_moved() -> None:
    old, new = paragraphs(1, 2, 3, 4, 5), paragraphs(3, 4, 5, 1, 2)
    assert align(old, new) == [
        AlignedLine("left", 0, 3), AlignedLine("left", 1, 4), AlignedLine("same", 2, 0), AlignedLine("same", 3, 1),
        AlignedLine("same", 4, 2), AlignedLine("came", 0, 3), AlignedLine("came", 1, 4),
    ]  # fmt: skip


def test_a_block_takes_its_short_lines_along() -> None:
    block = ["Fees", *paragraphs(1), "Fees"]
    assert kinds([*block, *paragraphs(2, 3, 4, 5, 6)], [*paragraphs(2, 3, 4, 5, 6), *block]) == [
        *["left"] * 3, *["same"] * 5, *["came"] * 3,
    ]  # fmt: skip


def test_a_short_line_that_stands_elsewhere_was_removed_and_added() -> None:
    assert kinds(["Home", *paragraphs(1, 2)], [*paragraphs(1, 2), "Home"]) == ["removed", "same", "same", "added"]


def test_a_rewritten_line_is_distinguished_from_one_that_took_its_place() -> None:
    assert kinds(["Fees are due in ten days."], ["Fees are due in thirty days."]) == ["edited"]
    assert kinds(["Fees are due in ten days."], ["Cats like fish."]) == ["removed", "added"]


def test_a_rewritten_line_is_found_among_new_ones() -> None:
    new = ["Cats like fish.", "Fees are due in thirty days.", "Dogs do not."]
    assert kinds(["Fees are due in ten days."], new) == ["added", "edited", "added"]


def test_lines_that_all_stand_several_times_are_matched_by_what_surrounds_them() -> None:
    table = Random(1).choices(["yes", "no", "on", "off"], k=1000)
    pairs = matching(["new row", *table, "old end"], [*table, "new end"])
    assert len(pairs) == len(table)
    middle = [*table[:500], "a row", *table[500:]]
    assert len(matching(["x", *middle, "y"], ["z", *table, "w"])) == len(table)


def test_long_texts_of_which_all_is_rewritten_have_their_lines_paired() -> None:
    old = [f"Item {number} costs {number * 7} euros today" for number in range(500)]
    new = [f"Item {number} costs {number * 7 + 1} euros today" for number in range(500)]
    assert set(kinds(old, new)) == {"edited"}
