"""The recorder: outcomes of all consumers, committed in batches, one transaction each."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

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
    """Commits outcomes in the order in which they come, in a thread of its own, and keeps nothing of them.

    `told` hears of each batch what of it was not recorded before, and `settled` of all of it; both once it is
    committed. When a commit fails, the failure is kept for `close` to raise, `failed` turns true, and what comes after
    is dropped, to be checked again by the next run.
    """

    def __init__(
        self, ledger: Ledger, run_id: int, told: Callable[[Sequence[Outcome]], None],
        settled: Callable[[Sequence[Outcome]], None] | None = None,
    ) -> None:  # fmt: skip
        self._ledger = ledger
        self._run_id = run_id
        self._told = told
        self._settled = settled
        self._lock = threading.Lock()
        self._pending: list[Outcome] = []
        self._pending_bytes = 0
        self._wanted = threading.Condition(self._lock)
        self._drained = threading.Condition(self._lock)
        self._closed = False
        self._error: Exception | None = None
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
                self._told(self._ledger.record(self._run_id, batch))
                if self._settled is not None:
                    self._settled(batch)
            except Exception as error:  # noqa: BLE001 kept, and raised by `close`: nobody else can hear it
                with self._lock:
                    self._error = error
                    self._drained.notify_all()
                return


def _weight(outcomes: Sequence[Outcome]) -> int:
    pictures = sum([len(picture) for outcome in outcomes if (picture := outcome.document.screenshot) is not None])
    kept = [blob for outcome in outcomes if outcome.version is not None for blob in outcome.version.blobs]
    return sum([len(blob.data) for blob in kept]) + pictures + _OVERHEAD * len(outcomes)
