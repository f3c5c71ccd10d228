from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from driftline.errors import StoreError
from driftline.fetch.host import PriorityRequests
from driftline.fetch.politeness import PoliteLinks
from driftline.model.outcome import Document, Failed, Known, Link, Old, OldContents, Outcome, Proof, Unchanged, Verdict
from driftline.model.page import Render, RenderMode
from driftline.pipeline.browser_lane import BrowserLane
from driftline.pipeline.confirmer import Confirmer
from driftline.pipeline.consumer import Steps
from driftline.pipeline.recorder import Recorder
from driftline.pipeline.sources import LinkQueue
from driftline.pipeline.stop import Stop
from driftline.store.blobs import fingerprint
from support.hosts import Records
from support.making import NOT_THERE, Here, document, outcome_of, settings, unchanged
from support.worlds import Painter

ALWAYS, AUTO = Render(), Render(mode=RenderMode.AUTO)
URL = "http://page.example/"
BEFORE = b"<p>The words that the page said before, which are not few.</p>"
AFTER = b"<p>Altogether different words are on the page by now, and more of them.</p>"


class Past:
    """A version of page 1, and what is recorded now."""

    def __init__(self, body: bytes | None = None) -> None:
        self.error: Exception | None = None
        self.recorded: list[Outcome] = []
        self.old: dict[int, Old] = {}
        if body is not None:
            found = outcome_of(document(body=body))
            blobs = {blob.digest: blob for blob in found.version.blobs}
            self.old[1] = Old(
                body=found.version.body, letters=found.version.letters, kept_body=found.version.body,
                kept_text=found.version.text, size=len(body), at=1.0, contents=OldContents(blobs),
                reading=found.examined.reading,
            )  # fmt: skip

    def recall(self, page_ids: Sequence[int]) -> dict[int, Old]:
        if self.error is not None:
            raise self.error
        return self.old

    def recall_contents(self, old: Mapping[int, Old], hosts: object) -> dict[int, Old]:
        return dict(old)

    def record(self, outcomes: Sequence[Outcome]) -> None:
        self.recorded += outcomes

    def settle(self, outcomes: Sequence[Outcome]) -> None:
        """Nobody waits for it."""


class Doors:
    """Hosts that are asked for permission, and give it unless they want to be left alone."""

    def __init__(self) -> None:
        self.quiet = False
        self.calls: list[str] = []
        self.open: list[Link] = []
        self.given_back: list[int] = []

    def done(self, documents: list[Document]) -> list[Document]:
        self.calls += ["done" for _ in documents]
        return documents

    def priority_requests(self, wake: Callable[[], None]) -> PriorityRequests[Any]:
        self.requests = PriorityRequests[Any](wake)
        return self.requests

    def request_first(self, link: Link, requests: PriorityRequests[Any]) -> None:
        self.calls.append("asked")
        if self.quiet:
            requests.refused.append(link)
        else:
            self.open.append(link)

    def granted(self, requests: PriorityRequests[Any], most: int) -> list[Link]:
        granted, self.open = self.open[:most], self.open[most:]
        return granted

    def cancel(self, requests: PriorityRequests[Any]) -> None:
        self.open.clear()

    def abandon(self, links: Iterable[Link]) -> None:
        self.given_back += [link.page_id for link in links]


class Lane:
    """The lane with a painter for a browser."""

    def __init__(self, painter: Painter, past: Past, make: Callable[[], Painter] | None = None) -> None:
        self.painter = painter
        self.doors = Doors()
        self.past = past
        self.stop = Stop()
        self.given = settings(render_slots=2)
        steps = Steps(past, Here(), 1_000_000, twice=True)
        self.recorder: Recorder[Outcome] = Recorder(past)
        polite = PoliteLinks(LinkQueue(iter([])), self.given, Records(), links=lambda _: [], record=self.recorder.add)
        confirmer = Confirmer(steps, self.recorder, self.given, polite)
        self.rendering = BrowserLane(
            steps, self.recorder, confirmer, self.doors, self.given, self.stop, painter, make or (lambda: painter)
        )

    def finish(self) -> list[Outcome]:
        """All that is recorded in the end."""
        self.rendering.drain(lambda: None, lambda: None)
        self.rendering.close()
        self.recorder.close()
        return self.past.recorded


@pytest.fixture
def pages() -> dict[str, bytes]:
    return {}


def page(render: Render | None, number: int = 1, known: Known | None = None) -> Link:
    return Link(number, URL if number == 1 else f"{URL}{number}", 2, known, render=render)


def shell(link: Link) -> Outcome:
    """What a check finds that sees no more than the shell of a page."""
    return Failed(document(link), NOT_THERE, wants_script=True)


def test_links_that_need_a_browser_are_taken_over_and_the_others_are_not(pages: dict[str, bytes]) -> None:
    pages[URL] = BEFORE
    lane = Lane(Painter(pages), Past())
    plain, auto = page(None, 2), page(AUTO, 3)
    assert lane.rendering.divert([page(ALWAYS), plain, auto]) == [plain, auto]
    (found,) = lane.finish()
    assert (found.verdict, found.document.screenshot) == (Verdict.NEW, b"a picture of " + BEFORE)
    assert lane.painter.drawn == [URL]
    assert lane.painter.closed


def test_a_page_of_a_host_that_is_known_to_need_a_browser_gets_one_at_once(pages: dict[str, bytes]) -> None:
    pages[URL] = BEFORE
    lane = Lane(Painter(pages, ["page.example"]), Past())
    assert lane.rendering.divert([page(AUTO), page(None, 2)])[0].page_id == 2
    assert len(lane.finish()) == 1


def test_a_page_that_shows_nothing_is_drawn_if_that_was_asked_for_and_its_host_remembered(
    pages: dict[str, bytes],
) -> None:
    pages[URL] = BEFORE
    lane = Lane(Painter(pages), Past())
    other = shell(page(None, 2))
    fine = unchanged(document(page(AUTO, 3)))
    assert lane.rendering.sift([shell(page(AUTO)), other, fine]) == [other, fine]
    (found,) = lane.finish()
    assert found.verdict is Verdict.NEW
    assert lane.painter.hosts == {"page.example"}


def test_what_was_found_without_a_browser_counts_where_a_browser_finds_no_more(pages: dict[str, bytes]) -> None:
    lane = Lane(Painter(pages), Past())
    plain = shell(page(AUTO))
    assert lane.rendering.sift([plain]) == []
    assert lane.finish() == [plain]
    assert lane.painter.hosts == set()


def test_a_change_is_drawn_once_more_before_it_is_recorded(pages: dict[str, bytes]) -> None:
    pages[URL] = AFTER
    lane = Lane(Painter(pages), Past(BEFORE))
    lane.rendering.divert([page(ALWAYS, known=Known(1, "tag", None, b""))])
    (found,) = lane.finish()
    assert found.verdict is Verdict.CHANGED
    assert lane.painter.drawn == [URL, URL]
    assert found.document.screenshot == b"a picture of " + AFTER


def test_each_time_the_host_is_asked_with_its_permission(pages: dict[str, bytes]) -> None:
    pages[URL] = AFTER
    lane = Lane(Painter(pages), Past(BEFORE))
    lane.rendering.divert([page(ALWAYS, known=Known(1, None, None, fingerprint(BEFORE)))])
    lane.finish()
    assert lane.doors.calls == ["done", "asked", "done"], "a link comes with its first permission"


def test_a_change_at_a_host_that_wants_to_be_left_alone_is_recorded_as_it_was_found(pages: dict[str, bytes]) -> None:
    pages[URL] = AFTER
    lane = Lane(Painter(pages), Past(BEFORE))
    lane.doors.quiet = True
    lane.rendering.divert([page(ALWAYS, known=Known(1, None, None, fingerprint(BEFORE)))])
    (found,) = lane.finish()
    assert (found.verdict, lane.painter.drawn) == (Verdict.CHANGED, [URL])


def test_a_page_that_stays_the_same_keeps_no_second_picture(pages: dict[str, bytes]) -> None:
    pages[URL] = BEFORE
    lane = Lane(Painter(pages), Past(BEFORE))
    lane.rendering.divert([page(ALWAYS, known=Known(1, None, None, fingerprint(BEFORE)))])
    (found,) = lane.finish()
    assert (found.verdict, found.document.screenshot) == (Verdict.UNCHANGED, None)


@pytest.mark.parametrize(("drawn_before", "verdict"), [(False, Verdict.UNCHANGED), (True, Verdict.CHANGED)])
def test_a_page_that_is_drawn_for_the_first_time_raises_no_alarm(
    pages: dict[str, bytes], drawn_before: bool, verdict: Verdict
) -> None:
    pages[URL] = AFTER
    painter = Painter(pages, ["page.example"])
    painter.used = {(1, 1)} if drawn_before else set()
    lane = Lane(painter, Past(BEFORE))
    lane.rendering.divert([page(AUTO, known=Known(1, None, None, b""))])
    (found,) = lane.finish()
    assert found.verdict is verdict
    assert (isinstance(found, Unchanged) and found.proof is Proof.REREAD) is not drawn_before


def test_no_more_pages_are_drawn_at_once_than_there_are_slots() -> None:
    gate = threading.Barrier(3, timeout=30)
    most = [0, 0]
    lock = threading.Lock()

    class Slow(Painter):
        def render(self, link: Link) -> Document:
            with lock:
                most[0] += 1
                most[1] = max(most)
            if link.page_id <= 2:
                gate.wait()
            with lock:
                most[0] -= 1
            return super().render(link)

    lane = Lane(Slow({URL if n == 1 else f"{URL}{n}": BEFORE for n in range(1, 7)}), Past())
    lane.rendering.divert([page(ALWAYS, number) for number in range(1, 7)])
    gate.wait()
    assert len(lane.finish()) == 6
    assert most[1] == 2


def test_a_stop_leaves_what_is_not_drawn_yet_to_the_next_run(pages: dict[str, bytes]) -> None:
    lane = Lane(Painter(pages), Past())
    lane.stop.request()
    lane.rendering.divert([page(ALWAYS)])
    assert lane.finish() == []
    assert lane.painter.drawn == []
    assert lane.doors.given_back == [1]
    assert lane.rendering.statistics().in_use == 0


def test_an_error_of_the_store_is_kept_for_the_run_to_end_with(pages: dict[str, bytes]) -> None:
    pages[URL] = BEFORE
    past = Past(BEFORE)
    past.error = StoreError("The disk is full.")
    lane = Lane(Painter(pages), past)
    lane.rendering.divert([page(ALWAYS, known=Known(1, None, None, b""))])
    assert lane.finish() == []
    assert lane.rendering.error is past.error


def test_a_browser_that_takes_long_to_load_delays_no_other_thread(pages: dict[str, bytes]) -> None:
    """Producers wake the lane when a host gives its permission: they must not wait for a disk."""
    pages[URL] = BEFORE
    painter = Painter(pages)
    woken: list[bool] = []

    def load() -> Painter:
        waking = threading.Thread(target=lane.doors.requests.wake, daemon=True)
        waking.start()
        waking.join(20.0)
        woken.append(not waking.is_alive())
        return painter

    lane = Lane(painter, Past(), load)
    lane.rendering.divert([page(ALWAYS)])
    assert woken == [True]
    assert len(lane.finish()) == 1


def test_two_threads_that_need_the_first_browser_use_one_and_close_the_other(pages: dict[str, bytes]) -> None:
    pages[URL] = BEFORE
    pages[f"{URL}2"] = AFTER
    both = threading.Barrier(2, timeout=20.0)
    made: list[Painter] = []

    def load() -> Painter:
        both.wait()
        made.append(Painter(pages))
        return made[-1]

    lane = Lane(Painter(pages), Past(), load)
    threads = [threading.Thread(target=lane.rendering.divert, args=([page(ALWAYS, number)],)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20.0)
    assert len(lane.finish()) == 2
    assert sorted(len(one.drawn) for one in made) == [0, 2]
    assert [one.closed for one in made] == [True, True]


def test_a_page_is_freed_if_there_is_no_browser(pages: dict[str, bytes]) -> None:
    def fail() -> Painter:
        raise StoreError("There is none.")

    lane = Lane(Painter(pages), Past(), fail)
    with pytest.raises(StoreError):
        lane.rendering.divert([page(ALWAYS)])
    assert lane.doors.given_back == [1]
    assert lane.rendering.statistics().in_use == 0
    assert "open=0 threads=0" in repr(lane.rendering)
    assert lane.finish() == []
