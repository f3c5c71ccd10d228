"""A real Chromium that fetches from this machine; where there is none, its tests are skipped."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from driftline.errors import DriftlineError
from driftline.fetch.browser.chromium_process import find_browser
from driftline.fetch.browser.proxy import resolve
from driftline.fetch.browser.renderer import Renderer
from driftline.fetch.failures import NOTHING, Blocked
from driftline.model.outcome import Link
from driftline.model.page import Render
from support.making import settings
from support.servers import Answer, answer

#: names of the tests' own; one of them is moved from an allowed address to another one after it was looked up
NAMES = {
    "intranet.test": ["127.0.0.2"],
    "site.test": ["127.0.0.1"],
    "sub.site.test": ["127.0.0.1"],
    "other.test": ["127.0.0.1"],
}
PNG = b"\x89PNG\r\n\x1a\n"


async def looked_up(host: str, port: int) -> list[str]:
    """The addresses of the tests' own names, and of others as usual."""
    return NAMES.get(host) or await resolve(host, port)


def insist_on_browser() -> None:
    """Skip the test where pages cannot be rendered."""
    try:
        find_browser(None)
    except DriftlineError as error:
        pytest.skip(str(error))


@contextmanager
def rendering(*, blocked: Blocked = NOTHING, idle: float = 60.0, **given: Any) -> Iterator[Renderer]:
    """A renderer that may fetch from 127.0.0.1 alone, and from the networks that are given."""
    insist_on_browser()
    chosen = settings(**({"allow_networks": ["127.0.0.1"]} | given))
    renderer = Renderer(chosen, resolve=looked_up, blocked=blocked, idle=idle)
    try:
        yield renderer
    finally:
        renderer.close()


def rendered(url: str, *steps: str, wait_for: str | None = None) -> Link:
    """A page that is to be rendered."""
    return Link(1, url, 1, None, render=Render(wait_for=wait_for, steps=steps))


def scripted(script: str, body: str = "") -> Answer:
    """A page that this script draws."""
    page = f"<!doctype html><title>Drawn</title><body>{body}<main id=drawn></main><script>{script}</script></body>"
    return answer(page.encode(), "200 OK", "Content-Type: text/html; charset=utf-8")


def drawing(markup: str) -> Answer:
    """A page whose content comes from a script, in a form that its source does not show."""
    hidden = base64.b64encode(markup.encode()).decode()
    return scripted(f"document.getElementById('drawn').innerHTML = atob('{hidden}')")
