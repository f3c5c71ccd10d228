"""One page in Chromium: go there, wait until it is quiet, do its steps, and take its document and a picture of it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from driftline.fetching.browser.steps import Action, Step, parse_step
from driftline.fetching.failures import status_failure
from driftline.model import Failure, FailureKind, Render
from driftline.versions.codec import fingerprint

if TYPE_CHECKING:
    from playwright.async_api import Page, Request, Response

    from driftline.model import Link
    from driftline.settings import Settings

_QUIET = 0.5  # seconds without a request on the way: what scripts wanted is there
_PATIENCE = 5.0  # seconds to wait for that: some pages never fall silent
_GLANCE = 0.05  # seconds between two looks at it
_HOPS = 5  # pages that one after the other leave for the next while they are captured
_TALLEST = 10_000  # pixels of a page that are in its picture
_PICTURE = 10.0  # seconds that taking it may take
_SCREENS = 20  # scrolled to the end of a page that grows as it is scrolled, so often at most
_UNKEPT = (
    "etag",
    "last-modified",
    "content-encoding",
    "content-length",
    "content-type",
    "transfer-encoding",
    "set-cookie",
)
_WRITTEN = "text/html; charset=utf-8"  # what the document is written as, whatever the server sent
_HTML = ("text/html", "application/xhtml+xml", "")

# What people see is in open shadow roots, too. They are written out in the place of what they hide, in a document that
# runs nothing; where the page is nested too deeply for that, it is written as it is.
_DOCUMENT = """() => {
  const whole = document.documentElement;
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
_LED_ASTRAY = Failure(kind=FailureKind.REDIRECTS, sentence="The page leads to an address that is not on the web.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What a browser got of a page; `failure` says why it is of no use."""

    status: int = 0
    headers: bytes = b""
    body: bytes = b""
    final_url: str = ""
    redirects: int = 0
    screenshot: bytes = b""
    failure: Failure | None = None


class _Failed(Exception):
    """A step, or what the page waits for, came to nothing."""

    def __init__(self, sentence: str) -> None:
        self.failure = Failure(kind=FailureKind.SELECTION, sentence=sentence)


class _Traffic:
    """Knows when a page last had a request on the way, and the last answer to a request for the page itself."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._open: set[Request] = set()
        self._since = time.monotonic()
        self.answer: Response | None = None
        page.on("request", self._began)
        page.on("requestfinished", self._ended)
        page.on("requestfailed", self._ended)
        page.on("response", self._answered)

    def _began(self, request: Request) -> None:
        self._open.add(request)

    def _ended(self, request: Request) -> None:
        self._open.discard(request)
        self._since = time.monotonic()

    def _answered(self, response: Response) -> None:
        if response.request.is_navigation_request() and response.frame == self._page.main_frame:
            self.answer = response

    async def silence(self) -> None:
        """Return once the page has asked for nothing for a while, or when that has taken too long."""
        began = self._since = time.monotonic()
        while (now := time.monotonic()) - began < _PATIENCE:
            if not self._open and now - self._since >= _QUIET:
                return
            await asyncio.sleep(_GLANCE)


async def capture(page: Page, link: Link, settings: Settings) -> Captured:
    """Fetch the page of a link in this tab. What playwright raises says that it could not be fetched."""
    traffic = _Traffic(page)
    await _go(page, link.url)
    found, kind = await _answered(traffic)
    if found.failure is not None or kind not in _HTML:
        return found
    try:
        await _prepare(page, link.render or Render(), traffic, settings)
    except _Failed as failed:
        return replace(found, failure=failed.failure)
    body = (await _written(page, traffic)).encode("utf-8", "replace")
    found, _ = await _answered(traffic)  # a script may have led elsewhere
    if found.failure is not None:
        return found
    final = _place(page.url)
    if not final.startswith(("http://", "https://")):
        return replace(found, failure=_LED_ASTRAY)
    if final != _place(link.url):
        found = replace(found, final_url=final, redirects=max(1, found.redirects))
    if len(body) > settings.max_body:
        return replace(found, failure=_TOO_LARGE)
    same = link.known is not None and fingerprint(body) == link.known.wire
    return replace(found, body=body, screenshot=b"" if same else await _picture(page))


async def _go(page: Page, url: str) -> None:
    """Ask for the page. An answer without a body is an error to Chromium, and to us an answer."""
    from playwright.async_api import Error

    try:
        await page.goto(url, wait_until="commit")
    except Error as error:
        if "ERR_HTTP_RESPONSE_CODE_FAILURE" not in error.message:
            raise


async def _answered(traffic: _Traffic) -> tuple[Captured, str]:
    """What the server said last of the page itself, and of what kind it is; all of it unless that is HTML."""
    response = traffic.answer
    if response is None:
        return Captured(failure=_NOTHING), ""
    found = Captured(status=response.status, redirects=_redirects(response), final_url=_place(response.url))
    if not 200 <= response.status < 300:
        return replace(found, headers=await _headers(response, None), failure=status_failure(response.status)), ""
    kind = (await response.header_value("content-type") or "").partition(";")[0].strip().lower()
    if kind in _HTML:
        return replace(found, headers=await _headers(response, _WRITTEN)), kind
    return replace(found, headers=await _headers(response, kind), body=await response.body()), kind


async def _prepare(page: Page, render: Render, traffic: _Traffic, settings: Settings) -> None:
    """Wait until the page is there, and do its steps."""
    await page.wait_for_load_state("domcontentloaded")
    await traffic.silence()
    if render.wait_for:
        await _await(page, render.wait_for, settings)
    for text in render.steps:
        await _do(page, parse_step(text), traffic, settings)


async def _written(page: Page, traffic: _Traffic) -> str:
    """The document as it is now, written as HTML; of the page that is led to, where a script is about to leave it."""
    from playwright.async_api import Error

    for _ in range(_HOPS):
        try:
            html: str = await page.evaluate(_DOCUMENT)
        except Error as error:
            if "navigation" not in error.message:
                raise
            await page.wait_for_load_state("domcontentloaded")
            await traffic.silence()
        else:
            return html
    raise Error("ERR_TOO_MANY_REDIRECTS")


async def _do(page: Page, step: Step, traffic: _Traffic, settings: Settings) -> None:
    """Do a step, and wait until the page is quiet again."""
    from playwright.async_api import Error

    if step.seconds:
        await asyncio.sleep(step.seconds)
        return
    if step.action is Action.SCROLL and not step.selector:
        await _scroll(page, traffic)
        return
    place = page.locator(f"css={step.selector}").first
    limit = _step_limit(settings)
    try:
        match step.action:
            case Action.CLICK:
                await place.click(timeout=limit)
            case Action.TYPE:
                await place.fill(step.words, timeout=limit)
            case Action.PRESS:
                await page.keyboard.press(step.words)
            case Action.SCROLL:
                await place.scroll_into_view_if_needed(timeout=limit)
            case Action.WAIT:
                await place.wait_for(timeout=limit)
    except Error as error:
        if page.is_closed():
            raise
        raise _Failed(f"The step '{step.text}' could not be done: {_told(error.message)}") from None
    await traffic.silence()


async def _await(page: Page, selector: str, settings: Settings) -> None:
    from playwright.async_api import Error

    try:
        await page.locator(f"css={selector}").first.wait_for(timeout=_step_limit(settings))
    except Error:
        if page.is_closed():
            raise
        raise _Failed(f"'{selector}' did not appear on the page.") from None


async def _scroll(page: Page, traffic: _Traffic) -> None:
    """Scroll to the end of the page, and on while it grows."""
    before = -1
    for _ in range(_SCREENS):
        height = await page.evaluate(
            "() => { scrollTo(0, document.body.scrollHeight); return document.body.scrollHeight }"
        )
        await traffic.silence()
        if height == before:
            return
        before = height


async def _picture(page: Page) -> bytes:
    """A picture of the whole page, or nothing if none can be had: the check is worth as much without it."""
    from playwright.async_api import Error

    try:
        width, height = await page.evaluate(
            "() => [innerWidth, Math.max(innerHeight, document.documentElement.scrollHeight)]"
        )
        return await page.screenshot(
            full_page=True, animations="disabled", timeout=_PICTURE * 1000,
            clip={"x": 0, "y": 0, "width": width, "height": min(height, _TALLEST)},
        )  # fmt: skip
    except Error:
        if page.is_closed():
            raise
        return b""


async def _headers(response: Response, kind: str | None) -> bytes:
    """The header lines of the answer, but those that are about its bytes: these are not what is kept."""
    lines = [f"HTTP/1.1 {response.status} {response.status_text}".strip()]
    for one in await response.headers_array():
        if one["name"].lower() not in _UNKEPT:
            lines += [f"{one['name']}: {value}" for value in one["value"].split("\n")]
    lines += [f"Content-Type: {kind}"] if kind is not None else []
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


def _place(url: str) -> str:
    """The address without what is not sent along: a fragment, and a user's name and password."""
    scheme, separator, rest = url.partition("#")[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def _redirects(response: Response) -> int:
    count, request = 0, response.request.redirected_from
    while request is not None:
        count, request = count + 1, request.redirected_from
    return count


def _step_limit(settings: Settings) -> float:
    """The milliseconds that a step may wait for its element: a third of all, so that the reason can still be told."""
    return settings.render_timeout * 1000 / 3


def _told(message: str) -> Any:
    """The gist of what playwright says, as the end of a sentence."""
    if "Timeout" in message:
        return "no such element could be used in time."
    return message.partition("\n")[0].rpartition(": ")[2].rstrip(".") + "."
