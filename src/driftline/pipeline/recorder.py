"""The recorder: outcomes of all consumers, committed in batches, one transaction each."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from driftline.capacity import Capacity
from driftline.errors import RunStopped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.capacity import Reservation, ResourceUse
    from driftline.model.outcome import Document, Failed

_MOST_BYTES = 64 * 1024 * 1024  # of what waits to be committed and of what is being committed
_BATCH = 512
_OVERHEAD = 500  # bytes an outcome takes beside its contents
_LAST_WAIT = 2.0  # seconds for the last commit of a run that has stalled
_LAST_WAIT_OF_STOPPED = 3.0  # seconds for each of the last commits of a run that was stopped, which is to end in five
_LOOK = 0.5  # seconds between looks at whether it has
_LINGER = 0.05  # seconds that a small batch waits for more outcomes


class Recordable(Protocol):
    """An outcome of any pipeline."""

    @property
    def document(self) -> Document:
        """What was fetched."""

    def held_bytes(self) -> int:
        """Return how many bytes of content it holds in memory."""


T = TypeVar("T", bound=Recordable)
T_contra = TypeVar("T_contra", bound=Recordable, contravariant=True)


class Sink(Protocol[T_contra]):
    """Where the outcomes of a pipeline go. Called by one thread."""

    def record(self, outcomes: Sequence[T_contra | Failed]) -> None:
        """Commit these outcomes in one transaction, then pass on those that were not recorded before."""

    def settle(self, outcomes: Sequence[T_contra | Failed]) -> None:
        """Note that these outcomes, and what was learned of their hosts, are in the store: their pages are done."""


class Recorder(Generic[T]):
    """Commits outcomes in the order in which they come, in a thread of its own, and keeps nothing of them.

    When a commit fails, the failure is kept for `close` to raise, `failed` becomes true, and what is added later is
    dropped, to be checked again by the next run. `given_up` is true once `give_up` was called.

    Once the run is `stopped`, `close` does not wait for a commit that takes long: another program may have locked what
    it needs.
    """

    def __init__(self, sink: Sink[T], stopped: Callable[[], bool] = lambda: False) -> None:
        self._sink = sink
        self._stopped = stopped
        self._commits = 0
        self._lock = threading.Lock()
        self._pending: list[tuple[Sequence[T | Failed], Reservation]] = []
        self._pending_outcomes = 0
        self._bytes = Capacity("recorder: bytes", _MOST_BYTES)
        self._wanted = threading.Condition(self._lock)
        self._closed = False
        self.given_up = False
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        self._started = False  # with the first outcome

    def __repr__(self) -> str:
        # without the lock: figures of different moments do no harm
        return f"<Recorder pending={self._pending_outcomes} commits={self._commits} failed={self.failed}>"

    def add(self, outcomes: Sequence[T | Failed]) -> None:
        """Hand over outcomes to be committed soon. Waits while too much is pending."""
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
                if not self._started:
                    self._started = True
                    self._thread.start()
        if dropped:
            reservation.release()

    def statistics(self) -> ResourceUse:
        """Return how many bytes wait to be committed."""
        return self._bytes.statistics()

    @property
    def failed(self) -> bool:
        """Return whether a commit failed, so that going on is pointless."""
        return self._error is not None

    def give_up(self) -> None:
        """Let no thread wait for room any more, after a stall that may be here. What is added later is dropped."""
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
        if self.given_up and self._started:
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
            except Exception as error:  # noqa: BLE001 kept, and raised by `close`
                with self._lock:
                    self._error = error
                    pending += self._pending
                    self._pending = []
                self._bytes.close()
                return
            finally:
                for _, reservation in pending:
                    reservation.release()

    def _commit(self, batch: list[T | Failed]) -> None:
        self._sink.record(batch)
        self._commits += 1
        self._sink.settle(batch)


def weight_of(outcome: Recordable) -> int:
    """Return the bytes that an outcome counts for while it waits: what it holds, and a little for itself."""
    return _OVERHEAD + outcome.held_bytes()
