"""Which requests of a tab get the credentials of its page, whatever the order in which the browser reports things."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from driftline.fetch.browser.browser_credentials import BrowserCredentials, CredentialSender
from driftline.http.credentials import CredentialScope

HOME = "http://home.example/"
OTHER = "http://other.example/"
MAIN, CHILD = "main", "child"


@dataclass(slots=True)
class Tab:
    """A tab whose browser reports what a test says; it is its own page, context and session."""

    handlers: dict[str, Callable[[dict[str, Any]], Any]] = field(default_factory=dict)
    sent: list[dict[str, Any]] = field(default_factory=list)
    blocks_urls: bool = False

    @property
    def context(self) -> Tab:
        return self

    async def new_cdp_session(self, page: Tab) -> Tab:
        return page

    def on(self, name: str, handler: Callable[[dict[str, Any]], Any]) -> None:
        self.handlers[name] = handler

    async def send(self, method: str, parameters: dict[str, Any] | None = None) -> None:
        if method == "Fetch.continueRequest":
            self.sent.append(parameters or {})

    def blocks(self, url: str) -> bool:
        return False

    def requests(self, url: str, kind: str = "Fetch", frame: str = MAIN) -> bool:
        """Report a request, and return whether it got the credentials."""
        request = {"url": url, "headers": {}}
        self._report("Fetch.requestPaused", requestId="1", frameId=frame, resourceType=kind, request=request)
        return "headers" in self.sent[-1]

    def shows(self, url: str, frame: str = MAIN) -> None:
        self._report("Page.frameNavigated", frame={"id": frame, "url": url})

    def attaches(self, frame: str) -> None:
        self._report("Page.frameAttached", frameId=frame, parentFrameId=MAIN)

    def _report(self, name: str, **event: Any) -> None:
        done = self.handlers[name](event)
        if inspect.isawaitable(done):
            asyncio.run(_finish(done))


async def _finish(done: Any) -> None:
    await done


@pytest.fixture
def tab() -> Tab:
    tab = Tab()
    credentials = BrowserCredentials(address=HOME, home=CredentialScope(HOME), headers={"X-Key": "secret"})
    asyncio.run(CredentialSender.open(cast("Any", tab), credentials, cast("Any", tab)))
    return tab


def test_the_page_and_what_it_loads_get_them(tab: Tab) -> None:
    assert tab.requests(HOME, "Document")
    assert tab.requests(HOME + "early"), "before the browser reports that the page is shown"
    tab.shows(HOME)
    assert tab.requests(HOME + "late")
    assert not tab.requests(OTHER)


def test_a_site_that_the_page_redirects_to_gets_nothing_before_it_is_reported_to_be_shown(tab: Tab) -> None:
    assert tab.requests(HOME, "Document")
    assert not tab.requests(OTHER, "Document")
    assert not tab.requests(HOME + "private")


def test_a_site_that_the_page_leaves_for_gets_nothing_before_it_is_reported_to_be_shown(tab: Tab) -> None:
    tab.requests(HOME, "Document")
    tab.shows(HOME)
    tab.requests(OTHER, "Document")
    assert not tab.requests(HOME + "private")
    tab.shows(OTHER)
    assert not tab.requests(HOME + "private")


def test_a_site_cannot_pretend_to_return_to_the_page(tab: Tab) -> None:
    tab.requests(OTHER, "Document")
    tab.shows(OTHER)
    assert tab.requests(HOME, "Document"), "whatever comes is shown to nobody but the page's own site"
    assert not tab.requests(HOME + "private"), "the other site is still shown"
    tab.shows(HOME)
    assert tab.requests(HOME + "private")


@pytest.mark.parametrize(("outer", "given"), [(HOME, True), (OTHER, False)])
def test_a_frame_without_an_address_belongs_to_the_site_that_it_is_in(tab: Tab, outer: str, given: bool) -> None:
    tab.requests(outer, "Document")
    tab.shows(outer)
    tab.attaches(CHILD)
    assert tab.requests(HOME + "private", frame=CHILD) is given
    tab.shows("about:blank", frame=CHILD)
    assert tab.requests(HOME + "private", frame=CHILD) is given


def test_a_frame_that_was_never_reported_gets_nothing(tab: Tab) -> None:
    tab.requests(HOME, "Document")
    assert not tab.requests(HOME + "private", frame="unknown")
