"""The second paper's tables."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from driftline.model.visit import Visited
from driftline.visits.rank import EXAMPLE, RankOrder, rank
from support.properties import searched

TABLE_2 = [11, 22, 8, 14, 23, 7, 12, 13, 10, 21, 1, 3, 9, 2, 6, 20, 19, 5, 4, 16, 15, 17, 18]
TABLE_3 = [19, 21, 18, 22, 4, 10, 8, 5, 17, 20, 13, 6, 15, 11, 3, 7, 14, 9, 16, 12, 2, 1, 23]
TABLE_4 = [
    (11, 100, 34, 80), (14, 70, 32, 56), (13, 50, 44, 43), (7, 50, 33, 29), (12, 50, 23, 40), (10, 43, 65, 34),
    (1, 34, 21, 32), (3, 21, 34, 13), (9, 21, 32, 13), (2, 20, 22, 17), (6, 9, 44, 5), (5, 7, 55, 4), (4, 6, 66, 4),
    (15, 4, 44, 3),
]  # fmt: skip

columns = st.lists(
    st.tuples(st.integers(1, 20), st.integers(0, 20), st.integers(0, 20)).map(
        lambda row: (row[0], row[1], min(row[::2]))
    ),
    max_size=12,
)


def visited(rows: list[tuple[int, int, int]]) -> list[Visited]:
    return [
        Visited(sno, f"https://page.example/{sno}", frequency, float(weightage), ttl)
        for sno, (frequency, weightage, ttl) in enumerate(rows, start=1)
    ]


def intelligent(rows: Sequence[Visited], threshold: float) -> list[Visited]:
    return rank(rows, RankOrder.INTELLIGENT, threshold)


def test_the_example_is_the_papers_table_1() -> None:
    """Its sums are those of the printed table, and its rows are numbered as there."""
    assert [one.sno for one in EXAMPLE] == list(range(1, 24))
    assert [sum(column) for column in zip(*(one[2:5] for one in EXAMPLE), strict=True)] == [791, 1051, 424]
    assert EXAMPLE[7] == Visited(8, "http://trdinfotech.com/page8", 70, 55.0, 12)


def test_by_frequency_the_example_is_the_papers_table_2() -> None:
    assert [one.sno for one in rank(EXAMPLE, RankOrder.FREQUENCY, 0.5)] == TABLE_2


def test_by_weightage_the_example_is_the_papers_table_3() -> None:
    assert [one.sno for one in rank(EXAMPLE, RankOrder.WEIGHTAGE, 0.5)] == TABLE_3


def test_filtered_and_ranked_the_example_is_the_papers_table_4() -> None:
    rows = [(one.sno, one.frequency, one.weightage, one.ttl) for one in intelligent(EXAMPLE, 0.5)]
    assert rows == TABLE_4


def test_the_order_does_not_depend_on_how_the_rows_come() -> None:
    backwards = EXAMPLE[::-1]
    assert [one.sno for one in rank(backwards, RankOrder.FREQUENCY, 0.5)] == TABLE_2
    assert [one.sno for one in rank(backwards, RankOrder.WEIGHTAGE, 0.5)] == TABLE_3
    assert [one.sno for one in rank(backwards, RankOrder.INTELLIGENT, 0.5)] == [row[0] for row in TABLE_4]


def test_a_page_available_at_exactly_half_of_its_visits_is_dropped() -> None:
    """The paper's page 23: 35 of 70."""
    assert [one.sno for one in intelligent(visited([(70, 12, 35), (70, 12, 36)]), 0.5)] == [2]


def test_a_lower_threshold_keeps_more() -> None:
    assert len(intelligent(EXAMPLE, 0.9)) < 14 < len(intelligent(EXAMPLE, 0.1))
    assert all(one.ttl for one in intelligent(EXAMPLE, 0.0))


@searched
@given(columns, st.floats(0, 0.99))
def test_the_filter_keeps_what_was_available_and_drops_nothing_else(
    rows: list[tuple[int, int, int]], threshold: float
) -> None:
    kept = {one.sno for one in intelligent(visited(rows), threshold)}
    assert kept == {one.sno for one in visited(rows) if one.ttl > one.frequency * threshold}


@searched
@given(columns, st.sampled_from(RankOrder), st.integers(1, 14))
def test_the_first_of_an_order_are_those_of_the_whole_order(
    rows: list[tuple[int, int, int]], by: RankOrder, limit: int
) -> None:
    assert rank(iter(visited(rows)), by, 0.5, limit) == rank(visited(rows), by, 0.5)[:limit]
