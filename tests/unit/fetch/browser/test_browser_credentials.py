"""Credentials that are sent for a tab of the browser, tested without a browser."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from driftline.fetch.address_guard import judge_for
from driftline.fetch.browser.browser_credentials import BrowserCredentials, CredentialSender
from driftline.fetch.browser.proxy import Gateway
from driftline.fetch.failures import NOTHING, Blocked
from support.blocks import Paths
from support.making import link, settings

Handler = Callable[[dict[str, Any]], Awaitable[None]]


class Tab:
    """A tab, its profile and the connection to it, that keeps what it is told."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}
        self.told: list[tuple[str, dict[str, Any]]] = []

    @property
    def context(self) -> Tab:
        return self

    async def new_cdp_session(self, _tab: Tab) -> Tab:
        return self

    def on(self, name: str, handler: Handler) -> None:
        self.handlers[name] = handler

    async def send(self, name: str, given: dict[str, Any] | None = None) -> dict[str, Any]:
        self.told.append((name, given or {}))
        return {}


def told(blocked: Blocked, *events: tuple[str, dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """What a tab is told that opens a page without keys, and then has these events."""

    async def happen() -> None:
        gateway = Gateway(judge_for([]), most=1_000, connect_timeout=5.0, blocked=blocked)
        keys = BrowserCredentials.of(link("https://page.example/"), settings())
        await CredentialSender.open(tab, keys, gateway)  # type: ignore[arg-type]
        for name, event in events:
            await tab.handlers[name](event)

    tab = Tab()
    asyncio.run(happen())
    return tab.told


def asks(url: str) -> tuple[str, dict[str, Any]]:
    event = {"requestId": url, "request": {"url": url, "headers": {}}, "frameId": "1", "resourceType": "Document"}
    return "Fetch.requestPaused", event


ARRIVES = ("Page.frameNavigated", {"frame": {"id": "1", "url": "https://page.example/"}})


def test_where_single_addresses_are_blocked_every_encrypted_request_is_judged_before_it_is_sent() -> None:
    bad, good = "https://other.example/bad", "https://other.example/good"
    found = told(Paths("/bad"), ARRIVES, asks(bad), asks(good))
    (patterns,) = [given["patterns"] for name, given in found if name == "Fetch.enable"]
    assert {"urlPattern": "https://*"} in patterns
    assert found[-2:] == [
        ("Fetch.fulfillRequest", {"requestId": bad, "responseCode": 403}),
        ("Fetch.continueRequest", {"requestId": good}),
    ]
    assert "Fetch.disable" not in dict(found)


def test_where_none_is_requests_go_their_way_once_the_page_is_there() -> None:
    found = told(NOTHING, ARRIVES)
    assert [given["patterns"] for name, given in found if name == "Fetch.enable"] == [
        [{"urlPattern": "https://page.example/*"}]
    ]
    assert found[-1] == ("Fetch.disable", {})
