"""Faults that once were there, the gravest first."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import driftline
from driftline import Plan, Stop
from driftline.api import workspace_of
from driftline.cli.add_command import read_text_list
from driftline.detection.compare import compare, recall
from driftline.detection.examine import examine
from driftline.detection.extract.charset import decode_text
from driftline.detection.worker_pool import WorkerPool
from driftline.durations import format_interval, parse_interval
from driftline.errors import BadURL, BrokenVersion, FailureKind, MissingExtra, StoreError
from driftline.fetch.curl import Transfers, fetch_link
from driftline.model.outcome import Blob
from driftline.pipeline.sources import LinkQueue
from driftline.store.blobs import digest, pack, unpack
from driftline.store.engine import Store
from driftline.store.history import Repository
from driftline.store.ledger import Ledger
from driftline.store.pages import Catalog
from driftline.urls.canonical import canonical
from support.making import InThisProcess, document, job, known, link, settings
from support.servers import Answer, Request, Server, html, redirect
from support.worlds import WIRINGS, Untrustworthy, World, wire_up


@pytest.fixture
def transfers() -> Iterator[Transfers]:
    made = Transfers(settings())
    yield made
    made.close()


def test_waking_transfers_that_were_closed_writes_into_no_file_of_somebody_else(tmp_path: Path) -> None:
    transfers = Transfers(settings())
    transfers.close()
    files = [(tmp_path / str(number)).open("wb") for number in range(12)]
    try:
        transfers.wake()
    finally:
        for file in files:
            file.close()
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [0] * 12


def test_a_run_of_two_producers_is_stopped_when_one_has_run_out_of_links(tmp_path: Path) -> None:
    with World(tmp_path, stop_grace=0.2) as world:
        world.watch(60)
        world.held.add("/3")
        stop = Stop()
        plan = Plan(producers=2, slots=4, consumers=3, queues=3, capacity=5)
        report = workspace_of(world.pages).runs.check(None, plan=plan, stop=stop, recorded=lambda _: stop.request())
        assert report.left >= 1
        assert report.failed == 0


@pytest.mark.parametrize("plan", WIRINGS)
def test_links_that_cannot_be_read_end_the_run_with_the_reason(plan: Plan) -> None:
    def torn() -> Iterator[Any]:
        yield link(server.url("/0"))
        raise StoreError("The store cannot be read.")

    with Server(lambda _: html("x")) as server, pytest.raises(StoreError, match="cannot be read"):
        wire_up(plan, LinkQueue(torn()), Untrustworthy(bad=0))


def test_an_etag_outside_ascii_is_sent_back_and_ends_no_run(transfers: Transfers) -> None:
    with Server(lambda _: html("x")) as server:
        got = fetch_link(link(server.url(), known=known(etag='"caf\xe9"')), transfers)
        assert server.requests[0].headers["if-none-match"] == '"caf\xe9"'
    assert got.failure is None


def test_a_redirect_to_a_host_name_outside_utf8_is_a_failure_of_its_page(transfers: Transfers) -> None:
    with Server(lambda _: redirect("http://b\xfccher.invalid/")) as server:
        got = fetch_link(link(server.url()), transfers)
    assert got.failure is not None


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"<p>words</p>", "text/html; charset=undefined"),
        (b"<meta charset='a\0b'><p>words</p>", "text/html"),
        (b"a-\xff\xff", "text/html; charset=punycode"),
        (b"\\ud800<p>words</p>", "text/html; charset=unicode_escape"),
    ],
    ids=["undefined", "zero byte", "punycode", "unicode_escape"],
)
def test_a_charset_that_means_nothing_on_the_web_is_passed_over(body: bytes, content_type: str) -> None:
    assert decode_text(body, content_type)[1] not in ("punycode", "unicode_escape")
    assert examine(job(body, content_type)).failure is None


def test_large_pages_in_one_batch_do_not_exhaust_the_worker_that_could_read_each() -> None:
    pool = WorkerPool(most=1, deadline=20.0, memory=256 * 1024 * 1024)
    jobs = [job(b"<p>%d %s</p>" % (number, b"word " * 1_600_000)) for number in range(16)]
    with closing(pool):
        assert [found.failure for found in pool.examine(jobs)] == [None] * 16


def test_a_sequential_run_gives_up_the_page_in_flight_after_the_grace(tmp_path: Path) -> None:
    with World(tmp_path, stop_grace=0.1, total_timeout=2.0) as world:
        world.watch(2)
        world.held.add("/0")
        stop = Stop()
        world.asked = lambda _: stop.request()
        report = world.pages.check(plan=Plan(pipeline="sequential"), stop=stop)
        assert (report.failed, report.left) == (0, 2)


def test_a_cookie_does_not_leak_to_the_next_page_however_its_header_is_written(transfers: Transfers) -> None:
    with Server(lambda _: html("x", "SET-COOKIE: session=1; Path=/")) as server:
        fetch_link(link(server.url("/one")), transfers)
        fetch_link(link(server.url("/two")), transfers)
        assert "cookie" not in server.asked_for("/two")[0].headers


@pytest.mark.parametrize(
    "raw", [b"SSH-2.0-OpenSSH_9.6\r\n", b"\0\1\2\3" * 50, b"HTTP/1.1 OK fine\r\n\r\n", b"HTTP/9.9 200 OK\r\n\r\n"]
)
def test_an_answer_that_is_not_http_is_not_called_a_redirect(transfers: Transfers, raw: bytes) -> None:
    with Server(lambda _: Answer(data=raw, close=True)) as server:
        got = fetch_link(link(server.url()), transfers)
    assert got.failure is not None
    assert got.failure.kind is FailureKind.PROTOCOL, got.failure.sentence


@pytest.mark.parametrize("target", ["http://", "http://[bad", "http://127.0.0.1:99999/", "http://exa mple.invalid/"])
def test_a_redirect_to_no_address_is_called_a_redirect(transfers: Transfers, target: str) -> None:
    with Server(lambda _: redirect(target)) as server:
        got = fetch_link(link(server.url()), transfers)
    assert got.failure is not None
    assert got.failure.kind is FailureKind.REDIRECTS, got.failure.sentence


def test_a_text_on_a_body_that_another_page_keeps_deep_in_its_chain_reads_back(tmp_path: Path) -> None:
    """The stored body may be deeper than the one just packed: its text must not be counted from the latter."""
    store = Store.open(str(tmp_path / "pages.db"))
    catalog, ledger, repository = Catalog(store), Ledger(store), Repository(store)

    def check(url: str, body: bytes, content_type: str) -> None:
        ids = [catalog.find(url).id]
        run, _ = ledger.begin(ids, fresh=True)
        fetched = [document(one, body, content_type=content_type) for one in ledger.remaining(run, ids)]
        ledger.record(run, compare(recall(fetched, repository), InThisProcess(), repository, 10**6))

    with closing(store):
        one, two = catalog.add(["https://one.example/", "https://two.example/"])
        bodies = [b"<p>version %d  of a page</p>" % number for number in range(21)]
        for body in bodies:
            check(one, body, "text/html")
        check(two, bodies[-1], "text/plain")
        assert repository.version(catalog.find(two)).text == b"<p>version 20 of a page</p>"


def test_a_base_that_became_too_short_is_a_broken_version() -> None:
    base_data, data = b"the old version", b"the new version"
    base = pack(base_data, digest(base_data))
    blob = pack(data, digest(data), base, base_data)
    damaged = Blob(base.digest, None, 0, base.size, pack(b"", digest(b"")).data)
    with pytest.raises(BrokenVersion):
        unpack(blob.digest, {base.digest: damaged, blob.digest: blob})


def test_a_database_address_with_a_port_that_is_no_number_is_refused_with_a_sentence() -> None:
    with pytest.raises((StoreError, MissingExtra)):
        Store.open("postgresql://host:port/name")


@pytest.mark.parametrize("text", ["1", "2024", "42"])
def test_a_number_is_no_address(text: str) -> None:
    with pytest.raises(BadURL):
        canonical(text)


def test_an_address_whose_canonical_form_would_be_too_long_is_refused() -> None:
    with pytest.raises(BadURL):
        canonical("https://example.com/" + "é" * 3_000)


def test_a_comment_may_follow_an_address_after_a_tab() -> None:
    (line,) = read_text_list(["https://a.example/\t# ours"])
    assert line.url == "https://a.example/"


@pytest.mark.parametrize("seconds", [60.00001, 59.9999999, 3_600.1234567])
def test_a_length_of_time_is_read_back_to_the_millisecond(seconds: float) -> None:
    assert parse_interval(format_interval(seconds)) == round(seconds, 3)


def test_validators_of_a_redirects_target_are_not_sent_to_the_page_itself(tmp_path: Path) -> None:
    """The page answers itself one day: what was known of the other address must not make it look unchanged."""
    redirecting = [True]

    def answer(request: Request) -> Answer:
        if request.path == "/a" and redirecting[0]:
            return redirect("/b")
        return html(f"words of {request.path}", 'ETag: "same"')

    with Server(answer) as server, driftline.open(str(tmp_path / "pages.db")) as watched:
        watched.add(server.url("/a"))
        assert watched.check().new == 1
        redirecting[0] = False
        assert watched.check().changed == 1
        assert all("if-none-match" not in map(str.lower, request.headers) for request in server.requests)


def test_a_store_that_is_removed_during_a_run_ends_it_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "pages.db"

    def answer(_: Request) -> Answer:
        path.unlink(missing_ok=True)
        return html("x")

    with Server(answer) as server, driftline.open(str(path)) as watched:
        watched.add(server.url("/"))
        with pytest.raises(StoreError, match="removed or replaced"):
            watched.check()


def test_a_closed_watch_list_says_so(tmp_path: Path) -> None:
    with driftline.open(str(tmp_path / "pages.db")) as watched:
        pass
    with pytest.raises(StoreError, match="is closed"):
        watched.pages()


def test_an_interrupted_run_leaves_no_thread_behind(tmp_path: Path) -> None:
    """As Ctrl-C in a program of somebody's own, while pages are in flight."""
    before = set(threading.enumerate())
    interrupts = iter([True])
    # a shell that starts the tests in the background has them ignore the signal
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)

    def answer(_: Request) -> Answer:
        if next(interrupts, False):
            os.kill(os.getpid(), signal.SIGINT)
        return Answer(data=b"HTTP/1.1 200 OK\r\n", hold=True)

    with Server(answer) as server, driftline.open(str(tmp_path / "pages.db")) as watched:
        watched.add(*(server.url(f"/{number}") for number in range(20)))
        try:
            with pytest.raises(KeyboardInterrupt):
                watched.check()
        finally:
            signal.signal(signal.SIGINT, handler)
        names = {thread.name for thread in set(threading.enumerate()) - before}
        assert not names & {"producer", "consumer", "recorder"}
