"""The simulated web over real sockets on the loopback range."""

from __future__ import annotations

import gzip
import http.client
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from driftline.errors import BadSetting
from driftline.lab.bench.local_watch_lists import LabError
from driftline.lab.simweb.simweb_client import RunningWeb, ceiling, serve
from driftline.lab.simweb.world import World

WORLD = World(pages=60, hosts=20, size_mean=12_000, sizes="fixed", change_rate=0.3, noise="hidden", etag=True)


@pytest.fixture(scope="module")
def module_web() -> Iterator[RunningWeb]:
    with serve(WORLD) as running:
        yield running


@pytest.fixture
def web(module_web: RunningWeb) -> RunningWeb:
    """The server of this module, put back to where it started."""
    module_web.alter(**WORLD.fields())
    module_web.generation(0)
    module_web.forget_stats()
    return module_web


def get(url: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    with closing(http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)) as connection:
        connection.request(method, parts.path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()


def html(url: str) -> bytes:
    status, _, body = get(url, **{"Accept-Encoding": "gzip"})
    assert status == 200
    return gzip.decompress(body)


def test_every_host_serves_its_own_pages(web: RunningWeb) -> None:
    for page in (0, 7, 19, 20, 59):
        name = f"<title>Page {page} of host 127.1.0.{1 + page % 20}</title>"
        assert name.encode() in html(web.urls()[page])


def test_a_page_on_the_wrong_host_is_refused_and_counted(web: RunningWeb) -> None:
    wrong = f"http://{WORLD.address(3)}:{web.port}{WORLD.path(4)}"
    assert get(wrong)[0] == 421
    assert web.stats()["misdirected"] == 1


def test_a_page_that_does_not_exist_is_not_found(web: RunningWeb) -> None:
    assert get(f"http://{WORLD.address(0)}:{web.port}/p/60")[0] == 404
    assert get(f"http://{WORLD.address(0)}:{web.port}/elsewhere")[0] == 404


def test_a_new_generation_changes_exactly_the_pages_of_the_truth(web: RunningWeb) -> None:
    web.alter(noise="off")
    before = [html(url) for url in web.urls()]
    web.generation(1)
    after = [html(url) for url in web.urls()]
    changed = frozenset(page for page, (old, new) in enumerate(zip(before, after, strict=True)) if old != new)
    assert changed == web.truth(1) == WORLD.truth(1) != frozenset()


def test_the_same_page_requested_twice_differs_by_its_noise(web: RunningWeb) -> None:
    url = web.urls()[0]
    assert html(url) != html(url)


def test_prepared_pages_are_the_same_pages(web: RunningWeb) -> None:
    web.alter(noise="off")
    web.generation(2)
    assert web.prepare() == 60
    page = min(WORLD.truth(2))
    assert html(web.urls()[page]) == web.world.body(page, WORLD.revision(page, 2))
    assert web.stats()["requests"] == 1


def test_an_etag_is_answered_with_not_modified(web: RunningWeb) -> None:
    web.alter(noise="off")
    url = web.urls()[3]
    _, headers, _ = get(url)
    status, _, body = get(url, **{"If-None-Match": headers["ETag"]})
    assert (status, body) == (304, b"")
    assert web.stats()["not_modified"] == 1


def test_head_has_no_body(web: RunningWeb) -> None:
    status, headers, body = get(web.urls()[3], "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 10_000


def test_pages_are_for_reading_only(web: RunningWeb) -> None:
    assert get(web.urls()[3], "POST")[0] == 405


def test_an_unknown_order_is_refused(web: RunningWeb) -> None:
    assert get(f"http://{WORLD.address(0)}:{web.port}/lab/nothing")[0] == 404
    with pytest.raises(LabError, match="colour"):
        RunningWeb(WORLD, port=web.port, pid=web.pid)._request("POST", "/lab/world", '{"colour": "red"}')


def test_pipelined_requests_are_answered_in_order(web: RunningWeb) -> None:
    web.alter(latency=0.01, latency_shape="lognormal")
    requests = [f"GET {WORLD.path(page)} HTTP/1.1\r\nHost: x\r\n\r\n" for page in (0, 20, 40)]
    requests[2] = requests[2].replace("Host: x", "Connection: close")
    with socket.create_connection((WORLD.address(0), web.port), timeout=20) as connection:
        connection.sendall("".join(requests).encode())
        got = b"".join(iter(lambda: connection.recv(65536), b""))
    places = [got.index(f"<title>Page {page} of".encode()) for page in (0, 20, 40)]
    assert places == sorted(places)


def test_a_request_in_bits_is_put_together(web: RunningWeb) -> None:
    request = f"GET {WORLD.path(0)} HTTP/1.1\r\nConnection: close\r\n\r\n".encode()
    with socket.create_connection((WORLD.address(0), web.port), timeout=20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(request)):
            connection.sendall(request[at : at + 1])
        got = b"".join(iter(lambda: connection.recv(65536), b""))
    assert got.startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_capped_link_delivers_whole_pages(web: RunningWeb) -> None:
    web.alter(bandwidth=2_000_000, noise="off")
    for page in range(5):
        assert html(web.urls()[page]) == web.world.body(page, 0)


def test_pages_fail_as_the_world_defines(web: RunningWeb) -> None:
    web.alter(error_rate=1.0)
    for page in range(20):
        failure = web.world.failure(page, 0)
        if failure == "cut_short":
            with pytest.raises(http.client.IncompleteRead):
                get(web.urls()[page])
        else:
            assert get(web.urls()[page])[0] == {"server_error": 500, "not_found": 404}[str(failure)]
    assert web.stats()["failures"] == 20


def test_the_server_counts_what_it_served(web: RunningWeb) -> None:
    for url in web.urls()[:10]:
        html(url)
    stats = web.stats()
    assert (stats["requests"], stats["connections_total"], stats["in_flight_max"]) == (10, 10, 1)
    assert stats["bytes"] > 10 * 3000
    assert stats["in_flight"] == 0


def test_what_cannot_be_altered_is_refused(web: RunningWeb) -> None:
    with pytest.raises(LabError, match="hosts"):
        web.alter(hosts=3)
    assert web.world.hosts == 20


def test_the_ceiling_is_a_speed(web: RunningWeb) -> None:
    assert ceiling(web, in_flight=4, pages=120) > 0
    assert web.stats()["requests"] == 120
    with pytest.raises(BadSetting):
        ceiling(web, in_flight=4, pages=4)


def test_the_server_is_gone_after_the_block() -> None:
    with serve(World(pages=1)) as running:
        address = (running.world.address(0), running.port)
        socket.create_connection(address, timeout=20).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=20)


def test_the_server_ends_when_its_input_is_closed() -> None:
    command = [sys.executable, "-m", "driftline.lab.simweb.server", "--world", '{"pages": 3}']
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline().startswith(b'{"port": ')
        assert child.poll() is None
        child.stdin.close()
        assert child.wait(timeout=20) == 0


def test_a_world_that_cannot_be_served_is_reported() -> None:
    with serve(World(pages=1)) as running, pytest.raises(LabError), serve(World(), port=running.port):
        pass
