"""Which pages moved: those that redirect, and those of which the very text is at one new address."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from driftline.crawl.report import Moved, _moved


@dataclass(frozen=True, slots=True)
class Row:
    """A page of a round."""

    url: str
    digest: bytes | None
    state: str = "failed"
    target: str | None = None


OLD = Row("/old", b"same")
NEW = Row("/new", b"same")


def test_a_page_moved_if_its_text_is_at_one_new_address() -> None:
    assert _moved([OLD], [NEW], [NEW, Row("/other", b"other")]) == [Moved(url="/old", to="/new")]


def test_a_page_moved_to_where_it_redirects_whatever_is_there() -> None:
    redirected = Row("/old", b"same", "redirect", "/target")
    assert _moved([redirected], [NEW], [NEW]) == [Moved(url="/old", to="/target")]


@pytest.mark.parametrize(
    ("was", "new", "others"),
    [
        ([OLD, Row("/old/2", b"same")], [NEW], []),
        ([OLD], [NEW, Row("/new/2", b"same")], []),
        ([OLD], [NEW], [Row("/always/there", b"same")]),
        ([OLD], [Row("/new", b"similar")], []),
        ([Row("/old", None)], [Row("/new", None)], []),
    ],
    ids=["two that went", "two that came", "one that stayed", "another text", "texts too short to tell"],
)
def test_a_page_is_not_told_as_moved_unless_it_is_clear_which_became_which(
    was: list[Row], new: list[Row], others: list[Row]
) -> None:
    assert _moved(was, new, new + others) == []
