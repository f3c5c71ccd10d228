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
_KEY = re.compile(r"[A-Za-z0-9+]{1,40}")
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
    name, _, rest = text.strip().partition(":")
    rest = rest.strip()
    if len(text) > _LONGEST or name not in list(Action):
        raise _not_a_step(text)
    action = Action(name)
    if action is Action.TYPE:
        found = _SELECTOR.fullmatch(rest)
        if found is None or not found[1].strip():
            raise _not_a_step(text)
        return Step(action=action, text=text, selector=found[1].strip(), words=found[2])
    if action is Action.PRESS:
        if not _KEY.fullmatch(rest):
            raise _not_a_step(text)
        return Step(action=action, text=text, words=rest)
    seconds = _SECONDS.fullmatch(rest) if action is Action.WAIT else None
    if seconds is not None:
        if float(seconds[1]) > _LONGEST_WAIT:
            raise BadSetting(f"The step '{text}' waits for too long: {_LONGEST_WAIT:.0f}s is the most.")
        return Step(action=action, text=text, seconds=float(seconds[1]))
    if not rest and action is not Action.SCROLL:
        raise _not_a_step(text)
    return Step(action=action, text=text, selector=rest)


def check_steps(texts: Sequence[str]) -> tuple[str, ...]:
    """The steps as they are kept; BadSetting says what is wrong with the first that is."""
    if len(texts) > _MOST:
        raise BadSetting(f"A page has {_MOST} steps at most, not {len(texts)}.")
    return tuple(parse_step(text).text.strip() for text in texts)


def _not_a_step(text: str) -> BadSetting:
    ways = "click:CSS, type:CSS=WORDS, press:KEY, scroll, scroll:CSS, wait:CSS or wait:2s"
    return BadSetting(f"'{text[:60]}' is not a step: write {ways}.")
