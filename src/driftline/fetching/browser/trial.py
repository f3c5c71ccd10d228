"""Whether a browser can be used, found out by using it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from driftline.fetching.browser.chromium import Chromium

if TYPE_CHECKING:
    from driftline.settings import Settings


def try_browser(path: str, settings: Settings) -> None:
    """Start this browser and end it again; BrowserFailed says why it is of no use."""
    asyncio.run(_try(path, settings))


async def _try(path: str, settings: Settings) -> None:
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        chromium = await Chromium.start(playwright, path, settings)
        await chromium.close()
