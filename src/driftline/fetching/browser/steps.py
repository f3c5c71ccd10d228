"""What is done on a page before it is captured: clicks, typed words, scrolling, waiting."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from driftline.errors import BadSetting

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST = 30  # steps of a page
_LONGEST = 1_000  # letters of a step
_LONGEST_WAIT = 30.0  # seconds
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)\s*s")
_TIME = re.compile(r"[-+.]?\d")  # no selector begins so
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
class Step:
    """One step: the element it is about, the words or key to type, or the seconds to wait; `text` as it was given."""

    action: Action
    text: str
    selector: str = ""
    words: str = ""
    seconds: float = 0.0


def parse_step(text: str) -> Step:
    """The step that is written so; BadSetting says how to write one."""
    name, colon, rest = text.strip().partition(":")
    rest = rest.strip()
    if len(text) > _LONGEST or name not in list(Action):
        raise _not_a_step(text)
    action = Action(name)
    if action is Action.TYPE:
        found = _SELECTOR.fullmatch(rest)
        if found is None or not found[1].strip():
            raise _not_a_step(text)
        return Step(action=action, text=text, selector=check_selector(found[1].strip()), words=found[2])
    if action is Action.PRESS:
        if not rest:
            raise _not_a_step(text)
        if not _KEY.fullmatch(rest):
            raise BadSetting(
                f"'{text[:60]}' is not a step: there is no such key. Write a single letter, or a name such as Enter, "
                "Tab, Escape, ArrowDown, PageDown or F5; Control+A holds one key and presses the other."
            )
        return Step(action=action, text=text, words=rest)
    if action is Action.WAIT and _TIME.match(rest):
        return Step(action=action, text=text, seconds=_seconds(text, rest))
    if not rest and (colon or action is not Action.SCROLL):
        raise _not_a_step(text)
    return Step(action=action, text=text, selector=check_selector(rest))


def check_steps(texts: Sequence[str]) -> tuple[str, ...]:
    """The steps as they are kept; BadSetting says what is wrong with the first that is."""
    if len(texts) > _MOST:
        raise BadSetting(f"A page has {_MOST} steps at most, not {len(texts)}.")
    return tuple(parse_step(text).text.strip() for text in texts)


def check_selector(selector: str) -> str:
    """The same CSS selector; BadSetting if it cannot be one. Whether it is, the browser alone knows."""
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


def _seconds(text: str, rest: str) -> float:
    found = _SECONDS.fullmatch(rest)
    if found is None or not float(found[1]):
        raise BadSetting(f"'{text[:60]}' is not a step: write the seconds to wait as wait:2s or wait:0.5s.")
    if float(found[1]) > _LONGEST_WAIT:
        raise BadSetting(f"The step '{text}' waits for too long: {_LONGEST_WAIT:.0f}s is the most.")
    return float(found[1])


def _not_a_step(text: str) -> BadSetting:
    ways = "click:CSS, type:CSS=WORDS, press:KEY, scroll, scroll:CSS, wait:CSS or wait:2s"
    return BadSetting(f"'{text[:60]}' is not a step: write {ways}.")
