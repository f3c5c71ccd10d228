"""Finding, starting and ending Chromium, which playwright drives."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from driftline.errors import DriftlineError, MissingExtra

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, BrowserContext, CDPSession, Playwright

    from driftline.settings import Settings

_LOG = logging.getLogger(__name__)
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


class NoBrowser(DriftlineError):
    """There is no Chromium to render pages with."""


def find_browser(named: str | None) -> str:
    """Return the path of Chromium: the one of the settings, or the system's.

    Raises MissingExtra or NoBrowser, which say what to install.
    """
    if find_spec("playwright") is None:
        raise MissingExtra("Rendering pages", "browser")
    if named is not None:
        found = shutil.which(os.path.expanduser(named))  # noqa: PTH111 a name without a folder is looked for, too
        if found is None:
            raise NoBrowser(f"There is no browser '{named}': DRIFTLINE_BROWSER or the setting 'browser' must name one.")
        return found
    for name in _NAMES:
        if found := shutil.which(name):
            return found
    raise NoBrowser(
        "Rendering pages needs Chromium: install it (Debian: sudo apt-get install chromium), or name it in "
        "DRIFTLINE_BROWSER."
    )


_NOWHERE = "http://127.0.0.1:1"  # what belongs to no page can connect nowhere
#: sends requests to the local machine through the proxy, too
_NO_BYPASS = "<-loopback>"
_ARGUMENTS = (
    "--disable-quic",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-domain-reliability",
    "--no-pings",
    # UDP would bypass the proxy: WebRTC may use nothing but the proxy
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    # names are resolved by our proxy, which judges their addresses
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)
_LOOK = 0.25  # seconds between two checks of the memory
_CLOSING = 5.0  # seconds that Chromium gets to close something
_STARTING = 30.0
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
_WIDTH, _HEIGHT = 1280, 800


class BrowserFailed(DriftlineError):
    """Chromium was found and could not be started."""


class BrowserGone(DriftlineError):
    """Chromium has ended, or was ended because it did not answer."""


class Chromium:
    """A running browser. `pid` is that of its main process. It is killed when it does not answer in time."""

    def __init__(self, browser: Browser, session: CDPSession, pid: int, settings: Settings) -> None:
        self._browser = browser
        self._session = session
        self._settings = settings
        self.pid = pid
        self._killed = False
        self._watching = asyncio.ensure_future(self._watch())
        _LOG.debug("Chromium started, process %d", pid)

    def __repr__(self) -> str:
        return f"<Chromium pid={self.pid} alive={self.alive}>"

    @classmethod
    async def start(cls, playwright: Playwright, path: str, settings: Settings) -> Chromium:
        """Start the browser at this path; raises BrowserFailed."""
        from playwright.async_api import Error

        try:
            browser = await playwright.chromium.launch(
                executable_path=path, args=_ARGUMENTS,
                chromium_sandbox=settings.browser_sandbox and os.getuid() != 0,
                proxy={"server": _NOWHERE, "bypass": _NO_BYPASS}, timeout=_STARTING * 1000,
                handle_sigint=False, handle_sigterm=False, handle_sighup=False,
            )  # fmt: skip
            async with asyncio.timeout(_STARTING):
                session = await browser.new_browser_cdp_session()
                processes = await session.send("SystemInfo.getProcessInfo")
        except Error as error:
            raise BrowserFailed(_why_not(path, error.message)) from None
        except TimeoutError:
            raise BrowserFailed(f"{path} was started and does not answer.") from None
        pid = next(one["id"] for one in processes["processInfo"] if one["type"] == "browser")
        return cls(browser, session, pid, settings)

    @property
    def alive(self) -> bool:
        """Return whether it is still running."""
        return not self._killed and self._browser.is_connected()

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        """Limit a block that takes a moment: if the browser hangs, it is ended, and BrowserGone is raised."""
        try:
            async with asyncio.timeout(self._settings.render_timeout):
                yield
        except TimeoutError:
            self.kill()
            raise BrowserGone("The browser does not answer.") from None

    @asynccontextmanager
    async def context(self, proxy: str) -> AsyncIterator[BrowserContext]:
        """Yield a fresh profile without cookies that reaches the web only through this proxy, or raise BrowserGone."""
        from playwright.async_api import Error

        try:
            async with self.answering():
                context = await self._fresh(proxy)
        except Error as error:
            raise BrowserGone(error.message) from None
        try:
            yield context
        finally:
            await asyncio.shield(self._dispose(context))

    async def _fresh(self, proxy: str) -> BrowserContext:
        major = self._browser.version.partition(".")[0]
        agent = f"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{major}.0.0.0"
        context = await self._browser.new_context(
            proxy={"server": proxy, "bypass": _NO_BYPASS},
            user_agent=f"{agent} Safari/537.36 {self._settings.user_agent}",
            viewport={"width": _WIDTH, "height": _HEIGHT}, locale="en-US", timezone_id="UTC", reduced_motion="reduce",
            accept_downloads=False, service_workers="block",
        )  # fmt: skip
        context.set_default_timeout(self._settings.render_timeout * 1000)
        return context

    async def _dispose(self, context: BrowserContext) -> None:
        """Close a profile with all its pages; if that takes too long, kill the browser."""
        from playwright.async_api import Error

        try:
            async with asyncio.timeout(_CLOSING):
                await context.close()
        except TimeoutError:
            self.kill()
        except Error:
            pass  # it is gone already

    async def close(self) -> None:
        """End the browser."""
        from playwright.async_api import Error

        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)
        try:
            async with asyncio.timeout(_CLOSING):
                await self._browser.close()
        except TimeoutError:
            self.kill()
        except Error:
            pass  # it is gone already

    def kill(self) -> None:
        """Kill the browser."""
        self._killed = True
        _LOG.debug("Chromium killed, process %d", self.pid)
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    async def _watch(self) -> None:
        """Kill every tab that takes more memory than allowed; its page fails as crashed."""
        from playwright.async_api import Error

        with suppress(Error, BrowserGone):
            while self.alive:
                await asyncio.sleep(_LOOK)
                async with self.answering():
                    found = await self._session.send("SystemInfo.getProcessInfo")
                for process in found["processInfo"]:
                    if process["type"] == "renderer" and resident(process["id"]) > self._settings.render_memory:
                        with suppress(ProcessLookupError):
                            os.kill(process["id"], signal.SIGKILL)


def resident(pid: int) -> int:
    """Return the bytes of resident memory of a process; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_SIZE
    except (OSError, IndexError):
        return 0


def _why_not(path: str, message: str) -> str:
    if "No usable sandbox" in message:
        return (
            f"{path} finds no sandbox on this system: allow user namespaces, or set browser_sandbox = false "
            "where everything else keeps pages in, such as a container of its own."
        )
    if "has been closed" in message:
        return f"{path} ended at once: try '{path} --headless --dump-dom about:blank' to see why."
    first = message.strip().partition("\n")[0].removeprefix("BrowserType.launch: ")
    return f"{path} could not be started ({first}): try '{path} --headless --dump-dom about:blank' to see why."


def try_browser(path: str, settings: Settings) -> None:
    """Start this browser and end it again; raises BrowserFailed if it cannot be used."""
    asyncio.run(_try(path, settings))


async def _try(path: str, settings: Settings) -> None:
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        chromium = await Chromium.start(playwright, path, settings)
        await chromium.close()
