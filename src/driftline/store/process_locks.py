"""What one process may do at a time: check the pages of a store, be the next to do so, and be the run that goes on.

Nothing is left behind to be cleaned up. On SQLite a right is a lock on a file, which ends with its process, however
that ends. On PostgreSQL it is a lease (see `leases`): if its holder is killed, processes of the same machine can take
it at once, those of other machines some seconds later. A server that does not answer interrupts it.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from driftline.errors import RunStopped, StoreBusy, StoreError, StoreLocked, StoreUnavailable
from driftline.store.tunables import WAITS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import TracebackType

    #: a block in which one has a right
    Having: TypeAlias = AbstractContextManager["Claim"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """A right by its name in PostgreSQL, and by the ending of the file beside an embedded store.

    `refusal` is what is said to who cannot have it, of `holder`, the process that has it, and `where` the store is.
    """

    name: str
    ending: str
    refusal: str

    def refused(self, holder: str, where: str) -> str:
        """Return what is said to who cannot have it."""
        return self.refusal.format(holder=holder, where=where)


class Claim(Protocol):
    """A right that this process has taken."""

    def holds(self) -> bool:
        """Whether it can be relied on now. It may be lost for a while, or for good: see `lost`."""

    @property
    def lost(self) -> bool:
        """Whether another process has the right by now."""


class FileClaim:
    """A right that nobody can take away."""

    lost = False

    def holds(self) -> bool:
        """Return True."""
        return True


TO_CHECK = Right(
    name="check",
    ending=".lock",
    refusal="Another run{holder} is checking the pages of {where}; its turn ends soon if it is a 'driftline run' that "
    "goes on, else when nothing is left to check, or when it is stopped.",
)
TO_BE_NEXT = Right(
    name="be next",
    ending=".next.lock",
    refusal="Another process{holder} waits to check the pages of {where}, and is the next.",
)
TO_KEEP_CHECKING = Right(
    name="keep checking",
    ending=".run.lock",
    refusal="Another 'driftline run'{holder} keeps checking the pages of {where}, and tells what changes: "
    "stop it first, or leave it to that one.",
)


@contextmanager
def held_by_file(right: Right, store: Path, where: str) -> Iterator[Claim]:
    """Have the right by a lock on a file beside the store, which ends with the process; StoreBusy if another has it."""
    # a store of several names has one lock: what a name points to is what counts
    path = f"{store.resolve()}{right.ending}"
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(
            f"The file '{path}', by which processes take turns, cannot be opened ({error.strerror}): if it is another "
            "user's, start this as that user, or remove it while nobody uses the store."
        ) from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(lock, 32).decode("ascii", "replace").strip()
            raise StoreBusy(right.refused(f" (process {holder or 'unknown'})", where)) from None
        with suppress(OSError):  # on a full disk nobody can read who has it; it is held all the same
            os.ftruncate(lock, 0)
            os.write(lock, str(os.getpid()).encode())
        yield FileClaim()
    finally:
        os.close(lock)


def is_held_by_file(right: Right, store: Path) -> bool:
    """Whether some process has the right by a lock on its file, which is not made for that.

    Nobody has it as far as can be seen if the file is another user's: that is no reason to end a run.
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


class RegainedRight:
    """A right that is taken, and taken again after it was lost; at the end of a `with` block it is given back.

    Used by any thread.
    """

    def __init__(self, take: Callable[[], Having]) -> None:
        self._take = take
        # held while the store is asked: two threads that took the right at once would refuse it to each other
        self._lock = threading.Lock()
        self._rights = ExitStack()
        self._claim: Claim | None = None

    def take(self) -> None:
        """Take the right, unless it is held and can be relied on; StoreBusy if another process has it."""
        with self._lock:
            if not self.holds():
                self._release()
                self._claim = self._rights.enter_context(self._take())

    def give_back(self) -> None:
        """Let others have the right; nothing if it is not held."""
        with self._lock:
            self._release()

    def holds(self) -> bool:
        """Whether the right was taken and can be relied on now."""
        claim = self._claim
        return claim is not None and claim.holds()

    def lapsed(self) -> bool:
        """Whether the right was taken and cannot be relied on now."""
        claim = self._claim
        return claim is not None and not claim.holds()

    def regain(self, stopped: Callable[[], bool]) -> None:
        """Take the right if it was lost, waiting for a server that does not answer and for others who have it.

        RunStopped if the run is `stopped` before.
        """
        while not stopped():
            try:
                self.take()
            except (StoreBusy, StoreLocked, StoreUnavailable):
                time.sleep(WAITS.right)
            else:
                return
        raise RunStopped("The run was stopped while it waited for its turn to check pages.")

    def _release(self) -> None:
        self._claim = None
        self._rights.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give_back()
