"""Protection of private networks (SSRF): connections are opened only to public IP addresses, or to allowed networks.

The table follows IANA's registries of special-purpose addresses, and is stricter where no web site can be: of IPv6,
only what is assigned as global unicast is public. An IPv4 address embedded in an IPv6 address is checked as well.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from functools import lru_cache, partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, TypeAlias

import pycurl

from driftline.errors import FailureKind
from driftline.model.page import Failure
from driftline.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


IPAddress: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
AddressJudge: TypeAlias = "Callable[[str], Refusal | None]"

_CACHED = 4_096  # addresses whose verdicts are cached


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why no connection to an IP address is opened: its kind, and the network that a user would have to allow."""

    address: str
    kind: str
    network: str


#: the first network that contains an address determines its kind
_SPECIAL: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), kind)
    for network, kind in (
        ("10.0.0.0/8", "a private"),
        ("172.16.0.0/12", "a private"),
        ("192.168.0.0/16", "a private"),
        ("127.0.0.0/8", "a loopback"),
        ("169.254.0.0/16", "a link-local"),
        ("100.64.0.0/10", "a carrier-grade NAT"),
        ("168.63.129.16/32", "a cloud provider's internal"),
        ("0.0.0.0/8", "an unspecified"),
        ("192.0.0.0/24", "a reserved"),
        ("192.0.2.0/24", "a documentation"),
        ("198.51.100.0/24", "a documentation"),
        ("203.0.113.0/24", "a documentation"),
        ("192.88.99.0/24", "a 6to4 relay"),
        ("198.18.0.0/15", "a benchmark"),
        ("224.0.0.0/4", "a multicast"),
        ("255.255.255.255/32", "a broadcast"),
        ("240.0.0.0/4", "a reserved"),
        ("::1/128", "a loopback"),
        ("::/128", "an unspecified"),
        ("::ffff:0:0/96", "an IPv4-mapped"),
        ("::/96", "an IPv4-compatible"),
        ("64:ff9b:1::/48", "a local NAT64"),
        ("fc00::/7", "a private"),
        ("fe80::/10", "a link-local"),
        ("fec0::/10", "a site-local"),
        ("ff00::/8", "a multicast"),
        ("2001::/32", "a Teredo"),
        ("2001:2::/48", "a benchmark"),
        ("2001:db8::/32", "a documentation"),
        ("3fff::/20", "a documentation"),
        ("2001::/23", "a reserved"),
        ("2002::/16", "a 6to4"),
    )
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")


def judge_for(networks: Iterable[str]) -> AddressJudge:
    """Return `judge` with these networks allowed, and a cache of its verdicts."""
    return lru_cache(_CACHED)(partial(judge, allowed=[ip_network(network) for network in networks]))


def judge(text: str, allowed: Sequence[Network] = ()) -> Refusal | None:
    """Return why no connection to this IP address is opened; None if it is public or in an allowed network.

    An IPv4-mapped address counts as the IPv4 address: a connection to it sends IPv4. An address of a NAT64 gateway does
    not: it leads to an IPv4 address behind the gateway, and allowing that network here does not allow it there.
    """
    address = ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    if any(address in network or (mapped is not None and mapped in network) for network in allowed):
        return None
    if address in _NAT64:
        behind = _special(IPv4Address(int(address) & 0xFFFF_FFFF))
        found = None if behind is None else (text, behind[1])
    else:
        found = (_special(mapped) if mapped is not None else None) or _special(address)
    return None if found is None else Refusal(address=text, kind=found[1], network=found[0])


def name_of(url: str) -> str:
    """Return the host of a URL without its port; an IPv6 address without its brackets."""
    host = host_of(url)
    return host[1 : host.index("]")] if host.startswith("[") else host.partition(":")[0]


def _special(address: IPAddress) -> tuple[str, str] | None:
    """Return the special-purpose network of an address and its kind; None if the address is public."""
    for network, kind in _SPECIAL:
        if address in network:
            return str(network), kind
    if address.version == 4 or address in _GLOBAL_UNICAST:
        return None
    return str(address), "a reserved"


#: family, type and protocol of the socket, and the address as Python's sockets write it
Target: TypeAlias = tuple[int, int, int, tuple[str, int] | tuple[str, int, int, int] | bytes]
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


class ConnectionGuard:
    """Opens the sockets of one libcurl handle. `refused` is why the last one, to `address`, was not opened."""

    __slots__ = ("_judge", "address", "refused")

    def __init__(self, judge: AddressJudge) -> None:
        self._judge = judge
        self.refused: Refusal | None = None
        self.address = ""

    def __repr__(self) -> str:
        return f"<ConnectionGuard address={self.address!r} refused={self.refused!r}>"

    def forget(self) -> None:
        """Forget the address of the last transfer, before another one starts."""
        self.refused = None
        self.address = ""

    def open(self, _purpose: int, target: Target) -> socket.socket | int:
        """Return a socket for libcurl to connect to the target, or SOCKET_BAD if that is refused."""
        family, kind, protocol, address = target
        if family not in _FAMILIES:
            return pycurl.SOCKET_BAD
        self.address = str(address[0])
        self.refused = self._judge(self.address)
        if self.refused is not None:
            return pycurl.SOCKET_BAD
        try:
            return _Socket(family, kind, protocol)
        except OSError:  # too many open files, or an address family that this machine does not support
            return pycurl.SOCKET_BAD


class _Socket(socket.socket):
    """A socket of which libcurl takes a duplicate: this one is closed as soon as that is done."""

    def __del__(self) -> None:
        if self.fileno() >= 0:  # none where it could not be opened
            self.close()


def refused_failure(refusal: Refusal, url: str, *, redirected: bool) -> Failure:
    """Return the failure of a URL whose host has a refused address; `redirected` if it is the target of a redirect."""
    name = name_of(url)
    what = f"{refusal.kind} address: allow it with --allow-network {refusal.network}."
    subject = f"{refusal.address} is" if name == refusal.address else f"'{name}' is at {refusal.address},"
    if redirected:
        subject = f"The page redirects, and {subject}"
    return Failure(kind=FailureKind.NOT_ALLOWED, sentence=f"{subject} {what}")
