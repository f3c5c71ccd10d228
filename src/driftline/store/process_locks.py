"""Rights that only one process has at a time: to check the pages of a store, to be the next to do so, to be the `run`.

A killed process leaves nothing to clean up. With SQLite, a right is a lock on a file, which ends with its process.

With PostgreSQL, it is a lease: a row with its owner and the time until which it is valid, renewed while the owner
works. Unlike a lock of a connection, it outlives a lost connection and a restart of the server. Its times are those of
the server. The owner counts from before its request, by its own clock, and stops some seconds before the end, so that
it never overlaps with the next one. If the owner is killed, processes of the same machine can take the lease
immediately, others when it ends.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
import uuid
from collections import Counter
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from sqlalchemy import text

from driftline.errors import RunStopped, StoreBusy, StoreError, StoreLocked, StoreUnavailable
from driftline.store.locks import WAITS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from driftline.store.engine import Store

    #: a `with` block in which this process has a right
    Having: TypeAlias = AbstractContextManager["Claim"]

_LOG = logging.getLogger(__name__)

SECONDS = 15.0  # that a lease lasts
_MARGIN = 3.0  # seconds before its end at which the holder stops
_RETRY = 0.5  # seconds between tries while the server does not answer

_TAKE = text(
    "INSERT INTO leases AS held (name, owner, epoch, until)"
    " VALUES (:name, :owner, 1, extract(epoch FROM clock_timestamp()) + :seconds)"
    " ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, epoch = held.epoch + 1, until = excluded.until"
    " WHERE held.until <= extract(epoch FROM clock_timestamp()) OR (held.owner = :dead AND held.epoch = :epoch)"
    " RETURNING epoch"
)
_RENEW_ONE = text(
    "UPDATE leases SET until = extract(epoch FROM clock_timestamp()) + :seconds"
    " WHERE name = :name AND epoch = :epoch AND until > 0 RETURNING epoch"  # 0 once it was given back
)
_GIVE_BACK = text("UPDATE leases SET until = 0 WHERE name = :name AND epoch = :epoch")
_HOLDER = text("SELECT owner, epoch FROM leases WHERE name = :name")
_HELD_BY = text("SELECT owner FROM leases WHERE name = :name AND until > extract(epoch FROM clock_timestamp())")


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """A right: its name in PostgreSQL, and the suffix of its lock file beside an SQLite store.

    `refusal` is the message for processes that cannot have it, with the placeholders `{holder}` for the process that
    has it and `{where}` for the store.
    """

    name: str
    ending: str
    refusal: str

    def refused(self, holder: str, where: str) -> str:
        """Return the message for a process that cannot have it."""
        return self.refusal.format(holder=holder, where=where)


class Claim(Protocol):
    """A right that this process has taken."""

    def holds(self) -> bool:
        """Return whether the right can be relied on now. It may be lost for a while, or for good: see `lost`."""

    @property
    def lost(self) -> bool:
        """Return whether another process has taken the right meanwhile."""


class FileClaim:
    """A right by a lock on a file, which no other process can take away."""

    lost = False

    def holds(self) -> bool:
        """Return True."""
        return True


TO_CHECK = Right(
    name="check",
    ending=".lock",
    refusal="Another run{holder} is checking the pages of {where}: wait until it is done or makes way, as 'driftline "
    "run' does, or stop it.",
)
TO_BE_NEXT = Right(
    name="be next",
    ending=".next.lock",
    refusal="Another process{holder} waits already to check the pages of {where} next: try again later.",
)
TO_KEEP_CHECKING = Right(
    name="keep checking",
    ending=".run.lock",
    refusal="Another 'driftline run'{holder} keeps checking the pages of {where} already: stop it first, or "
    "let it do the work.",
)


@contextmanager
def held_by_file(right: Right, store: Path, where: str) -> Iterator[Claim]:
    """Hold the right for a block by a lock on a file beside the store; StoreBusy if another process has it."""
    # a store with several names, by links, must have one lock
    path = f"{store.resolve()}{right.ending}"
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(
            f"The lock file '{path}' cannot be opened ({error.strerror}): if it is another user's, run this command as "
            "that user, or remove the file while no process uses the store."
        ) from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(lock, 32).decode("ascii", "replace").strip()
            raise StoreBusy(right.refused(f" (process {holder or 'unknown'})", where)) from None
        with suppress(OSError):  # on a full disk the file cannot name its holder, but the lock works
            os.ftruncate(lock, 0)
            os.write(lock, str(os.getpid()).encode())
        _LOG.info("took the right to %s", right.name, extra={"lock": str(path)})
        yield FileClaim()
    finally:
        os.close(lock)


def is_held_by_file(right: Right, store: Path) -> bool:
    """Return whether a process has the right by a lock on its file, without creating the file.

    False if the file cannot be read because it belongs to another user: that is no reason to end a run.
    """
    try:
        lock = os.open(f"{store.resolve()}{right.ending}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


class Lease:
    """A right of this process, which `LeaseKeeper` renews. Used by any thread."""

    def __init__(self, name: str, epoch: int, until: float) -> None:
        self.name = name
        self.epoch = epoch
        self.until = until  # by the clock of this machine
        self.lost = False

    def __repr__(self) -> str:
        state = "lost" if self.lost else f"{self.until - _ticks():.1f} s left"
        return f"<Lease to {self.name}, epoch {self.epoch}, {state}>"

    def holds(self) -> bool:
        """Return whether it can be relied on now: not after renewals failed for long, or another process took it."""
        return not self.lost and _ticks() < self.until


class LeaseKeeper:
    """Takes leases in a store and renews them, in a thread that starts with the first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._owner = _identity()
        self._lock = threading.Lock()
        self._held: list[Lease] = []
        self._taking: Counter[str] = Counter()  # how many threads are taking the right of a name
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()

    def __repr__(self) -> str:
        return f"<LeaseKeeper {self._held}>"

    def close(self) -> None:
        """End the thread; leases that are still held expire."""
        self._closed.set()

    @contextmanager
    def held(self, right: Right) -> Iterator[Lease]:
        """Hold a right for a block; StoreBusy if another process has it."""
        with self._lock:
            self._taking[right.name] += 1
        lease: Lease | None = None
        try:
            lease = self._take(right)
        finally:
            with self._lock:
                self._taking[right.name] -= 1
                if lease is not None:
                    self._held.append(lease)
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="lease keeper", daemon=True)
                self._thread.start()
        try:
            yield lease
        finally:
            with self._lock:
                self._held.remove(lease)
            with suppress(StoreError):  # then it expires
                if not lease.lost:
                    self._give_back(lease)

    def renew(self) -> None:
        """Renew every lease, and mark those that are lost; StoreUnavailable if the server does not answer."""
        with self._lock:
            held = [lease for lease in self._held if not lease.lost]
        for lease in held:
            self._renew(lease)

    def is_held(self, right: Right) -> bool:
        """Return whether a process has this right; one of this machine that has ended does not count."""
        with self._store.read() as connection:
            owner = connection.scalar(_HELD_BY, {"name": right.name})
        return owner is not None and not _is_dead(owner)

    def _take(self, right: Right) -> Lease:
        name = right.name
        with self._store.read() as connection:
            holder, epoch_of_holder = connection.execute(_HOLDER, {"name": name}).one_or_none() or (None, 0)
        with self._lock:
            held_here = self._taking[name] > 1 or any(lease.name == name for lease in self._held)
        # a lease of our own that no thread holds is from a commit whose answer was lost
        over = holder is not None and (_is_dead(holder) or (holder == self._owner and not held_here))
        dead = holder if over else ""
        requested_at = _ticks()
        with self._store.write_aside() as connection:
            values = {
                "name": name, "owner": self._owner, "dead": dead, "epoch": epoch_of_holder, "seconds": SECONDS,
            }  # fmt: skip
            epoch = connection.scalar(_TAKE, values)
        if epoch is None:
            number = holder.split("/")[2] if holder and _is_here(holder) else ""
            raise StoreBusy(right.refused(f" (process {number})" if number else "", self._store.where))
        lease = Lease(name, epoch, requested_at + SECONDS - _MARGIN)
        _LOG.info("took the lease %s", lease.name, extra={"lease": lease.name, "epoch": lease.epoch})
        return lease

    def _give_back(self, lease: Lease) -> None:
        with self._store.write_aside() as connection:
            connection.execute(_GIVE_BACK, {"name": lease.name, "epoch": lease.epoch})

    def _work(self) -> None:
        pause = WAITS.renewal
        while not self._closed.wait(pause):
            try:
                self.renew()
                pause = WAITS.renewal
            except Exception as error:  # noqa: BLE001 also from `Store.on_outage`; leases must not expire because of it
                _LOG.info("leases could not be renewed: %s", error)
                pause = _RETRY

    def _renew(self, lease: Lease) -> None:
        requested_at = _ticks()
        with self._store.write_aside() as connection:
            values = {"name": lease.name, "epoch": lease.epoch, "seconds": SECONDS}
            if connection.scalar(_RENEW_ONE, values) is None:
                lease.lost = True
                _LOG.info("lost the lease %s", lease.name, extra={"lease": lease.name, "epoch": lease.epoch})
                return
        lease.until = requested_at + SECONDS - _MARGIN


class RegainedRight:
    """A right that is taken again after it was lost. Used by any thread, in a `with` block that gives it back.

    One thread at a time takes or releases it, since two that take it at once would refuse it to each other. The others
    wait for that, but not for a lock: the lock guards memory only, and is not held while the store is used.
    """

    def __init__(self, take: Callable[[], Having]) -> None:
        self._take = take
        self._idle = threading.Condition()
        self._changing = False  # whether a thread is taking or releasing the right
        self._rights = ExitStack()
        self._claim: Claim | None = None

    def __repr__(self) -> str:
        return f"<RegainedRight {self._claim!r}{' changing' if self._changing else ''}>"

    def take(self) -> None:
        """Take the right, unless it is held and can be relied on; StoreBusy if another process has it."""
        with self._alone():
            if not self.holds():
                self._release()
                self._claim = self._rights.enter_context(self._take())

    def give_back(self) -> None:
        """Release the right, if it is held."""
        with self._alone():
            self._release()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until no other thread takes or releases the right, and keep others from it for a block."""
        with self._idle:
            self._idle.wait_for(lambda: not self._changing)
            self._changing = True
        try:
            yield
        finally:
            with self._idle:
                self._changing = False
                self._idle.notify()

    def holds(self) -> bool:
        """Return whether the right was taken and can be relied on now."""
        claim = self._claim
        return claim is not None and claim.holds()

    def lapsed(self) -> bool:
        """Return whether the right was taken and cannot be relied on now."""
        claim = self._claim
        return claim is not None and not claim.holds()

    def regain(self, stopped: Callable[[], bool]) -> None:
        """Take the right if it was lost, waiting for an unavailable server and for other processes that have it.

        Raises RunStopped if the run is `stopped` meanwhile.
        """
        while not stopped():
            try:
                self.take()
            except (StoreBusy, StoreLocked, StoreUnavailable):
                time.sleep(WAITS.right)
            else:
                return
        raise RunStopped("The run was stopped while it waited for the right to check pages.")

    def _release(self) -> None:
        self._claim = None
        self._rights.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give_back()


def _ticks() -> float:
    """Return a monotonic time in seconds that also advances while the machine sleeps, as the server's time does."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _machine() -> str:
    """Return an identifier of this machine since its last boot, with the namespace of process ids."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    return f"{uuid.uuid4()}/"


def _started(pid: int) -> str | None:
    """Return the start time of a process of this machine, in clock ticks; None if there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def _identity() -> str:
    """Return an identifier of this process: its machine, its id, its start time, and a random number."""
    pid = os.getpid()
    return f"{_machine()}/{pid}/{_started(pid) or ''}/{uuid.uuid4().hex[:8]}"


def _is_here(owner: str) -> bool:
    return owner.startswith(_machine() + "/")


def _is_dead(owner: str) -> bool:
    """Return whether this owner is a process of this machine that has ended."""
    if not _is_here(owner):
        return False
    pid, started = owner.split("/")[2:4]
    return _started(int(pid)) != started
