"""The library and the commands call the same things by the same names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from driftline import Driftline, PageHistory, SafetyLists, Schedule, VisitTotals
from driftline.cli import (
    add_command,
    blocklist_command,
    check,
    crawl_command,
    history_commands,
    rank_command,
    run,
    schedule_command,
    search_command,
    visit_command,
)
from driftline.model.page import FilterKind

#: parameters of commands that are about the terminal, the store, or settings, which the library has elsewhere
NOT_THERE = {
    "as_json", "as_csv", "store", "every_one", "every_page", "verbose", "once", "command", "host_delay",
    "host_connections", "robots", "allow_network", "stall_after", "output", "raw", "blocks",
    "plot", "example", "context", "listed", "withdraw",
}  # fmt: skip
#: options that are attributes of one argument in the library
WITHIN = {
    "filters": {option.replace("-", "_") for option in FilterKind},
    "render": {"render", "wait_for", "step"},
    "plan": {"pipeline", "producers", "slots", "consumers", "comparers", "queues", "capacity"},
}


@pytest.mark.parametrize(
    ("method", "of_command", "others"),
    [
        (Driftline.add, add_command.add, {"tag": "tags", "later": None}),
        (Driftline.check, check.check, {"accept": None}),
        (Driftline.watch, run.run, {}),
        (Driftline.crawl, crawl_command.crawl, {}),
        (Driftline.changes, history_commands.changes, {}),
        (Driftline.search, search_command.search, {"page": "url", "words": "query"}),
        (Driftline.visit, visit_command.visit, {"unavailable": "available"}),
        (Driftline.rank, rank_command.rank, {}),
        (Schedule.upcoming, schedule_command.schedule, {}),
        (PageHistory.checks, history_commands.history, {"every_check": "news_only"}),
        (PageHistory.version, history_commands.show, {}),
        (PageHistory.screenshot, history_commands.screenshot, {}),
        (VisitTotals.import_file, visit_command.import_, {"file": "path", "file_format": "format"}),
        (SafetyLists.report, blocklist_command.report_unsafe, {}),
    ],
)
def test_an_option_is_an_argument_of_the_same_name(
    method: Callable[..., Any], of_command: Callable[..., Any], others: dict[str, str | None]
) -> None:
    accepted = set(inspect.signature(method).parameters)
    accepted |= {option for argument, options in WITHIN.items() if argument in accepted for option in options}
    options = set(inspect.signature(of_command).parameters) - NOT_THERE
    meant = {others.get(option, option) for option in options} - {None}
    assert meant - accepted == set()
