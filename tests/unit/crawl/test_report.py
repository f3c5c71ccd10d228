"""Which pages moved: those that redirect, and those with the very text of one new page; and words for the reasons."""

from __future__ import annotations

import pytest

from driftline.crawl.report import _WORDS, MovedPage, moved_pages
from driftline.model.page import AddressSource, AddressState, SkipReason
from driftline.store.crawls import FoundAddress


def row(
    url: str, digest: bytes | None, state: AddressState = AddressState.FAILED, target: str | None = None
) -> FoundAddress:
    """A page of a round."""
    return FoundAddress(0, url, AddressSource.LINK, state, None, "", 200, target, digest, None, False, 0.0, 1, 1, 0)


OLD = row("/old", b"same")
NEW = row("/new", b"same")


def test_a_page_moved_if_its_text_is_at_one_new_address() -> None:
    assert moved_pages([OLD], [NEW], [NEW, row("/other", b"other")]) == [MovedPage(url="/old", to="/new")]


def test_a_page_moved_to_where_it_redirects_whatever_is_there() -> None:
    redirected = row("/old", b"same", AddressState.REDIRECT, "/target")
    assert moved_pages([redirected], [NEW], [NEW]) == [MovedPage(url="/old", to="/target")]


@pytest.mark.parametrize(
    ("was", "new", "others"),
    [
        ([OLD, row("/old/2", b"same")], [NEW], []),
        ([OLD], [NEW, row("/new/2", b"same")], []),
        ([OLD], [NEW], [row("/always/there", b"same")]),
        ([OLD], [row("/new", b"similar")], []),
        ([row("/old", None)], [row("/new", None)], []),
    ],
    ids=["two that went", "two that came", "one that stayed", "another text", "texts too short to tell"],
)
def test_a_page_is_not_reported_as_moved_unless_it_is_clear_which_became_which(
    was: list[FoundAddress], new: list[FoundAddress], others: list[FoundAddress]
) -> None:
    assert moved_pages(was, new, new + others) == []


def test_every_reason_to_skip_an_address_has_words_of_its_own() -> None:
    assert set(_WORDS) == set(SkipReason)
    assert len(set(_WORDS.values())) == len(SkipReason)
