"""Traps are recognised by their addresses, and by what came of others of the same shape."""

from __future__ import annotations

import logging

import pytest

from driftline.crawl.traps import Traps, shape_of
from driftline.model.page import SkipReason

SITE = "https://site.example"


@pytest.mark.parametrize(
    ("path", "trap"),
    [
        ("/" + "a" * 1_100, SkipReason.TRAP_LONG),
        ("/endless" + "".join(f"/{n}" for n in range(20)), SkipReason.TRAP_DEEP),
        ("/a/x/b/x/c/x/", SkipReason.TRAP_REPEATING),
        ("/blog/tags/blog/tags/", SkipReason.TRAP_REPEATING),
        ("/calendar/2031/5", SkipReason.TRAP_CALENDAR),
        ("/calendar/1931-05", SkipReason.TRAP_CALENDAR),
        ("/events?month=5&year=2099", SkipReason.TRAP_CALENDAR),
        ("/shop?" + "&".join(f"f{n}=1" for n in range(12)), SkipReason.TRAP_PARAMETERS),
    ],
)
def test_an_address_that_goes_on_for_ever_is_a_trap(path: str, trap: SkipReason) -> None:
    """Each rule has a name."""
    assert Traps(2026).why(SITE + path) is trap


@pytest.mark.parametrize(
    "path",
    ["/", "/2026/11/16/title", "/archive/1995/05/", "/de/produkte/de-de/", "/page/5000", "/item?id=5000", "/a/b/a/c",
     "/v/1/1/1/1", "/product/2099-lamp", "/item/1050/12", "/issue/1850/5/7", "/events/2027/5"],
)  # fmt: skip
def test_an_ordinary_address_is_none(path: str) -> None:
    """Archives, languages, long lists and numbers in a row are what sites have."""
    assert Traps(2026).why(SITE + path) is None


def test_parameters_in_ever_new_combinations_are_a_trap() -> None:
    """Values may differ as they like; the names that stand together may not, for one page."""
    traps = Traps(2026)
    assert all(traps.why(f"{SITE}/item?a={n}&b=1") is None for n in range(1_000))
    found = [traps.why(f"{SITE}/shop?x{n}=1&y{n}=1") for n in range(40)]
    assert found.count(SkipReason.TRAP_PARAMETERS) == 16
    assert traps.why(f"{SITE}/other?x=1&y=1") is None


def test_pages_of_one_shape_that_all_say_the_same_are_given_up() -> None:
    """After 25 in a row no more are worth a request, and others are."""
    traps = Traps(2026)
    for n in range(24):
        traps.learn(f"{SITE}/x/{n}", same=True, near=False)
    assert not traps.closed(f"{SITE}/x/99")
    traps.learn(f"{SITE}/x/24", same=True, near=False)
    assert traps.closed(f"{SITE}/x/99")
    assert traps.why(f"{SITE}/x/99") is SkipReason.TRAP_ALIKE
    assert not traps.closed(f"{SITE}/y/99")


def test_a_folder_of_nothing_but_copies_is_given_up_however_they_are_called() -> None:
    """A server that answers the same under any word would never come to an end."""
    traps = Traps(2026)
    for n in range(100):
        assert not traps.closed(f"{SITE}/x/word")
        traps.learn(f"{SITE}/x/{'abcdefghij'[n // 10]}{'klmnopqrst'[n % 10]}", same=True, near=False)
    assert traps.why(f"{SITE}/x/word") is SkipReason.TRAP_ALIKE
    assert not traps.closed(f"{SITE}/y/word")
    assert not traps.closed(f"{SITE}/x/y/word")


def test_one_page_with_something_of_its_own_starts_the_count_anew() -> None:
    """A list of which now and then a page is a copy is no trap."""
    traps = Traps(2026)
    for n in range(500):
        traps.learn(f"{SITE}/x/{n}", same=n % 20 != 0, near=False)
    assert not traps.closed(f"{SITE}/x/1")


def test_pages_that_are_nearly_the_same_are_pages_unless_a_calendar_makes_them() -> None:
    """Tables of figures have few words of their own; an empty year of months is enough."""
    traps = Traps(2026)
    for n in range(500):
        traps.learn(f"{SITE}/station/{n}", same=False, near=True)
    for month in range(12):
        traps.learn(f"{SITE}/calendar/2026/{month + 1}", same=False, near=True)
    assert not traps.closed(f"{SITE}/station/1")
    assert traps.closed(f"{SITE}/calendar/2027/1")


def test_a_shape_leaves_numbers_values_and_opaque_parts_open() -> None:
    """What differs from page to page of one kind does not tell them apart."""
    one = shape_of(f"{SITE}/a/12/9f8a7b6c5d4e3f2a1b?x=1&y=2")
    assert one == shape_of(f"{SITE}/a/7/0f8a7b6c5d4e3f2aff?y=5&x=9")
    assert one != shape_of(f"{SITE}/a/12/title?x=1&y=2")


def test_a_trap_is_logged_once_when_its_pages_are_given_up(caplog: pytest.LogCaptureFixture) -> None:
    traps = Traps(2026)
    with caplog.at_level(logging.INFO, "driftline.crawl"):
        for n in range(40):
            traps.learn(f"https://me:sesame@site.example/x/{n}", same=True, near=False)
    (record,) = caplog.records
    assert record.getMessage().startswith("trap: pages such as https://me:***@site.example/x/0? say the same")
    assert "closed=1" in repr(traps)
