"""Driftline watches web pages and reports what changed.

    import driftline

    with driftline.open("pages.db") as pages:
        pages.add("https://example.com/")
        for change in pages.check().changes:
            print(change.host, change.reason)
            print(pages.diff(change.url))
        for event in pages.watch():  # keeps checking
            print(event.headline)

`driftline.open()` returns a `Driftline`, which has the methods; `help(driftline.Driftline)` explains them. All other
names are types that they accept or return. Errors are a `DriftlineError`, whose text is one sentence for people.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from driftline.version import __version__

__all__ = [
    "BadFilter",
    "BadSetting",
    "BadURL",
    "BlockedPage",
    "Blocklist",
    "Change",
    "ChangeKind",
    "ChangedCell",
    "Check",
    "CompactedStore",
    "CrawlReport",
    "Driftline",
    "DriftlineError",
    "DuplicatePage",
    "Duration",
    "Edit",
    "Event",
    "EventKind",
    "EventPage",
    "EventSource",
    "FailedPage",
    "Failure",
    "FailureKind",
    "Feedback",
    "Filter",
    "FilterKind",
    "HostSettings",
    "Ignored",
    "Importance",
    "ImportedVisits",
    "Lane",
    "LoadedBlocklist",
    "Maintenance",
    "MarkupChange",
    "MarkupPart",
    "MeasuredValue",
    "MeasuredVersion",
    "Mention",
    "MentionKind",
    "MissingExtra",
    "Moment",
    "Move",
    "MovedPage",
    "NoiseKind",
    "Page",
    "PageHistory",
    "PageState",
    "PageWarning",
    "PipelineName",
    "Plan",
    "Policy",
    "Proof",
    "QueueStatistics",
    "RankOrder",
    "Region",
    "Render",
    "RenderMode",
    "Report",
    "RereadVersions",
    "ResourceUse",
    "RunStopped",
    "Safety",
    "SafetyLists",
    "Schedule",
    "Settings",
    "SkipReason",
    "SkippedURLs",
    "StallRecord",
    "Stop",
    "StoreBusy",
    "StoreError",
    "StoreLocked",
    "StoreUnavailable",
    "TextBlock",
    "Turn",
    "Turned",
    "UnknownChange",
    "UnknownPage",
    "UnknownVersion",
    "UnreadableRow",
    "UnsafeReport",
    "UpcomingCheck",
    "UsageError",
    "Verdict",
    "Version",
    "VisitFormat",
    "VisitTotals",
    "Visited",
    "WarningKind",
    "WatchedSite",
    "WordPiece",
    "__version__",
    "load_settings",
    "open",
]

#: where the public names are defined: they are imported on first use
_HOMES: dict[str, tuple[str, ...]] = {
    "driftline.api.groups": (
        "Maintenance",
        "SafetyLists",
        "Schedule",
        "UpcomingCheck",
        "VisitTotals",
        "WatchedSite",
    ),
    "driftline.api.page_history": ("PageHistory",),
    "driftline.api.watch_list": (
        "Driftline",
        "open",
    ),
    "driftline.capacity": ("ResourceUse",),
    "driftline.crawl.report": (
        "CrawlReport",
        "DuplicatePage",
        "MovedPage",
        "SkippedURLs",
    ),
    "driftline.detection.diff.markup": ("MarkupChange", "MarkupPart"),
    "driftline.detection.diff.tables": ("ChangedCell",),
    "driftline.detection.diff.text_diff": ("Move", "WordPiece"),
    "driftline.detection.extract.conditions": ("MeasuredValue", "MeasuredVersion"),
    "driftline.detection.extract.outline": ("TextBlock",),
    "driftline.durations": (
        "Duration",
        "Moment",
    ),
    "driftline.errors": (
        "BadFilter",
        "BadSetting",
        "BadURL",
        "DriftlineError",
        "FailureKind",
        "MissingExtra",
        "RunStopped",
        "StoreBusy",
        "StoreError",
        "StoreLocked",
        "StoreUnavailable",
        "UnknownChange",
        "UnknownPage",
        "UnknownVersion",
        "UsageError",
    ),
    "driftline.model.change": (
        "Change",
        "ChangeKind",
        "Edit",
        "Feedback",
        "Importance",
        "Mention",
        "MentionKind",
        "NoiseKind",
        "Region",
    ),
    "driftline.model.event": (
        "Event",
        "EventKind",
        "EventPage",
        "EventSource",
        "Ignored",
        "Turn",
        "Turned",
    ),
    "driftline.model.outcome": (
        "Check",
        "Proof",
        "Verdict",
        "Version",
    ),
    "driftline.model.page": (
        "BlockedPage",
        "Failure",
        "Filter",
        "FilterKind",
        "Lane",
        "Page",
        "PageState",
        "PageWarning",
        "Policy",
        "Render",
        "RenderMode",
        "Safety",
        "SkipReason",
        "WarningKind",
    ),
    "driftline.model.visit": ("Visited",),
    "driftline.pipeline.check_run": (
        "FailedPage",
        "Report",
    ),
    "driftline.pipeline.plan": (
        "PipelineName",
        "Plan",
    ),
    "driftline.pipeline.queue": ("QueueStatistics",),
    "driftline.pipeline.reread": ("RereadVersions",),
    "driftline.pipeline.stop": ("Stop",),
    "driftline.safety.blocklists": ("LoadedBlocklist",),
    "driftline.settings": (
        "HostSettings",
        "Settings",
        "load_settings",
    ),
    "driftline.store.compaction": ("CompactedStore",),
    "driftline.store.safety_records": (
        "Blocklist",
        "UnsafeReport",
    ),
    "driftline.store.ledger": ("StallRecord",),
    "driftline.visits.import_tally": ("UnreadableRow",),
    "driftline.visits.importer": (
        "ImportedVisits",
        "VisitFormat",
    ),
    "driftline.visits.rank": ("RankOrder",),
}

if TYPE_CHECKING:
    from driftline.api.groups import Maintenance, SafetyLists, Schedule, UpcomingCheck, VisitTotals, WatchedSite
    from driftline.api.page_history import PageHistory
    from driftline.api.watch_list import Driftline, open  # noqa: A004 driftline.open is what a reader expects
    from driftline.capacity import ResourceUse
    from driftline.crawl.report import CrawlReport, DuplicatePage, MovedPage, SkippedURLs
    from driftline.detection.diff.markup import MarkupChange, MarkupPart
    from driftline.detection.diff.tables import ChangedCell
    from driftline.detection.diff.text_diff import Move, WordPiece
    from driftline.detection.extract.conditions import MeasuredValue, MeasuredVersion
    from driftline.detection.extract.outline import TextBlock
    from driftline.durations import Duration, Moment
    from driftline.errors import (
        BadFilter,
        BadSetting,
        BadURL,
        DriftlineError,
        FailureKind,
        MissingExtra,
        RunStopped,
        StoreBusy,
        StoreError,
        StoreLocked,
        StoreUnavailable,
        UnknownChange,
        UnknownPage,
        UnknownVersion,
        UsageError,
    )
    from driftline.model.change import (
        Change,
        ChangeKind,
        Edit,
        Feedback,
        Importance,
        Mention,
        MentionKind,
        NoiseKind,
        Region,
    )
    from driftline.model.event import Event, EventKind, EventPage, EventSource, Ignored, Turn, Turned
    from driftline.model.outcome import Check, Proof, Verdict, Version
    from driftline.model.page import (
        BlockedPage,
        Failure,
        Filter,
        FilterKind,
        Lane,
        Page,
        PageState,
        PageWarning,
        Policy,
        Render,
        RenderMode,
        Safety,
        SkipReason,
        WarningKind,
    )
    from driftline.model.visit import Visited
    from driftline.pipeline.check_run import FailedPage, Report
    from driftline.pipeline.plan import PipelineName, Plan
    from driftline.pipeline.queue import QueueStatistics
    from driftline.pipeline.reread import RereadVersions
    from driftline.pipeline.stop import Stop
    from driftline.safety.blocklists import LoadedBlocklist
    from driftline.settings import HostSettings, Settings, load_settings
    from driftline.store.compaction import CompactedStore
    from driftline.store.ledger import StallRecord
    from driftline.store.safety_records import Blocklist, UnsafeReport
    from driftline.visits.import_tally import UnreadableRow
    from driftline.visits.importer import ImportedVisits, VisitFormat
    from driftline.visits.rank import RankOrder


def __getattr__(name: str) -> Any:
    """Import on first use: a worker process needs one module of the package and must start fast."""
    home = next((module for module, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'driftline' has no attribute '{name}'")
    found = globals()[name] = getattr(import_module(home), name)
    return found


def __dir__() -> list[str]:
    """List the public names, for completion and `help`, although they are imported on first use."""
    return sorted(__all__)
