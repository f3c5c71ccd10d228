"""Starts the simulated web in a process of its own, talks to it, and measures how fast it can answer."""

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

from driftline.errors import BadSetting, DriftlineError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from driftline.lab.world import World

_START_SECONDS = 60.0
_STOP_SECONDS = 5.0
_ANSWER_SECONDS = 60.0


class LabError(DriftlineError):
    """The simulated web did not start or did not do what it was asked."""


class RunningWeb:
    """A simulated web that is being served. `world` is what it shows now, `pid` the process that does."""

    def __init__(self, world: World, *, port: int, pid: int) -> None:
        self.world = world
        self.port = port
        self.pid = pid

    def urls(self) -> list[str]:
        """The addresses of all pages, in the order of their numbers."""
        return [self.world.url(page, self.port) for page in range(self.world.pages)]

    def generation(self, number: int) -> None:
        """Moves time: requests that arrive from now on see this generation."""
        self._ask("POST", f"/lab/generation?n={number}")

    def prepare(self) -> int:
        """Has the answers of this generation made in advance; returns of how many pages.

        A prepared page costs the server a third of one that is asked for the first time. Answering waits
        meanwhile: some 60 µs a page.
        """
        count: int = self._ask("POST", "/lab/prepared")
        return count

    def truth(self, generation: int) -> frozenset[int]:
        """The pages that really changed on the way to this generation, as the server sees it."""
        return frozenset(self._ask("GET", f"/lab/truth?generation={generation}"))

    def stats(self) -> dict[str, int]:
        """What the server has counted: see `web.Stats`."""
        counted: dict[str, int] = self._ask("GET", "/lab/stats")
        return counted

    def forget_stats(self) -> None:
        """Starts all counts and maxima anew, except for what is open right now."""
        self._ask("POST", "/lab/stats")

    def alter(self, **fields: Any) -> None:
        """Changes fields of the world while it runs; all but `hosts` can be changed."""
        world = replace(self.world, **fields)
        self._ask("POST", "/lab/world", json.dumps(fields))
        self.world = world

    def _ask(self, method: str, target: str, body: str | None = None) -> Any:
        connection = http.client.HTTPConnection(self.world.address(0), self.port, timeout=_ANSWER_SECONDS)
        try:
            connection.request(method, target, body)
            answer = connection.getresponse()
            said = json.loads(answer.read())
        finally:
            connection.close()
        if answer.status != http.client.OK:
            raise LabError(f"the simulated web refused {method} {target}: {said.get('error')}")
        return said


@contextmanager
def serve(world: World, *, port: int = 0) -> Iterator[RunningWeb]:
    """Serves a world from a process of its own for the time of the `with` block.

    The process ends with the block, and also when this process dies in any way: its stdin is a pipe from
    here.
    """
    command = [
        sys.executable,
        "-m",
        "driftline.lab.web",
        "--world",
        json.dumps(world.fields()),
        "--port",
        str(port),
    ]
    # A session of its own keeps Ctrl-C away from it: the end of its stdin is what stops it.
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        ready = _ready_line(child)
        yield RunningWeb(world, port=ready["port"], pid=ready["pid"])
    finally:
        _stop(child)


def _ready_line(child: subprocess.Popen[bytes]) -> dict[str, int]:
    assert child.stdout is not None
    readable, _, _ = select.select([child.stdout], [], [], _START_SECONDS)
    line = child.stdout.readline() if readable else b""
    if not line:
        raise LabError("the simulated web did not start: what it said is on stderr")
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
    """Pages a second that the bare minimum of a client gets, with `in_flight` transfers at any time.

    It takes the pages in order, around and around, until there were `pages` of them, receives the bodies
    compressed as they are, and throws them away. Connecting is part of the time, but what was still under way
    when the last page was asked for is left out: one slow answer at the end would outweigh thousands.
    """
    if pages <= in_flight:
        raise BadSetting("the speed of the simulated web shows only with more pages than are in flight")
    urls = islice(cycle(running.urls()), pages)
    return (pages - in_flight) / _BareClient(in_flight).run(urls)


class _BareClient:
    """libcurl on epoll, with no more Python than it takes to start the next transfer."""

    def __init__(self, in_flight: int) -> None:
        self._epoll = select.epoll()
        self._known: set[int] = set()
        self._timeout_ms = -1
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timeout)
        self._handles = [self._handle() for _ in range(in_flight)]

    def _handle(self) -> pycurl.Curl:
        handle = pycurl.Curl()
        handle.setopt(pycurl.HTTPHEADER, ["Accept-Encoding: gzip"])
        handle.setopt(pycurl.HTTP_CONTENT_DECODING, 0)
        handle.setopt(pycurl.BUFFERSIZE, 512 * 1024)
        handle.setopt(pycurl.NOSIGNAL, 1)
        handle.setopt(pycurl.PROXY, "")
        handle.setopt(pycurl.FAILONERROR, 1)
        handle.setopt(pycurl.WRITEFUNCTION, len)
        return handle

    def _watch(self, what: int, fd: int, _multi: object, _data: object) -> None:
        if what == pycurl.POLL_REMOVE:
            # The descriptor may be closed already, and gone from epoll with that.
            if fd in self._known:
                self._known.remove(fd)
                try:
                    self._epoll.unregister(fd)
                except OSError:
                    return
            return
        events = (select.EPOLLIN if what & pycurl.POLL_IN else 0) | (select.EPOLLOUT if what & pycurl.POLL_OUT else 0)
        if fd in self._known:
            self._epoll.modify(fd, events)
        else:
            self._known.add(fd)
            self._epoll.register(fd, events)

    def _set_timeout(self, milliseconds: int) -> None:
        self._timeout_ms = milliseconds

    def run(self, urls: Iterator[str]) -> float:
        """Gets all pages; returns the seconds until the last of them was asked for."""
        multi = self._multi
        began = last = time.perf_counter()
        live = sum(self._start(handle, urls) for handle in self._handles)
        while live:
            wait = self._timeout_ms / 1000 if self._timeout_ms >= 0 else 1.0
            events = self._epoll.poll(min(wait, 1.0))
            for fd, event in events:
                action = pycurl.CSELECT_IN if event & ~select.EPOLLOUT else 0
                multi.socket_action(fd, action | (pycurl.CSELECT_OUT if event & select.EPOLLOUT else 0))
            if not events:
                self._timeout_ms = -1
                multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
            _, done, failed = multi.info_read(len(self._handles))
            if failed:
                raise LabError(f"the simulated web failed while its speed was measured: {failed[0][2]}")
            for handle in done:
                multi.remove_handle(handle)
                live += self._start(handle, urls) - 1
            if live == len(self._handles):
                last = time.perf_counter()
        self._close()
        return last - began

    def _start(self, handle: pycurl.Curl, urls: Iterator[str]) -> int:
        url = next(urls, None)
        if url is None:
            return 0
        handle.setopt(pycurl.URL, url)
        self._multi.add_handle(handle)
        return 1

    def _close(self) -> None:
        for handle in self._handles:
            handle.close()
        self._multi.close()
        self._epoll.close()
