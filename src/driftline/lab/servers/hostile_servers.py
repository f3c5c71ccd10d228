"""Servers that are malicious or badly broken: what each does, and what a check of its page may cost."""

from __future__ import annotations

from dataclasses import dataclass

from driftline.lab.servers.hostile_responses import (
    HTML,
    Act,
    binary,
    breaks_off,
    deflated,
    drips,
    edited,
    forever,
    head,
    in_brotli,
    in_itself,
    in_zstd,
    laughs,
    nested,
    one_line,
    page,
    redirects,
    redirects_further,
    sends,
    stays_silent,
    wide_window,
)

PAGE, ROBOTS, SITEMAP = "/", "/robots.txt", "/sitemap.xml"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileServer:
    """A server, and the outcome that a check of its page must have.

    `ends` is the kind of the failure, or 'new' or 'changed' where all that it does is legal; the reason contains
    `message`. A check may take at most `seconds`, `mb` of memory more than an ordinary page, and so many `requests`.
    `checks` are made in a row, of which the last one has the outcome, and may spend `patience` seconds on reading the
    page. `certificate` names that of a server with TLS. Where `at` is the robots.txt or a sitemap, the rest of the
    server is normal; a sitemap is tested by a crawl.
    """

    name: str
    act: Act
    ends: str
    message: str = ""
    seconds: float = 10.0
    mb: int = 30
    requests: int = 2
    checks: int = 1
    patience: float = 60.0
    certificate: str | None = None
    at: str = PAGE


_CODED = (HTML, "Connection: close")
_CHUNKED = head(HTML, "Transfer-Encoding: chunked")
_GOOD = b"<!doctype html><title>Page</title><p>words of a page that is as it should be</p>"
_LONG = 20_000_000
_PLAIN, _XML = "Content-Type: text/plain", "Content-Type: application/xml"
_ALLOWS = b"User-agent: *\nDisallow: /private/\n"

ORDINARY = HostileServer(name="ordinary page", act=page(HTML, body=_GOOD), ends="new", mb=0)

HOSTILE_SERVERS = (
    HostileServer(name="silence", act=stays_silent, ends="timed-out", message="too long"),
    HostileServer(
        name="drip of headers", act=drips(b"HTTP/1.1 200 OK\r\nX-Drip: a"), ends="timed-out", message="too long"
    ),
    HostileServer(name="drip of a body", act=drips(head(HTML) + b"<p>"), ends="timed-out", message="too long"),
    HostileServer(name="body without end", act=sends(head(HTML), forever(b"<p>on and on ")), ends="too-large", mb=80),
    HostileServer(
        name="chunks without end", act=sends(_CHUNKED, forever(b"8\r\n<p>on on\r\n")), ends="too-large", mb=80
    ),
    HostileServer(name="body announced as huge", act=sends(head(HTML, f"Content-Length: {10**15}")), ends="too-large"),
    HostileServer(
        name="gzip bomb",
        act=lambda scene: sends(head(*_CODED, "Content-Encoding: gzip"), deflated(31))(scene),
        ends="too-large",
        message="decoded",
        mb=80,
    ),
    HostileServer(
        name="deflate bomb",
        act=lambda scene: sends(head(*_CODED, "Content-Encoding: deflate"), deflated(15))(scene),
        ends="too-large",
        message="decoded",
        mb=80,
    ),
    HostileServer(
        name="brotli bomb",
        act=lambda scene: page(*_CODED, "Content-Encoding: br", body=in_brotli())(scene),
        ends="too-large",
        message="decoded",
        mb=80,
    ),
    HostileServer(
        name="zstd bomb",
        act=lambda scene: page(*_CODED, "Content-Encoding: zstd", body=in_zstd())(scene),
        ends="too-large",
        message="decoded",
        mb=80,
    ),
    HostileServer(
        name="zstd with a window of 128 MB", act=page(HTML, "Content-Encoding: zstd", body=wide_window()), ends="body"
    ),
    HostileServer(
        name="gzip in gzip, 50 times",
        act=lambda scene: page(HTML, f"Content-Encoding: {'gzip, ' * 49}gzip", body=in_itself(50))(scene),
        ends="body",
        message="content codings",
    ),
    HostileServer(name="gzip that is none", act=page(HTML, "Content-Encoding: gzip", body=_GOOD), ends="body"),
    HostileServer(
        name="one giant header",
        act=sends(b"HTTP/1.1 200 OK\r\nX-Giant: ", forever(b"a")),
        ends="too-large",
        message="headers",
    ),
    HostileServer(
        name="headers without end",
        act=sends(b"HTTP/1.1 200 OK\r\n", forever(b"X-More: and more\r\n")),
        ends="too-large",
        message="headers",
    ),
    HostileServer(
        name="interim answers without end",
        act=sends(forever(b"HTTP/1.1 100 Continue\r\n\r\n")),
        ends="too-large",
        message="headers",
    ),
    HostileServer(
        name="trailers without end",
        act=sends(_CHUNKED, b"5\r\nwords\r\n0\r\n", forever(b"X-More: and more\r\n")),
        ends="too-large",
        message="headers",
    ),
    HostileServer(name="line break in a Location", act=redirects("/a\rX-Injected: 1"), ends="protocol"),
    HostileServer(name="NUL in a Location", act=redirects("/a\0b"), ends="protocol"),
    HostileServer(name="NUL in a cookie", act=page(HTML, "Set-Cookie: a=b\0c", body=_GOOD), ends="protocol"),
    HostileServer(name="line break in a cookie", act=page(HTML, "Set-Cookie: a=b\rX: 1", body=_GOOD), ends="protocol"),
    HostileServer(
        name="line break in an ETag", act=page(HTML, 'ETag: "a\rX-Injected: 1"', body=_GOOD), ends="protocol"
    ),
    HostileServer(name="Content-Length too long", act=sends(head(HTML, "Content-Length: 5000"), _GOOD), ends="body"),
    HostileServer(name="Content-Length too short", act=sends(head(HTML, "Content-Length: 60"), _GOOD), ends="new"),
    HostileServer(
        name="Content-Length below zero", act=sends(head(HTML, "Content-Length: -5"), _GOOD), ends="protocol"
    ),
    HostileServer(
        name="two Content-Lengths",
        act=sends(head(HTML, "Content-Length: 5", "Content-Length: 50"), _GOOD),
        ends="protocol",
    ),
    HostileServer(name="reset in mid-body", act=breaks_off, ends="connection"),
    HostileServer(name="chunk that is no number", act=sends(_CHUNKED, b"zzzz\r\nwords\r\n"), ends="body"),
    HostileServer(name="chunk beyond all numbers", act=sends(_CHUNKED, b"f" * 17, b"\r\nwords\r\n"), ends="body"),
    HostileServer(
        name="chunk extension without end", act=sends(_CHUNKED, b"5;", forever(b"a")), ends="timed-out", seconds=12
    ),
    HostileServer(name="last chunk missing", act=sends(_CHUNKED, b"5\r\nwords\r\n"), ends="body"),
    HostileServer(name="an answer of another protocol", act=sends(b"SSH-2.0-OpenSSH_9.2p1\r\n"), ends="protocol"),
    HostileServer(name="redirect to itself", act=redirects("/"), ends="redirects", requests=11),
    HostileServer(name="redirects ever further", act=redirects_further, ends="redirects", requests=11),
    HostileServer(name="redirect to file:", act=redirects("file:///etc/hostname"), ends="redirects"),
    HostileServer(name="redirect to ftp:", act=redirects("ftp://127.0.0.1/x"), ends="redirects"),
    HostileServer(name="redirect to javascript:", act=redirects("javascript:alert(1)"), ends="redirects"),
    HostileServer(name="redirect to data:", act=redirects("data:text/html,hello"), ends="redirects"),
    HostileServer(name="TLS of garbage", act=stays_silent, ends="tls", certificate="garbage"),
    HostileServer(
        name="certificate that expired", act=stays_silent, ends="certificate", message="expired", certificate="expired"
    ),
    HostileServer(
        name="certificate signed by itself",
        act=stays_silent,
        ends="certificate",
        message="self-signed",
        certificate="own",
    ),
    HostileServer(
        name="certificate of another name",
        act=stays_silent,
        ends="certificate",
        message="another name",
        certificate="other",
    ),
    HostileServer(
        name="wrong charset",
        act=page("Content-Type: text/html; charset=utf-8", body="<p>Привет, мир".encode("cp1251")),
        ends="new",
    ),
    HostileServer(
        name="charset that is none", act=page("Content-Type: text/html; charset=base64", body=_GOOD), ends="new"
    ),
    HostileServer(name="binary as text", act=edited(HTML, body=binary), ends="body", message="text"),
    HostileServer(name="100,000 nested tags", act=edited(body=nested), ends="hostile", message="nested"),
    HostileServer(name="a line of 20 MB", act=edited(body=lambda n: one_line(_LONG, n)), ends="new", mb=500),
    HostileServer(
        name="a line of 20 MB, edited",
        act=edited(body=lambda n: one_line(_LONG, n)),
        ends="hostile",
        message="longer than",
        requests=3,
        checks=2,
        patience=3.0,
        mb=1_024,  # how far it gets in that time depends on the machine; this is what a worker may have
        seconds=20,
    ),
    HostileServer(
        name="a line of 2 MB, edited",
        act=edited(body=lambda n: one_line(_LONG // 10, n)),
        ends="changed",
        requests=3,
        checks=2,
        mb=180,
        seconds=30,
    ),
    HostileServer(name="entities in entities", act=page("Content-Type: application/xml", body=laughs()), ends="new"),
    HostileServer(
        name="JSON of 100,000 levels", act=page("Content-Type: application/json", body=b"[" * 100_000), ends="new"
    ),
    HostileServer(
        name="a million open tags",
        act=page(HTML, body=b"<b><a href=x>" * 1_000_000),
        ends="hostile",
        message="nested",
        mb=150,
    ),
    HostileServer(
        name="tags closed by others",
        act=page(HTML, body=b"<div></b>" * 200_000),
        ends="hostile",
        message="longer than",
        patience=3.0,
        mb=200,
    ),
    HostileServer(
        name="a million attributes",
        act=page(HTML, body=b"<p " + b"a b c d " * 250_000 + b">words"),
        ends="new",
        mb=200,
        seconds=60,
    ),
    HostileServer(
        name="robots.txt of 15 MB",
        act=lambda scene: page(_PLAIN, body=_ALLOWS + b"# and more words\n" * 900_000)(scene),
        ends="new",
        mb=100,
        at=ROBOTS,
    ),
    HostileServer(
        name="robots.txt without end",
        act=sends(head(_PLAIN), _ALLOWS, forever(b"# on and on\n")),
        ends="new",
        mb=80,
        at=ROBOTS,
    ),
    HostileServer(
        name="drip of a robots.txt", act=drips(head(_PLAIN) + b"#"), ends="timed-out", message="too long", at=ROBOTS
    ),
    HostileServer(name="robots.txt that is none", act=edited(_PLAIN, body=binary), ends="new", at=ROBOTS),
    HostileServer(
        name="robots.txt that is a bomb",
        act=lambda scene: sends(head(*_CODED, "Content-Encoding: gzip"), deflated(31))(scene),
        ends="new",
        mb=80,
        at=ROBOTS,
    ),
    HostileServer(
        name="sitemap without end",
        act=sends(head(_XML), b"<urlset>", forever(b"<url><loc>http://127.0.0.1/x</loc></url>")),
        ends="too-large",
        mb=120,
        at=SITEMAP,
    ),
    HostileServer(
        name="sitemap that is a bomb",
        act=lambda scene: sends(head(_XML, "Connection: close", "Content-Encoding: gzip"), deflated(31))(scene),
        ends="too-large",
        message="decoded",
        mb=120,
        at=SITEMAP,
    ),
    HostileServer(
        name="sitemap in a file that is a bomb",
        act=lambda scene: sends(head("Content-Type: application/gzip", "Connection: close"), deflated(31))(scene),
        ends="too-large",
        message="decoded",
        mb=120,
        at=SITEMAP,
    ),
)
