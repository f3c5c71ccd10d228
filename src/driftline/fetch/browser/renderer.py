"""Opens pages in Chromium, one tab for each, and takes their HTML and screenshot.

The browser is started with the first page, and again after a crash.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from driftline.errors import DriftlineError, FailureKind, RunStopped
from driftline.fetch.address_guard import judge_for
from driftline.fetch.browser.browser_credentials import BrowserCredentials, CredentialSender
from driftline.fetch.browser.capture import Captured, capture
from driftline.fetch.browser.chromium_process import BrowserGone, Chromium, find_browser
from driftline.fetch.browser.proxy import Gateway, resolve
from driftline.fetch.failures import NOTHING, blocked_document, unsafe_failure
from driftline.http.credentials import MissingSecret
from driftline.model.outcome import Document
from driftline.model.page import Failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.async_api import Page, Playwright

    from driftline.fetch.browser.proxy import Resolve
    from driftline.fetch.failures import Blocked
    from driftline.model.outcome import Link
    from driftline.settings import Settings

_LOG = logging.getLogger(__name__)
_CLOSED = "has been closed"  # playwright has no error type for a browser that ended: its message contains this
_TRIES = 2  # attempts at a page whose browser ended meanwhile
_IDLE = 60.0  # seconds without a page after which the browser is ended
_ENDING = 15.0  # seconds for the browser and its driver to end

_TOO_LONG = Failure(kind=FailureKind.TIMED_OUT, sentence="The page was not done in time in the browser.")
_CRASHED = Failure(kind=FailureKind.HOSTILE, sentence="The page took too much memory or crashed in the browser.")
_TOO_MUCH = Failure(kind=FailureKind.TOO_LARGE, sentence="The page and what it loads are larger than the limit.")
_UNTRUSTED = Failure(kind=FailureKind.TLS, sentence="The secure connection could not be trusted or set up.")
_BAD_REDIRECTS = Failure(
    kind=FailureKind.REDIRECTS, sentence="The page redirects too often or to an address that is not on the web."
)
_UNSAFE_PORT = Failure(
    kind=FailureKind.NOT_ALLOWED,
    sentence="The browser refuses to connect to this port: watch the page without --render.",
)
_DOWNLOAD = Failure(
    kind=FailureKind.BODY, sentence="The browser would download this instead of showing it: watch it without --render."
)
_UNREADABLE = Failure(
    kind=FailureKind.BODY, sentence="The page changed or left while the browser read it, and could not be captured."
)
_CONNECTION_LOST = Failure(kind=FailureKind.CONNECTION, sentence="The connection broke before the page was complete.")
#: parts of messages of Chromium or playwright, and what they mean
_BY_MESSAGE = (
    ("crashed", _CRASHED),
    ("ERR_CERT", _UNTRUSTED),
    ("ERR_SSL", _UNTRUSTED),
    ("ERR_TOO_MANY_REDIRECTS", _BAD_REDIRECTS),
    ("ERR_UNSAFE_REDIRECT", _BAD_REDIRECTS),
    ("ERR_UNSAFE_PORT", _UNSAFE_PORT),
    ("Download is starting", _DOWNLOAD),
    ("ERR_ABORTED", _DOWNLOAD),
    ("net::ERR", _CONNECTION_LOST),
    ("Timeout", _TOO_LONG),
)
_NO_TUNNEL = "ERR_TUNNEL_CONNECTION_FAILED"


class Renderer:
    """Fetches pages in Chromium, each in a profile of its own. Used by any thread.

    All of its work happens in an event loop in a thread of its own, started with the first page. The browser is ended
    after `idle` seconds without a page. Blocked pages are not fetched: their documents have the reason as the failure.
    """

    def __init__(
        self, settings: Settings, clock: Callable[[], float] = time.time, resolve: Resolve = resolve,
        blocked: Blocked = NOTHING, idle: float = _IDLE,
    ) -> None:  # fmt: skip
        self._idle_after = idle
        self._blocked = blocked
        self._settings = settings
        self._resolve = resolve
        self._clock = clock
        self._judge = judge_for(settings.allow_networks)
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pages: set[asyncio.Task[Document]] = set()
        self._chromium: Chromium | None = None
        self._playwright: Playwright | None = None
        self._one_start = asyncio.Lock()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._retiring: asyncio.Task[None] | None = None
        self._stopped = False

    def __repr__(self) -> str:
        return f"<Renderer pages={len(self._pages)} pid={self.pid} stopped={self._stopped}>"

    def render(self, link: Link) -> Document:
        """Return the document of a link as a browser shows it; raises RunStopped once `stop` was called."""
        with self._starting:
            if self._stopped:
                raise RunStopped(f"The run was stopped before {link.url} was rendered.")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                # errors of requests in flight when a browser ends are reported with the page that they belong to
                self._loop.set_exception_handler(lambda _, about: _LOG.debug(about["message"]))
                self._thread = threading.Thread(target=self._loop.run_forever, name="browser", daemon=True)
                self._thread.start()
        try:
            return asyncio.run_coroutine_threadsafe(self._tracked(link), self._loop).result()
        except CancelledError:
            raise RunStopped(f"The run was stopped before {link.url} was rendered.") from None

    @property
    def pid(self) -> int | None:
        """Return the id of the main process of Chromium; None if it is not running."""
        chromium = self._chromium
        return chromium.pid if chromium is not None and chromium.alive else None

    def stop(self) -> None:
        """Abort what is being rendered, and render nothing more."""
        with self._starting:
            self._stopped = True
            loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(self._cancel)

    def close(self) -> None:
        """Abort what is being rendered, and end the browser."""
        self.stop()
        if self._loop is None or self._thread is None:
            return
        ending = asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        try:
            ending.result(_ENDING)
        except TimeoutError:
            if self._chromium is not None:
                self._chromium.kill()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_ENDING)
        if not self._thread.is_alive():
            self._loop.close()

    def _cancel(self) -> None:
        for task in self._pages:
            task.cancel()

    async def _end(self) -> None:
        await asyncio.gather(*self._pages, return_exceptions=True)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        async with self._one_start:
            await self._retire()

    def _end_idle(self) -> None:
        """End the idle browser, which holds much memory. A page that comes meanwhile waits."""
        self._retiring = asyncio.ensure_future(self._end_unless_used())

    async def _end_unless_used(self) -> None:
        async with self._one_start:
            if not self._pages:
                await self._retire()

    async def _retire(self) -> None:
        chromium, self._chromium = self._chromium, None
        driver, self._playwright = self._playwright, None
        if chromium is not None:
            await chromium.close()
        if driver is not None:
            with suppress(Exception):  # it may have crashed in any state
                async with asyncio.timeout(_ENDING):
                    await driver.stop()

    async def _tracked(self, link: Link) -> Document:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        task = asyncio.ensure_future(self._rendered(link))
        self._pages.add(task)
        try:
            return await task
        finally:
            self._pages.discard(task)
            if not self._pages:
                self._idle_timer = asyncio.get_running_loop().call_later(self._idle_after, self._end_idle)

    async def _rendered(self, link: Link) -> Document:
        """Return the document of a link; if the browser ends or does not answer, it is tried once more."""
        reason = self._blocked.why(link.url)
        if reason is not None:
            return blocked_document(link, reason, self._clock())
        captured: Captured | None = None
        began = time.monotonic()
        try:
            credentials = BrowserCredentials.of(link, self._settings)
            for _ in range(_TRIES):
                chromium = await self._running()
                began = time.monotonic()  # the start of the browser does not count for the page
                captured = await self._captured(chromium, replace(link, url=credentials.address), credentials)
                if captured is not None:
                    break
        except MissingSecret as error:
            captured = Captured(failure=Failure(kind=FailureKind.ACCESS, sentence=str(error)))
        except DriftlineError as error:  # there is no browser, or it cannot be started
            captured = Captured(failure=Failure(kind=FailureKind.BROWSER, sentence=str(error)))
        except Exception as error:  # noqa: BLE001 an unknown error of the browser must fail this page only
            sentence = f"Driftline itself failed to render this page ({type(error).__name__}: {error})."
            captured = Captured(failure=Failure(kind=FailureKind.INTERNAL, sentence=sentence))
        if captured is None:
            captured = Captured(
                failure=Failure(kind=FailureKind.HOSTILE, sentence="The browser crashed or hung on this page.")
            )
        return self._document(link, began, captured)

    def _document(self, link: Link, began: float, captured: Captured) -> Document:
        return Document(
            link, captured.status, captured.headers, captured.body, len(captured.body),
            captured.final_url or link.url, captured.redirects, self._clock(), time.monotonic() - began,
            captured.failure, rendered=True, screenshot=captured.screenshot,
        )  # fmt: skip

    async def _running(self) -> Chromium:
        """Return the browser, started if it is not running."""
        async with self._one_start:
            if self._chromium is not None and self._chromium.alive:
                return self._chromium
            path = find_browser(self._settings.browser)
            from playwright.async_api import async_playwright

            await self._retire()  # what ended the browser may have ended its driver, too
            self._playwright = await async_playwright().start()
            self._chromium = await Chromium.start(self._playwright, path, self._settings)
            return self._chromium

    async def _captured(self, chromium: Chromium, link: Link, credentials: BrowserCredentials) -> Captured | None:
        """Return what was captured; None if the browser ended before, or was killed because it did not answer."""
        from playwright.async_api import Error

        settings = self._settings
        gateway = Gateway(
            self._judge,
            most=settings.render_bytes,
            connect_timeout=settings.connect_timeout,
            resolve=self._resolve,
            blocked=self._blocked,
            upstream=credentials.upstream,
            home=credentials.home if credentials.cookies else None,
        )
        async with gateway:
            captured: Captured | None = None
            try:
                async with chromium.context(gateway.address) as context:
                    async with chromium.answering():
                        page = await context.new_page()
                        await CredentialSender.open(page, credentials, gateway)
                    captured = await self._attempt(page, link, gateway)
            except Error as error:
                if chromium.alive and _CLOSED not in error.message:
                    captured = _load_failure(error.message, gateway, link)
            except BrowserGone:
                pass
        return None if captured is not None and captured.failure is _TOO_LONG and not chromium.alive else captured

    async def _attempt(self, page: Page, link: Link, gateway: Gateway) -> Captured:
        """Capture the page within its time limit, unless its process ends first."""
        crashed = asyncio.Event()
        page.on("crash", lambda _: crashed.set())
        page.context.on("page", _close)
        ended = asyncio.ensure_future(crashed.wait())
        work = asyncio.ensure_future(capture(page, link, self._settings))
        try:
            await asyncio.wait(
                [work, ended], timeout=self._settings.render_timeout, return_when=asyncio.FIRST_COMPLETED
            )
            if work.done():
                return self._judged(await work, gateway, link)
            if gateway.full:
                return Captured(failure=_TOO_MUCH)
            return Captured(failure=_CRASHED if crashed.is_set() else _TOO_LONG)
        finally:
            for task in (work, ended):
                task.cancel()
            await asyncio.gather(work, ended, return_exceptions=True)

    def _judged(self, captured: Captured, gateway: Gateway, link: Link) -> Captured:
        """Return what was captured, with the reason if it failed; only a failure if scripts led to a blocked page."""
        if captured.failure is not None:
            return _with_gateway_failure(captured, gateway, link)
        reason = self._blocked.why(captured.final_url) if captured.redirects else None
        if reason is None:
            return captured
        failure = unsafe_failure(reason, captured.final_url)
        return Captured(final_url=captured.final_url, redirects=captured.redirects, failure=failure)


async def _close(page: Page) -> None:
    """Close a page that another one opened."""
    from playwright.async_api import Error

    with suppress(Error):
        await page.close()


def _load_failure(message: str, gateway: Gateway, link: Link) -> Captured:
    """Return the result for a page that could not be loaded; `message` is playwright's, which has no error codes."""
    trouble = gateway.trouble(link.url, redirected=False)
    if trouble is None and _NO_TUNNEL in message:
        trouble = gateway.latest  # the message does not contain the target of a redirect
    if trouble is not None:
        return Captured(failure=trouble)
    if gateway.full:
        return Captured(failure=_TOO_MUCH)
    return Captured(failure=next((failure for name, failure in _BY_MESSAGE if name in message), _UNREADABLE))


def _with_gateway_failure(captured: Captured, gateway: Gateway, link: Link) -> Captured:
    """Return what was captured, with the failure of the gateway if it refused the request: Chromium saw a status."""
    url = captured.final_url or link.url
    trouble = gateway.trouble(url, redirected=url != link.url)
    return captured if trouble is None else replace(captured, status=0, failure=trouble)
