"""What a page has on the way while it is rendered, and what it was answered."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import Download, Page, Request, Response

_QUIET = 0.5  # seconds without a request on the way: what scripts wanted is there
_PATIENCE = 5.0  # seconds to wait for that: some pages never fall silent
_GLANCE = 0.05  # seconds between two looks at it


class Traffic:
    """Knows when a page last had a request on the way, and the last answer to a request for the page itself.

    What the browser saves instead of showing it is no such answer: the page stays where it is.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._open: set[Request] = set()
        self._since = time.monotonic()
        self.answer: Response | None = None
        self._shown: Response | None = None
        page.on("request", self._began)
        page.on("requestfinished", self._ended)
        page.on("requestfailed", self._ended)
        page.on("response", self._answered)
        page.on("download", self._saved)

    def _began(self, request: Request) -> None:
        self._open.add(request)

    def _ended(self, request: Request) -> None:
        self._open.discard(request)
        self._since = time.monotonic()

    def _answered(self, response: Response) -> None:
        if response.request.is_navigation_request() and response.frame == self._page.main_frame:
            self._shown, self.answer = self.answer, response

    def _saved(self, download: Download) -> None:
        if self.answer is not None and self._shown is not None and download.url == self.answer.url:
            self.answer = self._shown

    async def silence(self) -> None:
        """Return once the page has asked for nothing for a while, or when that has taken too long."""
        began = self._since = time.monotonic()
        while (now := time.monotonic()) - began < _PATIENCE:
            if not self._open and now - self._since >= _QUIET:
                return
            await asyncio.sleep(_GLANCE)
