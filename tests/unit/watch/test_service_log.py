"""What a watcher logs of itself, and how its parts are shown to who debugs them."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import Any, cast

import pytest

from driftline.errors import DriftlineError, RunStalled, StoreUnavailable
from driftline.pipeline.check_run import Run
from driftline.pipeline.sources import Feed
from driftline.pipeline.stop import Stop
from driftline.store.events import EventLog
from driftline.watch.planner import Planner
from driftline.watch.publisher import ReaderThread
from driftline.watch.service import EndlessRun, Remarks, Watcher, WatchOptions


class Troubled:
    """A run whose first pipeline ends with an error, and the feed that it is offered."""

    def __init__(self, error: DriftlineError) -> None:
        self.errors = [error]
        self.restarts = 0

    def check_offered(self, *_: object) -> None:
        if self.errors:
            raise self.errors.pop()

    def restart(self, _stopped: object) -> None:
        self.restarts += 1

    def end(self) -> None: ...

    def give_up(self) -> None: ...

    def put_off_for_now(self) -> int:
        return 0

    def __len__(self) -> int:
        return 0


@contextmanager
def granted() -> Any:
    yield None


@pytest.mark.parametrize("error", [RunStalled("Nothing was recorded for 60 s."), StoreUnavailable("It is away.")])
def test_a_pipeline_that_is_restarted_is_logged(error: DriftlineError, caplog: pytest.LogCaptureFixture) -> None:
    troubled = Troubled(error)
    run = EndlessRun(cast("Run", troubled), cast("Feed", troubled), Stop(), lambda _: None, granted)
    with caplog.at_level(logging.INFO, logger="driftline"), run:
        pass
    assert troubled.restarts == 1
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("driftline.watch.service", "WARNING")
    assert record.getMessage() == f"the pipeline is restarted: {error}"
    assert vars(record)["cause"] == type(error).__name__


def test_a_remark_is_logged_and_passed_on_until_it_is_another_one(caplog: pytest.LogCaptureFixture) -> None:
    said: list[str] = []
    remarks = Remarks(said.append)
    with caplog.at_level(logging.INFO, logger="driftline"):
        for sentence in ("Watching 1 page.", "Watching 1 page.", "Waiting.", "Watching 1 page."):
            remarks.add(sentence)
    assert said == ["Watching 1 page.", "Waiting.", "Watching 1 page."]
    assert [record.getMessage() for record in caplog.records] == [f"state of the run: {one}" for one in said]


@pytest.mark.parametrize("part", [Planner, EndlessRun, Watcher, ReaderThread, EventLog])
def test_the_parts_of_a_watcher_show_their_state(part: type) -> None:
    assert "__repr__" in vars(part)


def test_a_watcher_and_its_reader_show_what_they_do() -> None:
    watcher = Watcher(cast("Any", None), WatchOptions(every="2h"), cast("Any", None), Stop(), remark=lambda _: None)
    assert repr(watcher) == "<Watcher every=2h budget=None once=False stopped=False>"
    reader = ReaderThread(lambda: None, "printer", Stop())
    assert reader.close(lambda: None)
    assert repr(reader) == "<ReaderThread 'printer' awake=False ending=True error=None>"
