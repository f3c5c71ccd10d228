"""The stateful objects of a pipeline show their state, and need no lock for it."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from driftline.pipeline.check_run import Run
from driftline.pipeline.consumer import Consumer
from driftline.pipeline.plan import Plan
from driftline.pipeline.producer import Producer
from driftline.pipeline.queue import BoundedQueue
from driftline.pipeline.stop import Ending, Stop, SupervisedThread
from driftline.pipeline.threads import ConsumerThreads, ProducerThreads
from driftline.pipeline.tuner import Sample, Tuner
from driftline.settings import Settings

UNUSED: Any = None  # a collaborator that nothing here calls


def a_queue() -> BoundedQueue[Any]:
    return BoundedQueue(8, 1_000, len, name="document queue")


def nothing() -> None:
    return None


def test_a_queue_and_its_reserved_places_show_how_full_they_are() -> None:
    queue = a_queue()
    places = queue.slots()
    places.reserve(3, wait=False)
    places.put([b"abc"])
    assert repr(queue) == "<BoundedQueue 'document queue' depth=1/8 reserved=2 bytes=3/1000>"
    assert repr(places) == "<QueueSlots held=2 of 'document queue'>"
    queue.refuse()
    assert repr(queue).endswith(" refusing>")
    queue.close()
    with queue._lock:  # whoever prints it in a debugger may have stopped where it is held
        assert repr(queue).endswith(" closed>")


def test_a_stop_its_bell_and_its_reason_show_what_was_requested() -> None:
    stop = Stop()
    ending = Ending(stop)
    assert repr(stop) == "<Stop requested=False bells=1>"
    assert repr(stop.bell) == "<Bell silent>"
    assert repr(stop.bell) == "<Bell silent>", "to look at it must not take the ring"
    stop.request()
    assert repr(stop.bell) == "<Bell rung>"
    ending.cut_short(ValueError("torn"))
    assert repr(ending) == "<Ending error=ValueError('torn') <Stop requested=True bells=1>>"


def test_a_thread_shows_whether_it_is_at_work_and_what_ended_it() -> None:
    def torn() -> None:
        raise ValueError("torn")

    thread = SupervisedThread("consumer", torn, nothing)
    assert repr(thread) == "<SupervisedThread 'consumer' not started>"
    thread.start()
    thread.join(10.0)
    assert repr(thread) == "<SupervisedThread 'consumer' ended error=ValueError('torn')>"


def test_producers_and_consumers_show_what_they_do() -> None:
    producer = Producer(
        links=UNUSED, queue=a_queue(), settings=Settings(), slots=4, clock=lambda: 0.0, ended=nothing
    )  # fmt: skip
    assert repr(producer) == "<Producer active=0/4 finished=0 settled=0 <SupervisedThread 'producer' not started>>"
    producer.stop(0.0)
    assert " stopping " in repr(producer)
    consumer: Consumer[Any] = Consumer(
        name="consumer", queue=a_queue(), lane=1, share=lambda: 1, work=lambda _: None, ended=nothing
    )
    consumer.dismiss()
    shown = "<Consumer lane=1 of 'document queue' dismissed <SupervisedThread 'consumer' not started>>"
    assert repr(consumer) == shown


def test_the_threads_of_a_section_show_how_many_there_are() -> None:
    producers = ProducerThreads(Plan(producers=2), UNUSED, a_queue(), 8)
    assert repr(producers).startswith("<ProducerThreads producers=2 slots=4 <BoundedQueue 'document queue' ")
    consumers: ConsumerThreads[Any] = ConsumerThreads("recaller", a_queue(), lambda _: None, UNUSED)
    assert repr(consumers).startswith("<ConsumerThreads 'recaller' size=0 dismissed=0 <BoundedQueue ")


def test_a_run_shows_its_pipeline() -> None:
    run = Run(UNUSED, UNUSED, UNUSED, UNUSED, Settings(), Plan(pipeline="sequential"), Stop())
    assert repr(run) == "<Run sequential pipelines=0 <Stop requested=False bells=1>>"


def test_a_tuner_shows_its_numbers_and_logs_each_step(caplog: pytest.LogCaptureFixture) -> None:
    tuner = Tuner(in_flight=None, consumers=None, most_in_flight=512, most_consumers=2)
    assert repr(tuner) == "<Tuner in_flight=64/512 consumers=1/2 best_latency=unknown>"
    sample = Sample(
        seconds=1, finished=100, troubled=0, latency=1.0, taken=100, depth=0, room=500, starved=0, hungry=0
    )  # fmt: skip
    with caplog.at_level(logging.DEBUG, "driftline.pipeline"):
        tuner.observe(sample)
        tuner.observe(sample)  # nothing has come back since: no step
    assert repr(tuner) == "<Tuner in_flight=128/512 consumers=1/2 best_latency=0.010s>"
    (record,) = caplog.records
    assert record.getMessage() == "tuned from 64 in flight, 1 consumers"
    assert vars(record)["in_flight"] == 128


def test_only_the_first_reason_to_cut_a_pipeline_short_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    ending = Ending(Stop())
    with caplog.at_level(logging.INFO, "driftline.pipeline"):
        ending.cut_short(ValueError("torn"))
        ending.cut_short(ValueError("worn"))
    assert [record.getMessage() for record in caplog.records] == ["pipeline cut short: torn"]
