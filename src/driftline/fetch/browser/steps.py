"""Steps on a rendered page before it is captured: clicks, typing, keys, scrolling, waiting."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from driftline.errors import BadSetting, DriftlineError, FailureKind
from driftline.model.page import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.async_api import Page

    from driftline.fetch.browser.capture import Traffic
    from driftline.model.page import Render
    from driftline.settings import Settings


_MOST = 30  # steps of a page
_LONGEST = 1_000  # characters of a step
_LONGEST_WAIT = 30.0  # seconds
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)\s*s")
_TIME = re.compile(r"[-+.]?\d")  # no selector starts like this
_NAMES = (
    "Enter|Tab|Escape|Space|Backspace|Delete|Insert|Home|End|PageUp|PageDown|Arrow(?:Up|Down|Left|Right)"
    "|F(?:[1-9]|1[0-2])|Key[A-Z]|Digit\\d|Numpad(?:\\d|Add|Subtract|Multiply|Divide|Decimal|Enter)"
    "|Minus|Equal|Comma|Period|Slash|Backslash|Semicolon|Quote|Backquote|Bracket(?:Left|Right)"
    "|(?:Shift|Control|Alt|Meta)(?:Left|Right)?|CapsLock|NumLock|ScrollLock|Pause|PrintScreen|ContextMenu"
)
_KEY = re.compile(rf"(?:(?:Shift|Control|Alt|Meta|ControlOrMeta)\+)*(?:{_NAMES}|[!-~])")
_PAIRS = {"[": "]", "(": ")"}
# the first '=' that is neither within brackets nor within quotes ends a selector
_SELECTOR = re.compile(r"""((?:[^\[\]"'=]|"[^"]*"|'[^']*'|\[(?:[^\]"']|"[^"]*"|'[^']*')*\])+)=(.*)""", re.DOTALL)


class Action(StrEnum):
    """What a step does."""

    CLICK = "click"
    TYPE = "type"
    PRESS = "press"
    SCROLL = "scroll"
    WAIT = "wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserStep:
    """One step: its element, the text or key to type, or the seconds to wait; `text` is the step as it was written."""

    action: Action
    text: str
    selector: str = ""
    words: str = ""
    seconds: float = 0.0


def parse_step(text: str) -> BrowserStep:
    """Return the step that this text describes; raises BadSetting with how to write one."""
    name, colon, argument = text.strip().partition(":")
    argument = argument.strip()
    if len(text) > _LONGEST or name not in list(Action):
        raise _not_a_step(text)
    action = Action(name)
    if action is Action.TYPE:
        found = _SELECTOR.fullmatch(argument)
        if found is None or not found[1].strip():
            raise _not_a_step(text)
        return BrowserStep(action=action, text=text, selector=check_selector(found[1].strip()), words=found[2])
    if action is Action.PRESS:
        if not argument:
            raise _not_a_step(text)
        if not _KEY.fullmatch(argument):
            raise BadSetting(
                f"'{text[:60]}' is not a step: there is no such key. Write a single letter, or a name such as Enter, "
                "Tab, Escape, ArrowDown, PageDown or F5; Control+A holds one key and presses the other."
            )
        return BrowserStep(action=action, text=text, words=argument)
    if action is Action.WAIT and _TIME.match(argument):
        return BrowserStep(action=action, text=text, seconds=_seconds(text, argument))
    if not argument and (colon or action is not Action.SCROLL):
        raise _not_a_step(text)
    return BrowserStep(action=action, text=text, selector=check_selector(argument))


def check_steps(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the steps as they are stored; raises BadSetting for the first that is wrong."""
    if len(texts) > _MOST:
        raise BadSetting(f"A page has {_MOST} steps at most, not {len(texts)}.")
    return tuple(parse_step(text).text.strip() for text in texts)


def check_selector(selector: str) -> str:
    """Return the CSS selector; raises BadSetting if it cannot be one. Only the browser knows for sure."""
    if not _in_pairs(selector):
        raise BadSetting(f"'{selector[:60]}' is not a CSS selector: its brackets and quotes do not come in pairs.")
    return selector


def _in_pairs(selector: str) -> bool:
    closing: list[str] = []
    quote = ""
    letters = iter(selector)
    for letter in letters:
        if letter == "\\":
            next(letters, None)
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in _PAIRS:
            closing.append(_PAIRS[letter])
        elif letter in _PAIRS.values() and (not closing or closing.pop() != letter):
            return False
    return not closing and not quote


def _seconds(text: str, argument: str) -> float:
    found = _SECONDS.fullmatch(argument)
    if found is None or not float(found[1]):
        raise BadSetting(f"'{text[:60]}' is not a step: write the seconds to wait as wait:2s or wait:0.5s.")
    if float(found[1]) > _LONGEST_WAIT:
        raise BadSetting(f"The step '{text}' waits for too long: {_LONGEST_WAIT:.0f}s is the most.")
    return float(found[1])


def _not_a_step(text: str) -> BadSetting:
    ways = "click:CSS, type:CSS=WORDS, press:KEY, scroll, scroll:CSS, wait:CSS or wait:2s"
    return BadSetting(f"'{text[:60]}' is not a step: write {ways}.")


_LOOK = 50.0  # milliseconds between two checks whether the document has been parsed
_SCREENS = 20  # times that a page which grows is scrolled to its end, at most

_SCROLL = """() => {
  const height = (document.body || document.documentElement)?.scrollHeight || 0;
  scrollTo(0, height);
  return height;
}"""


class StepProblem(StrEnum):
    """Why a step failed, as the end of a sentence."""

    NO_ELEMENT = "no such element could be used in time"
    BAD_SELECTOR = "this is not a CSS selector"
    UNKNOWN_KEY = "there is no such key"
    NO_INPUT = "nothing can be typed into this element"


#: parts of messages of playwright, which has no error codes, and what they mean
_BY_MESSAGE = (
    ("Timeout", StepProblem.NO_ELEMENT),
    ("while parsing", StepProblem.BAD_SELECTOR),
    ("is not a valid selector", StepProblem.BAD_SELECTOR),
    ("Unknown key", StepProblem.UNKNOWN_KEY),
    ("Element is not an <input>", StepProblem.NO_INPUT),
)


class StepFailed(DriftlineError):
    """A step of a rendered page, or waiting for an element, could not be carried out."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.failure = Failure(kind=FailureKind.SELECTION, sentence=sentence)


async def prepare(page: Page, render: Render, traffic: Traffic, settings: Settings) -> None:
    """Wait until the page is loaded, and do its steps; raises StepFailed."""
    try:
        steps = [parse_step(text) for text in render.steps]
    except BadSetting as error:  # stored by an earlier version, which accepted it
        raise StepFailed(str(error)) from None
    await read(page)
    await traffic.wait_until_idle()
    if render.wait_for:
        await _await(page, render.wait_for, settings)
    for step in steps:
        await _do(page, step, traffic, settings)


async def read(page: Page) -> None:
    """Wait until the document is parsed; there is no event for that on a page that starts a download."""
    await page.wait_for_function("document.readyState !== 'loading'", polling=_LOOK)


async def _do(page: Page, step: BrowserStep, traffic: Traffic, settings: Settings) -> None:
    """Do a step, and wait until the page has no more requests in flight."""
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
        why = _problem(error.message) or _first_line(error.message)
        raise StepFailed(f"The step '{step.text}' could not be done: {why}.") from None
    await traffic.wait_until_idle()


async def _await(page: Page, selector: str, settings: Settings) -> None:
    from playwright.async_api import Error

    try:
        await page.locator(f"css={selector}").first.wait_for(timeout=_step_limit(settings))
    except Error as error:
        if page.is_closed():
            raise
        if _problem(error.message) is StepProblem.BAD_SELECTOR:
            raise StepFailed(f"What to wait for, '{selector}', is not a CSS selector.") from None
        raise StepFailed(f"'{selector}' did not appear on the page.") from None


async def _scroll(page: Page, traffic: Traffic) -> None:
    """Scroll to the end of the page, and again while it grows."""
    before = -1
    for _ in range(_SCREENS):
        height = await page.evaluate(_SCROLL)
        await traffic.wait_until_idle()
        if height == before:
            return
        before = height


def _step_limit(settings: Settings) -> float:
    """Return the milliseconds that a step may wait for its element: a third of the time for the whole page."""
    return settings.render_timeout * 1000 / 3


def _problem(message: str) -> StepProblem | None:
    """Return what a message of playwright means; None if it is not a known one."""
    return next((problem for part, problem in _BY_MESSAGE if part in message), None)


def _first_line(message: str) -> str:
    """Return the first line of a message of playwright as the end of a sentence."""
    return message.partition("\n")[0].partition(": ")[2].removeprefix("Error: ").rstrip(".")
