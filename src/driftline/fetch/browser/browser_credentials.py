"""Lets a page in that is not open to everybody, while it is rendered: its secrets go to its own origin, no further.

Headers are put on single requests, where the browser is about to send them: on those for the origin of the page, of
each redirect anew. What browsers would let one set for a whole profile, they send to every host. Cookies are the
browser's own business, which knows hosts but no ports: the gateway keeps them from the others.
"""

from __future__ import annotations

import os
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit

from driftline.fetch.browser.upstream_proxy import Upstream
from driftline.fetch.curl import certificates
from driftline.http.credentials import CredentialScope, MissingSecret, merged_headers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playwright.async_api import CDPSession, Page

    from driftline.fetch.browser.proxy import Gateway
    from driftline.model import Link
    from driftline.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BrowserCredentials:
    """What lets a page in, all secrets told, its address without a password, and the proxy to use for it."""

    address: str
    home: CredentialScope
    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: Mapping[str, str] = field(default_factory=dict)
    upstream: Upstream | None = None

    @classmethod
    def of(cls, link: Link, settings: Settings) -> Self:
        """Those of this link; MissingSecret if one of them is not there."""
        access = link.access
        proxy = settings.proxy if access is None else access.proxy_or(settings.proxy, os.environ)
        try:
            upstream = None if proxy is None else Upstream.named(proxy, certificates(settings))
        except ValueError:
            raise MissingSecret("The proxy of this page is not named as http://host:port.") from None
        address, headers = _without_password(link.url)
        if access is not None:
            headers = merged_headers(headers, access.sent_headers(os.environ))
        return cls(
            address=address, home=CredentialScope(link.url), upstream=upstream, headers=headers,
            cookies={} if access is None else access.sent_cookies(os.environ),
        )  # fmt: skip


class Entrance:
    """Answers for one tab of the browser who it is: to the gateway, and with the keys of its page at home.

    What the gateway cannot see of an address that is asked for, it is told here.
    """

    def __init__(self, session: CDPSession, keys: BrowserCredentials, gateway: Gateway) -> None:
        self._session = session
        self._keys = keys
        self._gateway = gateway
        self._documents: dict[str, str] = {}

    @classmethod
    async def open(cls, page: Page, keys: BrowserCredentials, gateway: Gateway) -> None:
        """Let this tab in from now on; MissingSecret if the browser does not take a cookie."""
        entrance = cls(await page.context.new_cdp_session(page), keys, gateway)
        session = entrance._session
        session.on("Page.frameNavigated", entrance._navigated)
        session.on("Fetch.requestPaused", entrance._paused)
        session.on("Fetch.authRequired", entrance._challenged)
        await session.send("Page.enable")
        patterns = [{"urlPattern": f"{origin}/*"} for origin in keys.home.origins]
        patterns += [{"urlPattern": "https://*"}] if gateway.picky else []
        await session.send("Fetch.enable", {"patterns": patterns, "handleAuthRequests": True})
        for name, value in keys.cookies.items():
            await entrance._give(name, value)

    async def _give(self, name: str, value: str) -> None:
        """Have the browser send a cookie to the host of the page alone. No script, of whomever, can read it."""
        from playwright.async_api import Error

        origin = self._keys.home.origins[0]
        cookie = {
            "url": f"{origin}/", "name": name, "value": value, "path": "/", "httpOnly": True, "sameSite": "Lax",
            "secure": origin.startswith("https:"),
        }  # fmt: skip
        try:
            taken = (await self._session.send("Network.setCookie", cookie))["success"]
        except Error as error:
            if "Protocol error" not in error.message:
                raise
            taken = False
        if not taken:
            raise MissingSecret(f"The browser does not take the cookie '{name}' for this page.")

    async def _navigated(self, event: dict[str, Any]) -> None:
        """Remember who asks. Chromium has told the gateway its password by now: most pages need no more of us."""
        from playwright.async_api import Error

        self._documents[event["frame"]["id"]] = event["frame"]["url"]
        if not (self._keys.headers or self._gateway.picky) and event["frame"]["url"].startswith("http"):
            with suppress(Error):
                await self._session.send("Fetch.disable")

    async def _paused(self, event: dict[str, Any]) -> None:
        """Let a request go on, with the headers of the page if it may see them, unless its address is blocked."""
        from playwright.async_api import Error

        more: dict[str, Any] = {}
        if self._gateway.bars(event["request"]["url"]):
            with suppress(Error):
                refusal = {"requestId": event["requestId"], "responseCode": 403}
                await self._session.send("Fetch.fulfillRequest", refusal)
            return
        if self._may_have_keys(event):
            headers = merged_headers(event["request"]["headers"], self._keys.headers)
            more = {"headers": [{"name": name, "value": value} for name, value in headers.items()]}
        with suppress(Error):  # the page may be gone by now
            await self._session.send("Fetch.continueRequest", {"requestId": event["requestId"], **more})

    def _may_have_keys(self, event: dict[str, Any]) -> bool:
        """Whether this is asked of home, and by home: another site in the tab is not to read what we may."""
        home = self._keys.home
        if not self._keys.headers or not home.covers(event["request"]["url"]):
            return False
        asking = self._documents.get(event["frameId"], "")
        return event["resourceType"] == "Document" or not asking.startswith("http") or home.covers(asking)

    async def _challenged(self, event: dict[str, Any]) -> None:
        """Tell the gateway its password; a server has been told all there is to tell."""
        from playwright.async_api import Error

        answer = {"response": "CancelAuth"}
        challenge = event["authChallenge"]
        if challenge.get("source") == "Proxy" and challenge["origin"] == self._gateway.address:
            answer = {
                "response": "ProvideCredentials", "username": self._gateway.user, "password": self._gateway.password,
            }  # fmt: skip
        with suppress(Error):
            await self._session.send(
                "Fetch.continueWithAuth", {"requestId": event["requestId"], "authChallengeResponse": answer}
            )


def _without_password(url: str) -> tuple[str, dict[str, str]]:
    """The address without a user's name and password, and the header by which these are told."""
    parts = urlsplit(url)
    user, at, place = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    name, _, password = user.partition(":")
    told = b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode()
    return parts._replace(netloc=place).geturl(), {"Authorization": f"Basic {told}"}
