"""The recorder: outcomes of all consumers, committed in batches, one transaction each."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from driftline.capacity import Capacity
from driftline.errors import RunStopped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.capacity import Reservation, ResourceUse
    from driftline.model import Outcome

_MOST_BYTES = 64 * 1024 * 1024  # of what waits to be committed and of what is being committed
_BATCH = 512
_OVERHEAD = 500  # bytes an outcome takes beside its contents
_LAST_WAIT = 2.0  # seconds for the last commit of a run that has stalled
_LAST_WAIT_OF_STOPPED = 3.0  # seconds for each of the last commits of a run that was stopped, which is to end in five
_LOOK = 0.5  # seconds between looks at whether it has
_LINGER = 0.05  # seconds that a small batch waits for company


class OutcomeLedger(Protocol):
    """Where outcomes are kept."""

    def record(self, run_id: int, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """Commit these outcomes in one transaction; those of them that were not recorded before."""


class Recorder:
    """Commits outcomes in the order in which they come, in a thread of its own, and keeps nothing of them.

    `told` hears of each batch what of it was not recorded before, and `settled` of all of it; both once it is
    committed. When a commit fails, the failure is kept for `close` to raise, `failed` turns true, and what comes after
    is dropped, to be checked again by the next run. `given_up` is true once `give_up` was called.

    Once the run is `stopped`, `close` does not wait for a commit that takes long: another program may have locked what
    it needs.
    """

    def __init__(
        self, ledger: OutcomeLedger, run_id: int, told: Callable[[Sequence[Outcome]], None],
        settled: Callable[[Sequence[Outcome]], None] | None = None, stopped: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        self._ledger = ledger
        self._run_id = run_id
        self._told = told
        self._settled = settled
        self._stopped = stopped
        self._commits = 0
        self._lock = threading.Lock()
        self._pending: list[tuple[Sequence[Outcome], Reservation]] = []
        self._pending_outcomes = 0
        self._bytes = Capacity("recorder: bytes", _MOST_BYTES)
        self._wanted = threading.Condition(self._lock)
        self._closed = False
        self.given_up = False
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        self._thread.start()

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Hand over outcomes to be committed soon; waits while too much is pending."""
        if not outcomes:
            return
        reservation = self._bytes.acquire(sum(map(weight_of, outcomes)))
        if reservation is None:
            return  # a commit failed: what comes after it is dropped
        with self._lock:
            dropped = self._error is not None
            if not dropped:
                was = self._pending_outcomes
                self._pending.append((outcomes, reservation))
                self._pending_outcomes += len(outcomes)
                if not was or self._pending_outcomes >= _BATCH:
                    self._wanted.notify()
        if dropped:
            reservation.release()

    def statistics(self) -> ResourceUse:
        """Return how many bytes wait to be committed."""
        return self._bytes.statistics()

    @property
    def failed(self) -> bool:
        """Whether a commit failed, so that going on is pointless."""
        return self._error is not None

    def give_up(self) -> None:
        """Let nobody wait for room any more: the run has stalled, perhaps here, and what comes after is dropped."""
        self._bytes.close()
        self.given_up = True

    def close(self) -> None:
        """Commit what is pending and end; raises what a commit failed with.

        RunStopped if the run was stopped, and its last commit is not through: the next run checks those pages again.
        """
        with self._lock:
            self._closed = True
            self._wanted.notify()
        waited, commits = 0.0, self._commits
        while self._thread.is_alive() and not self.given_up and waited < _LAST_WAIT_OF_STOPPED:
            self._thread.join(_LOOK)
            waited = waited + _LOOK if self._stopped() and self._commits == commits else 0.0
            commits = self._commits
        if self.given_up:
            self._thread.join(_LAST_WAIT)
        if self._error is not None:
            raise self._error
        if self._thread.is_alive() and not self.given_up:
            self._bytes.close()
            raise RunStopped("The run was stopped before the database took its last results: check these pages again.")

    def _work(self) -> None:
        while True:
            with self._lock:
                while not self._pending and not self._closed:
                    self._wanted.wait()
                if not self._closed and self._pending_outcomes < _BATCH:
                    self._wanted.wait(_LINGER)
                pending, self._pending = self._pending, []
                self._pending_outcomes = 0
            if not pending:
                return
            try:
                self._commit([outcome for outcomes, _ in pending for outcome in outcomes])
            except Exception as error:  # noqa: BLE001 kept, and raised by `close`: nobody else can hear it
                with self._lock:
                    self._error = error
                    pending += self._pending
                    self._pending = []
                self._bytes.close()
                return
            finally:
                for _, reservation in pending:
                    reservation.release()

    def _commit(self, batch: list[Outcome]) -> None:
        recorded = self._ledger.record(self._run_id, batch)
        self._commits += 1
        self._told(recorded)
        if self._settled is not None:
            self._settled(batch)


def weight_of(outcome: Outcome) -> int:
    """Return the bytes that an outcome holds, with the versions and pictures that belong to it."""
    document, version = outcome.document, outcome.version
    old = outcome.pair.old if outcome.pair else None
    blobs = (*(version.blobs if version else ()), *(old.blobs.values() if old else ()))
    return _OVERHEAD + len(document.body) + len(document.screenshot or b"") + sum([len(blob.data) for blob in blobs])
