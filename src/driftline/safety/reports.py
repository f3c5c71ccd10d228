"""Reports of unsafe pages by users: votes with reasons, which count until they are withdrawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline.errors import BadSetting
from driftline.store.safety_records import SafetyRecords

if TYPE_CHECKING:
    from collections.abc import Callable

    from driftline.store.engine import Store
    from driftline.store.safety_records import Reported

_MOST_VOTES = 1_000_000
_LONGEST_REASON = 500  # characters


class Reports:
    """The reports of the store, each for the canonical URL of a page."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._records = SafetyRecords(store)
        self._clock = clock

    def add(self, url: str, *, reason: str = "", votes: int = 1, whole_host: bool = False) -> Reported:
        """Add a report with so many votes. Returns all reports of the page together; raises BadSetting."""
        if not 1 <= votes <= _MOST_VOTES:
            raise BadSetting(f"A report counts as 1 to {_MOST_VOTES:,} votes, not {votes:,}.")
        reason = " ".join(reason.split())
        if len(reason) > _LONGEST_REASON:
            raise BadSetting(f"A reason has {_LONGEST_REASON} characters at most; this one has {len(reason):,}.")
        return self._records.add_report(url, whole_host=whole_host, votes=votes, reason=reason, at=self._clock())

    def withdraw(self, url: str, *, whole_host: bool = False) -> int:
        """Remove the reports of a page. Returns how many there were."""
        return self._records.remove_reports(url, whole_host=whole_host)

    def all(self) -> list[Reported]:
        """Return the reports of each page together, in the order of the first reports."""
        return self._records.reports()
