"""Hearing of what happens on the sockets of many transfers, by epoll: `select` stops at 1,024 of them."""

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
    """What libcurl wants to hear of. Used by one thread; `wake` by any.

    Between two transfers libcurl does not want to hear of a connection, for a moment as a rule. To take it out of epoll
    and put it back for each page would be two calls of the system, so it stays there until something happens on it that
    nobody waits for. By then it may be closed, which takes it out of epoll, and its number may be that of another.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._waking = threading.Lock()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._wake, _READABLE)
        self._unasked = {self._wake}  # what libcurl does not want to hear of now

    def watch(self, what: int, descriptor: int, _multi: object, _data: object) -> None:
        """What libcurl wants to hear of a descriptor from now on; called by libcurl."""
        if what == _REMOVE:
            self._unasked.add(descriptor)
            return
        self._unasked.discard(descriptor)
        try:
            self._epoll.modify(descriptor, _EVENTS[what])
        except FileNotFoundError:
            self._epoll.register(descriptor, _EVENTS[what])

    def wait(self, seconds: float) -> tuple[list[tuple[int, int]], bool]:
        """The descriptors on which something happened, and what, in libcurl's terms; and whether somebody woke us."""
        found = self._epoll.poll(max(0.0, seconds), _AT_ONCE)
        unasked = self._unasked
        woken = False
        for descriptor in [descriptor for descriptor, _ in found if descriptor in unasked]:
            if descriptor == self._wake:
                os.eventfd_read(descriptor)
                woken = True
            else:
                with suppress(OSError):  # closed in the meantime
                    self._epoll.unregister(descriptor)
        return [
            (descriptor, _IN if events == _READABLE else _action(events))
            for descriptor, events in found
            if descriptor not in unasked
        ], woken

    def wake(self) -> None:
        """Make `wait` return soon; nothing once this is closed."""
        with self._waking:
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """Free all of it."""
        self._epoll.close()
        with self._waking:
            # another thread may wake us after this: the number of the descriptor can be somebody else's by then
            os.close(self._wake)
            self._wake = -1


def _action(events: int) -> int:
    action = (_IN if events & _READABLE else 0) | (_OUT if events & _WRITABLE else 0)
    return action if not events & ~(_READABLE | _WRITABLE) else action | _ERROR
