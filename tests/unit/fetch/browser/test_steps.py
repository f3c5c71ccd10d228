from __future__ import annotations

import pytest

from driftline.errors import BadSetting, DriftlineError
from driftline.fetch.browser.chromium_process import find_browser
from driftline.fetch.browser.steps import Action, check_steps, parse_step


@pytest.mark.parametrize(
    ("text", "action", "selector", "words", "seconds"),
    [
        ("click:#more", Action.CLICK, "#more", "", 0),
        ("click: ul > li:nth-child(2) a", Action.CLICK, "ul > li:nth-child(2) a", "", 0),
        ("type:#q=two lamps", Action.TYPE, "#q", "two lamps", 0),
        ("type:input[name=q]=a=b", Action.TYPE, "input[name=q]", "a=b", 0),
        ('type:input[name="a]="]=', Action.TYPE, 'input[name="a]="]', "", 0),
        ("press:Enter", Action.PRESS, "", "Enter", 0),
        ("press:/", Action.PRESS, "", "/", 0),
        ("press:Control+Shift+ArrowDown", Action.PRESS, "", "Control+Shift+ArrowDown", 0),
        ("press:Control++", Action.PRESS, "", "Control++", 0),
        ("click:a[title='](']:not(.b\\()", Action.CLICK, "a[title='](']:not(.b\\()", "", 0),
        ("type:#q=[[", Action.TYPE, "#q", "[[", 0),
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
    ("text", "sentence"),
    [
        *[
            (text, "is not a step: write click:CSS")
            for text in ("", "jump:#a", "click", "click:", "type:#q", "type:=words", "press:", "wait:", "scroll:")
        ],
        *[(f"wait:{time}", "write the seconds to wait as wait:2s") for time in ("2", "-2s", "1h", "0s", ".5s", "+1s")],
        ("wait:31s", "waits for too long"),
        *[(f"press:{key}", "there is no such key") for key in ("Foo", "a b", "enter", "F13", "Foo+a", "Control+")],
        *[
            (step, "is not a CSS selector: its brackets and quotes do not come in pairs")
            for step in ("click:[[", "click:a)", "wait:p:not(.a", "scroll:[b='c]", "type:p:not(.a=words", "click:(]")
        ],
    ],
)
def test_what_is_no_step_is_refused_with_what_is_wrong(text: str, sentence: str) -> None:
    with pytest.raises(BadSetting, match=sentence):
        parse_step(text)


def test_a_page_has_a_limited_number_of_steps() -> None:
    assert check_steps([" scroll "] * 30) == ("scroll",) * 30
    with pytest.raises(BadSetting, match="30 steps at most"):
        check_steps(["scroll"] * 31)


def test_a_missing_browser_is_reported_with_what_to_install() -> None:
    with pytest.raises(DriftlineError, match=r"no-such-browser|driftline\[browser\]"):
        find_browser("no-such-browser")
