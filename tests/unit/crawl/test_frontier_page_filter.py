"""Why an address is skipped: counted once for each reason, and logged for who looks closely."""

from __future__ import annotations

import logging

import pytest

from driftline.crawl.frontier import PageFilter
from driftline.crawl.scope import scope_of
from driftline.crawl.traps import Traps
from driftline.model.page import AddressSource, SkipReason

SITE = "https://site.example"


def filtered(pages: PageFilter, path: str, depth: int = 1) -> bool:
    found = pages.passed(f"{SITE}{path}", source=AddressSource.LINK, via=None, depth=depth, priority=1.0)
    return found is None


@pytest.fixture
def pages() -> PageFilter:
    return PageFilter(scope_of([f"{SITE}/"]), Traps(2026), 3)


def test_an_address_is_counted_once_for_its_reason(pages: PageFilter) -> None:
    assert not filtered(pages, "/a")
    for _ in range(2):
        assert filtered(pages, "/logo.png")
        assert filtered(pages, "/a/a/a/a")
        assert filtered(pages, "/deep", depth=4)
    assert repr(pages) == "<PageFilter depth=3 skipped=3>"
    assert pages.take_skipped() == {
        SkipReason.NOT_A_PAGE: [f"{SITE}/logo.png"],
        SkipReason.TRAP_REPEATING: [f"{SITE}/a/a/a/a"],
        SkipReason.TOO_DEEP: [f"{SITE}/deep"],
    }
    assert pages.take_skipped() == {}


def test_skipped_addresses_are_logged_with_their_reason(pages: PageFilter, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "driftline.crawl"):
        filtered(pages, "/logo.png")
    assert [(one.getMessage(), vars(one)["reason"]) for one in caplog.records] == [
        (f"address skipped: {SITE}/logo.png", "not-a-page")
    ]
