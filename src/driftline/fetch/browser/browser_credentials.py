"""Credentials of a page that is rendered: they are sent to the page's own origin and to no other.

Headers are added to single requests as the browser is about to send them: those to the origin of the page, also after
redirects. Headers set for a whole profile would be sent to every host. Cookies are handled by the browser, which does
not distinguish ports: the gateway keeps them from other ports.
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
    from driftline.model.outcome import Link
    from driftline.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BrowserCredentials:
    """The credentials of a page with their values, its URL without a password, and its proxy."""

    address: str
    home: CredentialScope
    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: Mapping[str, str] = field(default_factory=dict)
    upstream: Upstream | None = None

    @classmethod
    def of(cls, link: Link, settings: Settings) -> Self:
        """Return the credentials of this link; raises MissingSecret."""
        access = link.access
        proxy = settings.proxy if access is None else access.proxy_or(settings.proxy, os.environ)
        try:
            upstream = None if proxy is None else Upstream.named(proxy, certificates(settings))
        except ValueError:
            raise MissingSecret("The proxy of this page is not written as http://host:port.") from None
        address, headers = _without_password(link.url)
        if access is not None:
            headers = merged_headers(headers, access.sent_headers(os.environ))
        return cls(
            address=address, home=CredentialScope(link.url), upstream=upstream, headers=headers,
            cookies={} if access is None else access.sent_cookies(os.environ),
        )  # fmt: skip


@dataclass(slots=True)
class _Frame:
    """A frame of a tab: the URL that it shows, the one that it last requested, and the frame that it is in."""

    shown: str = ""
    requested: str = ""
    parent: str | None = None


class CredentialSender:
    """Sends the credentials of one tab: to the gateway its password, and to the origin of the page its headers.

    It also passes the URLs of https requests to the gateway, which itself sees only their host.

    Another site must not read with the credentials: a page may redirect to it, or have it in a frame. The browser says
    that a frame shows another document, but it may say so after the first requests of that document. So a frame counts
    as another site from the moment it requests a document there, and as the page's own again once that is shown.
    """

    def __init__(self, session: CDPSession, credentials: BrowserCredentials, gateway: Gateway) -> None:
        self._session = session
        self._credentials = credentials
        self._gateway = gateway
        self._frames: dict[str, _Frame] = {}

    @classmethod
    async def open(cls, page: Page, credentials: BrowserCredentials, gateway: Gateway) -> None:
        """Send credentials for this tab from now on; raises MissingSecret if the browser rejects a cookie."""
        sender = cls(await page.context.new_cdp_session(page), credentials, gateway)
        session = sender._session
        session.on("Page.frameAttached", sender._attached)
        session.on("Page.frameNavigated", sender._navigated)
        session.on("Fetch.requestPaused", sender._paused)
        session.on("Fetch.authRequired", sender._challenged)
        await session.send("Page.enable")
        patterns = [{"urlPattern": f"{origin}/*"} for origin in credentials.home.origins]
        patterns += [{"urlPattern": "*", "resourceType": "Document"}] if credentials.headers else []
        patterns += [{"urlPattern": "https://*"}] if gateway.blocks_urls else []
        await session.send("Fetch.enable", {"patterns": patterns, "handleAuthRequests": True})
        for name, value in credentials.cookies.items():
            await sender._set_cookie(name, value)

    async def _set_cookie(self, name: str, value: str) -> None:
        """Set a cookie for the host of the page only, which no script can read."""
        from playwright.async_api import Error

        origin = self._credentials.home.origins[0]
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
            raise MissingSecret(f"The browser rejects the cookie '{name}' for this page.")

    def _attached(self, event: dict[str, Any]) -> None:
        self._frames[event["frameId"]] = _Frame(parent=event["parentFrameId"])

    async def _navigated(self, event: dict[str, Any]) -> None:
        """Keep the URL of a frame. The gateway has its password by now: most pages need no more interception."""
        from playwright.async_api import Error

        frame = event["frame"]
        known = self._frames.setdefault(frame["id"], _Frame(parent=frame.get("parentId")))
        known.shown = known.requested = frame["url"]
        if not (self._credentials.headers or self._gateway.blocks_urls) and event["frame"]["url"].startswith("http"):
            with suppress(Error):
                await self._session.send("Fetch.disable")

    async def _paused(self, event: dict[str, Any]) -> None:
        """Continue a request, with the headers of the page if it may have them, unless its URL is blocked."""
        from playwright.async_api import Error

        more: dict[str, Any] = {}
        if event["resourceType"] == "Document":
            self._frames.setdefault(event["frameId"], _Frame()).requested = event["request"]["url"]
        if self._gateway.blocks(event["request"]["url"]):
            with suppress(Error):
                refusal = {"requestId": event["requestId"], "responseCode": 403}
                await self._session.send("Fetch.fulfillRequest", refusal)
            return
        if self._may_have_credentials(event):
            headers = merged_headers(event["request"]["headers"], self._credentials.headers)
            more = {"headers": [{"name": name, "value": value} for name, value in headers.items()]}
        with suppress(Error):  # the page may be gone by now
            await self._session.send("Fetch.continueRequest", {"requestId": event["requestId"], **more})

    def _may_have_credentials(self, event: dict[str, Any]) -> bool:
        """Return whether a request goes to the page's origin and comes from it: no other site may read it."""
        home = self._credentials.home
        if not self._credentials.headers or not home.covers(event["request"]["url"]):
            return False
        return event["resourceType"] == "Document" or self._is_home(event["frameId"])

    def _is_home(self, frame_id: str) -> bool:
        """Return whether a frame shows the page's own site and is not about to leave it.

        A frame without a URL of its own, such as about:blank, belongs to the site of the frame that it is in.
        """
        frame = self._frames.get(frame_id)
        if frame is None:
            return False
        urls = [url for url in (frame.shown, frame.requested) if url.startswith("http")]
        if not urls and frame.parent is not None:
            return self._is_home(frame.parent)
        return all(self._credentials.home.covers(url) for url in urls)

    async def _challenged(self, event: dict[str, Any]) -> None:
        """Answer the gateway with its password, and cancel the challenge of a server."""
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
    """Return the URL without user name and password, and the header that sends these."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    name, _, password = user.partition(":")
    login = b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode()
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {login}"}
