"""How a table gives way to a narrow terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from driftline.cli.text_tables import Column, fit

_COLUMNS = (
    Column(name="url", least=10, keep=2, middle=True),
    Column(name="title", least=5, optional=True),
    Column(name="tags", optional=True, keep=1),
    Column(name="found"),
)


def test_a_table_that_fits_is_left_alone() -> None:
    assert fit([20, 30, 8, 9], _COLUMNS, 73) == [20, 30, 8, 9]


def test_the_least_kept_column_is_cut_first() -> None:
    assert fit([20, 30, 8, 9], _COLUMNS, 60) == [20, 17, 8, 9]


def test_a_column_is_left_out_only_when_cutting_is_not_enough() -> None:
    assert fit([20, 30, 8, 9], _COLUMNS, 38) == [10, 5, 8, 9]
    assert fit([20, 30, 8, 9], _COLUMNS, 37) == [16, 0, 8, 9]
    assert fit([20, 30, 8, 9], _COLUMNS, 25) == [14, 0, 0, 9]


@given(st.lists(st.integers(1, 200), min_size=4, max_size=4), st.integers(1, 300))
def test_what_is_not_optional_stays_and_nothing_grows(widths: list[int], room: int) -> None:
    fitted = fit(widths, _COLUMNS, room)

    assert fitted[3] == widths[3]
    assert all(given_up <= max(width, 8) for given_up, width in zip(fitted, widths, strict=True))
    assert fitted[0] > 0
