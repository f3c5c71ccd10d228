"""What is done on a page in the browser before it is captured: it is waited for, and its steps are taken."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from driftline.errors import BadSetting
from driftline.fetching.browser.steps import Action, Step, parse_step
from driftline.model import Failure, FailureKind

if TYPE_CHECKING:
    from playwright.async_api import Page

    from driftline.fetching.browser.traffic import Traffic
    from driftline.model import Render
    from driftline.settings import Settings

_LOOK = 50.0  # milliseconds between two looks at whether the document has been read
_SCREENS = 20  # scrolled to the end of a page that grows as it is scrolled, so often at most

_SCROLL = """() => {
  const height = (document.body || document.documentElement)?.scrollHeight || 0;
  scrollTo(0, height);
  return height;
}"""

_NO_SELECTOR = "this is not a CSS selector"
#: what playwright says of a step that cannot be done, and how that ends a sentence
_REASONS = (
    ("Timeout", "no such element could be used in time"),
    ("while parsing", _NO_SELECTOR),
    ("is not a valid selector", _NO_SELECTOR),
    ("Unknown key", "there is no such key"),
    ("Element is not an <input>", "nothing can be typed into this element"),
)


class NotDone(Exception):
    """A step, or what the page waits for, came to nothing."""

    def __init__(self, sentence: str) -> None:
        self.failure = Failure(kind=FailureKind.SELECTION, sentence=sentence)


async def prepare(page: Page, render: Render, traffic: Traffic, settings: Settings) -> None:
    """Wait until the page is there, and do its steps; NotDone says what came to nothing."""
    try:
        steps = [parse_step(text) for text in render.steps]
    except BadSetting as error:  # it was given when more was taken for a step
        raise NotDone(str(error)) from None
    await read(page)
    await traffic.silence()
    if render.wait_for:
        await _await(page, render.wait_for, settings)
    for step in steps:
        await _do(page, step, traffic, settings)


async def read(page: Page) -> None:
    """Wait until the document has been read; of a page that starts a download meanwhile, no event tells that."""
    await page.wait_for_function("document.readyState !== 'loading'", polling=_LOOK)


async def _do(page: Page, step: Step, traffic: Traffic, settings: Settings) -> None:
    """Do a step, and wait until the page is quiet again."""
    from playwright.async_api import Error

    if step.seconds:
        await asyncio.sleep(step.seconds)
        return
    if step.action is Action.SCROLL and not step.selector:
        await _scroll(page, traffic)
        return
    place = page.locator(f"css={step.selector}").first
    limit = _step_limit(settings)
    try:
        match step.action:
            case Action.CLICK:
                await place.click(timeout=limit)
            case Action.TYPE:
                await place.fill(step.words, timeout=limit)
            case Action.PRESS:
                await page.keyboard.press(step.words)
            case Action.SCROLL:
                await place.scroll_into_view_if_needed(timeout=limit)
            case Action.WAIT:
                await place.wait_for(timeout=limit)
    except Error as error:
        if page.is_closed():
            raise
        raise NotDone(f"The step '{step.text}' could not be done: {_told(error.message)}.") from None
    await traffic.silence()


async def _await(page: Page, selector: str, settings: Settings) -> None:
    from playwright.async_api import Error

    try:
        await page.locator(f"css={selector}").first.wait_for(timeout=_step_limit(settings))
    except Error as error:
        if page.is_closed():
            raise
        if _told(error.message) == _NO_SELECTOR:
            raise NotDone(f"What to wait for, '{selector}', is not a CSS selector.") from None
        raise NotDone(f"'{selector}' did not appear on the page.") from None


async def _scroll(page: Page, traffic: Traffic) -> None:
    """Scroll to the end of the page, and on while it grows."""
    before = -1
    for _ in range(_SCREENS):
        height = await page.evaluate(_SCROLL)
        await traffic.silence()
        if height == before:
            return
        before = height


def _step_limit(settings: Settings) -> float:
    """The milliseconds that a step may wait for its element: a third of all, so that the reason can still be told."""
    return settings.render_timeout * 1000 / 3


def _told(message: str) -> str:
    """The gist of what playwright says, as the end of a sentence."""
    known = next((reason for name, reason in _REASONS if name in message), None)
    return known or message.partition("\n")[0].partition(": ")[2].removeprefix("Error: ").rstrip(".")
