"""When a run counts as stalled, and what is reported then."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, cast

from driftline.capacity import Capacity, ResourceUse
from driftline.pipeline.watchdog import Stall, Watchdog, threads_at


def use(name: str, in_use: int = 0, waiting: int = 0) -> ResourceUse:
    return ResourceUse(name=name, in_use=in_use, limit=10, acquired=20, released=20 - in_use, waiting=waiting)


@dataclass
class Holder:
    """A part of a run that holds some of a resource."""

    held: ResourceUse

    def statistics(self) -> ResourceUse:
        return self.held


@dataclass
class Links(Holder):
    """The links of a run: whether a host may be asked, and nobody asks any."""

    left: bool = False

    def neglected(self) -> bool:
        return self.left


@dataclass
class Workers(Holder):
    """The worker processes of a run: whether one is busy with a page that may take longer."""

    reading: bool = False

    def within_deadline(self) -> bool:
        return self.reading


@dataclass
class Pipeline:
    """As much of a pipeline as a watchdog looks at."""

    recorder: Holder = field(default_factory=lambda: Holder(use("recorder: bytes")))
    workers: Workers = field(default_factory=lambda: Workers(use("worker processes")))
    confirmer: Holder = field(default_factory=lambda: Holder(use("unconfirmed changes: bytes")))
    links: Links = field(default_factory=lambda: Links(use("host permits")))
    queues: list[Any] = field(default_factory=list)
    stalls: list[Stall] = field(default_factory=list)
    excused: bool = False

    def resources(self) -> list[ResourceUse]:
        return [one.statistics() for one in (self.recorder, self.workers, self.confirmer, self.links)]

    def is_excused(self) -> bool:
        return self.excused

    def end_stalled(self, stall: Stall) -> None:
        self.stalls.append(stall)


class Scene:
    """A watchdog of ten seconds over parts that a test changes, at a time that it moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.parts = Pipeline()
        self.dog = Watchdog(cast("Any", self.parts), 10.0, lambda: self.now)

    def after(self, seconds: float) -> bool:
        self.now += seconds
        return self.dog.look()


def test_a_run_with_nothing_to_do_does_not_stall() -> None:
    scene = Scene()
    assert not scene.after(100.0)
    scene.parts.confirmer.held = use("unconfirmed changes: bytes", in_use=5)
    assert not scene.after(100.0), "its host may want to rest"


def test_a_run_stalls_when_nothing_is_recorded_for_long_although_something_waits_to_be() -> None:
    scene = Scene()
    scene.parts.recorder.held = use("recorder: bytes", in_use=5)
    assert not scene.after(9.0)
    scene.dog.progress()
    assert not scene.after(9.0)
    assert scene.after(1.0)
    (stall,) = scene.parts.stalls
    assert stall.seconds == 10.0
    assert "recorder: bytes: 5 of 10 in use, acquired 20, released 15" in str(stall)


def test_a_thread_that_waits_for_room_counts_as_work() -> None:
    scene = Scene()
    scene.parts.confirmer.held = use("unconfirmed changes: bytes", in_use=10, waiting=2)
    assert scene.after(10.0)


def test_a_host_that_may_be_asked_and_is_not_counts_as_work() -> None:
    scene = Scene()
    scene.parts.links.held = use("host permits", in_use=1)
    assert not scene.after(100.0), "it ends by its own time-out"
    scene.parts.links.left = True
    assert not scene.after(9.0)
    assert scene.after(1.0)


def test_pages_that_are_slow_to_read_are_no_stall_until_one_is_past_its_deadline() -> None:
    scene = Scene()
    scene.parts.workers.held = use("worker processes", in_use=2, waiting=3)
    scene.parts.workers.reading = True
    scene.parts.links.left = True
    assert not scene.after(100.0)
    scene.parts.workers.reading = False
    assert not scene.after(9.0)
    assert scene.after(1.0)


def test_a_recorder_that_records_nothing_stalls_whatever_is_read_meanwhile() -> None:
    scene = Scene()
    scene.parts.recorder.held = use("recorder: bytes", in_use=5)
    scene.parts.workers.reading = True
    assert scene.after(10.0)


def test_a_store_that_is_away_excuses_a_run() -> None:
    scene = Scene()
    scene.parts.recorder.held = use("recorder: bytes", in_use=5)
    scene.parts.excused = True
    assert not scene.after(100.0)
    scene.parts.excused = False
    assert not scene.after(9.0)
    assert scene.after(1.0)


def test_it_is_reported_for_what_a_thread_waits() -> None:
    capacity = Capacity("bytes of a test", 1)
    held = capacity.acquire(1)
    assert held is not None
    thread = threading.Thread(target=capacity.acquire, args=(1,), name="somebody", daemon=True)
    thread.start()
    while not capacity.statistics().waiting:
        pass
    assert any("somebody: waiting for 'bytes of a test' in Capacity.acquire" in line for line in threads_at())
    capacity.close()
    thread.join()
