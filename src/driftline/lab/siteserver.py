"""The site for crawls as a server that writes down what it was asked for: `python -m driftline.lab.siteserver PAGES`.

It ends with its standard input, and then prints its log: the path and query of every request, in order.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from driftline.lab.client import ready_line
from driftline.lab.site import Site, bytes_of
from driftline.lab.web import say_ready, wait_for_end_of_input

if TYPE_CHECKING:
    from collections.abc import Iterator

_END_SECONDS = 30.0


@dataclass(slots=True)
class RunningSite:
    """A site that is being served; its log is there once that is over."""

    site: Site
    port: int
    log: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The address of its front page."""
        return f"http://127.0.0.1:{self.port}/"


@contextmanager
def served(site: Site) -> Iterator[RunningSite]:
    """Serve a site from a process of its own for the time of the `with` block."""
    command = [sys.executable, "-P", "-m", "driftline.lab.siteserver", str(site.pages)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        running = RunningSite(site, ready_line(child)["port"])
        yield running
        running.log = json.loads(child.communicate(timeout=_END_SECONDS)[0])
    finally:
        child.kill()
        child.communicate()


class _Connection(asyncio.Protocol):
    """One client, which sends a request after the answer to the last one."""

    def __init__(self, site: Site, log: list[str], fresh: random.Random) -> None:
        self._site = site
        self._log = log
        self._fresh = fresh
        self._inbox = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._inbox += data
        while b"\r\n\r\n" in self._inbox:
            head, _, self._inbox = self._inbox.partition(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            target = lines[0].split(" ", 2)[1]
            host = next((line[5:].strip() for line in lines if line[:5].lower() == "host:"), "localhost")
            self._log.append(target)
            self._transport.write(bytes_of(self._site.answer(target, host, self._fresh)))


async def _serve(site: Site, log: list[str], stop: threading.Event) -> None:
    fresh = random.Random(site.pages)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(site, log, fresh), "127.0.0.1", 0, backlog=512)
    say_ready(server.sockets[0].getsockname()[1])
    await asyncio.to_thread(stop.wait)
    server.close()


def main() -> None:
    """Serve the site of the size that is named on the command line, then print its log."""
    stop = threading.Event()
    threading.Thread(target=wait_for_end_of_input, args=(stop,), daemon=True).start()
    log: list[str] = []
    asyncio.run(_serve(Site(int(sys.argv[1])), log, stop))
    sys.stdout.write(json.dumps(log))


if __name__ == "__main__":
    main()
