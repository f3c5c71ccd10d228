from __future__ import annotations

import pytest

from driftline.errors import BadSetting, DriftlineError
from driftline.fetching.browser.finding import find_browser
from driftline.fetching.browser.steps import Action, check_steps, parse_step


@pytest.mark.parametrize(
    ("text", "action", "selector", "words", "seconds"),
    [
        ("click:#more", Action.CLICK, "#more", "", 0),
        ("click: ul > li:nth-child(2) a", Action.CLICK, "ul > li:nth-child(2) a", "", 0),
        ("type:#q=two lamps", Action.TYPE, "#q", "two lamps", 0),
        ("type:input[name=q]=a=b", Action.TYPE, "input[name=q]", "a=b", 0),
        ('type:input[name="a]="]=', Action.TYPE, 'input[name="a]="]', "", 0),
        ("press:Enter", Action.PRESS, "", "Enter", 0),
        ("scroll", Action.SCROLL, "", "", 0),
        ("scroll:footer", Action.SCROLL, "footer", "", 0),
        ("wait:.ready", Action.WAIT, ".ready", "", 0),
        ("wait:1.5s", Action.WAIT, "", "", 1.5),
    ],
)
def test_a_step_is_read_as_it_is_written(text: str, action: Action, selector: str, words: str, seconds: float) -> None:
    step = parse_step(text)
    assert (step.action, step.selector, step.words, step.seconds) == (action, selector, words, seconds)


@pytest.mark.parametrize(
    "text", ["", "jump:#a", "click", "click:", "type:#q", "type:=words", "press:", "press:a b", "wait:", "wait:31s"]
)
def test_what_is_no_step_is_refused_with_the_ways_to_write_one(text: str) -> None:
    with pytest.raises(BadSetting, match=r"is not a step: write click:CSS|waits for too long"):
        parse_step(text)


def test_a_page_has_a_limited_number_of_steps() -> None:
    assert check_steps([" scroll "] * 30) == ("scroll",) * 30
    with pytest.raises(BadSetting, match="30 steps at most"):
        check_steps(["scroll"] * 31)


def test_a_missing_browser_is_told_with_what_to_install() -> None:
    with pytest.raises(DriftlineError, match=r"no-such-browser|driftline\[browser\]"):
        find_browser("no-such-browser")
