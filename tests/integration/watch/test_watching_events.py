"""`watch()` of the library: events as they come, on a real site, until it is stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from driftline import Stop
from driftline.api import workspace_of
from driftline.errors import StoreBusy
from support.worlds import World

BEFORE = "The shop opens at nine in the morning."
AFTER = "The shop is closed for the whole summer."


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A page that was checked, and says something else by now."""
    with World(tmp_path, stop_grace=0.2) as made:
        made.words["/"] = BEFORE
        made.pages.add(made.server.url("/"), every="1s")
        made.pages.check()
        made.words["/"] = AFTER
        yield made


def test_each_event_is_yielded_until_the_iterator_is_closed(world: World) -> None:
    events = world.pages.watch()
    event = next(events)
    assert (event.event, event.urls) == ("changed", (world.server.url("/"),))
    assert event.headline.startswith(f"New: {AFTER}")
    events.close()  # type: ignore[attr-defined]  # it is a generator
    assert world.pages.check().unchanged == 1, "no pages are checked any more"


def test_minor_changes_are_skipped_unless_they_are_wanted(world: World) -> None:
    def first(min_importance: str | None = None) -> str:
        stop = Stop()
        found = []
        for event in world.pages.watch(stop=stop, min_importance=min_importance):
            found.append(event.headline)
            stop.request()
        return found[0]

    assert first().startswith(f"New: {AFTER}")
    for words in ("Log in to order a pen.", "Login to order a pen.", "Call us to order a pen."):
        world.words["/"] = words
        world.pages.check()
    assert "Log in to order a pen." in first()
    assert "Call us to order a" in first(), "the minor change in between is left out"
    for words in ("Callus to order a pen.", "Call us to order a pen."):
        world.words["/"] = words
        world.pages.check()
    assert "Callus to order a pen." in first("minor")


def test_a_stop_ends_it(world: World) -> None:
    stop = Stop()
    found = []
    for event in world.pages.watch(stop=stop):
        found.append(event)
        stop.request()
    assert [one.event for one in found] == ["changed"]


def test_an_event_that_was_not_dealt_with_is_yielded_again(world: World) -> None:
    def fail_at_first() -> None:
        for _ in world.pages.watch():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_at_first()
    stop = Stop()
    for event in world.pages.watch(stop=stop):
        assert event.event == "changed"
        stop.request()
    world.words["/"] = BEFORE
    assert next(iter(world.pages.watch())).headline.startswith(f"New: {BEFORE}"), "once was enough"


def test_what_ends_the_watcher_is_raised(world: World) -> None:
    with workspace_of(world.pages).runs.keep_running(), pytest.raises(StoreBusy):
        next(iter(world.pages.watch()))
