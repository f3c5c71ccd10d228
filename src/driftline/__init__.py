"""Driftline watches web pages and tells you what changed.

import driftline

with driftline.open("pages.db") as pages:
    pages.add("https://example.com/")
    for change in pages.check().changes:
        print(change.url, change.reason)
        print(pages.diff(change.url))
    for event in pages.watch():  # keeps checking
        print(event.headline)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from driftline.version import __version__

__all__ = [
    "Change",
    "Check",
    "Driftline",
    "DriftlineError",
    "Edit",
    "Event",
    "EventPage",
    "FailedPage",
    "Mention",
    "Page",
    "Plan",
    "Render",
    "RenderMode",
    "Report",
    "Settings",
    "Stop",
    "Version",
    "__version__",
    "load_settings",
    "open",
]

_HOMES = {
    "FailedPage": "driftline.pipeline.check_run",
    "Edit": "driftline.model",
    "EventPage": "driftline.model",
    "Event": "driftline.model",
    "Change": "driftline.model",
    "Check": "driftline.model",
    "Driftline": "driftline.api",
    "DriftlineError": "driftline.errors",
    "Mention": "driftline.model",
    "Page": "driftline.model",
    "Plan": "driftline.pipeline.plan",
    "Render": "driftline.model",
    "RenderMode": "driftline.model",
    "Report": "driftline.pipeline.check_run",
    "Settings": "driftline.settings",
    "Stop": "driftline.pipeline.stop",
    "Version": "driftline.model",
    "load_settings": "driftline.settings",
    "open": "driftline.api",
}

if TYPE_CHECKING:
    from driftline.api import Driftline, open  # noqa: A004 driftline.open is what a reader expects
    from driftline.errors import DriftlineError
    from driftline.model import Change, Check, Edit, Event, EventPage, Mention, Page, Render, RenderMode, Version
    from driftline.pipeline.check_run import FailedPage, Report
    from driftline.pipeline.plan import Plan
    from driftline.pipeline.stop import Stop
    from driftline.settings import Settings, load_settings


def __getattr__(name: str) -> Any:
    """Import on first use: a worker process needs one module of the package and must start fast."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'driftline' has no attribute '{name}'")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    """List the public names, for completion and `help`, although they are imported on first use."""
    return sorted(__all__)
