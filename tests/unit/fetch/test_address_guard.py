from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from driftline.fetch.address_guard import judge, judge_for, name_of

PUBLIC = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "93.184.216.34", "100.63.255.255", "100.128.0.0",
    "126.255.255.255", "128.0.0.0", "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0",
    "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.167.255.255", "192.169.0.0",
    "198.17.255.255", "198.20.0.0", "198.51.99.255", "203.0.112.255", "203.0.114.0", "223.255.255.255",
    "2000::", "2001:200::1", "2001:4860:4860::8888", "2606:4700::1111", "2a00:1450:4001::1", "3ffe:ffff::",
    "2001:db7:ffff::", "2001:db9::", "2003::1", "64:ff9b::8.8.8.8",
]  # fmt: skip
REFUSED = [
    ("0.0.0.0", "an unspecified", "0.0.0.0/8"),
    ("0.255.255.255", "an unspecified", "0.0.0.0/8"),
    ("10.0.0.0", "a private", "10.0.0.0/8"),
    ("10.255.255.255", "a private", "10.0.0.0/8"),
    ("100.64.0.0", "a carrier-grade NAT", "100.64.0.0/10"),
    ("100.100.100.200", "a carrier-grade NAT", "100.64.0.0/10"),
    ("100.127.255.255", "a carrier-grade NAT", "100.64.0.0/10"),
    ("127.0.0.0", "a loopback", "127.0.0.0/8"),
    ("127.255.255.255", "a loopback", "127.0.0.0/8"),
    ("168.63.129.16", "a cloud provider's internal", "168.63.129.16/32"),
    ("169.254.0.0", "a link-local", "169.254.0.0/16"),
    ("169.254.169.254", "a link-local", "169.254.0.0/16"),
    ("169.254.255.255", "a link-local", "169.254.0.0/16"),
    ("172.16.0.0", "a private", "172.16.0.0/12"),
    ("172.31.255.255", "a private", "172.16.0.0/12"),
    ("192.0.0.0", "a reserved", "192.0.0.0/24"),
    ("192.0.0.192", "a reserved", "192.0.0.0/24"),
    ("192.0.2.255", "a documentation", "192.0.2.0/24"),
    ("192.88.99.1", "a 6to4 relay", "192.88.99.0/24"),
    ("192.168.0.0", "a private", "192.168.0.0/16"),
    ("192.168.255.255", "a private", "192.168.0.0/16"),
    ("198.18.0.0", "a benchmark", "198.18.0.0/15"),
    ("198.19.255.255", "a benchmark", "198.18.0.0/15"),
    ("198.51.100.7", "a documentation", "198.51.100.0/24"),
    ("203.0.113.7", "a documentation", "203.0.113.0/24"),
    ("224.0.0.1", "a multicast", "224.0.0.0/4"),
    ("239.255.255.255", "a multicast", "224.0.0.0/4"),
    ("240.0.0.0", "a reserved", "240.0.0.0/4"),
    ("255.255.255.254", "a reserved", "240.0.0.0/4"),
    ("255.255.255.255", "a broadcast", "255.255.255.255/32"),
    ("::", "an unspecified", "::/128"),
    ("::1", "a loopback", "::1/128"),
    ("::2", "an IPv4-compatible", "::/96"),
    ("::127.0.0.1", "an IPv4-compatible", "::/96"),
    ("::8.8.8.8", "an IPv4-compatible", "::/96"),
    ("::ffff:10.0.0.5", "a private", "10.0.0.0/8"),
    ("::ffff:169.254.169.254", "a link-local", "169.254.0.0/16"),
    ("::ffff:8.8.8.8", "an IPv4-mapped", "::ffff:0:0/96"),
    ("64:ff9b::10.0.0.5", "a private", "64:ff9b::10.0.0.5"),
    ("64:ff9b::169.254.169.254", "a link-local", "64:ff9b::169.254.169.254"),
    ("64:ff9b:1::8.8.8.8", "a local NAT64", "64:ff9b:1::/48"),
    ("64:ff9b:2::1", "a reserved", "64:ff9b:2::1"),
    ("100::1", "a reserved", "100::1"),
    ("1fff:ffff::", "a reserved", "1fff:ffff::"),
    ("2001::1", "a Teredo", "2001::/32"),
    ("2001:2::1", "a benchmark", "2001:2::/48"),
    ("2001:10::1", "a reserved", "2001::/23"),
    ("2001:db8::1", "a documentation", "2001:db8::/32"),
    ("2002:a00:5::1", "a 6to4", "2002::/16"),
    ("2002:808:808::1", "a 6to4", "2002::/16"),
    ("3fff:fff::1", "a documentation", "3fff::/20"),
    ("4000::", "a reserved", "4000::"),
    ("5f00::1", "a reserved", "5f00::1"),
    ("fc00::1", "a private", "fc00::/7"),
    ("fd00:ec2::254", "a private", "fc00::/7"),
    ("fe80::1", "a link-local", "fe80::/10"),
    ("febf::1", "a link-local", "fe80::/10"),
    ("fec0::1", "a site-local", "fec0::/10"),
    ("ff02::1", "a multicast", "ff00::/8"),
    ("ffff::1", "a multicast", "ff00::/8"),
]
#: what Python calls global and no web site is at: deprecated, never assigned, or a cloud's own
STRICTER = [ip_network(one) for one in ("168.63.129.16/32", "192.88.99.0/24", "192.0.0.0/24")]


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_fetched_from(address: str) -> None:
    assert judge(address) is None


@pytest.mark.parametrize(("address", "kind", "network"), REFUSED)
def test_an_address_that_is_not_public_is_refused_by_its_name(address: str, kind: str, network: str) -> None:
    refusal = judge(address)
    assert refusal is not None
    assert (refusal.address, refusal.kind, refusal.network) == (address, kind, network)


@pytest.mark.parametrize(("address", "kind", "network"), REFUSED)
def test_allowing_the_network_that_is_named_allows_the_address(address: str, kind: str, network: str) -> None:
    assert judge(address, [ip_network(network)]) is None


def test_an_allowed_network_allows_no_other() -> None:
    judged = judge_for(["10.1.0.0/16", "fd00::/8"])
    assert judged("10.1.255.255") is None
    assert judged("::ffff:10.1.2.3") is None
    assert judged("fd12::1") is None
    assert judged("10.2.0.0") is not None
    assert judged("fc00::1") is not None
    assert judged("127.0.0.1") is not None


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether Python's own tables know nothing that speaks against an address."""
    doubts = (
        address.is_private, address.is_loopback, address.is_link_local, address.is_multicast, address.is_reserved,
        address.is_unspecified, getattr(address, "is_site_local", False), not address.is_global,
    )  # fmt: skip
    return not any(doubts)


@given(st.ip_addresses(v=4))
@example(IPv4Address("192.0.0.9"))
def test_of_ipv4_the_guard_and_python_agree_but_where_the_guard_is_stricter(address: IPv4Address) -> None:
    refused = judge(str(address)) is not None
    assert refused is (not is_public(address) or any(address in network for network in STRICTER))


@given(st.ip_addresses(v=6) | st.ip_addresses(v=6, network="2000::/3") | st.ip_addresses(v=6, network="2001::/16"))
@example(IPv6Address("2002:a00:1::"))
@example(IPv6Address("3fff::1"))
@example(IPv6Address("64:ff9b::100:0"))
def test_of_ipv6_nothing_is_let_through_that_python_would_not_but_nat64(address: IPv6Address) -> None:
    refused = judge(str(address)) is not None
    if address in ip_network("64:ff9b::/96"):
        assert refused is (judge(str(IPv4Address(int(address) & 0xFFFF_FFFF))) is not None)
    elif not is_public(address):
        assert refused
    elif address in ip_network("2400::/6"):
        assert not refused, "most web sites of today are there"


@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:", "::", "64:ff9b::"]))
def test_an_ipv4_address_within_an_ipv6_address_is_judged(inner: IPv4Address, prefix: str) -> None:
    assert judge(f"{prefix}{inner}") is not None or judge(str(inner)) is None


@given(st.ip_addresses(v=4))
def test_allowing_an_ipv4_address_allows_it_mapped_and_not_behind_a_gateway(inner: IPv4Address) -> None:
    allowed = [ip_network(inner)]
    assert judge(f"::ffff:{inner}", allowed) is None
    assert judge(f"64:ff9b::{inner}", allowed) == judge(f"64:ff9b::{inner}")


@given(st.ip_addresses(), st.integers(0, 128))
def test_whatever_is_in_an_allowed_network_is_allowed(address: IPv4Address | IPv6Address, bits: int) -> None:
    network = ip_network(f"{address}/{min(bits, address.max_prefixlen)}", strict=False)
    assert judge(str(address), [network]) is None


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://a.example/", "a.example"),
        ("http://me:pw@a.example:8080/x:y@z", "a.example"),
        ("http://127.0.0.1:80/", "127.0.0.1"),
        ("http://[::1]/", "::1"),
        ("https://u@[fe80::1%25eth0]:8443/", "fe80::1%25eth0"),
    ],
)
def test_the_name_of_a_host_has_neither_port_nor_brackets_nor_password(url: str, name: str) -> None:
    assert name_of(url) == name


def test_a_name_is_no_address() -> None:
    with pytest.raises(ValueError, match="localhost"):
        judge("localhost")
