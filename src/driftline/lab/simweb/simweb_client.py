"""Starts the simulated web in a process of its own, talks to it, and measures how fast it can answer.

`BareClient` is the minimal client that measures: libcurl on epoll, with only the Python that it takes to start the next
transfer.
"""

from __future__ import annotations

import http.client
import json
import select
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import pycurl

from driftline.errors import BadSetting
from driftline.lab.bench.local_watch_lists import LabError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from driftline.lab.simweb.world import World

BareRequest = tuple[str, list[str]]
_ACCEPT = ["Accept-Encoding: gzip"]
_START_SECONDS = 60.0
_STOP_SECONDS = 5.0
_ANSWER_SECONDS = 60.0


class BareClient:
    """Downloads pages as fast as libcurl can, with `in_flight` transfers, and passes the bodies on undecoded."""

    def __init__(self, in_flight: int) -> None:
        self._epoll = select.epoll()
        self._known: dict[int, int] = {}
        self._timeout_ms = -1
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timeout)
        self._bodies: dict[pycurl.Curl, list[bytes]] = {}
        for _ in range(in_flight):
            handle = pycurl.Curl()
            chunks: list[bytes] = []
            handle.setopt(pycurl.HTTPHEADER, _ACCEPT)
            handle.setopt(pycurl.HTTP_CONTENT_DECODING, 0)
            handle.setopt(pycurl.BUFFERSIZE, 512 * 1024)
            handle.setopt(pycurl.NOSIGNAL, 1)
            handle.setopt(pycurl.FAILONERROR, 1)
            handle.setopt(pycurl.WRITEFUNCTION, chunks.append)
            self._bodies[handle] = chunks

    def run(self, requests: Iterator[BareRequest], got: Callable[[list[tuple[str, bytes]]], None] | None = None) -> int:
        """Fetch every page, pass addresses and bodies to `got` as they finish, and return the bytes received."""
        multi, bodies = self._multi, self._bodies
        total = 0
        at: dict[pycurl.Curl, str] = {}

        def start(handle: pycurl.Curl) -> int:
            request = next(requests, None)
            if request is None:
                return 0
            at[handle], headers = request
            handle.setopt(pycurl.URL, at[handle])
            if headers:
                handle.setopt(pycurl.HTTPHEADER, _ACCEPT + headers)
            multi.add_handle(handle)
            return 1

        live = sum([start(handle) for handle in bodies])
        while live:
            wait = self._timeout_ms / 1000 if self._timeout_ms >= 0 else 1.0
            events = self._epoll.poll(min(wait, 1.0))
            for fd, event in events:
                action = pycurl.CSELECT_IN if event & ~select.EPOLLOUT else 0
                multi.socket_action(fd, action | (pycurl.CSELECT_OUT if event & select.EPOLLOUT else 0))
            if not events:
                self._timeout_ms = -1
                multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
            _, done, failed = multi.info_read(len(bodies))
            if failed:
                raise LabError(f"The server failed while it was measured: {failed[0][2]}.")
            finished: list[tuple[str, bytes]] = []
            for handle in done:
                multi.remove_handle(handle)
                body = b"".join(bodies[handle])
                bodies[handle].clear()
                total += len(body)
                finished.append((at[handle], body))
                live += start(handle) - 1
            if got is not None and finished:
                got(finished)
        return total

    def close(self) -> None:
        """Close every connection."""
        for handle in self._bodies:
            handle.close()
        self._multi.close()
        self._epoll.close()

    def _watch(self, what: int, fd: int, _multi: object, _data: object) -> None:
        if what == pycurl.POLL_REMOVE:
            if self._known.pop(fd, None) is not None:
                try:
                    self._epoll.unregister(fd)
                except OSError:
                    return  # closed already, and gone from epoll with that
            return
        events = (select.EPOLLIN if what & pycurl.POLL_IN else 0) | (select.EPOLLOUT if what & pycurl.POLL_OUT else 0)
        before = self._known.get(fd)
        if before is None:
            self._epoll.register(fd, events)
        elif before != events:
            self._epoll.modify(fd, events)
        self._known[fd] = events

    def _set_timeout(self, milliseconds: int) -> None:
        self._timeout_ms = milliseconds


class RunningWeb:
    """A simulated web that is being served. `world` is what it shows now, `pid` the process that does."""

    def __init__(self, world: World, *, port: int, pid: int) -> None:
        self.world = world
        self.port = port
        self.pid = pid

    def urls(self) -> list[str]:
        """Return the addresses of all pages, in the order of their numbers."""
        return [self.world.url(page, self.port) for page in range(self.world.pages)]

    def generation(self, number: int) -> None:
        """Serve this generation from now on."""
        self._request("POST", f"/lab/generation?n={number}")

    def prepare(self) -> int:
        """Prepare the responses of this generation in advance, and return of how many pages.

        A prepared page costs the server a third of one that is requested for the first time. Answering waits
        meanwhile: some 60 µs a page.
        """
        count: int = self._request("POST", "/lab/prepared")
        return count

    def truth(self, generation: int) -> frozenset[int]:
        """Return the pages that really changed in this generation, according to the server."""
        return frozenset(self._request("GET", f"/lab/truth?generation={generation}"))

    def stats(self) -> dict[str, int]:
        """Return the server's counters: see `Stats`."""
        counted: dict[str, int] = self._request("GET", "/lab/stats")
        return counted

    def forget_stats(self) -> None:
        """Reset all counters and maxima, except for what is open right now."""
        self._request("POST", "/lab/stats")

    def alter(self, **fields: Any) -> None:
        """Change fields of the running world, except `hosts`."""
        world = replace(self.world, **fields)
        self._request("POST", "/lab/world", json.dumps(fields))
        self.world = world

    def _request(self, method: str, target: str, body: str | None = None) -> Any:
        connection = http.client.HTTPConnection(self.world.address(0), self.port, timeout=_ANSWER_SECONDS)
        try:
            connection.request(method, target, body)
            answer = connection.getresponse()
            reply = json.loads(answer.read())
        finally:
            connection.close()
        if answer.status != http.client.OK:
            raise LabError(f"the simulated web refused {method} {target}: {reply.get('error')}")
        return reply


@contextmanager
def serve(world: World, *, port: int = 0) -> Iterator[RunningWeb]:
    """Serve a world from a process of its own for the time of the `with` block.

    The process ends with the block, and also when this process dies in any way: its stdin is a pipe from
    here.
    """
    command = [
        sys.executable,
        "-m",
        "driftline.lab.simweb.server",
        "--world",
        json.dumps(world.fields()),
        "--port",
        str(port),
    ]
    # A session of its own keeps Ctrl-C away from it: the end of its stdin is what stops it.
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        ready = ready_line(child)
        yield RunningWeb(world, port=ready["port"], pid=ready["pid"])
    finally:
        _stop(child)


def ready_line(child: subprocess.Popen[bytes]) -> dict[str, int]:
    """Return what a server's process prints when it is ready."""
    assert child.stdout is not None
    readable, _, _ = select.select([child.stdout], [], [], _START_SECONDS)
    line = child.stdout.readline() if readable else b""
    if not line:
        raise LabError("the simulated web did not start: see its output on stderr")
    ready: dict[str, int] = json.loads(line)
    return ready


def _stop(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.close()
    try:
        child.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait(_STOP_SECONDS)
    finally:
        child.stdout.close()


def ceiling(running: RunningWeb, *, in_flight: int, pages: int) -> float:
    """Return the pages per second of a minimal client with `in_flight` transfers.

    It takes the pages in order, around and around, until there were `pages` of them, receives the bodies
    compressed as they are, and discards them. Connecting is part of the time, but transfers that were still in flight
    when the last page was requested are left out: one slow response at the end would outweigh thousands.
    """
    if pages <= in_flight:
        raise BadSetting("the speed of the simulated web shows only with more pages than are in flight")
    urls = islice(cycle(running.urls()), pages)
    client = BareClient(in_flight)
    began = last = time.perf_counter()
    left = pages

    def got(finished: list[tuple[str, bytes]]) -> None:
        nonlocal last, left
        left -= len(finished)
        if left >= in_flight:
            last = time.perf_counter()

    try:
        client.run(((url, []) for url in urls), got)
    finally:
        client.close()
    return (pages - in_flight) / (last - began)
