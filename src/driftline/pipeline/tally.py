"""What a run over pages found, added up from what was recorded."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from driftline.model import Change, Matter, Proof, Turned, Verdict
from driftline.pipeline.events import changes_of, dangers_by, events_of, turned_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.model import Danger, Outcome
    from driftline.pipeline.events import Event


class Tally:
    """Counts outcomes and keeps their changes: for runs that end, since it grows with them."""

    def __init__(self) -> None:
        self.counts: Counter[Verdict] = Counter()
        self.bytes = 0  # of the documents, on the wire
        self.noisy = 0  # pages of which only noise changed
        self._changes: list[Change] = []
        self._turned: list[Turned] = []
        self._dangers: list[Danger] = []

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """These outcomes are recorded."""
        self.counts.update([outcome.verdict for outcome in outcomes])
        self.bytes += sum([outcome.document.size for outcome in outcomes])
        self.noisy += sum([outcome.proof is Proof.NOISE for outcome in outcomes])
        self._changes += changes_of(outcomes)
        self._turned += turned_by(outcomes)
        self._dangers += dangers_by(outcomes)

    def recall(self, changes: Sequence[Change], turned: Sequence[Turned], dangers: Sequence[Danger]) -> None:
        """Keep what earlier runs recorded and did not report. Its pages are not counted: they were checked then."""
        self._changes += changes
        self._turned += turned
        self._dangers += dangers

    def changes(self) -> list[Change]:
        """The changes that matter, in the order in which they were recorded."""
        return [change for change in self._changes if change.verdict is Matter.MEANINGFUL]

    def events(self) -> list[Event]:
        """What there is to tell: changes, those that matter first, then pages that fail or recovered, then warnings."""
        changes = sorted(self._changes, key=lambda change: change.verdict is not Matter.MEANINGFUL)
        return events_of(changes, self._turned, self._dangers)
