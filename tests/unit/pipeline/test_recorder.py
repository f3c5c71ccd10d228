from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from driftline.errors import RunStopped, StoreError
from driftline.model import Blob, NewVersion, Outcome, Verdict
from driftline.pipeline.check_run import RunTally
from driftline.pipeline.recorder import Recorder
from support.making import document, link


def outcome(number: int = 1, verdict: Verdict = Verdict.UNCHANGED, size: int = 10) -> Outcome:
    return Outcome(document(link(page_id=number), bytes(size)), verdict)


def large(number: int) -> Outcome:
    """One that has 65 MiB to store."""
    found = outcome(number, Verdict.NEW)
    blob = Blob(b"", None, 0, 0, bytes(65 * 1024 * 1024))
    found.version = NewVersion(
        number=1, body=b"", letters=b"", text=b"", size=0, title="", content_type="", charset="", blobs=(blob,)
    )
    return found


def ignored(_: Sequence[Outcome]) -> None:
    """Nobody listens."""


class Notebook:
    """A ledger that writes down what it is given once its gate is open, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.written: list[int] = []
        self.batches = 0
        self.reached = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def record(self, run_id: int, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        self.reached.set()
        self.gate.wait()
        if self.error is not None:
            raise self.error
        self.batches += 1
        self.written += [one.document.link.page_id for one in outcomes]
        return outcomes


def test_everything_that_was_added_is_committed_in_order_by_the_end() -> None:
    notebook, tally = Notebook(), RunTally()
    recorder = Recorder(notebook, 1, tally.add)
    for start in range(0, 3_000, 7):
        recorder.add([outcome(number) for number in range(start, min(start + 7, 3_000))])
    recorder.close()
    assert notebook.written == list(range(3_000))
    assert tally.counts == Counter({Verdict.UNCHANGED: 3_000})
    assert tally.bytes == 30_000
    assert not recorder.failed


def test_outcomes_of_many_threads_are_committed_once_each() -> None:
    notebook = Notebook()
    recorder = Recorder(notebook, 1, ignored)
    with ThreadPoolExecutor(8) as threads:
        for number in range(1_600):
            threads.submit(recorder.add, [outcome(number)])
    recorder.close()
    assert sorted(notebook.written) == list(range(1_600))
    assert notebook.batches < 1_600


def test_nothing_is_told_before_it_is_committed() -> None:
    notebook = Notebook()
    notebook.gate.clear()
    told: list[Sequence[Outcome]] = []
    recorder = Recorder(notebook, 1, told.append)
    recorder.add([outcome(1, Verdict.NEW)])
    notebook.reached.wait()
    assert told == []
    notebook.gate.set()
    recorder.close()
    assert [len(batch) for batch in told] == [1]


def test_only_what_the_ledger_did_not_have_before_is_told_but_all_of_it_is_settled() -> None:
    class Half(Notebook):
        def record(self, run_id: int, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
            return [one for one in outcomes if one.document.link.page_id % 2]

    told: list[Outcome] = []
    settled: list[Outcome] = []
    recorder = Recorder(Half(), 1, told.extend, settled.extend)
    recorder.add([outcome(number) for number in range(10)])
    recorder.close()
    assert [one.document.link.page_id for one in told] == [1, 3, 5, 7, 9]
    assert [one.document.link.page_id for one in settled] == list(range(10))


@pytest.mark.parametrize("error", [StoreError("The disk is full."), UnicodeError("odd"), ZeroDivisionError()])
def test_a_commit_that_fails_is_raised_in_the_end_and_nothing_is_told(error: Exception) -> None:
    notebook = Notebook(error)
    told: list[Outcome] = []
    recorder = Recorder(notebook, 1, told.extend, told.extend)
    recorder.add([outcome()])
    notebook.reached.wait()
    with pytest.raises(type(error)):
        recorder.close()
    assert recorder.failed
    assert told == []
    recorder.add([outcome()])
    assert recorder.statistics().in_use == 0


def test_a_listener_that_raises_is_heard_in_the_end() -> None:
    def listener(_: Sequence[Outcome]) -> None:
        raise ZeroDivisionError

    recorder = Recorder(Notebook(), 1, listener)
    recorder.add([outcome()])
    with pytest.raises(ZeroDivisionError):
        recorder.close()


def test_adding_waits_while_too_many_bytes_are_pending_and_goes_on_after_the_commit() -> None:
    notebook = Notebook()
    notebook.gate.clear()
    recorder = Recorder(notebook, 1, ignored)
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
    recorder = Recorder(notebook, 1, ignored)
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
    recorder = Recorder(notebook, 1, ignored)
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
    Recorder(notebook, 1, ignored).close()
    assert notebook.batches == 0


def test_a_stopped_run_does_not_wait_for_a_commit_that_waits_for_others() -> None:
    notebook = Notebook()
    notebook.gate.clear()
    recorder = Recorder(notebook, 1, ignored, stopped=lambda: True)
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
    recorder = Recorder(notebook, 1, ignored, stopped=lambda: True)
    recorder.add([outcome(number) for number in range(700)])
    recorder.close()
    assert len(notebook.written) == 700
