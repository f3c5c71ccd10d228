from __future__ import annotations

import gzip
import ssl
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import brotli
import pytest

from driftline.errors import FailureKind
from driftline.fetch.curl import Transfers, fetch_following_redirects, fetch_link
from driftline.fetch.redirects import link_to_target
from driftline.http.headers import header, last_response, redirect_targets
from driftline.model.outcome import Document, Link
from driftline.settings import Settings
from support.making import known, link, settings
from support.servers import Answer, Request, Server, Silent, answer, closed_port, html, redirect, self_signed


def fetch(url: str, given: Settings | None = None) -> Document:
    """One page, with transfers of its own."""
    return fetch_all([url], given)[0]


def fetch_all(urls: list[str], given: Settings | None = None) -> list[Document]:
    """Pages one after the other, with the same transfers."""
    transfers = Transfers(given or settings())
    try:
        return [
            fetch_following_redirects(link(url, page_id=number), transfers) for number, url in enumerate(urls, start=1)
        ]
    finally:
        transfers.close()


def fetch_once(of: Link, given: Settings | None = None) -> Document:
    transfers = Transfers(given or settings())
    try:
        return fetch_following_redirects(of, transfers)
    finally:
        transfers.close()


def fails_as(of: Document, kind: FailureKind) -> None:
    """Assert that the document failed in this way, with one plain sentence."""
    assert of.failure is not None
    assert of.failure.kind is kind, of.failure.sentence
    assert of.failure.sentence.endswith(".")
    assert "\n" not in of.failure.sentence
    assert of.failure.sentence[0].isupper()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = self_signed(tmp_path_factory.mktemp("tls"))
    if made is None:
        pytest.skip("there is no openssl command to make a certificate with")
    return made


@pytest.fixture
def trusted_only_by_file(certificate: Path) -> Iterator[Server]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with Server(lambda _: html("secret"), tls=context) as server:
        yield server


def test_a_page_comes_with_its_status_headers_body_and_address() -> None:
    with Server(lambda _: answer(b"hello", "200 OK", "X-Kind: greeting")) as server:
        got = fetch(server.url("/a?b=c"))
    assert (got.status, got.body, got.final_url, got.redirects, got.failure) == (
        200,
        b"hello",
        server.url("/a?b=c"),
        0,
        None,
    )
    assert header(got.headers, b"x-kind") == "greeting"


def test_the_user_agent_of_the_settings_is_sent() -> None:
    with Server(lambda _: html("x")) as server:
        fetch(server.url(), settings(user_agent="Tester/1 (+me)"))
    assert server.requests[0].headers["user-agent"] == "Tester/1 (+me)"


def test_one_connection_serves_many_pages_of_a_host() -> None:
    with Server(lambda _: html("x")) as server:
        fetch_all([server.url(f"/{number}") for number in range(20)])
        assert len(server.requests) == 20
        assert server.connections == 1


def test_a_connection_that_the_server_closed_is_replaced_without_a_failure() -> None:
    def hangs_up(_: Request) -> Answer:
        return answer(b"x", "200 OK", "Connection: close", close=True)

    with Server(hangs_up) as server:
        got = fetch_all([server.url(f"/{number}") for number in range(5)])
    assert [one.failure for one in got] == [None] * 5


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(b"plain words", mtime=0)),
        ("deflate", zlib.compress(b"plain words")),
        ("br", brotli.compress(b"plain words")),
        ("zstd", b"\x28\xb5\x2f\xfd not looked at"),
    ],
)
def test_a_coded_body_arrives_as_it_was_sent(coding: str, body: bytes) -> None:
    with Server(lambda _: answer(body, "200 OK", f"Content-Encoding: {coding}")) as server:
        got = fetch(server.url())
        accepted = server.requests[0].headers["accept-encoding"]
    assert got.body == body
    assert coding in accepted


def test_a_chunked_body_arrives_without_its_chunks() -> None:
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"
    with Server(lambda _: Answer(data=raw)) as server:
        assert fetch(server.url()).body == b"abcdefg"


@pytest.mark.parametrize("status", ["204 No Content", "205 Reset Content"])
def test_a_response_with_a_status_of_no_content_is_no_page(status: str) -> None:
    with Server(lambda _: Answer(data=f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())) as server:
        got = fetch(server.url())
    assert got.failure is not None
    assert (got.failure.kind, got.failure.sentence) == (FailureKind.STATUS, f"The server answered {status}.")


def test_the_validators_of_the_last_check_are_sent_and_not_modified_is_no_failure() -> None:
    def script(request: Request) -> Answer:
        same = request.headers.get("if-none-match") == '"one"'
        return Answer(data=b'HTTP/1.1 304 Not Modified\r\nETag: "one"\r\n\r\n') if same else html("x")

    stamp = "Tue, 01 Jul 2025 00:00:00 GMT"
    with Server(script) as server:
        got = fetch_once(link(server.url(), known=known(etag='"one"', last_modified=stamp)))
    assert server.requests[0].headers["if-modified-since"] == stamp
    assert (got.status, got.body, got.failure) == (304, b"", None)


def test_validators_do_not_leak_to_the_next_page() -> None:
    transfers = Transfers(settings())
    with Server(lambda _: html("x")) as server:
        fetch_following_redirects(link(server.url("/a"), known=known(etag='"one"')), transfers)
        fetch_following_redirects(link(server.url("/b")), transfers)
        fetch_following_redirects(link(server.url("/c"), known=known(etag='"three"')), transfers)
        transfers.close()
        assert [request.headers.get("if-none-match") for request in server.requests] == ['"one"', None, '"three"']


def test_an_unrequested_not_modified_is_a_failure() -> None:
    with Server(lambda _: Answer(data=b"HTTP/1.1 304 Not Modified\r\n\r\n")) as server:
        fails_as(fetch(server.url()), FailureKind.STATUS)


def test_redirects_are_followed_and_remembered() -> None:
    def script(request: Request) -> Answer:
        hops = {"/a": redirect("/b"), "/b": redirect("c", status="301 Moved Permanently")}
        return hops.get(request.path, html("here"))

    with Server(script) as server:
        got = fetch(server.url("/a"))
    assert (got.status, got.redirects, got.final_url, got.failure) == (200, 2, server.url("/c"), None)
    assert redirect_targets(got.headers) == ["/b", "c"]
    assert b"here" in got.body
    assert b"gone" not in got.body
    assert header(last_response(got.headers), b"location") is None


def test_a_redirect_without_a_target_is_a_status_without_a_page() -> None:
    with Server(lambda _: answer(b"", "302 Found")) as server:
        fails_as(fetch(server.url()), FailureKind.STATUS)


def test_a_redirect_loop_is_given_up() -> None:
    with Server(lambda _: redirect("/again")) as server:
        fails_as(fetch(server.url(), settings(max_redirects=4)), FailureKind.REDIRECTS)
        assert len(server.requests) == 5


def test_no_redirect_is_followed_when_none_is_allowed() -> None:
    with Server(lambda _: redirect("/again")) as server:
        fails_as(fetch(server.url(), settings(max_redirects=0)), FailureKind.REDIRECTS)
        assert len(server.requests) == 1


@pytest.mark.parametrize("target", ["ftp://127.0.0.1/x", "file:///etc/hostname", "gopher://127.0.0.1/", "data:,hello"])
def test_a_redirect_off_the_web_is_not_followed(target: str) -> None:
    with Server(lambda _: redirect(target)) as server:
        got = fetch(server.url())
    fails_as(got, FailureKind.REDIRECTS)
    assert b"root" not in got.body


def test_a_cookie_holds_for_the_redirects_of_its_page_and_not_for_the_next_page() -> None:
    def script(request: Request) -> Answer:
        return redirect("/in", "Set-Cookie: session=1; Path=/") if request.path == "/login" else html("x")

    with Server(script) as server:
        fetch_all([server.url("/login"), server.url("/next")])
        assert server.asked_for("/in")[0].headers["cookie"] == "session=1"
        assert "cookie" not in server.asked_for("/next")[0].headers


def test_a_transfer_is_one_request_and_has_its_redirect_target() -> None:
    with Server(lambda _: redirect("/there")) as server:
        transfers = Transfers(settings())
        got = fetch_link(link(server.url("/here")), transfers)
        transfers.close()
        assert [request.path for request in server.requests] == ["/here"]
    assert got.onward is not None
    assert (got.onward.url, got.failure, got.redirects) == (server.url("/there"), None, 1)


def test_a_cookie_is_kept_while_redirects_pass_another_host() -> None:
    def script(request: Request) -> Answer:
        return html("in") if request.path == "/back" else redirect(other.url(), "Set-Cookie: session=1; Path=/")

    with (
        Server(lambda _: redirect(server.url("/back")), address="127.0.0.2") as other,
        Server(script) as server,
    ):
        got, _ = fetch_all([server.url("/login"), server.url("/back")])
        assert [request.headers.get("cookie") for request in server.asked_for("/back")] == ["session=1", None]
        assert "cookie" not in other.requests[0].headers
    assert got.failure is None


def test_the_time_that_answers_took_on_the_way_counts() -> None:
    given = settings(total_timeout=30.0)
    with Server(lambda _: answer(b"", length=10, hold=True)) as server:
        late = link_to_target(link("http://page.example/"), server.url(), 302, b"HTTP/1.1 302 Found\r\n\r\n", 29.9, [])
        fails_as(fetch_once(late, given), FailureKind.TIMED_OUT)


def test_a_redirect_whose_body_breaks_off_is_followed() -> None:
    def script(request: Request) -> Answer:
        away = answer(b"gone", "302 Found", "Location: /b", length=10, close=True)
        return html("here") if request.path == "/b" else away

    with Server(script) as server:
        assert b"here" in fetch(server.url("/a")).body


@pytest.mark.parametrize("status", ["404 Not Found", "410 Gone", "429 Too Many Requests", "500 Oops", "503 Busy"])
def test_an_error_status_is_a_failure_that_names_it(status: str) -> None:
    with Server(lambda _: answer(b"sorry", status)) as server:
        got = fetch(server.url())
    fails_as(got, FailureKind.STATUS)
    assert got.failure is not None
    assert status[:3] in got.failure.sentence
    assert got.status == int(status[:3])


def test_a_port_on_which_nothing_listens_is_refused() -> None:
    fails_as(fetch(f"http://127.0.0.1:{closed_port()}/"), FailureKind.REFUSED)


def test_a_name_that_does_not_exist_is_a_dns_failure() -> None:
    fails_as(fetch("http://no-such-host.invalid/"), FailureKind.DNS)


def test_a_handshake_that_is_never_answered_ends_with_the_connect_timeout() -> None:
    with Silent() as silent:
        fails_as(fetch(f"https://127.0.0.1:{silent.port}/", settings(connect_timeout=0.1)), FailureKind.TIMED_OUT)


def test_an_answer_that_never_begins_ends_with_the_total_timeout() -> None:
    with Silent() as silent:
        fails_as(fetch(f"http://127.0.0.1:{silent.port}/", settings(total_timeout=0.1)), FailureKind.TIMED_OUT)


def test_a_body_that_stops_midway_ends_with_the_total_timeout() -> None:
    with Server(lambda _: answer(b"half", length=100, hold=True)) as server:
        fails_as(fetch(server.url(), settings(total_timeout=0.2)), FailureKind.TIMED_OUT)


def test_a_body_that_stalls_ends_with_the_stall_timeout() -> None:
    with Server(lambda _: answer(b"half", length=100, hold=True)) as server:
        fails_as(fetch(server.url(), settings(stall_timeout=1.0)), FailureKind.TIMED_OUT)


def test_a_self_signed_certificate_is_not_trusted(trusted_only_by_file: Server) -> None:
    got = fetch(trusted_only_by_file.url())
    fails_as(got, FailureKind.CERTIFICATE)
    assert trusted_only_by_file.requests == []


def test_a_certificate_in_the_given_file_is_trusted(trusted_only_by_file: Server, certificate: Path) -> None:
    got = fetch(trusted_only_by_file.url(), settings(ca_file=str(certificate)))
    assert got.failure is None
    assert b"secret" in got.body


def test_a_certificate_for_another_name_is_not_trusted(trusted_only_by_file: Server, certificate: Path) -> None:
    address = f"https://localhost:{trusted_only_by_file.port}/"
    fails_as(fetch(address, settings(ca_file=str(certificate))), FailureKind.CERTIFICATE)


def test_a_file_of_certificates_that_is_not_there_is_a_tls_failure(
    trusted_only_by_file: Server, tmp_path: Path
) -> None:
    missing = str(tmp_path / "missing.pem")
    fails_as(fetch(trusted_only_by_file.url(), settings(ca_file=missing)), FailureKind.TLS)


def test_a_body_announced_over_the_limit_is_not_read() -> None:
    with Server(lambda _: answer(b"", length=10_001, hold=True)) as server:
        got = fetch(server.url(), settings(max_body=10_000))
    fails_as(got, FailureKind.TOO_LARGE)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_grows_over_the_limit_is_cut_off(chunked: bool) -> None:
    body = b"x" * 50_000
    if chunked:
        raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(body), body)
    else:
        raw = b"HTTP/1.1 200 OK\r\n\r\n" + body
    with Server(lambda _: Answer(data=raw, hold=True, close=True)) as server:
        fails_as(fetch(server.url(), settings(max_body=10_000)), FailureKind.TOO_LARGE)


def test_a_body_of_exactly_the_limit_is_read() -> None:
    with Server(lambda _: answer(b"x" * 10_000)) as server:
        got = fetch(server.url(), settings(max_body=10_000))
    assert (len(got.body), got.failure) == (10_000, None)


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzzz\r\nhalf",
    ],
    ids=["by length", "by chunk", "not a chunk"],
)
def test_a_body_cut_short_is_a_failure(raw: bytes) -> None:
    with Server(lambda _: Answer(data=raw, close=True)) as server:
        got = fetch(server.url())
    assert got.failure is not None
    assert got.failure.kind in (FailureKind.BODY, FailureKind.CONNECTION), got.failure.sentence


@pytest.mark.parametrize(
    "raw",
    [b"", b"HTTP/1.1 2"],
    ids=["nothing", "half a line"],
)
def test_an_answer_that_ends_before_it_begins_is_a_broken_connection(raw: bytes) -> None:
    with Server(lambda _: Answer(data=raw, close=True)) as server:
        fails_as(fetch(server.url()), FailureKind.CONNECTION)


def test_the_chunks_of_a_body_do_not_leak_into_the_next_page() -> None:
    with Server(lambda request: answer(request.path.encode() * 9)) as server:
        got = fetch_all([server.url("/long/one"), server.url("/b"), server.url("/c")])
    assert [one.body for one in got] == [b"/long/one" * 9, b"/b" * 9, b"/c" * 9]


def test_each_of_many_bodies_in_flight_belongs_to_its_page() -> None:
    def names_its_page(request: Request) -> Answer:
        number = int(request.path[1:])
        return answer(f"{request.path} ".encode() * (1 + number * 37 % 200))

    transfers = Transfers(settings())
    with Server(names_its_page) as server:
        wanted = {server.url(f"/{number}") for number in range(300)}
        links = iter([link(url, page_id=number) for number, url in enumerate(sorted(wanted))])
        got: list[Document] = []
        transfers.start(link for _, link in zip(range(48), links, strict=False))
        while transfers.active:
            finished = transfers.wait(5.0)
            got += finished
            transfers.start(link for _, link in zip(finished, links, strict=False))
        transfers.close()
    assert {one.link.url for one in got} == wanted
    for one in got:
        assert set(one.body.split()) == {one.link.url.rpartition("/")[2].join(["/", ""]).encode()}
        assert one.failure is None


def test_a_good_page_and_a_failed_one_in_flight_do_not_disturb_each_other() -> None:
    def script(request: Request) -> Answer:
        return answer(b"good") if request.path == "/good" else answer(b"bad", length=100, close=True)

    transfers = Transfers(settings())
    with Server(script) as server:
        for _ in range(5):
            transfers.start([link(server.url("/bad")), link(server.url("/good"))])
            got: list[Document] = []
            while transfers.active:
                got += transfers.wait(5.0)
            by_path = {one.link.url[-4:]: one for one in got}
            assert by_path["good"].body == b"good"
            assert by_path["good"].failure is None
            assert by_path["/bad"].failure is not None
        transfers.close()


def test_wake_ends_a_wait_from_another_thread() -> None:
    transfers = Transfers(settings())
    with Server(lambda _: answer(b"", length=5, hold=True)) as server:
        transfers.start([link(server.url())])

        def wake() -> None:
            server.asked.wait()
            transfers.wake()

        waker = threading.Thread(target=wake)
        waker.start()
        assert transfers.wait(100.0) == []
        waker.join()
        transfers.close()


def test_a_wake_before_the_wait_is_not_lost() -> None:
    transfers = Transfers(settings())
    transfers.wake()
    assert transfers.wait(100.0) == []
    transfers.close()


def test_closing_gives_back_the_links_in_flight() -> None:
    transfers = Transfers(settings())
    with Server(lambda _: answer(b"", length=5, hold=True)) as server:
        links = [link(server.url(f"/{number}"), page_id=number) for number in range(3)]
        transfers.start(links)
        transfers.wait(0.0)
        assert transfers.active == 3
        assert transfers.close() == links
        assert transfers.active == 0


def broken_over_kept_connections(path: str, script: dict[str, list[Answer]]) -> tuple[Document, list[Request]]:
    """What comes of a page of a server to which eight connections are kept alive, and the requests after those.

    The script has the responses to the requests for each path, the last one for all that follow.
    """
    together = threading.Barrier(8)

    def reply(request: Request) -> Answer:
        if request.path.startswith("/keep"):
            together.wait(60)
            return html("kept alive")
        left = script[request.path]
        return left.pop(0) if len(left) > 1 else left[0]

    transfers = Transfers(settings())
    transfers.keep_alive(20)
    try:
        with Server(reply) as server:
            transfers.start([link(server.url(f"/keep{number}"), page_id=number) for number in range(8)])
            kept: list[Document] = []
            while len(kept) < 8:
                kept += transfers.wait(1.0)
            assert server.connections == 8
            found = fetch_following_redirects(link(server.url(path), page_id=9), transfers)
            return found, server.requests[8:]
    finally:
        transfers.close()


NOTHING = Answer(data=b"", close=True)


def test_a_page_that_is_never_answered_is_requested_twice_at_most_however_many_connections_are_kept() -> None:
    found, requests = broken_over_kept_connections("/breaks", {"/breaks": [NOTHING]})
    fails_as(found, FailureKind.CONNECTION)
    assert found.failure is not None
    assert "Empty reply" in found.failure.sentence
    assert [request.path for request in requests] == ["/breaks"] * 2


def test_a_page_that_is_never_answered_is_requested_once_over_a_new_connection() -> None:
    with Server(lambda _: NOTHING) as server:
        fails_as(fetch(server.url()), FailureKind.CONNECTION)
        assert (len(server.requests), server.connections) == (1, 1)


def test_a_connection_that_was_closed_just_then_costs_no_page_and_counts_for_each_redirect_anew() -> None:
    script = {"/a": [NOTHING, redirect("/b")], "/b": [NOTHING, redirect("/c")], "/c": [NOTHING, html("here it is")]}
    found, requests = broken_over_kept_connections("/a", script)
    assert found.failure is None
    assert b"here it is" in found.body
    assert [request.path for request in requests] == ["/a", "/a", "/b", "/b", "/c", "/c"]
