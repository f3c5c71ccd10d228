from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from driftline.errors import RunStopped, StoreError
from driftline.model.outcome import Blob, Outcome, Recorded, Verdict
from driftline.pipeline.check_run import RunTally
from driftline.pipeline.recorder import Recorder
from support.making import document, link, new, unchanged


def outcome(number: int = 1, size: int = 10) -> Outcome:
    return unchanged(document(link(page_id=number), bytes(size)))


def large(number: int) -> Outcome:
    """One that has 65 MiB to store."""
    return new(document(link(page_id=number)), Blob(b"", None, 0, 0, bytes(65 * 1024 * 1024)))


class Notebook:
    """A sink that writes down what it is given once its gate is open, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.written: list[int] = []
        self.settled: list[int] = []
        self.tally = RunTally()
        self.batches = 0
        self.reached = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def record(self, outcomes: Sequence[Outcome]) -> None:
        self.reached.set()
        self.gate.wait()
        if self.error is not None:
            raise self.error
        self.batches += 1
        self.written += [one.document.link.page_id for one in outcomes]
        self.tally.add(Recorded(outcomes))

    def settle(self, outcomes: Sequence[Outcome]) -> None:
        assert len(self.written) > len(self.settled), "it is not recorded yet"
        self.settled += [one.document.link.page_id for one in outcomes]


def test_everything_that_was_added_is_committed_in_order_by_the_end() -> None:
    notebook = Notebook()
    recorder = Recorder(notebook)
    for start in range(0, 3_000, 7):
        recorder.add([outcome(number) for number in range(start, min(start + 7, 3_000))])
    recorder.close()
    assert notebook.written == list(range(3_000))
    assert notebook.settled == notebook.written
    assert notebook.tally.counts == Counter({Verdict.UNCHANGED: 3_000})
    assert notebook.tally.bytes == 30_000
    assert not recorder.failed


def test_what_is_added_while_a_commit_fails_gives_back_its_room() -> None:
    notebook = Notebook(StoreError("The disk is full."))
    notebook.gate.clear()
    recorder = Recorder(notebook)
    recorder.add([outcome(1)])
    notebook.reached.wait()
    recorder.add([outcome(2)])
    notebook.gate.set()
    with pytest.raises(StoreError):
        recorder.close()
    used = recorder.statistics()
    assert (used.acquired, used.released, used.in_use) == (2, 2, 0)


def test_outcomes_of_many_threads_are_committed_once_each() -> None:
    notebook = Notebook()
    recorder = Recorder(notebook)
    with ThreadPoolExecutor(8) as threads:
        for number in range(1_600):
            threads.submit(recorder.add, [outcome(number)])
    recorder.close()
    assert sorted(notebook.written) == list(range(1_600))
    assert notebook.batches < 1_600


def test_nothing_is_settled_before_it_is_committed() -> None:
    notebook = Notebook()
    notebook.gate.clear()
    recorder = Recorder(notebook)
    recorder.add([outcome(1)])
    notebook.reached.wait()
    assert notebook.settled == []
    notebook.gate.set()
    recorder.close()
    assert notebook.settled == [1]


@pytest.mark.parametrize("error", [StoreError("The disk is full."), UnicodeError("odd"), ZeroDivisionError()])
def test_a_commit_that_fails_is_raised_in_the_end_and_nothing_is_settled(error: Exception) -> None:
    notebook = Notebook(error)
    recorder = Recorder(notebook)
    recorder.add([outcome()])
    notebook.reached.wait()
    with pytest.raises(type(error)):
        recorder.close()
    assert recorder.failed
    assert notebook.settled == []
    recorder.add([outcome()])
    assert recorder.statistics().in_use == 0


def test_a_sink_that_raises_when_it_settles_is_heard_in_the_end() -> None:
    class Unsettled(Notebook):
        def settle(self, outcomes: Sequence[Outcome]) -> None:
            raise ZeroDivisionError

    recorder = Recorder(Unsettled())
    recorder.add([outcome()])
    with pytest.raises(ZeroDivisionError):
        recorder.close()


def test_adding_waits_while_too_many_bytes_are_pending_and_goes_on_after_the_commit() -> None:
    notebook = Notebook()
    notebook.gate.clear()
    recorder = Recorder(notebook)
    recorder.add([outcome(0)])
    notebook.reached.wait()
    recorder.add([large(1)])
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(recorder.add, [outcome(2)])
        notebook.gate.set()
        waiting.result(30)
    recorder.close()
    assert notebook.written == [0, 1, 2]
    assert notebook.batches == 3, "the last one was not let in beside the large one"
    assert (recorder.statistics().in_use, recorder.statistics().acquired) == (0, 3)


def test_what_waits_behind_a_commit_that_fails_gives_its_bytes_back() -> None:
    notebook = Notebook(StoreError("The disk is full."))
    notebook.gate.clear()
    recorder = Recorder(notebook)
    recorder.add([outcome(0)])
    notebook.reached.wait()
    recorder.add([outcome(1)])
    notebook.gate.set()
    with pytest.raises(StoreError):
        recorder.close()
    use = recorder.statistics()
    assert (use.in_use, use.acquired, use.released) == (0, 2, 2)


def test_adding_does_not_wait_for_a_recorder_that_failed() -> None:
    notebook = Notebook(StoreError("The disk is full."))
    notebook.gate.clear()
    recorder = Recorder(notebook)
    recorder.add([outcome(0)])
    notebook.reached.wait()
    recorder.add([large(1)])
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(recorder.add, [outcome(2)])
        notebook.gate.set()
        waiting.result(30)
    with pytest.raises(StoreError):
        recorder.close()


def test_a_recorder_without_outcomes_ends_without_a_commit() -> None:
    notebook = Notebook()
    Recorder(notebook).close()
    assert notebook.batches == 0


def test_a_stopped_run_does_not_wait_for_a_commit_that_waits_for_others() -> None:
    notebook = Notebook()
    notebook.gate.clear()
    recorder = Recorder(notebook, lambda: True)
    recorder.add([outcome()])
    notebook.reached.wait()
    with ThreadPoolExecutor(1) as threads:
        closing = threads.submit(recorder.close)
        try:
            with pytest.raises(RunStopped, match="last results"):
                closing.result(30)
        finally:
            notebook.gate.set()


def test_a_stopped_run_commits_what_is_pending() -> None:
    notebook = Notebook()
    recorder = Recorder(notebook, lambda: True)
    recorder.add([outcome(number) for number in range(700)])
    recorder.close()
    assert len(notebook.written) == 700
