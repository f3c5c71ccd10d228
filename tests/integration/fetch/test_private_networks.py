"""The guard of private networks, with the real fetcher on real sockets."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pycurl
import pytest

from driftline.errors import FailureKind
from driftline.fetch.address_guard import ConnectionGuard, judge_for
from driftline.fetch.curl import Transfers, fetch_following_redirects
from driftline.model.outcome import Document
from support.making import link, settings
from support.servers import Answer, Request, Server, answer, closed_port, redirect

_sockets: list[int] = []  # the threads that made one, one after the other


def _notice(event: str, _arguments: object) -> None:
    if event == "socket.__new__":
        _sockets.append(threading.get_ident())


sys.addaudithook(_notice)


class Fetched(NamedTuple):
    """A document, and how many sockets were made for it."""

    document: Document
    sockets: int

    def refused(self) -> str:
        """Return the sentence of the refusal; no connection was opened."""
        failure = self.document.failure
        assert failure is not None
        assert failure.kind is FailureKind.NOT_ALLOWED, failure.sentence
        return failure.sentence


def fetch(url: str, allow: Sequence[str] = (), hosts: Sequence[str] = (), **given: object) -> Fetched:
    transfers = Transfers(settings(allow_networks=tuple(allow), **given), hosts=hosts)
    before = _sockets.count(threading.get_ident())
    got = fetch_following_redirects(link(url), transfers)
    transfers.close()
    return Fetched(got, _sockets.count(threading.get_ident()) - before)


@pytest.fixture(scope="module")
def here() -> Iterator[Server]:
    """A server at 127.0.0.1."""
    with Server(lambda _: answer(b"inside")) as server:
        yield server


@pytest.fixture(scope="module")
def beside() -> Iterator[Server]:
    """A server at 127.0.0.2."""
    with Server(lambda _: answer(b"beside"), address="127.0.0.2") as server:
        yield server


#: forms of 127.0.0.1, where the server of `here` would answer
LEADS_HERE = [
    "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0X7F000001",
    "017700000001", "0177.0.0.1", "0x7f.0.0.1", "0x7f.1", "0177.0x0.1", "127.000.000.001", "00000177.0.0.1",
    "127.0.0.1.", "%31%32%37.0.0.1", "127%2E0%2E0%2E1", "localhost", "LOCALHOST", "localhost.", "sub.localhost",
    "0.0.0.0", "0", "0x0", "00.0.0.0", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::FFFF:127.0.0.1]", "user@127.0.0.1", "example.com:80@127.0.0.1", "example.com%2F@127.0.0.1",
]  # fmt: skip
#: forms of addresses that are not ours, or where nothing listens: no request may be sent to them
ELSEWHERE = [
    ("127.0.0.2", "loopback"), ("127.255.255.254", "loopback"),
    ("10.0.0.5", "private"), ("167772165", "private"), ("0x0a000005", "private"), ("012.0.0.5", "private"),
    ("10.5", "private"), ("172.16.0.1", "private"), ("172.31.255.254", "private"), ("192.168.1.1", "private"),
    ("192.168.257", "private"), ("3232235777", "private"), ("0xc0.0xa8.0x1.0x1", "private"),
    ("169.254.169.254", "link-local"), ("2852039166", "link-local"), ("0xA9FEA9FE", "link-local"),
    ("0251.0376.0251.0376", "link-local"), ("169.254.43518", "link-local"), ("100.64.0.1", "carrier-grade NAT"),
    ("100.100.100.200", "carrier-grade NAT"), ("168.63.129.16", "cloud provider's internal"),
    ("0.0.0.1", "unspecified"), ("192.0.0.192", "reserved"), ("192.0.2.1", "documentation"),
    ("198.18.0.1", "benchmark"), ("198.51.100.1", "documentation"), ("203.0.113.1", "documentation"),
    ("192.88.99.1", "6to4 relay"), ("224.0.0.1", "multicast"), ("239.255.255.250", "multicast"),
    ("240.0.0.1", "reserved"), ("255.255.255.255", "broadcast"), ("4294967295", "broadcast"), ("[::1]", "loopback"),
    ("[0:0:0:0:0:0:0:1]", "loopback"), ("[0000::1]", "loopback"), ("[::]", "unspecified"),
    ("[::ffff:10.0.0.5]", "private"), ("[::ffff:a9fe:a9fe]", "link-local"), ("[::ffff:8.8.8.8]", "IPv4-mapped"),
    ("[::127.0.0.1]", "IPv4-compatible"), ("[::7f00:1]", "IPv4-compatible"), ("[::8.8.8.8]", "IPv4-compatible"),
    ("[64:ff9b::10.0.0.5]", "private"), ("[64:ff9b::a9fe:a9fe]", "link-local"), ("[64:ff9b::7f00:1]", "loopback"),
    ("[64:ff9b:1::8.8.8.8]", "local NAT64"), ("[2002:7f00:1::]", "6to4"), ("[2002:808:808::1]", "6to4"),
    ("[2001:0:7f00:1::]", "Teredo"), ("[2001:2::1]", "benchmark"), ("[2001:10::1]", "reserved"),
    ("[2001:db8::1]", "documentation"), ("[3fff::1]", "documentation"), ("[fc00::1]", "private"),
    ("[fd00:ec2::254]", "private"), ("[fe80::1]", "link-local"), ("[fe80::1%25lo]", "link-local"),
    ("[febf::1]", "link-local"), ("[fec0::1]", "site-local"), ("[ff02::1]", "multicast"), ("[100::1]", "reserved"),
    ("[5f00::1]", "reserved"), ("[4000::1]", "reserved"),
]  # fmt: skip


@pytest.mark.parametrize("host", LEADS_HERE)
def test_no_form_of_a_loopback_address_reaches_this_machine(host: str, here: Server) -> None:
    before = here.connections
    got = fetch(f"http://{host}:{here.port}/")
    assert "--allow-network" in got.refused()
    assert (got.sockets, here.connections - before) == (0, 0)
    assert got.document.body == b""


@pytest.mark.parametrize("host", LEADS_HERE)
def test_each_of_these_forms_reaches_this_machine_where_it_is_allowed(host: str, here: Server) -> None:
    """Or else the test above would prove nothing."""
    got = fetch(f"http://{host}:{here.port}/", allow=["127.0.0.0/8", "0.0.0.0/8"])
    assert got.document.failure is None
    assert got.document.body == b"inside"


@pytest.mark.parametrize(("host", "kind"), ELSEWHERE)
def test_no_socket_is_opened_for_an_address_that_is_not_public(host: str, kind: str) -> None:
    got = fetch(f"http://{host}/")
    assert f" {kind} address: allow it with --allow-network " in got.refused()
    assert got.sockets == 0


@pytest.mark.parametrize(("host", "kind"), ELSEWHERE)
def test_no_redirect_reaches_an_address_that_is_not_public(host: str, kind: str) -> None:
    with Server(lambda _: redirect(f"http://{host}/latest/meta-data/")) as server:
        got = fetch(server.url(), allow=["127.0.0.1"])
    if "%" in host:  # an address of the web has no zone
        assert got.document.failure is not None
        assert (got.document.failure.kind, got.sockets) == (FailureKind.REDIRECTS, 1)
        return
    sentence = got.refused()
    assert sentence.startswith("The page redirects, and ")
    assert f" {kind} address: allow it with --allow-network " in sentence
    assert (got.sockets, got.document.redirects) == (1, 1)


@pytest.mark.parametrize("host", LEADS_HERE)
def test_no_redirect_reaches_this_machine(host: str, here: Server) -> None:
    """The page itself is at ::1, which is all that is allowed."""
    before = here.connections
    with Server(lambda _: redirect(f"http://{host}:{here.port}/"), address="::1") as server:
        got = fetch(server.url(), allow=["::1"])
    if host.lower().rstrip(".").endswith("localhost"):  # it is at ::1 too, where nothing listens on that port
        assert got.document.failure is not None
    else:
        got.refused()
    assert here.connections == before


def test_a_chain_of_redirects_is_judged_at_every_step(beside: Server) -> None:
    before = beside.connections

    def script(request: Request) -> Answer:
        if request.path == "/3":
            return redirect(beside.url())
        return redirect(f"/{int(request.path[1:]) + 1}")

    with Server(script) as server:
        got = fetch(server.url("/1"), allow=["127.0.0.1"])
        assert len(server.requests) == 3
    assert "127.0.0.2 is a loopback address" in got.refused()
    assert beside.connections == before


@pytest.mark.parametrize(
    "target",
    [
        "file:///etc/passwd", "FILE:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1:6379/_INFO",
        "dict://127.0.0.1:11211/stats", "ldap://127.0.0.1/", "smb://127.0.0.1/share", "tftp://127.0.0.1/x",
        "telnet://127.0.0.1/", "scp://127.0.0.1/etc/passwd", "imap://127.0.0.1/", "mqtt://127.0.0.1/x",
        "rtsp://127.0.0.1/", "ws://127.0.0.1/",
    ],
)  # fmt: skip
def test_only_http_and_https_are_spoken_also_after_a_redirect(target: str) -> None:
    direct = fetch(target, allow=["127.0.0.0/8"])
    assert direct.document.failure is not None
    assert (direct.sockets, direct.document.body) == (0, b"")
    with Server(lambda _: redirect(target)) as server:
        redirected = fetch(server.url(), allow=["127.0.0.0/8"])
    assert redirected.document.failure is not None
    assert redirected.document.failure.kind is FailureKind.REDIRECTS
    assert redirected.sockets == 1


def test_the_sentence_names_host_address_and_the_network_to_allow() -> None:
    got = fetch("http://intranet.example/", hosts=["intranet.example:80:10.0.0.5"])
    assert got.refused() == (
        "'intranet.example' is at 10.0.0.5, a private address: allow it with --allow-network 10.0.0.0/8."
    )
    assert got.sockets == 0


def test_the_sentence_names_no_address_twice_and_no_password() -> None:
    assert fetch("http://me:sesame@10.0.0.5:8080/").refused() == (
        "10.0.0.5 is a private address: allow it with --allow-network 10.0.0.0/8."
    )


def test_a_name_that_resolves_to_another_address_later_is_judged_again(beside: Server) -> None:
    """DNS rebinding: the name is at an allowed address first, and at another one at the next connection."""
    hosts: list[str] = []
    transfers = Transfers(settings(allow_networks=("127.0.0.1/32",)), hosts=hosts)
    before = beside.connections
    with Server(lambda _: answer(b"first", close=True), port=beside.port) as server:
        url = f"http://rebound.example:{server.port}/"
        hosts[:] = [f"rebound.example:{server.port}:127.0.0.1"]
        first = fetch_following_redirects(link(url), transfers)
        hosts[:] = [f"rebound.example:{server.port}:127.0.0.2"]
        second = fetch_following_redirects(link(url), transfers)
    transfers.close()
    assert beside.connections == before
    assert first.body == b"first"
    assert second.failure is not None
    assert second.failure.kind is FailureKind.NOT_ALLOWED
    assert "'rebound.example' is at 127.0.0.2" in second.failure.sentence


def test_a_redirect_to_the_same_name_that_is_elsewhere_by_then_is_refused(beside: Server) -> None:
    before = beside.connections
    with Server(lambda _: redirect(f"http://rebound.example:{beside.port}/")) as server:
        hosts = [f"rebound.example:{server.port}:127.0.0.1", f"rebound.example:{beside.port}:127.0.0.2"]
        got = fetch(f"http://rebound.example:{server.port}/", allow=["127.0.0.1"], hosts=hosts)
    assert "'rebound.example' is at 127.0.0.2, a loopback address" in got.refused()
    assert beside.connections == before


@pytest.mark.parametrize("addresses", ["10.0.0.5,127.0.0.1", "127.0.0.1,10.0.0.5", "169.254.169.254,::1,127.0.0.1"])
def test_of_several_addresses_only_those_are_tried_that_are_allowed(addresses: str, here: Server) -> None:
    hosts = [f"several.example:{here.port}:{addresses}"]
    got = fetch(f"http://several.example:{here.port}/", allow=["127.0.0.1"], hosts=hosts)
    assert got.document.body == b"inside"
    assert got.sockets == 1


def test_an_allowed_address_where_nothing_listens_is_not_called_refused() -> None:
    port = closed_port()
    hosts = [f"several.example:{port}:10.0.0.5,127.0.0.1"]
    got = fetch(f"http://several.example:{port}/", allow=["127.0.0.1"], hosts=hosts)
    assert got.document.failure is not None
    assert got.document.failure.kind is FailureKind.REFUSED


def test_what_was_refused_once_does_not_stay_with_the_handle(here: Server, beside: Server) -> None:
    transfers = Transfers(settings(allow_networks=("127.0.0.1/32",)))
    refused = fetch_following_redirects(link(beside.url()), transfers)
    good = fetch_following_redirects(link(here.url()), transfers)
    nobody = fetch_following_redirects(link(f"http://127.0.0.1:{closed_port()}/"), transfers)
    transfers.close()
    assert [one.failure.kind if one.failure else None for one in (refused, good, nobody)] == [
        FailureKind.NOT_ALLOWED, None, FailureKind.REFUSED,
    ]  # fmt: skip


def test_a_connection_that_was_judged_is_kept_and_its_socket_closed_with_the_transfers(here: Server) -> None:
    before = here.connections
    transfers = Transfers(settings(allow_networks=("127.0.0.0/8",)))
    for _ in range(5):
        assert fetch_following_redirects(link(f"http://127.0.0.1:{here.port}/"), transfers).body == b"inside"
    transfers.close()
    assert here.connections - before == 1


@pytest.mark.parametrize("name", ["http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"])
def test_a_proxy_in_the_environment_does_not_bypass_the_guard(
    name: str, here: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through it, only its own address could be judged."""
    monkeypatch.setenv(name, f"http://127.0.0.1:{here.port}")
    for url in ("http://10.0.0.5/", "https://10.0.0.5/"):
        assert fetch(url, allow=["127.0.0.0/8"]).sockets == 0


def test_a_proxy_that_is_set_is_used_for_every_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with Server(lambda _: answer(b"by proxy")) as proxy:
        got = fetch("http://intranet.example/page", proxy=proxy.url("").rstrip("/"))
        assert [request.path for request in proxy.requests] == ["http://intranet.example/page"]
    assert got.document.body == b"by proxy"


def test_a_socket_that_cannot_be_opened_is_no_refusal() -> None:
    guard = ConnectionGuard(judge_for(["127.0.0.1"]))
    assert guard.open(0, (2, 1, 9_999, ("127.0.0.1", 80))) == pycurl.SOCKET_BAD
    assert guard.refused is None


def test_no_other_family_of_sockets_is_opened() -> None:
    guard = ConnectionGuard(judge_for(["0.0.0.0/0", "::/0"]))
    assert guard.open(0, (1, 1, 0, b"/run/docker.sock")) == pycurl.SOCKET_BAD
