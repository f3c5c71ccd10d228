"""What looks dangerous in the markup of a page."""

from __future__ import annotations

import pytest

from driftline.detection.examine import examine
from driftline.detection.jobs import Finding
from driftline.detection.threats import Threat, intruders, mixed_content
from driftline.model.page import WarningKind
from support.making import job

URL = "https://page.example/"
CALM = "<!doctype html><title>T</title><p>Words that stay as they are.</p>"
FRAME = '<iframe src="https://evil.example/x" width="1" height="1"></iframe>'
PACKED = f"<script>eval(function(p,a,c,k,e,d){{return p}}('0 1',2,2,'{'a|b' * 30}'.split('|')))</script>"


def dangers(body: str, url: str = URL) -> list[Threat]:
    mixed = mixed_content(body.encode(), url)
    return [*([] if mixed is None else [mixed]), *intruders(body.encode(), url, 0)]


def kinds(body: str, url: str = URL) -> list[WarningKind]:
    return [found.kind for found in dangers(body, url)]


def first(body: str) -> Finding:
    return examine(job(body.encode())._replace(url=URL))


def then(before: Finding, body: str) -> Finding:
    return examine(job(body.encode(), after=before)._replace(url=URL))


@pytest.mark.parametrize("part", ["script", "iframe", "img alt=x"])
def test_parts_loaded_without_encryption_are_mixed_content(part: str) -> None:
    found = dangers(f'<a href="http://x.example/">x</a><{part} src="http://cdn.example/a.js">')
    assert [one.kind for one in found] == [WarningKind.MIXED_CONTENT]
    assert "http://cdn.example/a.js" in found[0].sentence


@pytest.mark.parametrize(
    "body",
    [
        '<a href="http://x.example/">a link is no part</a><svg xmlns="http://www.w3.org/2000/svg"></svg>',
        '<script src="https://cdn.example/a.js"></script><p>they write src="http://x.example/" in it</p>',
    ],
)
def test_links_and_words_are_not(body: str) -> None:
    assert kinds(body) == []


def test_a_page_that_is_not_encrypted_has_no_mixed_content() -> None:
    assert kinds('<script src="http://cdn.example/a.js">', "http://page.example/") == []


@pytest.mark.parametrize(
    "frame",
    [
        FRAME,
        "<iframe SRC=//evil.example/ style='display: none'></iframe>",
        '<iframe style="position:absolute;left:-5000px" src="http://evil.example/"></iframe>',
        '<iframe hidden src="https://evil.example/"></iframe>',
    ],
)
def test_a_frame_that_nobody_sees_is_hidden(frame: str) -> None:
    assert WarningKind.HIDDEN_FRAME in kinds(frame)


@pytest.mark.parametrize(
    "frame",
    [
        '<iframe src="https://video.example/embed" width="560" height="315"></iframe>',
        '<iframe src="about:blank" style="display:none"></iframe>',
        '<iframe src="https://page.example/own" style="display:none"></iframe>',
        '<noscript><iframe src="https://count.example/ns" height="0" width="0"></iframe></noscript>',
    ],
)
def test_honest_frames_are_not(frame: str) -> None:
    assert kinds(frame) == []


@pytest.mark.parametrize(
    "script",
    [
        PACKED,
        f"<script>eval(atob('{'YWxlcnQoMSk' * 9}'))</script>",
        f"<script>document.write(unescape('{'%3Cscript%3E' * 9}'))</script>",
        f"<script>String.fromCharCode({','.join(['104'] * 60)})</script>",
        *["<script>" + "x" * shift + "='" + "\\x68" * 80 + "'</script>" for shift in range(9)],
        f"<script>var _0x3f2a=['a','b','c','d','e','f'];{'_0x3f2a[_0x1b(0x2)];' * 300}</script>",
    ],
)
def test_a_script_that_hides_what_it_does_is_obfuscated(script: str) -> None:
    assert kinds(script) == [WarningKind.OBFUSCATED_SCRIPT]


def test_a_plain_script_is_not() -> None:
    assert kinds("<script>function f(a){return String.fromCharCode(65)+'\\x41'+a}</script>") == []


def test_what_a_page_had_from_the_start_is_no_danger() -> None:
    assert first(CALM + FRAME + PACKED).warnings == ()
    assert then(first(CALM + FRAME + PACKED), CALM + FRAME + PACKED + "<p>More words.</p>").warnings == ()


def test_what_appears_in_a_change_is_reported() -> None:
    found = then(first(CALM), CALM + "<p>More words.</p>" + FRAME + PACKED)
    assert [kind for kind, _ in found.warnings] == [WarningKind.HIDDEN_FRAME, WarningKind.OBFUSCATED_SCRIPT]
    assert found.change is not None


def test_what_appears_while_the_text_stays_is_reported_too_and_is_no_change() -> None:
    found = then(first(CALM), CALM + PACKED)
    assert found.proof == "text"
    assert [kind for kind, _ in found.warnings] == [WarningKind.OBFUSCATED_SCRIPT]


def test_a_page_that_did_not_grow_is_not_searched() -> None:
    found = then(first(f"{CALM}<p>{'Many words that go away. ' * 20}</p>"), CALM + FRAME + PACKED)
    assert found.change is not None
    assert found.warnings == ()


def test_mixed_content_counts_from_the_first_version_on() -> None:
    body = CALM + '<img src="http://cdn.example/a.png">'
    assert [kind for kind, _ in first(body).warnings] == [WarningKind.MIXED_CONTENT]
    assert [kind for kind, _ in then(first(body), f"{body}<p>More words.</p>").warnings] == [WarningKind.MIXED_CONTENT]
