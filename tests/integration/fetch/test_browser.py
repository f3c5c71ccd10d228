"""Pages fetched through a real Chromium, and what it can reach."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from driftline.errors import FailureKind, RunStopped
from driftline.fetch.browser.renderer import Renderer
from driftline.model.outcome import Document, Known
from driftline.store.blobs import fingerprint
from support.blocks import Paths
from support.browsers import PNG, drawing, rendered, rendering, scripted
from support.making import settings
from support.servers import Answer, Request, Server, answer, html, redirect


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    with rendering() as renderer:
        yield renderer


def served(renderer: Renderer, page: Answer, *steps: str, wait_for: str | None = None) -> Document:
    """What comes of a server whose only page is this."""
    with Server(lambda _: page) as server:
        return renderer.render(rendered(server.url(), *steps, wait_for=wait_for))


def words(document: Document) -> str:
    assert document.failure is None, document.failure
    return document.body.decode()


def test_a_page_is_taken_as_its_scripts_draw_it_with_a_picture_of_it_all(renderer: Renderer) -> None:
    document = served(renderer, drawing("<h1>A lamp</h1><p style='height: 3000px'>for 12 euros</p>"))
    assert "<h1>A lamp</h1>" in words(document)
    picture = document.screenshot or b""
    assert picture.startswith(PNG)
    assert int.from_bytes(picture[20:24]) > 3_000  # its height: all of the page is in it
    assert (document.status, document.redirects) == (200, 0)
    assert b"Content-Type: text/html; charset=utf-8" in document.headers


def test_later_requests_of_a_script_are_waited_for(renderer: Renderer) -> None:
    script = "fetch('/words').then(got => got.text()).then(text => document.getElementById('drawn').textContent = text)"

    def script_or_words(request: Request) -> Answer:
        return answer(b"asked for") if request.path == "/words" else scripted(f"setTimeout(() => {script}, 200)")

    with Server(script_or_words) as server:
        assert "asked for" in words(renderer.render(rendered(server.url())))


def test_words_in_open_shadow_roots_count_in_the_place_where_they_are_seen(renderer: Renderer) -> None:
    script = "document.querySelector('a-card').attachShadow({mode: 'open'}).innerHTML = '<b>shade <slot></slot></b>'"
    body = words(served(renderer, scripted(script, "<a-card><i>light</i></a-card>")))
    assert "<a-card><b>shade <i>light</i></b></a-card>" in body


def test_steps_are_done_before_the_capture(renderer: Renderer) -> None:
    body = """<button id=more onclick="put('clicked')">more</button>
    <input name=q onkeydown="if (event.key == 'Enter') put('searched ' + this.value)">
    <div style="height: 3000px"></div><p id=end>end</p>"""
    script = """const put = text => document.getElementById('drawn').append(text + '. ');
    new IntersectionObserver(seen => seen[0].isIntersecting && put('scrolled')).observe(document.getElementById('end'));
    document.addEventListener('click', () => setTimeout(() => document.body.classList.add('late'), 900))"""
    steps = ("click:#more", "type:input[name=q]=two lamps", "press:Enter", "wait:.late", "scroll")
    found = words(served(renderer, scripted(script, body), *steps))
    assert "clicked. searched two lamps. scrolled." in found


def test_a_page_without_a_body_can_be_scrolled(renderer: Renderer) -> None:
    gone = scripted("document.addEventListener('DOMContentLoaded', () => document.body.remove())")
    assert "<title>Drawn</title>" in words(served(renderer, gone, "scroll"))


def test_a_page_that_starts_a_download_is_still_a_page(renderer: Renderer) -> None:
    saved = answer(b"MZ", "200 OK", "Content-Type: application/octet-stream", "Content-Disposition: attachment")
    page = scripted("location = '/saved'", "<p>Your download starts soon.</p>")
    with Server(lambda request: saved if request.path == "/saved" else page) as server:
        document = renderer.render(rendered(server.url()))
        assert server.asked_for("/saved")
    assert "Your download starts soon." in words(document)
    assert (document.final_url, document.redirects) == (server.url(), 0)


@pytest.mark.parametrize(
    ("step", "why"),
    [("click:a..b", "this is not a CSS selector"), ("type:p=words", "nothing can be typed into this element")],
)
def test_why_a_step_cannot_be_done_is_reported(renderer: Renderer, step: str, why: str) -> None:
    failure = served(renderer, html("here"), step).failure
    assert failure is not None
    assert failure.sentence == f"The step '{step}' could not be done: {why}."


def test_no_picture_is_taken_of_a_document_that_is_the_same_to_the_byte(renderer: Renderer) -> None:
    with Server(lambda _: drawing("the same")) as server:
        link = rendered(server.url())
        first = renderer.render(link)
        again = renderer.render(replace(link, known=Known(1, None, None, fingerprint(first.body))))
        assert (again.rendered, again.screenshot) == (True, None)


def test_what_is_not_html_comes_as_it_was_sent(renderer: Renderer) -> None:
    document = served(renderer, answer(b'{"lamps": 2}', "200 OK", "Content-Type: application/json"))
    assert document.body == b'{"lamps": 2}'
    assert b"Content-Type: application/json" in document.headers


def test_a_password_in_the_address_is_used_and_never_shown(renderer: Renderer) -> None:
    def ask(request: Request) -> Answer:
        has_password = request.headers.get("authorization") == "Basic bWU6c2VjcmV0"
        return html("inside") if has_password else answer(b"", "401 Unauthorized", 'WWW-Authenticate: Basic realm="x"')

    with Server(ask) as server:
        document = renderer.render(rendered(server.url("/").replace("://", "://me:secret@")))
    assert "inside" in words(document)
    assert "secret" not in document.final_url
    assert document.redirects == 0


@pytest.mark.parametrize(
    ("page", "kind", "sentence"),
    [
        (answer(b"", "404 Not Found"), FailureKind.STATUS, "The server answered 404 Not Found."),
        (answer(b"gone", "410 Gone"), FailureKind.STATUS, "The server answered 410 Gone."),
        (
            answer(b"MZ", "200 OK", "Content-Type: application/octet-stream", "Content-Disposition: attachment"),
            FailureKind.BODY,
            "The browser would download this instead of showing it: watch it without --render.",
        ),
        (redirect("/"), FailureKind.REDIRECTS, "The page redirects too often or to an address that is not on the web."),
        (
            redirect("http://127.0.0.2:8099/"),
            FailureKind.NOT_ALLOWED,
            "The page redirects, and 127.0.0.2 is a loopback address: allow it with --allow-network 127.0.0.0/8.",
        ),
        (
            scripted("location = 'http://intranet.test:8099/'"),
            FailureKind.NOT_ALLOWED,
            (
                "The page redirects, and 'intranet.test' is at 127.0.0.2, a loopback address: "
                "allow it with --allow-network 127.0.0.0/8."
            ),
        ),
    ],
)
def test_what_is_no_page_is_a_failure_with_a_reason(
    renderer: Renderer, page: Answer, kind: FailureKind, sentence: str
) -> None:
    failure = served(renderer, page).failure
    assert failure is not None
    assert (failure.kind, failure.sentence) == (kind, sentence)


def test_a_page_of_a_network_that_is_not_allowed_is_refused(renderer: Renderer) -> None:
    with Server(lambda _: html("secret"), address="127.0.0.2") as server:
        failure = renderer.render(rendered(server.url())).failure
        assert not server.connections
    assert failure is not None
    assert failure.kind is FailureKind.NOT_ALLOWED
    assert failure.sentence == "127.0.0.2 is a loopback address: allow it with --allow-network 127.0.0.0/8."


def test_scripts_reach_nothing_that_is_not_allowed(renderer: Renderer) -> None:
    """Whatever a page tries, another server on this machine receives nothing, neither by TCP nor by UDP.

    That the same ways lead to an allowed server shows that the page did try.
    """

    def page(request: Request) -> Answer:
        if request.path != "/":
            return answer(b"allowed", "200 OK", "Access-Control-Allow-Origin: *")
        attempts = "".join(
            _ATTEMPTS.replace("HOST", host)
            for host in (f"127.0.0.2:{inner.port}", f"intranet.test:{inner.port}", f"site.test:{server.port}")
        )
        return scripted(
            f"const tell = text => document.getElementById('drawn').append(text + '. ');{attempts}"
            "fetch('http://169.254.169.254/').catch(() => tell('no metadata'));"
            "fetch('file:///etc/hostname').catch(() => tell('no files'))"
        )

    with (
        Server(page) as server,
        Server(lambda _: html("secret", "Access-Control-Allow-Origin: *"), address="127.0.0.2") as inner,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as packets,
    ):
        packets.bind(("127.0.0.2", inner.port))
        document = renderer.render(rendered(server.url()))
        packets.setblocking(False)
        with pytest.raises(BlockingIOError):
            packets.recv(1)
        assert inner.connections == 0
        asked = {request.path for request in server.requests}
    assert {"/fetched", "/shown", "/framed", "/socket"} <= asked
    found = words(document)
    assert "no metadata." in found
    assert "no files." in found
    assert "secret" not in found
    assert found.count("read.") == 1


_ATTEMPTS = """
fetch('http://HOST/fetched').then(got => tell('read'), () => tell('refused'));
document.body.append(Object.assign(new Image(), {src: 'http://HOST/shown'}));
document.body.append(Object.assign(document.createElement('iframe'), {src: 'http://HOST/framed'}));
new WebSocket('ws://HOST/socket');
new WebSocket('wss://HOST/socket');
try { new WebTransport('https://HOST/').ready.catch(() => 0) } catch {}
(() => {
  const peer = new RTCPeerConnection({iceServers: [{urls: 'stun:HOST'}]});
  peer.createDataChannel('x');
  peer.createOffer().then(offer => peer.setLocalDescription(offer));
})();
"""


def test_a_browser_that_is_killed_under_a_page_costs_one_more_try(renderer: Renderer) -> None:
    killed: list[int] = []

    def kill_first(_: Request) -> Answer:
        if not killed and renderer.pid is not None:
            killed.append(renderer.pid)
            os.kill(renderer.pid, signal.SIGKILL)
        return drawing("still here")

    with Server(kill_first) as server:
        document = renderer.render(rendered(server.url()))
        assert len(server.asked_for("/")) == 2
    assert "still here" in words(document)
    assert renderer.pid not in (None, *killed)


def test_a_page_that_comes_while_an_idle_browser_ends_waits_and_leaves_nothing_behind() -> None:
    used: list[int] = []

    def note(request: Request) -> Answer:
        if request.path == "/" and tired.pid is not None:
            used.append(tired.pid)
        return html("here")

    with rendering(idle=0.0) as tired, Server(note) as server:
        for _ in range(2):
            assert "here" in words(tired.render(rendered(server.url())))
        first, second = used
        assert first != second
        assert not Path(f"/proc/{first}").exists()


def test_a_blocked_page_is_not_requested_whatever_links_or_redirects_to_it() -> None:
    def page(request: Request) -> Answer:
        pages = {
            "/": scripted("fetch('/bad').finally(() => location = '/there')", "<iframe src='/bad'></iframe>"),
            "/there": redirect("/bad"),
            "/says": scripted("history.pushState({}, '', '/bad')", "words"),
        }
        return pages.get(request.path, html("words of a page that is blocked"))

    with rendering(blocked=Paths("/bad")) as renderer, Server(page) as server:
        led, said, itself = [renderer.render(rendered(server.url(path))) for path in ("/", "/says", "/bad")]
        asked = [request.path for request in server.requests]
    assert "/there" in asked
    assert "/bad" not in asked
    sentence = f"The page redirects to {server.url('/bad')}, which is blocked: It has '/bad' in it."
    assert [one.failure and one.failure.sentence for one in (led, said, itself)] == [
        sentence, sentence, "The page is blocked: It has '/bad' in it.",
    ]  # fmt: skip
    assert [(one.body, one.screenshot or b"") for one in (led, said, itself)] == [(b"", b"")] * 3


def test_pages_that_never_end_are_ended_and_others_go_on_until_a_stop() -> None:
    pages = {
        "/spins": scripted("while (true) {}"),
        "/alerts": scripted("while (true) alert('again')"),
        "/hoards": scripted("const all = []; while (true) all.push(new Uint8Array(4e6).fill(1))"),
        "/lacks": html("nothing here"),
        "/fine": html("fine"),
        "/hangs": answer(b"", length=10, hold=True),
    }
    with (
        rendering(render_timeout=4.0, render_memory=256 * 1024 * 1024) as renderer,
        Server(lambda request: pages.get(request.path, html(""))) as server,
        ThreadPoolExecutor(4) as threads,
    ):
        links = [rendered(server.url(path), wait_for="#missing" if path == "/lacks" else None) for path in pages]
        found = [document.failure for document in threads.map(renderer.render, links[:3])]
        kinds = [failure.kind for failure in found if failure is not None]
        ended = (FailureKind.TIMED_OUT, FailureKind.HOSTILE)
        assert len(kinds) == 3
        assert all(kind in ended for kind in kinds), found
        lacking = renderer.render(links[3]).failure
        assert lacking is not None
        assert lacking.sentence == "'#missing' did not appear on the page."
        assert "fine" in words(renderer.render(links[4]))
        server.asked.clear()
        hanging = threads.submit(renderer.render, links[5])
        server.asked.wait()
        renderer.stop()
        with pytest.raises(RunStopped):
            hanging.result()
        with pytest.raises(RunStopped):
            renderer.render(links[4])


def test_without_a_browser_the_failure_says_what_to_do() -> None:
    renderer = Renderer(settings(browser="no-such-browser"))
    try:
        failure = renderer.render(rendered("http://127.0.0.1:9/")).failure
    finally:
        renderer.close()
    assert failure is not None
    assert failure.kind is FailureKind.BROWSER
    assert "no-such-browser" in failure.sentence or "driftline[browser]" in failure.sentence
