from __future__ import annotations

import pytest

from driftline.cli.page_options import describe_rendering, given_rendering, with_modes
from driftline.errors import BadSetting, UsageError
from driftline.model.page import Render, RenderMode

AUTO = Render(mode=RenderMode.AUTO)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--render", "http://a/"], ["--render=always", "http://a/"]),
        (["http://a/", "--render"], ["http://a/", "--render=always"]),
        (["http://a/", "--render", "auto"], ["http://a/", "--render=auto"]),
        (["--render=auto", "http://a/"], ["--render=auto", "http://a/"]),
        (["--", "--render"], ["--", "--render"]),
    ],
)
def test_the_option_may_stand_alone_wherever_it_stands(given: list[str], expected: list[str]) -> None:
    assert with_modes(given) == expected


def test_steps_and_what_is_waited_for_mean_a_browser() -> None:
    assert given_rendering(None, None, None, None) is None
    assert given_rendering(None, "auto", None, None) == AUTO
    assert given_rendering(None, None, "#a", ["scroll"]) == Render(wait_for="#a", steps=("scroll",))


def test_an_edit_keeps_what_it_does_not_name() -> None:
    before = Render(mode=RenderMode.AUTO, wait_for="#a", steps=("scroll",))
    assert given_rendering(before, None, None, None) == before
    more = given_rendering(before, "always", "", ["wait:1s"])
    assert more == Render(steps=("scroll", "wait:1s"))
    assert given_rendering(before, None, None, ["wait:1s"], replace_steps=True) == Render(
        mode=RenderMode.AUTO, wait_for="#a", steps=("wait:1s",)
    )
    assert given_rendering(before, "never", None, None) is None


def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(UsageError, match="--render does not take"):
        given_rendering(None, "often", None, None)
    with pytest.raises(UsageError, match="need a browser"):
        given_rendering(None, "never", "#a", None)
    with pytest.raises(BadSetting, match="'\\[\\[' is not a CSS selector"):
        given_rendering(None, None, "[[", None)
    with pytest.raises(BadSetting, match="no such key"):
        given_rendering(None, None, None, ["press:Foo"])


def test_how_a_page_is_rendered_is_described_in_words() -> None:
    assert describe_rendering(Render(wait_for="#a", steps=("scroll", "wait:1s"))) == (
        "rendered, waiting for #a, after scroll, wait:1s"
    )
