"""No connection to an address that is not public, unless its network is allowed.

The address is judged where libcurl opens the socket for it. So it is the one that is connected to, whatever it was
written as, whichever redirect led there and whatever a name resolves to at that moment.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, TypeAlias

import pycurl

from driftline.fetching.addresses import name_of
from driftline.model import Failure, FailureKind

if TYPE_CHECKING:
    from driftline.fetching.addresses import Judge, Refusal

#: family, type and protocol of the socket, and the address as Python's sockets write it
Target: TypeAlias = tuple[int, int, int, tuple[str, int] | tuple[str, int, int, int] | bytes]
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


class Gate:
    """Opens the sockets of one handle; `refused` says why it did not open the last one, which was for `address`."""

    __slots__ = ("_judge", "address", "refused")

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.refused: Refusal | None = None
        self.address = ""

    def forget(self) -> None:
        """Another transfer begins."""
        self.refused = None
        self.address = ""

    def open(self, _purpose: int, target: Target) -> socket.socket | int:
        """A socket for libcurl to connect to the target with, or its word for none."""
        family, kind, protocol, address = target
        if family not in _FAMILIES:
            return pycurl.SOCKET_BAD
        self.address = str(address[0])
        self.refused = self._judge(self.address)
        if self.refused is not None:
            return pycurl.SOCKET_BAD
        try:
            return _Socket(family, kind, protocol)
        except OSError:  # too many open files, or a family that this machine does not speak
            return pycurl.SOCKET_BAD


class _Socket(socket.socket):
    """A socket of which libcurl takes a duplicate: this one is closed as soon as that is done."""

    def __del__(self) -> None:
        if self.fileno() >= 0:  # none where it could not be opened
            self.close()


def refused_failure(refusal: Refusal, url: str, *, redirected: bool) -> Failure:
    """What it means that `url`, where redirects had led if `redirected`, is at an address that is not allowed."""
    name = name_of(url)
    what = f"{refusal.kind} address: allow it with --allow-network {refusal.network}."
    subject = f"{refusal.address} is" if name == refusal.address else f"'{name}' is at {refusal.address},"
    if redirected:
        subject = f"The page redirects, and {subject}"
    return Failure(kind=FailureKind.NOT_ALLOWED, sentence=f"{subject} {what}")
