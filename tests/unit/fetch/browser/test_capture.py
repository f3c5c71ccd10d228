"""Reading the document of a page whose scripts navigate meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from driftline.fetch.browser.capture import EndlessNavigation, _written

playwright = pytest.importorskip("playwright.async_api")


class Navigating:
    """A page that navigates away while its document is read, so many times; it is its own traffic."""

    url = "http://page.example/"

    def __init__(self, times: int) -> None:
        self.left = times

    async def evaluate(self, _script: str) -> str:
        if self.left:
            self.left -= 1
            raise playwright.Error("Execution context was destroyed, most likely because of a navigation")
        return "<p>arrived"

    async def wait_for_function(self, *_: Any, **__: Any) -> None:
        """It is always parsed."""

    async def wait_until_idle(self) -> None:
        """It is always idle."""


def written(times: int) -> str:
    page: Any = cast("Any", Navigating(times))
    return asyncio.run(_written(page, page))


def test_a_page_that_a_script_navigates_to_is_read() -> None:
    assert written(2) == "<p>arrived"


def test_scripts_that_navigate_again_and_again_end_in_an_error_of_ours() -> None:
    with pytest.raises(EndlessNavigation, match=r"page\.example"):
        written(1_000)
