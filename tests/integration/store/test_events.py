"""The event log: everything that is recorded is published once, and every reader comes to every event."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import event as listening

from driftline.detection.compare import compare, recall
from driftline.durations import utc
from driftline.errors import FailureKind
from driftline.model.change import ChangeKind, Importance, NoiseKind
from driftline.model.event import Event, EventKind, EventSource
from driftline.model.outcome import (
    Changed,
    Failed,
    IgnoredParts,
    Lesson,
    NoiseVersion,
    Outcome,
    Proof,
    Unchanged,
)
from driftline.model.page import Failure, PageWarning, WarningKind
from driftline.pipeline.grouping import events_of
from driftline.store.engine import Store
from driftline.store.events import EventLog, Retry, event_document, insert_events
from driftline.store.history import Repository
from driftline.store.ledger import Ledger
from driftline.store.pages import Catalog
from support.making import EXAMINED, Here, document

URL = "https://a.example/"
OTHER = "https://b.example/"
DOWN = Failure(kind=FailureKind.STATUS, sentence="The server answered 503 Service Unavailable.")


class World:
    """A store with two pages that a test checks, and its event log."""

    def __init__(self, where: str) -> None:
        self.store = Store.open(where)
        self.catalog = Catalog(self.store)
        self.repository = Repository(self.store)
        self.log = EventLog(self.store)
        self.at = 1_000.0
        self.catalog.add([URL], tags=["news"])
        self.catalog.add([OTHER])

    def found(self, body: str | None, url: str = URL) -> Outcome:
        """What a check finds that got this body, or failed."""
        link = Ledger(self.store).links([self.catalog.find(url).id])[0]
        self.at += 60
        if body is None:
            return Failed(document(link, failure=DOWN, status=503, at=self.at), DOWN)
        markup = f"<title>All about it</title><p>{body}</p>"
        fetched = document(link, markup.encode(), at=self.at)
        return compare(recall([fetched], self.repository), Here(), self.repository, 10**6)[0]

    def record(self, *outcomes: Outcome) -> int:
        """Record what a run found; the run."""
        ledger = Ledger(self.store, fail_after=2)
        run_id = ledger.begin_without_end()
        ledger.record(run_id, outcomes)
        return run_id

    def check(self, *bodies: str | None, url: str = URL) -> int:
        """Check a page so many times; the last run."""
        return [self.record(self.found(body, url)) for body in bodies][-1]

    def same_edit(self, url: str, matter: Importance) -> float:
        """Record the same edit as on other pages, judged so; when it was fetched."""
        outcome = self.found("Free delivery from now on.", url)
        assert isinstance(outcome, Changed)
        change = replace(outcome.change, importance=matter, cause=b"delivery")
        kept = NoiseVersion(outcome.version, change)
        noise = Unchanged(outcome.document, Proof.NOISE, outcome.examined, kept)
        self.record(noise if matter is Importance.NOISE else replace(outcome, change=change))
        return self.at

    def publish(self, run_ids: list[int] | None = None, *, noise_until: float = math.inf) -> list[str]:
        before = len(self.logged())
        number = self.log.publish(events_of, run_ids, noise_until=noise_until)
        new = self.logged()[: len(self.logged()) - before][::-1]
        assert len(new) == number
        return new

    def insert(self, *found: Event) -> None:
        with self.store.write() as connection:
            insert_events(self.store.statements, connection, found)

    def logged(self) -> list[str]:
        return [event.event for event in self.log.list(least=Importance.MINOR)]


def site_event(what: EventKind, *urls: str, to: tuple[str, ...] = ()) -> Event:
    """What a crawl found of these pages."""
    return Event(
        event=what, at=utc(5_000.0), host="a.example", urls=urls, kind=None, score=1.0, headline="News.",
        reason="News.", ids=(), to=to, source=EventSource.CRAWL,
    )  # fmt: skip


@pytest.fixture
def world(where: str) -> Iterator[World]:
    made = World(where)
    yield made
    made.store.close()


def test_what_was_recorded_is_published_once(world: World) -> None:
    world.check("One word of it.", "Another word of it.", None, None, "Words that are new to it.")
    assert sorted(world.publish()) == ["changed", "changed", "failing", "recovered"]
    assert sorted(world.logged()) == ["changed", "changed", "failing", "recovered"]
    assert world.publish() == []
    assert len(world.logged()) == 4


def ignoring(outcome: Outcome, *, is_news: bool = True) -> Outcome:
    """The same change, since which a part of the page is ignored."""
    assert isinstance(outcome, Changed)
    parts = IgnoredParts(
        label="Tips", example="", others=0, noise=NoiseKind.EVERY_CHECK, page_keys=(b"a key...",), host_keys=(),
        is_news=is_news,
    )  # fmt: skip
    lesson = Lesson(memory=b"", for_host=(), ignored=parts)
    return replace(outcome, examined=replace(outcome.examined, lesson=lesson))


def test_that_a_part_is_ignored_is_published_once_unless_the_host_is_known_for_it(world: World) -> None:
    world.check("One word of it.")
    world.check("One word of it.", url=OTHER)
    first = ignoring(world.found("Another word of it."))
    world.record(first)
    assert sorted(world.publish()) == ["changed", "ignoring"]
    world.record(first)
    world.record(ignoring(world.found("Another word of it.", OTHER), is_news=False))
    assert world.publish() == ["changed"]
    (event,) = [event for event in world.log.list() if event.event is EventKind.IGNORING]
    assert (event.kind, event.ids, event.urls) == (NoiseKind.EVERY_CHECK, ("1-2",), (URL,))
    assert event_document(event)["kind"] == "every-check"
    for url in (URL, OTHER):
        newest = world.repository.history(world.catalog.find(url), news_only=True)[0]
        assert newest.ignored is not None
        assert newest.ignored.headline == "Now ignoring 'Tips': it differs at every check"


def test_that_a_part_is_ignored_is_not_lost_with_a_run_that_was_killed(world: World) -> None:
    world.check("One word of it.")
    killed = Ledger(world.store, clock=lambda: world.at)
    run_id, _ = killed.begin([1])
    killed.record(run_id, [ignoring(world.found("Another word of it."))])
    following = Ledger(world.store, clock=lambda: world.at)
    following.begin([1])
    assert [one.label for one in following.found_before()[3]] == ["Tips"]


def test_an_event_says_all_that_a_reader_needs(world: World) -> None:
    world.check("One word of it.", "Another word of it.")
    world.publish()
    (event,) = world.log.list()
    assert (event.event, event.urls, event.ids, event.source) == ("changed", (URL,), ("1-2",), "run")
    assert event.at.timestamp() == world.at
    assert event.headline
    (page,) = event.pages
    assert (page.id, page.url, page.title, page.tags) == (1, URL, "All about it", ("news",))
    assert (page.check, page.from_version, page.to_version) == ("1-2", 1, 2)


def test_what_an_event_is_about_is_typed_and_plain_words_in_json(world: World) -> None:
    world.check("One word of it.", "Another word of it.", None, None, "Another word of it.")
    world.publish()
    world.insert(site_event(EventKind.NEW, URL))
    events = [*world.log.list()][::-1]
    kinds = [(event.event, event.kind, event.source) for event in events]
    assert kinds == [
        (EventKind.CHANGED, ChangeKind.TEXT, EventSource.RUN), (EventKind.FAILING, FailureKind.STATUS, EventSource.RUN),
        (EventKind.RECOVERED, None, EventSource.RUN), (EventKind.NEW, None, EventSource.CRAWL),
    ]  # fmt: skip
    assert all(type(one) is not str for row in kinds for one in row)
    documents = [json.loads(json.dumps(event_document(event))) for event in events]
    assert [(one["event"], one["kind"], one["source"]) for one in documents] == [
        ("changed", "text", "run"), ("failing", "status", "run"), ("recovered", "", "run"), ("new", "site", "crawl"),
    ]  # fmt: skip


def test_what_a_crawl_found_is_listed_with_its_watched_pages(world: World) -> None:
    world.check("One word of it.")
    gone = site_event(EventKind.GONE, URL, f"{URL}not-watched")
    moved = site_event(EventKind.MOVED, f"{URL}old", to=(OTHER,))
    world.insert(gone, moved)
    found = [*world.log.list()]
    assert [(event.event, event.ids, [page.url for page in event.pages]) for event in found] == [
        (EventKind.MOVED, (), [OTHER]),
        (EventKind.GONE, (), [URL]),
    ]
    (page,) = found[1].pages
    assert (page.id, page.title, page.tags, page.check) == (1, "All about it", ("news",), None)
    assert [event.event for event in world.log.list(tag="news")] == [EventKind.GONE]
    assert [event.event for event in world.log.list(page_id=2)] == [EventKind.MOVED]


def test_checks_that_found_nothing_make_no_event(world: World) -> None:
    world.check("One word of it.", "One word of it.", None)
    assert world.publish() == []


def test_only_what_some_runs_found_can_be_published(world: World) -> None:
    world.check("One word of it.")
    mine = world.check("Another word of it.")
    world.check("One word.", "Two words.", url=OTHER)
    assert world.publish([mine]) == ["changed"]
    assert [event.urls for event in world.log.list()] == [(URL,)]
    assert world.publish() == ["changed"]


def test_a_check_that_is_at_work_publishes_by_itself(world: World) -> None:
    """All at its end, so that the same edit on many pages is one event; what it left when it was killed, others do."""
    world.check("One word of it.")
    ledger = Ledger(world.store)
    run_id, _ = ledger.begin(None)
    ledger.record(run_id, [world.found("Another word of it.")])
    assert world.publish() == []
    ledger.end(run_id)
    assert world.publish() == ["changed"]
    assert [event.source for event in world.log.list()] == ["check"]


def test_every_new_danger_is_an_event(world: World) -> None:
    frame = PageWarning(WarningKind.HIDDEN_FRAME, "A hidden frame appeared.")
    script = PageWarning(WarningKind.OBFUSCATED_SCRIPT, "A script appeared that hides what it does.")
    world.check("One word of it.")
    for _ in range(2):
        outcome = world.found("One word of it.")
        assert isinstance(outcome, Unchanged)
        world.record(replace(outcome, examined=replace(EXAMINED, warnings=(frame, script))))
    world.publish()
    assert sorted((event.event, event.kind) for event in world.log.list()) == [
        ("warning", "hidden-frame"),
        ("warning", "obfuscated-script"),
    ]


def test_noise_of_a_run_waits_for_other_pages_that_share_it(world: World) -> None:
    urls = [f"{URL}{number}" for number in range(5)]
    world.catalog.add(urls)
    for url in urls:
        world.check("One word of it.", url=url)
    first = world.same_edit(urls[0], Importance.NOISE)
    for url in urls[1:]:
        assert world.publish(noise_until=first - 1) == []
        last = world.same_edit(url, Importance.NOISE)
    assert world.publish(noise_until=last) == ["changed"]
    assert next(world.log.list()).urls == tuple(urls)


def test_a_change_takes_along_the_noise_that_waits_with_the_same_cause(world: World) -> None:
    """It would be one event with the change, and a second one without."""
    urls = [f"{URL}{number}" for number in range(6)]
    world.catalog.add(urls)
    for url in (*urls, OTHER):
        world.check("One word of it.", url=url)
    for url in (*urls[:5], OTHER):
        world.same_edit(url, Importance.NOISE)
    world.same_edit(urls[5], Importance.IMPORTANT)
    assert world.publish(noise_until=-math.inf) == ["changed"]
    assert next(world.log.list()).urls == tuple(urls), "not those of other hosts"
    assert world.publish() == []


def test_what_is_recorded_again_is_not_published_again(world: World) -> None:
    world.check("One word of it.")
    outcome = world.found("Another word of it.")
    world.record(outcome)
    assert world.publish() == ["changed"]
    world.record(outcome)
    assert world.publish() == []


def test_nothing_is_recorded_without_what_is_to_be_published(world: World) -> None:
    def fail(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "INTO outbox" in statement:
            raise ZeroDivisionError

    world.check("One word of it.")
    listening.listen(world.store.engine, "before_cursor_execute", fail)
    with pytest.raises(ZeroDivisionError):
        world.check("Another word of it.")
    listening.remove(world.store.engine, "before_cursor_execute", fail)
    assert world.catalog.find(URL).checks == 1
    assert world.publish() == []


def test_publishing_that_fails_loses_nothing(world: World) -> None:
    def fail(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "FROM outbox" in statement and "DELETE" in statement:
            raise ZeroDivisionError

    world.check("One word of it.", "Another word of it.")
    listening.listen(world.store.engine, "before_cursor_execute", fail)
    with pytest.raises(ZeroDivisionError):
        world.publish()
    listening.remove(world.store.engine, "before_cursor_execute", fail)
    assert world.logged() == []
    assert world.publish() == ["changed"]


def test_a_removed_page_leaves_its_events_and_nothing_to_publish(world: World) -> None:
    world.check("One word of it.", "Another word of it.")
    world.publish()
    world.check("One more word of it.")
    world.catalog.remove([URL])
    assert world.publish() == []
    assert world.logged() == ["changed"]
    assert [*world.log.list(tag="news")] == []


def test_events_are_listed_by_time_tag_and_page(world: World) -> None:
    world.check("One word of it.", "Another word of it.")
    before = world.at
    world.publish()
    world.check("One word.", "Two words.", url=OTHER)
    world.publish()
    assert [event.urls[0] for event in world.log.list()] == [OTHER, URL]
    assert [event.urls[0] for event in world.log.list(limit=1)] == [OTHER]
    assert [event.urls[0] for event in world.log.list(since=before + 1)] == [OTHER]
    assert [event.urls[0] for event in world.log.list(tag="news")] == [URL]
    assert [event.urls[0] for event in world.log.list(page_id=2)] == [OTHER]


def test_a_reader_comes_to_every_event_from_its_beginning_on(world: World) -> None:
    world.check("One word of it.", "Another word of it.")
    world.publish()
    reader = world.log.reader("terminal")
    assert reader.read() == [], "what was published before it began is not for it"
    world.check("One more word of it.", "And yet another word of it.")
    world.publish()
    first, second = reader.read()
    reader.advance(first)
    assert reader.read() == [second]
    assert world.log.reader("terminal").read() == [second], "it goes on where it was"
    assert world.log.reader("another").read() == []


def test_minor_changes_are_in_the_log_for_those_who_want_them(world: World) -> None:
    world.check("One. Two words of it, in their order.", "One. Two words of it, in their order. Log in.")
    reader, curious = world.log.reader("mail"), world.log.reader("all", Importance.MINOR)
    world.check("One. Two words of it, in their order. Login.")
    assert world.publish() == ["changed", "changed"]
    minor, important = world.log.list(least=Importance.MINOR)
    assert list(world.log.list()) == [important]
    assert (minor.importance, minor.headline) == (Importance.MINOR, "…order. Log in. → …order. Login.")
    assert [(edit.before[-7:], edit.after[-6:]) for edit in minor.edits] == [("Log in.", "Login.")]
    assert (event_document(minor)["importance"], important.importance) == ("minor", Importance.IMPORTANT)
    assert (reader.read(), curious.read()) == ([important], [important, minor])
    reader.advance(important)
    assert reader.read() == []
    assert world.log.reader("mail", Importance.MINOR).read() == [], "what it skipped is not new to it later"


def test_an_event_is_not_read_twice_by_a_process_whose_store_cannot_be_written(world: World) -> None:
    reader = world.log.reader("terminal")
    world.check("One word of it.", "Another word of it.")
    world.publish()

    def fail(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "UPDATE event_readers" in statement:
            raise ZeroDivisionError

    (event,) = reader.read()
    listening.listen(world.store.engine, "before_cursor_execute", fail)
    with pytest.raises(ZeroDivisionError):
        reader.advance(event)
    listening.remove(world.store.engine, "before_cursor_execute", fail)
    assert reader.read() == []
    assert world.log.reader("terminal").read() == [event], "the next process reads it again"


def failed(event: Event, attempts: int = 1) -> Retry:
    return Retry(event=event, attempts=attempts, since=10.0, next_at=20.0 * attempts, error="It failed.")


def test_what_a_reader_fails_at_is_kept_until_it_is_delivered(world: World) -> None:
    reader = world.log.reader("exec")
    world.check("One word of it.", "Another word of it.", "One more word of it.")
    world.publish()
    first, second = reader.read()
    reader.retry(failed(first))
    assert reader.read() == [second], "the next one is not held up"
    reader.retry(failed(first, attempts=2))
    reader.advance(second)
    again = world.log.reader("exec")
    assert again.retries() == [failed(first, attempts=2)]
    again.forget(again.retries()[0])
    assert world.log.reader("exec").retries() == []
    assert again.read() == []
