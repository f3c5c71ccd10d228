"""Rights on PostgreSQL: a row that says who has a right until when, renewed while its holder is at work.

Unlike a lock that a connection holds, it outlives a lost connection and a restart of the server. Times are those of the
server. A holder goes by its own clock, from before it asked, and less a margin: it stops before anybody else can begin.
A right whose process was killed on this machine is taken over at once, others when their time is over.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import text

from driftline.errors import StoreBusy, StoreError
from driftline.store.tunables import WAITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from driftline.store.engine import Store
    from driftline.store.process_locks import Right

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


class Lease:
    """A right that this process has. Used by any thread; the keeper renews it."""

    def __init__(self, name: str, epoch: int, until: float) -> None:
        self.name = name
        self.epoch = epoch
        self.until = until  # by the clock of this machine
        self.lost = False

    def holds(self) -> bool:
        """Whether it can be relied on now: not once the server did not answer for long, or somebody else has it."""
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

    def close(self) -> None:
        """End the thread; what is still held ends by its time."""
        self._closed.set()

    @contextmanager
    def held(self, right: Right) -> Iterator[Lease]:
        """Have a right for a block; StoreBusy if another process has it."""
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
            with suppress(StoreError):  # then it ends by its time
                if not lease.lost:
                    self._give_back(lease)

    def renew(self) -> None:
        """Renew every lease that is held, and see which were lost; StoreUnavailable if the server does not answer."""
        with self._lock:
            held = [lease for lease in self._held if not lease.lost]
        for lease in held:
            self._renew(lease)

    def is_held(self, right: Right) -> bool:
        """Whether some process has this right: not one of this machine that has ended."""
        with self._store.read() as connection:
            owner = connection.scalar(_HELD_BY, {"name": right.name})
        return owner is not None and not _is_dead(owner)

    def _take(self, right: Right) -> Lease:
        name = right.name
        with self._store.read() as connection:
            holder, epoch_of_holder = connection.execute(_HOLDER, {"name": name}).one_or_none() or (None, 0)
        with self._lock:
            held_here = self._taking[name] > 1 or any(lease.name == name for lease in self._held)
        # a lease of our own that nobody holds was taken in a commit of which we never heard
        over = holder is not None and (_is_dead(holder) or (holder == self._owner and not held_here))
        dead = holder if over else ""
        asked_at = _ticks()
        with self._store.write_aside() as connection:
            values = {
                "name": name, "owner": self._owner, "dead": dead, "epoch": epoch_of_holder, "seconds": SECONDS,
            }  # fmt: skip
            epoch = connection.scalar(_TAKE, values)
        if epoch is None:
            number = holder.split("/")[2] if holder and _is_here(holder) else ""
            raise StoreBusy(right.refused(f" (process {number})" if number else "", self._store.where))
        return Lease(name, epoch, asked_at + SECONDS - _MARGIN)

    def _give_back(self, lease: Lease) -> None:
        with self._store.write_aside() as connection:
            connection.execute(_GIVE_BACK, {"name": lease.name, "epoch": lease.epoch})

    def _work(self) -> None:
        pause = WAITS.renewal
        while not self._closed.wait(pause):
            try:
                self.renew()
                pause = WAITS.renewal
            except Exception:  # noqa: BLE001 whoever is told of an outage may fail, too; leases must not end by that
                pause = _RETRY

    def _renew(self, lease: Lease) -> None:
        asked_at = _ticks()
        with self._store.write_aside() as connection:
            values = {"name": lease.name, "epoch": lease.epoch, "seconds": SECONDS}
            if connection.scalar(_RENEW_ONE, values) is None:
                lease.lost = True
                return
        lease.until = asked_at + SECONDS - _MARGIN


def _ticks() -> float:
    """Seconds that also pass while the machine sleeps, as the server's do."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _machine() -> str:
    """What only processes have in common that see each other: the boot of the machine, and the space of their ids."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    return f"{uuid.uuid4()}/"


def _started(pid: int) -> str | None:
    """When a process of this machine was started, in ticks of its clock; None if there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def _identity() -> str:
    """What names this process: its machine, its number, when it was started, and a number of its own."""
    pid = os.getpid()
    return f"{_machine()}/{pid}/{_started(pid) or ''}/{uuid.uuid4().hex[:8]}"


def _is_here(owner: str) -> bool:
    return owner.startswith(_machine() + "/")


def _is_dead(owner: str) -> bool:
    """Whether this names a process of this machine that has ended."""
    if not _is_here(owner):
        return False
    pid, started = owner.split("/")[2:4]
    return _started(int(pid)) != started
