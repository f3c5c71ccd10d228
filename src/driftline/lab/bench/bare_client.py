"""A minimal client: libcurl on epoll, with only the Python that it takes to start the next transfer."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

import pycurl

from driftline.errors import DriftlineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Request = tuple[str, list[str]]
_ACCEPT = ["Accept-Encoding: gzip"]


class LabError(DriftlineError):
    """A measurement went wrong."""


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

    def run(self, requests: Iterator[Request], got: Callable[[list[tuple[str, bytes]]], None] | None = None) -> int:
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
