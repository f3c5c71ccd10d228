"""The tuner against worlds that are arithmetic: no network, no clock."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from driftline.pipeline.tuner import ENOUGH, FEWEST, START, Sample, Tuner

LOOK = 0.25
CORES = 4
MOST = 2_048


@dataclass
class World:
    """Transfers take `latency`, or longer where the line (`bandwidth` pages a second) is full.

    `links` is how many there are to crawl in a second.

    A consumer manages `pages_per_consumer`, as long as there are cores for all. Above `tolerance` in flight, the
    server breaks connections.
    """

    latency: float = 0.1
    bandwidth: float = 1e9
    pages_per_consumer: float = 1e9
    tolerance: float = 1e9
    links: float = 1e9
    depth: float = 0.0
    finished: float = 0.0
    troubled: float = 0.0
    waited: float = 0.0
    taken: float = 0.0
    starved: float = 0.0
    hungry: int = 0

    def live(self, tuner: Tuner) -> Sample:
        """Pass the time of one look with as many transfers and consumers as the tuner wants."""
        room = max(500.0, 1.25 * tuner.in_flight)
        in_flight = min(tuner.in_flight, room - self.depth)
        arriving = min(in_flight / self.latency, self.bandwidth, self.links)
        self.hungry += arriving == self.links
        seconds_each = max(self.latency, in_flight / arriving) if arriving else self.latency
        came = arriving * LOOK
        able = self.pages_per_consumer * min(tuner.consumers, CORES) * LOOK
        took = min(able, self.depth + came)
        self.depth = min(room, self.depth + came - took)
        self.finished += came
        self.taken += took
        self.waited += came * seconds_each
        self.troubled += came * max(0.0, 1 - self.tolerance / max(in_flight, 1))
        self.starved += LOOK * tuner.consumers * max(0.0, 1 - took / able)
        return Sample(
            seconds=LOOK, finished=int(self.finished), troubled=int(self.troubled), latency=self.waited,
            taken=int(self.taken), depth=int(self.depth), room=int(room), starved=self.starved, hungry=self.hungry,
        )  # fmt: skip


@dataclass
class Batches:
    """Consumers that take pages from a full queue in batches, and begin `startup` seconds after they are wanted."""

    pages_per_consumer: float
    startup: float
    cores: int
    batch: int = 64
    now: float = 0.0
    taken: int = 0
    free_at: list[float] = field(default_factory=list)

    def live(self, tuner: Tuner) -> Sample:
        """Pass the time of one look."""
        self.now += LOOK
        self.free_at = self.free_at[: tuner.consumers]
        while len(self.free_at) < tuner.consumers:
            self.free_at.append(self.now - LOOK + self.startup)
        share = min(1.0, self.cores / tuner.consumers)
        for place in range(tuner.consumers):
            while self.free_at[place] <= self.now:
                self.free_at[place] += self.batch / (self.pages_per_consumer * share)
                self.taken += self.batch
        return Sample(
            seconds=LOOK, finished=self.taken + 400, troubled=0, latency=0.001 * self.taken, taken=self.taken,
            depth=400, room=500, starved=0.0, hungry=0,
        )  # fmt: skip


def auto(in_flight: int | None = None, consumers: int | None = None) -> Tuner:
    return Tuner(in_flight=in_flight, consumers=consumers, most_in_flight=MOST, most_consumers=CORES)


def settle(world: World, tuner: Tuner, seconds: float = 10.0) -> float:
    """Let the tuner work for a while; the pages a second that it gets after that."""
    for _ in range(int(seconds / LOOK)):
        tuner.observe(world.live(tuner))
    before = world.taken
    looks = 20
    for _ in range(looks):
        tuner.observe(world.live(tuner))
    return (world.taken - before) / (looks * LOOK)


def test_where_latency_is_all_it_grows_to_the_most_that_is_allowed() -> None:
    tuner = auto()
    assert settle(World(latency=0.9), tuner) == pytest.approx(MOST / 0.9, rel=0.1)
    assert tuner.in_flight == MOST


def test_where_the_line_is_full_it_fills_it_and_stops_growing() -> None:
    tuner = auto()
    assert settle(World(latency=0.1, bandwidth=300), tuner) == pytest.approx(300, rel=0.1)
    assert 30 <= tuner.in_flight <= 200


def test_where_comparing_is_the_work_it_puts_every_core_to_it() -> None:
    tuner = auto()
    world = World(latency=0.01, pages_per_consumer=100)
    assert settle(world, tuner) == pytest.approx(100 * CORES, rel=0.1)
    assert tuner.consumers == CORES


@pytest.mark.parametrize("startup", [0.0, 0.4, 0.9])
@pytest.mark.parametrize("speed", [90, 140, 230, 370, 500, 640, 1_500])
def test_every_core_is_used_though_pages_are_taken_in_batches_and_workers_take_time_to_start(
    speed: int, startup: float
) -> None:
    """Of so few batches in a look, one more or less must not be taken for the effect of another consumer."""
    tuner = auto()
    world = Batches(pages_per_consumer=speed, startup=startup, cores=CORES)
    counts = []
    for _ in range(160):
        tuner.observe(world.live(tuner))
        counts.append(tuner.consumers)
    assert counts[39:] == [CORES] * 121, "after ten seconds"


def test_where_comparing_is_the_work_a_fixed_number_is_in_flight() -> None:
    """Neither the few that it starts with, nor as many as the network would take."""
    tuner = Tuner(in_flight=None, consumers=None, most_in_flight=MOST, most_consumers=CORES)
    world = World(latency=0.01, pages_per_consumer=400)
    for _ in range(200):
        tuner.observe(world.live(tuner))
    assert tuner.in_flight == ENOUGH


@pytest.mark.parametrize("speed", [230, 500, 1_500])
def test_more_consumers_than_help_are_tried_less_and_less_often(speed: int) -> None:
    tuner = auto()
    world = Batches(pages_per_consumer=speed, startup=0.4, cores=1)
    counts = []
    for _ in range(240):
        tuner.observe(world.live(tuner))
        counts.append(tuner.consumers)
    assert counts.count(1) > 0.6 * len(counts)
    assert counts[120:].count(1) > 0.8 * len(counts[120:])


def test_a_second_consumer_that_adds_nothing_is_let_go() -> None:
    """Here the whole of the consumers, however many, manage the same: a database that takes its time."""
    tuner = auto()
    world = World(latency=0.01)
    for _ in range(40):
        world.pages_per_consumer = 200 / tuner.consumers
        tuner.observe(world.live(tuner))
    assert tuner.consumers <= 2


def test_consumers_that_starve_become_fewer() -> None:
    tuner = auto()
    tuner.consumers = CORES
    settle(World(latency=0.5, pages_per_consumer=100_000), tuner, seconds=30)
    assert tuner.consumers == 1


def test_a_server_that_breaks_connections_is_spared() -> None:
    tuner = auto()
    world = World(latency=0.1, tolerance=100)
    settle(world, tuner, seconds=20)
    assert tuner.in_flight <= 150
    assert tuner.in_flight >= FEWEST


@pytest.mark.parametrize("world", [World(latency=0.9), World(bandwidth=50), World(pages_per_consumer=10)])
def test_numbers_that_are_given_are_kept(world: World) -> None:
    tuner = auto(in_flight=100, consumers=3)
    settle(world, tuner)
    assert (tuner.in_flight, tuner.consumers) == (100, 3)


@pytest.mark.parametrize("links", [0, 1, 100])
@pytest.mark.parametrize("latency", [0.001, 0.3, 60.0])
def test_too_few_links_are_no_reason_to_change_anything(links: int, latency: float) -> None:
    tuner = auto()
    tuner.consumers = 2
    before = (tuner.in_flight, tuner.consumers)
    settle(World(latency=latency, links=min(links, 64 / latency), tolerance=1), tuner, seconds=600)
    assert (tuner.in_flight, tuner.consumers) == before


def test_what_was_slow_while_there_was_little_to_do_is_not_held_against_the_numbers() -> None:
    """Else the first step after a quiet time would be compared with the rate before it."""
    tuner = auto()
    world = World(latency=0.9)
    settle(world, tuner, seconds=2)
    grown = tuner.in_flight
    world.links = 1
    settle(world, tuner, seconds=60)
    assert tuner.in_flight == grown
    world.links = 1e9
    settle(world, tuner, seconds=20)
    assert tuner.in_flight == MOST


def test_pages_that_hang_do_not_hold_up_the_others() -> None:
    tuner = auto()
    settle(World(latency=1e9), tuner, seconds=7)
    assert tuner.in_flight == 4 * START, "it doubled after five seconds, and after ten"


def test_numbers_that_are_given_are_kept_even_if_all_pages_hang() -> None:
    tuner = auto(in_flight=100)
    settle(World(latency=1e9), tuner, seconds=60)
    assert tuner.in_flight == 100
