"""When what was recorded is published: the clock is the test's own, and so are the ticks."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from driftline.errors import StoreUnavailable
from driftline.model import (  # fmt: skip
    ChangeKind,
    ChangeSummary,
    Link,
    Matter,
    NewVersion,
    Outcome,
    Proof,
    Turn,
    Turned,
    Verdict,
    Warned,
    WarningKind,
)
from driftline.pipeline.stop import Stop
from driftline.store.events import Group
from driftline.watch.publisher import Publisher
from support.making import document


@dataclass
class Evening:
    """A clock, a log that notes when it was asked to publish what, and a reader that counts how often it was woken."""

    now: float = 100.0
    published: list[tuple[float, bool]] = field(default_factory=list)
    woken: int = 0
    error: Exception | None = None
    stop: Stop = field(default_factory=Stop)

    def publish(self, group: Group, *, noise: bool) -> int:
        if self.error is not None:
            raise self.error
        self.published.append((self.now - 100.0, noise))
        return 0

    def wake(self) -> None:
        self.woken += 1

    def publisher(self) -> Publisher:
        made = Publisher(self, [self], self.stop, ticks=lambda: self.now)
        made.tick()  # what an earlier run left
        self.published.clear()
        return made

    def pass_by(self, publisher: Publisher, seconds: float) -> None:
        end = self.now + seconds
        while (following := self.now + publisher.tick()) <= end:
            self.now = following
        self.now = end


def changed(number: int, cause: bytes = b"", matter: Matter = Matter.MEANINGFUL) -> Outcome:
    of = document(Link(number, f"http://page.example/{number}", 2, None))
    version = NewVersion(
        number=2, body=b"", letters=b"", text=b"", size=0, title="", content_type="", charset="", blobs=()
    )
    change = ChangeSummary(
        kind=ChangeKind.TEXT, verdict=matter, score=0.5, reason="Words.", words_added=1, words_removed=0, cause=cause
    )
    verdict = Verdict.CHANGED if matter is Matter.MEANINGFUL else Verdict.UNCHANGED
    proof = None if matter is Matter.MEANINGFUL else Proof.NOISE
    return Outcome(of, verdict, proof, version=version, change=change)


def noise(number: int) -> Outcome:
    return changed(number, b"cause", Matter.NOISE)


def test_what_an_earlier_run_left_is_published_at_once() -> None:
    evening = Evening()
    Publisher(evening, [evening], evening.stop, ticks=lambda: evening.now).tick()
    assert evening.published == [(0.0, True)]
    assert evening.woken == 1


def test_a_change_waits_two_seconds_for_others() -> None:
    evening = Evening()
    publisher = evening.publisher()
    publisher.recorded([changed(1)])
    evening.pass_by(publisher, 1.5)
    publisher.recorded([changed(2)])
    assert evening.published == []
    evening.pass_by(publisher, 0.5)
    assert evening.published == [(2.0, True)]


@pytest.mark.parametrize("found", ["turned", "alarms"])
def test_pages_that_fail_and_warnings_are_published_like_changes(found: str) -> None:
    outcome = Outcome(document(), Verdict.UNCHANGED, Proof.WIRE)
    if found == "turned":
        outcome.turned = Turned(id="1-1", url="http://a/", at=1.0, turn=Turn.FAILING, kind="status", reason="404")
    else:
        outcome.alarms = (Warned(WarningKind.HIDDEN_FRAME, "A hidden frame appeared."),)
    evening = Evening()
    publisher = evening.publisher()
    publisher.recorded([outcome])
    evening.pass_by(publisher, 2.0)
    assert evening.published == [(2.0, True)]


def test_changes_do_not_wait_for_noise_that_keeps_coming() -> None:
    evening = Evening()
    publisher = evening.publisher()
    publisher.recorded([changed(1)])
    for number in range(2, 42):
        publisher.recorded([noise(number)])
        evening.pass_by(publisher, 1.0)
    assert evening.published[0] == (2.0, False)
    assert next(at for at, with_noise in evening.published if with_noise) == pytest.approx(30.0, abs=2.0)


def test_noise_is_published_once_no_more_comes() -> None:
    evening = Evening()
    publisher = evening.publisher()
    publisher.recorded([noise(1)])
    evening.pass_by(publisher, 1.0)
    publisher.recorded([noise(2)])
    evening.pass_by(publisher, 4.0)
    assert next(at for at, with_noise in evening.published if with_noise) <= 5.0


def test_checks_that_found_nothing_publish_nothing() -> None:
    evening = Evening()
    publisher = evening.publisher()
    publisher.recorded([Outcome(document(), Verdict.NEW), Outcome(document(), Verdict.UNCHANGED, Proof.WIRE)])
    evening.pass_by(publisher, 4.0)
    assert evening.published == []


def test_what_other_processes_recorded_is_published_within_seconds() -> None:
    evening = Evening()
    publisher = evening.publisher()
    evening.pass_by(publisher, 11.0)
    assert evening.published == [(5.0, True), (10.0, True)]


def test_everything_is_published_at_the_end() -> None:
    evening = Evening()
    with Publisher(evening, [evening], evening.stop, ticks=lambda: evening.now) as publisher:
        publisher.recorded([changed(1), noise(2)])
    assert evening.published[-1] == (0.0, True)


def test_a_store_that_is_away_ends_nothing() -> None:
    evening = Evening(error=StoreUnavailable("The store is away."))
    with Publisher(evening, [evening], evening.stop, ticks=lambda: evening.now):
        pass
    assert not evening.stop.requested


def test_any_other_error_ends_the_run_and_is_raised() -> None:
    evening = Evening(error=ZeroDivisionError())
    with pytest.raises(ZeroDivisionError), Publisher(evening, [evening], evening.stop, ticks=lambda: evening.now):
        evening.stop.listen().wait(60)
    assert evening.stop.requested
