"""Events of sockets that libcurl watches."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pycurl
import pytest

from driftline.fetch.epoll import Sockets

if TYPE_CHECKING:
    from collections.abc import Iterator


def wants(sockets: Sockets, one: socket.socket, what: int) -> None:
    sockets.watch(what, one.fileno(), None, None)


@pytest.fixture
def sockets() -> Iterator[Sockets]:
    made = Sockets()
    yield made
    made.close()


def test_events_of_a_connection_are_returned_while_libcurl_watches_it(sockets: Sockets) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        wants(sockets, ours, pycurl.POLL_IN)
        theirs.send(b"x")
        assert sockets.wait(10.0) == ([(ours.fileno(), pycurl.CSELECT_IN)], False)
        wants(sockets, ours, pycurl.POLL_INOUT)
        assert sockets.wait(10.0) == ([(ours.fileno(), pycurl.CSELECT_IN | pycurl.CSELECT_OUT)], False)


def test_a_connection_that_is_closed_between_two_transfers_wakes_only_once(sockets: Sockets) -> None:
    ours, theirs = socket.socketpair()
    with ours:
        wants(sockets, ours, pycurl.POLL_IN)
        wants(sockets, ours, pycurl.POLL_REMOVE)
        theirs.close()
        assert sockets.wait(10.0) == ([], False)
        sockets.wake()
        assert sockets.wait(10.0) == ([], True)
        wants(sockets, ours, pycurl.POLL_IN)
        ((descriptor, action),), _ = sockets.wait(10.0)
        assert descriptor == ours.fileno()
        assert action & pycurl.CSELECT_IN


def test_a_new_connection_with_the_descriptor_of_a_closed_one_is_watched(sockets: Sockets) -> None:
    ours, theirs = socket.socketpair()
    number = ours.fileno()
    wants(sockets, ours, pycurl.POLL_IN)
    wants(sockets, ours, pycurl.POLL_REMOVE)
    ours.close()
    theirs.close()
    again, other = socket.socketpair()
    with again, other:
        one, far = (again, other) if again.fileno() == number else (other, again)
        assert one.fileno() == number
        wants(sockets, one, pycurl.POLL_IN)
        far.send(b"x")
        assert sockets.wait(10.0) == ([(number, pycurl.CSELECT_IN)], False)


def test_a_wake_after_the_end_is_nothing() -> None:
    sockets = Sockets()
    sockets.close()
    reader, writer = socket.socketpair()  # they may get the numbers of the descriptors that were closed
    with reader, writer:
        sockets.wake()
        for one in (reader, writer):
            one.setblocking(False)
            with pytest.raises(BlockingIOError):
                one.recv(1)
