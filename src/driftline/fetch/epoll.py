"""Waiting for the sockets of many transfers by epoll: `select` is limited to 1,024 of them."""

from __future__ import annotations

import os
import select
import threading
from contextlib import suppress

import pycurl

_IN, _OUT, _ERROR = pycurl.CSELECT_IN, pycurl.CSELECT_OUT, pycurl.CSELECT_ERR
_READABLE, _WRITABLE = select.EPOLLIN, select.EPOLLOUT
_REMOVE = pycurl.POLL_REMOVE
_EVENTS = {
    pycurl.POLL_NONE: 0,
    pycurl.POLL_IN: _READABLE,
    pycurl.POLL_OUT: _WRITABLE,
    pycurl.POLL_INOUT: _READABLE | _WRITABLE,
}
_AT_ONCE = 1_024


class Sockets:
    """The sockets that libcurl watches. Used by one thread; `wake` by any.

    Between two transfers libcurl stops watching a connection, as a rule for a moment. To unregister it from epoll and
    register it again for each page would be two system calls, so it stays registered until an event occurs that libcurl
    does not watch for. By then it may be closed, which unregisters it, and its number may be that of another socket.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._waking = threading.Lock()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._wake, _READABLE)
        self._unwatched = {self._wake}  # registered descriptors that libcurl does not watch now

    def __repr__(self) -> str:
        return f"<Sockets unwatched={len(self._unwatched)} closed={self._wake < 0}>"

    def watch(self, what: int, descriptor: int, _multi: object, _data: object) -> None:
        """Set which events of a descriptor libcurl watches from now on; called by libcurl."""
        if what == _REMOVE:
            self._unwatched.add(descriptor)
            return
        self._unwatched.discard(descriptor)
        try:
            self._epoll.modify(descriptor, _EVENTS[what])
        except FileNotFoundError:
            self._epoll.register(descriptor, _EVENTS[what])

    def wait(self, seconds: float) -> tuple[list[tuple[int, int]], bool]:
        """Return the descriptors with events, in libcurl's terms, and whether `wake` was called."""
        found = self._epoll.poll(max(0.0, seconds), _AT_ONCE)
        unwatched = self._unwatched
        woken = False
        for descriptor in [descriptor for descriptor, _ in found if descriptor in unwatched]:
            if descriptor == self._wake:
                os.eventfd_read(descriptor)
                woken = True
            else:
                with suppress(OSError):  # closed in the meantime
                    self._epoll.unregister(descriptor)
        return [
            (descriptor, _IN if events == _READABLE else _action(events))
            for descriptor, events in found
            if descriptor not in unwatched
        ], woken

    def wake(self) -> None:
        """Make `wait` return soon; does nothing once this is closed."""
        with self._waking:
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """Close the descriptors of epoll and of `wake`."""
        self._epoll.close()
        with self._waking:
            # another thread may call `wake` after this, when the number may be that of another descriptor
            os.close(self._wake)
            self._wake = -1


def _action(events: int) -> int:
    action = (_IN if events & _READABLE else 0) | (_OUT if events & _WRITABLE else 0)
    return action if not events & ~(_READABLE | _WRITABLE) else action | _ERROR
