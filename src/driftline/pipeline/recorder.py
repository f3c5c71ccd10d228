"""The recorder: outcomes of all consumers, committed in batches, one transaction each."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Protocol

from driftline.model import Change, Proof, Verdict, change_id
from driftline.pipeline.events import Event, events_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.model import Outcome

_MOST_PENDING_BYTES = 32 * 1024 * 1024
_BATCH = 512
_OVERHEAD = 500  # bytes an outcome takes beside its contents
_LINGER = 0.05  # seconds that a small batch waits for company


class Ledger(Protocol):
    """Where outcomes are kept."""

    def record(self, run_id: int, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """Commit these outcomes in one transaction; those of them that were not recorded before."""


class Recorder:
    """Commits outcomes in the order in which they come, in a thread of its own, and counts what it committed.

    Nothing is counted before it is committed. When a commit fails, the failure is kept for `close` to raise, `failed`
    turns true, and what comes after is dropped, to be checked again by the next run.
    """

    def __init__(self, ledger: Ledger, run_id: int, told: Callable[[Sequence[Outcome]], None] | None = None) -> None:
        self._ledger = ledger
        self._run_id = run_id
        self._told = told
        self._lock = threading.Lock()
        self._pending: list[Outcome] = []
        self._pending_bytes = 0
        self._wanted = threading.Condition(self._lock)
        self._drained = threading.Condition(self._lock)
        self._closed = False
        self._error: Exception | None = None
        self._counts: Counter[Verdict] = Counter()
        self._bytes = self._noisy = 0
        self._changes: list[Change] = []
        self._beside: list[Change] = []
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        self._thread.start()

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Hand over outcomes to be committed soon; waits while too much is pending."""
        with self._lock:
            while self._pending_bytes > _MOST_PENDING_BYTES and self._error is None:
                self._drained.wait()
            if self._error is not None:
                return
            was = len(self._pending)
            self._pending += outcomes
            self._pending_bytes += _weight(outcomes)
            if not was or len(self._pending) >= _BATCH:
                self._wanted.notify()

    @property
    def failed(self) -> bool:
        """Whether a commit failed, so that going on is pointless."""
        return self._error is not None

    def counts(self) -> Counter[Verdict]:
        """How many outcomes of each kind are committed."""
        with self._lock:
            return self._counts.copy()

    @property
    def bytes(self) -> int:
        """How many bytes the committed documents had on the wire."""
        return self._bytes

    @property
    def noisy(self) -> int:
        """Of how many pages only noise changed."""
        return self._noisy

    def changes(self) -> list[Change]:
        """The changes that are committed, in that order."""
        with self._lock:
            return self._changes.copy()

    def events(self) -> list[Event]:
        """What there is to tell of the changes that are committed."""
        with self._lock:
            return events_of(self._changes + self._beside)

    def close(self) -> None:
        """Commit what is pending and end; raises what a commit failed with."""
        with self._lock:
            self._closed = True
            self._wanted.notify()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        while True:
            with self._lock:
                while not self._pending and not self._closed:
                    self._wanted.wait()
                if not self._closed and len(self._pending) < _BATCH:
                    self._wanted.wait(_LINGER)
                batch, self._pending = self._pending, []
                self._pending_bytes = 0
                if not batch:
                    return
                self._drained.notify_all()
            try:
                recorded = self._ledger.record(self._run_id, batch)
                with self._lock:
                    self._counts.update([outcome.verdict for outcome in recorded])
                    self._bytes += sum([outcome.document.size for outcome in recorded])
                    self._noisy += sum([outcome.proof is Proof.NOISE for outcome in recorded])
                    self._changes += [_change(outcome) for outcome in recorded if outcome.verdict is Verdict.CHANGED]
                    self._beside += [_change(outcome) for outcome in recorded if _is_beside(outcome)]
                if self._told is not None:
                    self._told(recorded)
            except Exception as error:  # noqa: BLE001 kept, and raised by `close`: nobody else can hear it
                with self._lock:
                    self._error = error
                    self._drained.notify_all()
                return


def changes_of(outcomes: Sequence[Outcome]) -> list[Change]:
    """What changed by these outcomes: what matters, and noise with a cause that other pages may share."""
    return [_change(outcome) for outcome in outcomes if outcome.verdict is Verdict.CHANGED or _is_beside(outcome)]


def _is_beside(outcome: Outcome) -> bool:
    """Whether only noise changed, with a cause that other pages may share."""
    return outcome.verdict is Verdict.UNCHANGED and outcome.change is not None and bool(outcome.change.cause)


def _change(outcome: Outcome) -> Change:
    summary, version = outcome.change, outcome.version
    assert summary is not None
    assert version is not None
    return Change(
        id=change_id(outcome.document.link.page_id, outcome.document.link.sequence),
        url=outcome.document.link.url,
        at=outcome.document.fetched_at,
        from_version=version.number - 1,
        to_version=version.number,
        kind=summary.kind,
        verdict=summary.verdict,
        score=summary.score,
        reason=summary.reason,
        cause=summary.cause,
    )


def _weight(outcomes: Sequence[Outcome]) -> int:
    kept = [blob for outcome in outcomes if outcome.version is not None for blob in outcome.version.blobs]
    return sum([len(blob.data) for blob in kept]) + _OVERHEAD * len(outcomes)
