"""Pages that begin to fail and recover: one turn each, stored with the check that made it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import func, select

from driftline.detection.compare import compare, recall
from driftline.errors import FailureKind
from driftline.model.outcome import Check, Failed, Link, Outcome
from driftline.model.page import Failure
from driftline.store.engine import Store
from driftline.store.history import Repository
from driftline.store.ledger import Ledger
from driftline.store.pages import Catalog
from driftline.store.schema import turns
from support.making import Here, document

URL = "https://a.example/"
DOWN = Failure(kind=FailureKind.STATUS, sentence="The server answered 503 Service Unavailable.")


class World:
    """A store with one page that a test checks; `fail_after` may be set anew at any time."""

    def __init__(self, where: str) -> None:
        self.store = Store.open(where)
        self.catalog = Catalog(self.store)
        self.repository = Repository(self.store)
        self.fail_after = 3
        self.at = 1_000.0
        self.catalog.add([URL])

    def link(self) -> Link:
        return Ledger(self.store).links([self.catalog.find(URL).id])[0]

    def found(self, body: str | None) -> Outcome:
        """What a check finds that got this body, or failed."""
        link = self.link()
        self.at += 60
        if body is None:
            return Failed(document(link, failure=DOWN, status=503, at=self.at), DOWN)
        fetched = document(link, f"<p>{body}</p>".encode(), at=self.at)
        return compare(recall([fetched], self.repository), Here(), self.repository, 10**6)[0]

    def check(self, *bodies: str | None) -> list[str]:
        """Check the page so many times; what was told of each check."""
        return [self.record(self.found(body)) for body in bodies]

    def record(self, outcome: Outcome) -> str:
        ledger = Ledger(self.store, fail_after=self.fail_after)
        recorded = ledger.record(ledger.begin_without_end(), [outcome])
        assert recorded.outcomes == [outcome]
        return "".join(one.turn.value for one in recorded.turned)

    def history(self, *, news_only: bool = True) -> list[Check]:
        return self.repository.history(self.catalog.find(URL), news_only=news_only)


@pytest.fixture
def world(where: str) -> Iterator[World]:
    made = World(where)
    yield made
    made.store.close()


def test_a_page_that_keeps_failing_is_told_once_and_once_more_when_it_recovers(world: World) -> None:
    assert world.check("words", None, None, None, None, None) == ["", "", "", "failing", "", ""]
    assert world.check("words", "words", None, None) == ["recovered", "", "", ""]
    assert world.check(None, None, "words") == ["failing", "", "recovered"]


def test_failures_that_are_over_soon_are_never_told(world: World) -> None:
    assert world.check("words", None, None, "words", None, "words", None, None, "words") == [""] * 9


def test_a_page_that_fails_keeps_its_last_good_version(world: World) -> None:
    world.check("words", None, None, None)
    page = world.catalog.find(URL)
    assert (page.versions, page.failures, page.failure) == (1, 3, DOWN)
    assert world.repository.version(page).text == b"words"
    world.check("other words")
    assert world.catalog.find(URL).versions == 2


def test_a_page_that_never_could_be_read_fails_and_recovers_too(world: World) -> None:
    assert world.check(None, None, None, "words") == ["failing", "", "", "recovered"]


def test_another_number_of_failures_may_be_asked_for_at_any_time(world: World) -> None:
    world.fail_after = 1
    assert world.check("words", None, None) == ["", "failing", ""]
    world.fail_after = 5
    assert world.check(None, "words", None, None, None) == ["", "recovered", "", "", ""]
    world.fail_after = 2
    assert world.check(None) == ["failing"], "it fails for longer than is asked for now"


def test_history_names_the_checks_that_turned_the_page_and_says_why(world: World) -> None:
    world.check("words", None, None, None, "words", "words")
    recovered, failing, *_ = world.history()
    assert recovered.turned is not None
    assert failing.turned is not None
    assert (recovered.sequence, recovered.turned.turn, recovered.verdict) == (5, "recovered", "unchanged")
    assert recovered.reason == "The page could be read again, after 3 checks that failed."
    assert (failing.sequence, failing.turned.turn, failing.turned.kind) == (4, "failing", "status")
    assert failing.reason == "3 checks in a row failed. The server answered 503 Service Unavailable."
    assert [check.turned is not None for check in world.history(news_only=False)] == [
        False, True, True, False, False, False,
    ]  # fmt: skip
    assert world.repository.quiet_checks(world.catalog.find(URL)) == (1, 0)


def test_an_outcome_that_is_recorded_twice_turns_nothing_twice(world: World) -> None:
    world.check("words", None, None)
    outcome = world.found(None)
    assert world.record(outcome) == "failing"
    ledger = Ledger(world.store, fail_after=3)
    again = ledger.record(ledger.begin_without_end(), [outcome])
    assert (again.outcomes, again.turned) == ([], [])
    with world.store.read() as connection:
        assert connection.scalar(select(func.count()).select_from(turns)) == 1
    assert world.check(None) == [""]


def test_the_turns_of_a_page_go_with_it(world: World) -> None:
    world.check(None, None, None)
    world.catalog.remove([URL])
    with world.store.read() as connection:
        assert connection.scalar(select(func.count()).select_from(turns)) == 0
