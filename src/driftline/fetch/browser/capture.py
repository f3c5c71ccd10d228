"""Capturing a rendered page: its requests in flight, its document as HTML, and a screenshot."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from driftline.errors import DriftlineError, FailureKind
from driftline.fetch.browser.steps import StepFailed, prepare, read
from driftline.fetch.failures import carries_page, status_failure
from driftline.model.page import Failure, Render, accepts_status
from driftline.store.blobs import fingerprint
from driftline.urls import as_sent

if TYPE_CHECKING:
    from playwright.async_api import Download, Page, Request, Response

    from driftline.model.outcome import Link
    from driftline.settings import Settings


_IDLE = 0.5  # seconds without a request in flight after which a page counts as loaded
_PATIENCE = 5.0  # seconds to wait for that: some pages never stop
_INTERVAL = 0.05  # seconds between two checks


class Traffic:
    """The requests of a page that are in flight, and the last response to a request for the page itself.

    A response that the browser saves as a download does not count: the page stays as it was.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._open: set[Request] = set()
        self._since = time.monotonic()
        self.answer: Response | None = None
        self._shown: Response | None = None
        page.on("request", self._began)
        page.on("requestfinished", self._ended)
        page.on("requestfailed", self._ended)
        page.on("response", self._answered)
        page.on("download", self._saved)

    def __repr__(self) -> str:
        return f"<Traffic in_flight={len(self._open)} idle_for={time.monotonic() - self._since:.1f}>"

    def _began(self, request: Request) -> None:
        self._open.add(request)

    def _ended(self, request: Request) -> None:
        self._open.discard(request)
        self._since = time.monotonic()

    def _answered(self, response: Response) -> None:
        if response.request.is_navigation_request() and response.frame == self._page.main_frame:
            self._shown, self.answer = self.answer, response

    def _saved(self, download: Download) -> None:
        if self.answer is not None and self._shown is not None and download.url == self.answer.url:
            self.answer = self._shown

    async def wait_until_idle(self) -> None:
        """Wait until no request was in flight for half a second, or at most five seconds."""
        began = self._since = time.monotonic()
        while (now := time.monotonic()) - began < _PATIENCE:
            if not self._open and now - self._since >= _IDLE:
                return
            await asyncio.sleep(_INTERVAL)


_HOPS = 5  # navigations by scripts while a page is captured, at most
_TALLEST = 10_000  # pixels of a page that are in its screenshot
_SCREENSHOT_LIMIT = 10.0  # seconds that a screenshot may take
_DROPPED_HEADERS = (
    "etag",
    "last-modified",
    "content-encoding",
    "content-length",
    "content-type",
    "transfer-encoding",
    "set-cookie",
)
_WRITTEN = "text/html; charset=utf-8"  # of the serialised document, whatever the server sent
_ANSWERS = ("ERR_HTTP_RESPONSE_CODE_FAILURE", "ERR_INVALID_AUTH_CREDENTIALS")
_HTML = ("text/html", "application/xhtml+xml", "")

# What users see may be in open shadow roots. These are written in the place of the children that they replace, in a
# document that runs no scripts; where the page is nested too deeply for that, it is written as it is.
_DOCUMENT = """() => {
  const whole = document.documentElement;
  if (!whole) return '';
  const doctype = document.doctype ? '<!doctype ' + document.doctype.name + '>' : '';
  const written = () => {
    if (![...document.querySelectorAll('*')].some(one => one.shadowRoot)) return whole.outerHTML;
    const inert = document.implementation.createHTMLDocument('');
    const copies = nodes => [...nodes].flatMap(copy);
    const copy = node => {
      if (node.localName === 'slot' && node.getRootNode() instanceof ShadowRoot) {
        const given = node.assignedNodes();
        return copies(given.length ? given : node.childNodes);
      }
      const made = inert.importNode(node, false);
      if (node.nodeType === 1) made.append(...copies((node.shadowRoot || node).childNodes));
      return [made];
    };
    return copy(whole)[0].outerHTML;
  };
  try { return doctype + written(); } catch { return doctype + whole.outerHTML; }
}"""

_NOTHING = Failure(kind=FailureKind.BODY, sentence="The browser showed nothing for this address.")
_TOO_LARGE = Failure(kind=FailureKind.TOO_LARGE, sentence="The body is larger than the limit.")
_NOT_HTTP = Failure(kind=FailureKind.REDIRECTS, sentence="The page leads to an address that is not on the web.")


_ENDLESS = Failure(
    kind=FailureKind.REDIRECTS, sentence="Scripts of the page open another page again and again: it cannot be captured."
)


class EndlessNavigation(DriftlineError):
    """The scripts of a page navigate to another page each time that its document is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What a browser captured of a page; `failure` is why it cannot be used."""

    status: int = 0
    headers: bytes = b""
    body: bytes = b""
    final_url: str = ""
    redirects: int = 0
    screenshot: bytes | None = None
    failure: Failure | None = None


async def capture(page: Page, link: Link, settings: Settings) -> Captured:
    """Load the page of a link in this tab, and capture it; raises the error of playwright if it cannot be loaded."""
    traffic = Traffic(page)
    await _navigate(page, link.url)
    found, kind = await _answered(traffic, link)
    if found.failure is not None or kind not in _HTML:
        return found
    try:
        await prepare(page, link.render or Render(), traffic, settings)
    except StepFailed as failed:
        return replace(found, failure=failed.failure)
    try:
        body = (await _written(page, traffic)).encode("utf-8", "replace")
    except EndlessNavigation:
        return replace(found, failure=_ENDLESS)
    found, _ = await _answered(traffic, link)  # a script may have navigated to another page
    if found.failure is not None:
        return found
    final = as_sent(page.url)
    if not final.startswith(("http://", "https://")):
        return replace(found, failure=_NOT_HTTP)
    if final != as_sent(link.url):
        found = replace(found, final_url=final, redirects=max(1, found.redirects))
    if len(body) > settings.max_body:
        return replace(found, failure=_TOO_LARGE)
    same = link.known is not None and fingerprint(body) == link.known.wire
    return replace(found, body=body, screenshot=None if same else await _screenshot(page))


async def _navigate(page: Page, url: str) -> None:
    """Navigate to the page. An error status without a body, and a 401, are no errors here, though playwright raises."""
    from playwright.async_api import Error

    try:
        await page.goto(url, wait_until="commit")
    except Error as error:
        if not any(name in error.message for name in _ANSWERS):
            raise


async def _answered(traffic: Traffic, link: Link) -> tuple[Captured, str]:
    """Return the last response for the page itself and its media type, with the body unless that is HTML."""
    response = traffic.answer
    if response is None:
        return Captured(failure=_NOTHING), ""
    found = Captured(status=response.status, redirects=_redirects(response), final_url=as_sent(response.url))
    if not carries_page(response.status) and not accepts_status(link.filters, response.status):
        return replace(found, headers=await _headers(response, None), failure=status_failure(response.status)), ""
    kind = (await response.header_value("content-type") or "").partition(";")[0].strip().lower()
    if kind in _HTML:
        return replace(found, headers=await _headers(response, _WRITTEN)), kind
    return replace(found, headers=await _headers(response, kind), body=await response.body()), kind


async def _written(page: Page, traffic: Traffic) -> str:
    """Return the current document as HTML, or that of the next page if a script is navigating to it.

    Raises EndlessNavigation if scripts do so again and again.
    """
    from playwright.async_api import Error

    for _ in range(_HOPS):
        try:
            html: str = await page.evaluate(_DOCUMENT)
        except Error as error:
            if "navigation" not in error.message:
                raise
            await read(page)
            await traffic.wait_until_idle()
        else:
            return html
    raise EndlessNavigation(f"The scripts of {as_sent(page.url)} navigate to another page again and again.")


async def _screenshot(page: Page) -> bytes | None:
    """Return a screenshot of the whole page; None if it fails: a check does not depend on it."""
    from playwright.async_api import Error

    try:
        size = await page.evaluate(
            "() => document.body && [innerWidth, Math.max(innerHeight, document.documentElement.scrollHeight)]"
        )
        if size is None:
            return None
        width, height = size
        return await page.screenshot(
            full_page=True, animations="disabled", timeout=_SCREENSHOT_LIMIT * 1000,
            clip={"x": 0, "y": 0, "width": width, "height": min(height, _TALLEST)},
        )  # fmt: skip
    except Error:
        if page.is_closed():
            raise
        return None


async def _headers(response: Response, kind: str | None) -> bytes:
    """Return the header lines of the response, without those about its bytes: the body here is another."""
    lines = [f"HTTP/1.1 {response.status} {response.status_text}".strip()]
    for one in await response.headers_array():
        if one["name"].lower() not in _DROPPED_HEADERS:
            lines += [f"{one['name']}: {value}" for value in one["value"].split("\n")]
    lines += [f"Content-Type: {kind}"] if kind is not None else []
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


def _redirects(response: Response) -> int:
    count, request = 0, response.request.redirected_from
    while request is not None:
        count, request = count + 1, request.redirected_from
    return count
