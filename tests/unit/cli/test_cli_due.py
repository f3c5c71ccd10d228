"""Which pages `driftline run` checks now."""

from __future__ import annotations

from driftline.model import Page
from driftline.scheduling.fixed import due

_NOW = 10_000.0


def page(number: int, *, checked_at: float | None = None, every: float | None = None) -> Page:
    return Page(
        id=number, url=f"https://example.com/{number}", every=every, tags=(), added_at=0.0, checks=0, versions=0,
        checked_at=checked_at, changed_at=None, verdict=None, failure=None, failures=0, title=None,
    )  # fmt: skip


def test_a_page_never_checked_is_due() -> None:
    found = due([page(1)], now=_NOW, default=3600)

    assert [page.id for page in found.pages] == [1]
    assert found.next_at is None


def test_a_page_is_due_when_its_own_interval_or_the_default_has_passed() -> None:
    pages = [
        page(1, checked_at=_NOW - 60, every=60),
        page(2, checked_at=_NOW - 59, every=60),
        page(3, checked_at=_NOW - 100),
        page(4, checked_at=_NOW - 99),
    ]

    found = due(pages, now=_NOW, default=100)

    assert [page.id for page in found.pages] == [1, 3]
    assert found.next_at == _NOW + 1


def test_the_next_look_is_when_the_first_of_the_others_is_due() -> None:
    pages = [page(1, checked_at=_NOW, every=500), page(2, checked_at=_NOW, every=20)]

    assert due(pages, now=_NOW, default=100).next_at == _NOW + 20


def test_without_pages_nothing_is_due() -> None:
    assert due([], now=_NOW, default=100).pages == []
