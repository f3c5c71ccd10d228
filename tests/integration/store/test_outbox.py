"""What is to be told is recorded with what was found, and stays until it was told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import event

from driftline.detection.compare import compare, recall
from driftline.errors import FailureKind, StoreError
from driftline.model import Change, Danger, Failure, Outcome, Turned, Verdict, Warned, WarningKind
from driftline.pipeline.grouping import changes_of, dangers_by, turned_by
from driftline.store.engine import Store
from driftline.store.history import Repository
from driftline.store.ledger import Ledger
from driftline.store.outbox import Outbox
from driftline.store.pages import Catalog
from support.making import Here, document

URL = "https://a.example/"
DOWN = Failure(kind=FailureKind.STATUS, sentence="The server answered 503 Service Unavailable.")


class World:
    """A store with one page that a test checks, and its outbox."""

    def __init__(self, where: str) -> None:
        self.store = Store.open(where)
        self.catalog = Catalog(self.store)
        self.repository = Repository(self.store)
        self.outbox = Outbox(self.store)
        self.at = 1_000.0
        self.catalog.add([URL])

    def found(self, body: str | None) -> Outcome:
        """What a check finds that got this body, or failed."""
        link = Ledger(self.store).links([self.catalog.find(URL).id])[0]
        self.at += 60
        if body is None:
            return Outcome(document(link, failure=DOWN, status=503, at=self.at), Verdict.FAILED, failure=DOWN)
        fetched = document(link, f"<p>{body}</p>".encode(), at=self.at)
        return compare(recall([fetched], self.repository), Here(), 10**6)[0]

    def record(self, *outcomes: Outcome, to_outbox: bool = True) -> list[Outcome]:
        ledger = Ledger(self.store, fail_after=2, to_outbox=to_outbox)
        return [*ledger.record(ledger.begin_without_end(), outcomes)]

    def check(self, *bodies: str | None) -> tuple[list[Change], list[Turned], list[Danger]]:
        """Check the page so many times; what there is to tell of it."""
        found = [one for body in bodies for one in self.record(self.found(body))]
        return changes_of(found), turned_by(found), dangers_by(found)

    def left(self) -> list[tuple[str, str]]:
        changes, turned, dangers = self.outbox.left()
        found = [(one.id, "changed") for one in changes] + [(one.id, one.turn.value) for one in turned]
        return found + [(one.id, one.kind.value) for one in dangers]


@pytest.fixture
def world(where: str) -> Iterator[World]:
    made = World(where)
    yield made
    made.store.close()


def test_what_is_recorded_is_found_there_as_it_was_told(world: World) -> None:
    told = world.check("One word of it.", "Another word of it.", None, None, "Words that are new to it.")
    assert [len(some) for some in told] == [2, 2, 0]
    assert world.outbox.left() == told


def test_checks_of_which_nothing_is_told_put_nothing_there(world: World) -> None:
    assert world.check("One word of it.", "One word of it.", None) == ([], [], [])
    assert world.left() == []


def test_a_check_that_tells_by_itself_puts_nothing_there(world: World) -> None:
    world.check("One word of it.")
    assert changes_of(world.record(world.found("Another word of it."), to_outbox=False))
    assert world.left() == []


def test_only_what_was_told_is_taken_out(world: World) -> None:
    world.check("One word of it.", None, None, "Another word of it.")
    everything = [("1-4", "changed"), ("1-3", "failing"), ("1-4", "recovered")]
    assert world.left() == everything
    world.outbox.take_out([("1-4", "recovered"), ("1-1", "changed")])
    assert world.left() == everything[:2]
    world.outbox.take_out(everything)
    assert world.left() == []


def test_each_danger_that_is_new_is_told_by_itself(world: World) -> None:
    frame = Warned(WarningKind.HIDDEN_FRAME, "A hidden frame appeared.")
    script = Warned(WarningKind.OBFUSCATED_SCRIPT, "A script appeared that hides what it does.")
    world.check("One word of it.")
    outcomes = []
    for _ in range(2):
        outcome = world.found("One word of it.")
        outcome.warnings = (frame, script)
        outcomes += world.record(outcome)
    assert world.outbox.left() == ([], [], dangers_by(outcomes))
    assert world.left() == [("1-2", "hidden-frame"), ("1-2", "obfuscated-script")]
    world.outbox.take_out([("1-2", "hidden-frame")])
    assert world.left() == [("1-2", "obfuscated-script")]


def test_what_is_recorded_again_is_not_told_again(world: World) -> None:
    world.check("One word of it.")
    outcome = world.found("Another word of it.")
    world.record(outcome)
    world.outbox.take_out([("1-2", "changed")])
    assert world.record(outcome) == []
    assert world.left() == []


def test_nothing_is_recorded_without_what_is_to_be_told(world: World) -> None:
    def fail(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "INTO outbox" in statement:
            raise ZeroDivisionError

    world.check("One word of it.")
    event.listen(world.store.engine, "before_cursor_execute", fail)
    with pytest.raises(ZeroDivisionError):
        world.check("Another word of it.")
    event.remove(world.store.engine, "before_cursor_execute", fail)
    assert world.catalog.find(URL).checks == 1
    assert world.left() == []


def test_it_goes_with_its_page(world: World) -> None:
    world.check("One word of it.", "Another word of it.")
    world.catalog.remove([URL])
    assert world.left() == []
    world.outbox.take_out([("1-2", "changed")])


def test_a_store_that_fails_when_something_was_told_ends_nothing(world: World) -> None:
    world.check("One word of it.", "Another word of it.")
    world.store.close()
    world.outbox.take_out([("1-2", "changed")])
    with pytest.raises(StoreError):
        world.outbox.left()
