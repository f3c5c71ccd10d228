"""The public names of the package are exactly those that it lists."""

from __future__ import annotations

import driftline


def test_every_listed_name_can_be_had() -> None:
    """What `__all__` promises is there."""
    for name in driftline.__all__:
        assert getattr(driftline, name) is not None


def test_the_list_is_what_a_notebook_user_needs() -> None:
    """A name that is added or dropped is a decision, made here too."""
    assert sorted(driftline.__all__) == [
        "Change", "Check", "Driftline", "DriftlineError", "Edit", "Event", "EventPage", "FailedPage", "Mention", "Page",
        "Plan", "Render", "RenderMode", "Report", "Settings", "Stop", "Version", "__version__", "load_settings", "open",
    ]  # fmt: skip


def test_they_are_offered_by_completion() -> None:
    """Although they are imported on first use."""
    assert set(driftline.__all__) <= set(dir(driftline))
