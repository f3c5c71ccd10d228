"""A browser that does not answer, which no page may wait for. Its process is one that sleeps."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("playwright")

from driftline.fetch.browser.chromium_process import BrowserGone, Chromium
from support.making import settings


class Hanging:
    """A browser, its profiles, and the connection to it: it says that it is there, and nothing else."""

    version = "1.0"

    def is_connected(self) -> bool:
        return True

    async def new_context(self, **_given: Any) -> None:
        await asyncio.Event().wait()

    async def send(self, _name: str) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}


@pytest.fixture
def sleeping() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


async def wants_a_profile(chromium: Chromium) -> None:
    with pytest.raises(BrowserGone, match="does not answer"):
        async with chromium.context("http://127.0.0.1:1"):
            pass


async def is_only_watched(chromium: Chromium) -> None:
    while chromium.alive:
        await asyncio.sleep(0)


@pytest.mark.parametrize("use", [wants_a_profile, is_only_watched])
def test_a_browser_that_does_not_answer_is_ended(
    sleeping: subprocess.Popen[bytes], use: Callable[[Chromium], Awaitable[None]]
) -> None:
    async def wait() -> None:
        hanging: Any = Hanging()
        chromium = Chromium(hanging, hanging, sleeping.pid, settings(render_timeout=0.01))
        async with asyncio.timeout(30):
            await use(chromium)
        assert not chromium.alive

    asyncio.run(wait())
    assert sleeping.wait(30) < 0
