"""When what was recorded is published: the clock is the test's own, and so are the ticks."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from driftline.durations import utc
from driftline.errors import FailureKind, StoreUnavailable
from driftline.model.change import Importance, NoiseKind
from driftline.model.event import Danger, Ignored, Turn, Turned
from driftline.model.outcome import Document, Link, NoiseVersion, Proof, Recorded, Unchanged
from driftline.model.page import WarningKind
from driftline.pipeline.stop import Stop
from driftline.store.events import Group
from driftline.watch.publisher import Publisher, ReaderThread
from support.making import EXAMINED, change_of, changed, document, failed, new, new_version, unchanged


@dataclass
class Evening:
    """A clock, a log that notes when it published and whether noise, and a reader that counts its wakes."""

    now: float = 100.0
    published: list[float] = field(default_factory=list)
    with_noise: list[tuple[float, float]] = field(default_factory=list)  # and up to when it was fetched
    woken: int = 0
    error: Exception | None = None
    stop: Stop = field(default_factory=Stop)
    meanwhile: Callable[[], object] = lambda: None  # happens while events are being published

    def publish(self, group: Group, *, noise_until: float) -> int:
        if self.error is not None:
            raise self.error
        self.published.append(self.now - 100.0)
        if noise_until > -math.inf:
            self.with_noise.append((self.now - 100.0, noise_until))
        self.meanwhile()
        return 0

    def wake(self) -> None:
        self.woken += 1

    def fresh(self) -> Publisher:
        return Publisher(self, [self], self.stop, ticks=lambda: self.now, clock=lambda: self.now)

    def publisher(self) -> Publisher:
        made = self.fresh()
        made.tick()  # what an earlier run left
        self.published.clear()
        self.with_noise.clear()
        return made

    def pass_by(self, publisher: Publisher, seconds: float) -> None:
        end = self.now + seconds
        while (following := self.now + publisher.tick()) <= end:
            self.now = following
        self.now = end


def page(number: int, at: float = 1_000.0) -> Document:
    return document(Link(number, f"http://page.example/{number}", 2, None), at=at)


def changes(*numbers: int) -> Recorded:
    return Recorded([changed(page(number)) for number in numbers])


def noise(number: int, at: float = 1_000.0) -> Recorded:
    kept = NoiseVersion(new_version(number=2), change_of(Importance.NOISE, b"cause"))
    return Recorded([Unchanged(page(number, at), Proof.NOISE, EXAMINED, kept)])


def test_what_an_earlier_run_left_is_published_at_once() -> None:
    evening = Evening()
    evening.fresh().tick()
    assert evening.with_noise == [(0.0, 100.0)]
    assert evening.woken == 1


def test_a_change_waits_two_seconds_for_others() -> None:
    evening = Evening()
    publisher = evening.publisher()
    publisher.note_findings(changes(1))
    evening.pass_by(publisher, 1.5)
    publisher.note_findings(changes(2))
    assert evening.published == []
    evening.pass_by(publisher, 0.5)
    assert evening.published == [2.0]


TURNED = Turned(id="1-1", url="http://a/", at=utc(1.0), turn=Turn.FAILING, kind=FailureKind.STATUS, reason="404")
DANGER = Danger(
    id="1-1", url="http://a/", at=utc(1.0), kind=WarningKind.HIDDEN_FRAME, reason="A hidden frame appeared."
)

IGNORED = Ignored(
    id="1-1", url="http://a/", at=utc(1.0), label="Tips", example="", others=0, kind=NoiseKind.EVERY_CHECK
)


@pytest.mark.parametrize(
    "recorded",
    [
        Recorded([failed()], turned=[TURNED]),
        Recorded([unchanged()], dangers=[DANGER]),
        Recorded([unchanged()], ignored=[IGNORED]),
    ],
)
def test_what_else_was_found_is_published_like_changes(recorded: Recorded) -> None:
    evening = Evening()
    publisher = evening.publisher()
    publisher.note_findings(recorded)
    evening.pass_by(publisher, 2.0)
    assert evening.published == [2.0]


def test_changes_do_not_wait_for_noise_that_keeps_coming() -> None:
    evening = Evening()
    publisher = evening.publisher()
    publisher.note_findings(changes(1))
    for number in range(2, 42):
        publisher.note_findings(noise(number))
        evening.pass_by(publisher, 1.0)
    assert evening.published[0] == 2.0
    assert evening.with_noise[0][0] == pytest.approx(30.0, abs=2.0)


def test_noise_is_published_once_no_more_comes() -> None:
    evening = Evening()
    publisher = evening.publisher()
    publisher.note_findings(noise(1))
    evening.pass_by(publisher, 1.0)
    publisher.note_findings(noise(2))
    evening.pass_by(publisher, 4.0)
    assert [at for at, _ in evening.with_noise] == [4.0], "once"


def test_noise_that_is_recorded_while_other_noise_is_published_waits_for_its_own() -> None:
    evening = Evening()
    publisher = evening.publisher()
    publisher.note_findings(noise(1, at=1_000.0))
    late = iter([noise(2, at=1_002.5)])
    evening.meanwhile = lambda: publisher.note_findings(next(late, Recorded([])))
    evening.pass_by(publisher, 3.0)
    assert evening.with_noise == [(2.0, 1_000.0)], "not what was fetched later"
    evening.pass_by(publisher, 3.0)
    assert evening.with_noise[1:] == [(4.0, 1_002.5)]


def test_noise_that_was_not_counted_yet_is_not_published_with_changes() -> None:
    evening = Evening()
    publisher = evening.publisher()
    publisher.note_findings(changes(1))
    evening.pass_by(publisher, 11.0)
    assert len(evening.published) > 1
    assert evening.with_noise == []


def test_noise_is_published_the_next_time_if_the_store_was_away() -> None:
    evening = Evening()
    publisher = evening.publisher()
    publisher.note_findings(noise(1, at=1_000.0))
    evening.now += 2.0
    evening.error = StoreUnavailable("The store is away.")
    with pytest.raises(StoreUnavailable):
        publisher.tick()
    evening.error = None
    evening.pass_by(publisher, 5.0)
    assert evening.with_noise == [(7.0, 1_000.0)]


def test_checks_that_found_nothing_publish_nothing() -> None:
    evening = Evening()
    publisher = evening.publisher()
    publisher.note_findings(Recorded([new(), unchanged()]))
    evening.pass_by(publisher, 4.0)
    assert evening.published == []


def test_what_other_processes_recorded_is_published_within_seconds() -> None:
    evening = Evening()
    publisher = evening.publisher()
    evening.pass_by(publisher, 11.0)
    assert evening.published == [5.0, 10.0]


def test_everything_is_published_at_the_end() -> None:
    evening = Evening()
    with evening.fresh() as publisher:
        publisher.note_findings(changes(1))
        publisher.note_findings(noise(2))
    assert evening.with_noise[-1] == (0.0, math.inf)


def test_a_store_that_is_away_ends_nothing() -> None:
    evening = Evening(error=StoreUnavailable("The store is away."))
    with evening.fresh():
        pass
    assert not evening.stop.requested


def test_any_other_error_ends_the_run_and_is_raised() -> None:
    evening = Evening(error=ZeroDivisionError())
    with (
        pytest.raises(ZeroDivisionError),
        evening.fresh(),
    ):
        evening.stop.listen().wait(60)
    assert evening.stop.requested


def test_a_reader_that_fails_ends_the_run_and_keeps_its_error() -> None:
    stop = Stop()

    def read() -> None:
        raise RuntimeError("a defect")

    reader = ReaderThread(read, "reader", stop)
    reader.wake()
    assert stop.bell.wait(10)
    assert stop.requested
    assert reader.close(lambda: None)
    assert isinstance(reader.error, RuntimeError)


def test_a_reader_whose_store_is_away_reads_again_when_it_is_woken() -> None:
    stop = Stop()
    answers: list[Exception | None] = [StoreUnavailable("away"), None]
    read_twice = threading.Event()

    def read() -> None:
        answer = answers.pop(0)
        if answer is not None:
            reader.wake()
            raise answer
        read_twice.set()

    reader = ReaderThread(read, "reader", stop)
    reader.wake()
    assert read_twice.wait(10)
    assert reader.close(lambda: None)
    assert reader.error is None
    assert not stop.requested
