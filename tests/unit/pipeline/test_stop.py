"""Bells are heard once, and signals that interrupt a wait neither end it early nor make it endless."""

from __future__ import annotations

import signal
import threading
import time

from driftline import Stop
from driftline.pipeline.stop import Bell


def test_rings_before_a_wait_are_heard_once() -> None:
    bell = Bell()
    bell.ring()
    bell.ring()
    assert bell.wait(3_600.0)
    assert not bell.wait(0.0)


def test_a_ring_of_another_thread_ends_a_wait() -> None:
    bell = Bell()
    thread = threading.Thread(target=bell.ring)
    thread.start()
    assert bell.wait(3_600.0)
    thread.join()


def test_a_request_rings_every_bell_but_those_that_nobody_waits_for() -> None:
    stop = Stop()
    heard, unheard = stop.listen(), stop.listen()
    stop.unlisten(unheard)
    stop.request()
    assert stop.requested
    assert heard.wait(3_600.0)
    assert stop.bell.wait(3_600.0)
    assert not unheard.wait(0.0)


def test_a_wait_ends_although_a_signal_handler_takes_longer_than_it_was_to_last() -> None:
    handled: list[bool] = []

    def be_slow(*_: object) -> None:
        until = time.monotonic() + 0.2
        while time.monotonic() < until:
            pass
        handled.append(True)

    before = signal.signal(signal.SIGALRM, be_slow)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        Bell().wait(0.1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert handled == [True]


def test_a_signal_handler_may_ring_the_bell_that_it_interrupts_the_wait_for() -> None:
    bell = Bell()
    before = signal.signal(signal.SIGALRM, lambda *_: bell.ring())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        assert bell.wait(3_600.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_the_time_that_is_left_counts_from_the_first_request() -> None:
    stop = Stop()
    assert stop.time_left(3_600.0) is None
    stop.request()
    assert stop.time_left(0.0) == 0.0
    first = stop.time_left(3_600.0)
    stop.request()
    again = stop.time_left(3_600.0)
    assert first is not None
    assert again is not None
    assert again <= first <= 3_600.0
