"""Rendered pages that need credentials, which are sent to their own origin only."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace

import pytest

from driftline.errors import FailureKind
from driftline.fetch.browser.renderer import Renderer
from driftline.http.credentials import Access, read_access
from driftline.model.outcome import Document
from support.browsers import rendered, rendering, scripted
from support.making import settings
from support.servers import Answer, Request, Server, answer, html, redirect

SECRETS = read_access(headers=["X-Key: open-sesame"], cookies=["session=open-sesame"], basic="me:open-sesame")
_LOGIN = "Basic " + base64.b64encode(b"me:open-sesame").decode()
SENT = ["open-sesame", "session=open-sesame", _LOGIN]
NOT_SENT = [None, None, None]


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    with rendering() as renderer:
        yield renderer


def render(renderer: Renderer, url: str, access: Access = SECRETS) -> Document:
    return renderer.render(replace(rendered(url), access=access))


def secrets_of(request: Request) -> list[str | None]:
    return [request.headers.get(name) for name in ("x-key", "cookie", "authorization")]


def shown(document: Document) -> str:
    """Return the text of a document, which must contain no secret."""
    assert document.failure is None, document.failure
    exposed = [document.body, document.headers, document.screenshot or b"", repr(document).encode()]
    assert not [one for one in exposed if b"open-sesame" in one or _LOGIN.encode() in one]
    return document.body.decode()


def test_whatever_a_page_requests_its_credentials_go_to_its_own_origin_alone(renderer: Renderer) -> None:
    """Its own scripts, pictures and workers get them; other hosts, ports and frames do not."""

    def at_home(request: Request) -> Answer:
        site, strange = f"site.test:{home.port}", f"other.test:{other.port}"
        pages = {
            "/": scripted(
                f"""
                const made = (kind, url) => Object.assign(document.createElement(kind), {{src: url}});
                const put = (kind, url) => document.body.append(made(kind, url));
                const picture = url => put('img', url), frame = url => put('iframe', url);
                picture('/shown'); picture('/away'); picture('http://{strange}/shown');
                picture('http://{strange}/asks'); picture('http://site.test:{other.port}/port');
                fetch('/fetched').then(got => got.text()).then(text => document.getElementById('drawn').append(text));
                fetch('http://{strange}/fetched', {{credentials: 'include', mode: 'no-cors'}});
                frame('http://{strange}/framed'); frame('http://sub.{site}/framed');
                new Worker('/worker.js'); new WebSocket('ws://{site}/socket'); new WebSocket('ws://{strange}/socket');
                document.getElementById('drawn').append(`cookies: '${{document.cookie}}', `)"""
            ),
            "/away": redirect(f"http://{strange}/back"),
            "/worker.js": answer(b"fetch('/worked')", "200 OK", "Content-Type: text/javascript"),
            "/framed": scripted(f"fetch('http://{site}/pried')"),
        }
        return pages.get(request.path, answer(b"welcome", "200 OK", "Access-Control-Allow-Origin: *"))

    def elsewhere(request: Request) -> Answer:
        if request.path == "/asks":
            return answer(b"", "401 Unauthorized", 'WWW-Authenticate: Basic realm="x"')
        if request.path == "/back":
            return redirect(f"http://site.test:{home.port}/returned")
        return scripted(f"fetch('http://site.test:{home.port}/spied')") if request.path == "/framed" else answer(b"x")

    with Server(at_home) as home, Server(elsewhere) as other:
        text = shown(render(renderer, f"http://site.test:{home.port}/"))
        by_path = {request.path: secrets_of(request) for request in home.requests}
        strangers = {request.path: (request.headers["host"], secrets_of(request)) for request in other.requests}
    assert "welcome" in text
    assert "cookies: ''," in text, "no script reads them, of whomever it is"
    let_in = ("/", "/shown", "/away", "/fetched", "/returned", "/worker.js", "/worked")
    assert {path: by_path.get(path) for path in let_in} == dict.fromkeys(let_in, SENT)
    assert by_path["/socket"] == [None, SENT[1], None]
    assert {path: by_path.get(path) for path in ("/framed", "/pried", "/spied")} == {
        "/framed": NOT_SENT, "/pried": NOT_SENT, "/spied": NOT_SENT,
    }  # fmt: skip
    asked = ("/shown", "/asks", "/back", "/fetched", "/framed", "/socket")
    assert strangers == dict.fromkeys(asked, (f"other.test:{other.port}", NOT_SENT))


def test_another_host_that_a_page_redirects_to_cannot_use_its_credentials(renderer: Renderer) -> None:
    def elsewhere(_: Request) -> Answer:
        script = f"fetch('http://site.test:{home.port}/api').then(got => got.text())"
        return scripted(f"{script}.then(text => document.getElementById('drawn').append('read ' + text))")

    def at_home(request: Request) -> Answer:
        if request.path == "/":
            return redirect(f"http://other.test:{other.port}/there")
        return answer(
            b"nothing" if secrets_of(request) == NOT_SENT else b"welcome", "200 OK", "Access-Control-Allow-Origin: *"
        )

    with Server(at_home) as home, Server(elsewhere) as other:
        assert "read nothing" in shown(render(renderer, f"http://site.test:{home.port}/"))
        assert secrets_of(home.requests[0]) == SENT
        assert [secrets_of(request) for request in other.requests if request.path == "/there"] == [NOT_SENT]


def test_a_proxy_of_its_own_is_the_only_way_out_and_alone_sees_its_password(renderer: Renderer) -> None:
    def proxy_says(request: Request) -> Answer:
        if request.path == "http://page.example/asks":
            return answer(b"", "401 Unauthorized", 'WWW-Authenticate: Basic realm="x"')
        if request.path == "http://page.example/":
            return html(f"by proxy <img src=/asks><img src='http://127.0.0.2:{inner.port}/'>")
        return answer(b"")

    with Server(proxy_says) as proxy, Server(lambda _: answer(b""), address="127.0.0.2") as inner:
        address = proxy.url("").replace("://", "://me:open-sesame@")
        document = render(renderer, "http://page.example/", read_access(proxy=address))
        assert "by proxy" in shown(document)
        assert {request.path for request in proxy.requests} >= {
            "http://page.example/asks",
            f"http://127.0.0.2:{inner.port}/",
        }
        assert {request.headers.get("proxy-authorization") for request in proxy.requests} == {_LOGIN}
        assert [secrets_of(request) for request in proxy.requests if secrets_of(request) != NOT_SENT] == []
        assert inner.connections == 0


def test_a_server_that_rejects_our_credentials_is_reported_by_its_status(renderer: Renderer) -> None:
    with Server(lambda _: answer(b"no", "401 Unauthorized", 'WWW-Authenticate: Basic realm="x"')) as server:
        failure = render(renderer, server.url()).failure
        assert [secrets_of(request) for request in server.asked_for("/")] == [SENT]
    assert failure is not None
    assert failure.sentence == "The server answered 401 Unauthorized."


def test_so_is_a_server_that_a_page_redirects_to(renderer: Renderer) -> None:
    def ask(request: Request) -> Answer:
        if request.path == "/":
            return redirect(f"http://other.test:{server.port}/there")
        return answer(b"no", "401 Unauthorized", 'WWW-Authenticate: Basic realm="x"')

    with Server(ask) as server:
        failure = renderer.render(rendered(f"http://site.test:{server.port}/")).failure
    assert failure is not None
    assert failure.sentence == "The server answered 401 Unauthorized."


def test_a_cookie_that_the_browser_does_not_take_is_named(renderer: Renderer) -> None:
    with Server(lambda _: html("welcome")) as server:
        failure = render(renderer, server.url(), read_access(cookies=["__Host-s=open-sesame"])).failure
        assert server.requests == []
    assert failure is not None
    assert failure.kind is FailureKind.ACCESS
    assert failure.sentence == "The browser rejects the cookie '__Host-s' for this page."


def test_a_variable_that_is_not_set_fails_the_page_before_a_browser_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRIFTLINE_TEST_TOKEN", raising=False)
    renderer = Renderer(settings())
    try:
        failure = render(renderer, "http://127.0.0.1:8099/", read_access(bearer="env:DRIFTLINE_TEST_TOKEN")).failure
        assert renderer.pid is None
    finally:
        renderer.close()
    assert failure is not None
    assert failure.kind is FailureKind.ACCESS
    assert "DRIFTLINE_TEST_TOKEN" in failure.sentence
