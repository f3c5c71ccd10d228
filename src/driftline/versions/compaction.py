"""The version repository in fewer bytes: every blob is compressed again at a high level while checks go on.

What a blob is built on stays as it is, so a check may build on any blob at any moment. A blob takes its new form in one
transaction, in which it must still be as it was read, and only after that form was unpacked to the same bytes. So it
does not matter when it is killed: what is done stays done, and the next time goes on with the rest.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, func, insert, select, union, update

from driftline.errors import BrokenVersion, StoreBusy
from driftline.model import Blob
from driftline.versions.codec import HIGH_LEVEL, repack, unpack
from driftline.versions.locks import lock_blobs
from driftline.versions.schema import blobs, states, versions
from driftline.versions.statements import chains_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import Connection, Select

    from driftline.versions.store import Store

_AT_ONCE = 32  # blobs to a transaction
_MOST_THREADS = 8  # each may take 200 MB for a page of 20 MB
_NICENESS = 15
_UNREADABLE = 0
_LOOSE = blobs.c.level.is_(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What compacting came to.

    So many contents were compressed again, which took `before` bytes and take `after`; so many were removed because no
    version needs them; `unreadable` ones are left alone, each time. The store takes `size` bytes now.
    """

    contents: int
    removed: int
    unreadable: int
    before: int
    after: int
    size: int


def compact(store: Store, told: Callable[[int, int], None] | None = None) -> Compacted:
    """Compress again what was stored since the last time, and give the space back.

    It uses up to eight cores, and lets others go first on them. A check that runs at the same time waits no longer than
    a few rows take, or, where contents are removed that no version needs, than one walk through the versions. After
    every transaction, `told` how many of how many contents are done.
    """
    removed = _sweep(store)
    done = skipped = before = after = 0
    with store.read() as connection:
        # counted once: a check may store contents faster than they are compacted
        total = connection.scalar(select(func.count()).select_from(blobs).where(_LOOSE)) or 0
    cores = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(max_workers=min(cores, _MOST_THREADS), initializer=_stand_back) as threads:
        while done < total:
            names, chains = _some(store, min(_AT_ONCE, total - done))
            if not names:
                break
            smallest = list(threads.map(_smallest, names, [chains] * len(names)))
            with store.write() as connection:
                for name, blob in zip(names, smallest, strict=True):
                    if blob is None:
                        skipped += 1
                        connection.execute(update(blobs).where(blobs.c.digest == name).values(level=_UNREADABLE))
                    else:
                        _replace(connection, blob)
                        before += len(chains[name].data)
                        after += len(blob.data)
            done += len(names)
            if told is not None:
                told(done, total)
    with suppress(StoreBusy):
        store.shrink()
    with store.read() as connection:
        # those of earlier times too: as long as they are there, the store is not well
        damaged = select(func.count()).select_from(blobs).where(blobs.c.level == _UNREADABLE)
        unreadable = connection.scalar(damaged) or 0
    return Compacted(
        contents=done - skipped, removed=removed, unreadable=unreadable, before=before, after=after, size=store.size()
    )


def _stand_back() -> None:
    """Let every other thread of the machine go first; on Linux that is a matter of the thread, not of the process."""
    this = threading.get_native_id()
    os.setpriority(os.PRIO_PROCESS, this, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, this)))


def _some(store: Store, most: int) -> tuple[list[bytes], dict[bytes, Blob]]:
    """The names of some blobs that are not compacted yet, and by name all that they are built from."""
    with store.read() as connection:
        names = sorted(connection.scalars(select(blobs.c.digest).where(_LOOSE).limit(most)))  # as `locks` asks for
        return names, {row[0]: Blob(*row) for row in connection.execute(chains_of(names))}


def _smallest(name: bytes, chains: Mapping[bytes, Blob]) -> Blob | None:
    blob = chains[name]
    try:
        return repack(blob, unpack(name, chains), unpack(blob.base, chains) if blob.base else b"")
    except BrokenVersion:
        return None


def _replace(connection: Connection, blob: Blob) -> None:
    """Put the blob in the place of the one of the same name, unless that is gone or has another base by now."""
    same = and_(blobs.c.digest == blob.digest, blobs.c.base.is_not_distinct_from(blob.base), _LOOSE)
    # a row that shrinks where it is leaves a gap in its page: written anew, the rows stand side by side
    if connection.execute(delete(blobs).where(same)).rowcount:
        row = (blob.digest, blob.base, blob.depth, blob.size, blob.data, HIGH_LEVEL)
        connection.execute(insert(blobs).values(row))


def _sweep(store: Store) -> int:
    """Remove the blobs that no version is built from; how many there were."""
    with store.read() as connection:
        if connection.execute(_unneeded().limit(1)).first() is None:
            return 0
    # all of them in one transaction: a check must not come upon a chain of which half is gone
    with store.write() as connection:
        lock_blobs(connection)
        gone = delete(blobs).where(blobs.c.digest.in_(_unneeded())).returning(blobs.c.digest)
        return len(connection.execute(gone).all())


def _unneeded() -> Select[tuple[bytes]]:
    """The names of the blobs that cannot be reached from any version or state."""
    named = (versions.c.body, versions.c.text, states.c.kept_body, states.c.kept_text)
    start = union(*[select(name.label("digest")).where(name.is_not(None)) for name in named]).subquery("named")
    needed = select(start.c.digest).cte("needed", recursive=True)
    bases = select(blobs.c.base).where(blobs.c.digest == needed.c.digest, blobs.c.base.is_not(None))
    needed = needed.union(bases)
    return select(blobs.c.digest).where(blobs.c.digest.not_in(select(needed.c.digest)))
