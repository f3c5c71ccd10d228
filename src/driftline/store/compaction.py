"""Compaction: every blob of the version repository is compressed again at a high level, also while checks run.

The base of a blob stays the same, so a check may build on any blob at any moment. A blob is replaced in a transaction
in which it must still be as it was read, and only after the new form was unpacked to the same bytes. So the process may
be killed at any time: what is done stays done, and the next compaction continues with the other blobs.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, delete, func, insert, select, update

from driftline.errors import BrokenVersion, StoreBusy
from driftline.store.blobs import HIGH_LEVEL, repack, unpack
from driftline.store.locks import lock_blobs
from driftline.store.schema import blobs, pages, states, versions
from driftline.store.statements import read_chains, run_on_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import Connection

    from driftline.model.outcome import Blob
    from driftline.store.engine import Store
    from driftline.store.statements import BlobKey

_AT_ONCE = 32  # blobs in a transaction
_PAGES_AT_ONCE = 1_000  # pages that are swept at a time
_MOST_THREADS = 8  # each may take 200 MB for a page of 20 MB
_NICENESS = 15
_UNREADABLE = 0
_LOOSE = blobs.c.level.is_(None)
_DELETE = delete(blobs).where(blobs.c.page_id == bindparam("page"), blobs.c.digest == bindparam("name"))
_STILL_LOOSE = """
WITH wanted (page_id, digest) AS ({pairs})
SELECT blobs.page_id, blobs.digest, blobs.base
FROM wanted JOIN blobs ON blobs.page_id = wanted.page_id AND blobs.digest = wanted.digest
WHERE blobs.level IS NULL ORDER BY blobs.page_id, blobs.digest
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedStore:
    """The result of compacting.

    `contents` counts those compressed again, from `before` to `after` bytes, `removed` those that no version needs any
    more, and `unreadable` those that are damaged and were left unchanged. `size` is that of the store, in bytes.
    """

    contents: int
    removed: int
    unreadable: int
    before: int
    after: int
    size: int


def compact(store: Store, progress: Callable[[int, int], None] | None = None) -> CompactedStore:
    """Compress again what was stored since the last time, free the space, and return the result.

    It uses up to eight cores, at the lowest priority. A check that runs at the same time waits for a few rows to be
    written at most, or, where contents are removed that no version needs, for the versions of a thousand pages to be
    read. After every transaction, `progress` is called with how many of how many contents are done.
    """
    removed = _sweep(store)
    done = skipped = before = after = 0
    with store.read() as connection:
        # counted once: a check may store contents faster than they are compacted
        total = connection.scalar(select(func.count()).select_from(blobs).where(_LOOSE)) or 0
    cores = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(max_workers=min(cores, _MOST_THREADS), initializer=_lower_priority) as threads:
        while done < total:
            keys, chains = _some(store, min(_AT_ONCE, total - done))
            if not keys:
                break
            smallest = list(threads.map(_smallest, keys, [chains] * len(keys)))
            with store.write() as connection:
                packed: dict[BlobKey, Blob] = {}
                for (page_id, name), blob in zip(keys, smallest, strict=True):
                    if blob is None:
                        skipped += 1
                        this = and_(blobs.c.page_id == page_id, blobs.c.digest == name)
                        connection.execute(update(blobs).where(this).values(level=_UNREADABLE))
                    else:
                        packed[page_id, name] = blob
                        before += len(chains[page_id][name].data)
                        after += len(blob.data)
                _replace(connection, packed)
            done += len(keys)
            if progress is not None:
                progress(done, total)
    with suppress(StoreBusy):
        store.shrink()
    with store.read() as connection:
        # also those found earlier: as long as they exist, the store is damaged
        damaged = select(func.count()).select_from(blobs).where(blobs.c.level == _UNREADABLE)
        unreadable = connection.scalar(damaged) or 0
    return CompactedStore(
        contents=done - skipped, removed=removed, unreadable=unreadable, before=before, after=after, size=store.size()
    )


def _lower_priority() -> None:
    """Lower the priority of this thread; on Linux, threads have priorities of their own."""
    this = threading.get_native_id()
    os.setpriority(os.PRIO_PROCESS, this, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, this)))


def _some(store: Store, most: int) -> tuple[list[BlobKey], dict[int, dict[bytes, Blob]]]:
    """Return the keys of some blobs that are not compacted yet, and by page all that they are built from."""
    with store.read() as connection:
        query = select(blobs.c.page_id, blobs.c.digest).where(_LOOSE).limit(most)
        keys = sorted((page_id, name) for page_id, name in connection.execute(query))  # the order of locks
        return keys, read_chains(connection, keys)


def _smallest(key: BlobKey, chains: Mapping[int, Mapping[bytes, Blob]]) -> Blob | None:
    page_id, name = key
    chain = chains[page_id]
    blob = chain[name]
    try:
        return repack(blob, unpack(name, chain), unpack(blob.base, chain) if blob.base else b"")
    except BrokenVersion:
        return None


def _replace(connection: Connection, packed: Mapping[BlobKey, Blob]) -> None:
    """Replace blobs of the same keys, unless these are gone or have another base by now."""
    if not packed:
        return
    lock = "FOR UPDATE OF blobs" if connection.dialect.name == "postgresql" else ""
    found = run_on_pairs(connection, _STILL_LOOSE + lock, [*packed], "bytea")
    same = [(page_id, name) for page_id, name, base in found if packed[page_id, name].base == base]
    if same:
        # a row that shrinks in place leaves a gap in its database page: deleted and inserted, rows are adjacent
        connection.execute(_DELETE, [{"page": page_id, "name": name} for page_id, name in same])
        connection.execute(insert(blobs), [_row(page_id, packed[page_id, name]) for page_id, name in same])


def _row(page_id: int, blob: Blob) -> dict[str, Any]:
    return {
        "page_id": page_id, "digest": blob.digest, "base": blob.base, "depth": blob.depth, "size": blob.size,
        "data": blob.data, "level": HIGH_LEVEL,
    }  # fmt: skip


def _sweep(store: Store) -> int:
    """Remove the blobs that no version of their page is built from. Returns how many there were."""
    removed = after = 0
    while True:
        portion = select(pages.c.id).where(pages.c.id > after).order_by(pages.c.id).limit(_PAGES_AT_ONCE)
        with store.read() as connection:
            page_ids = list(connection.scalars(portion))
            if not page_ids:
                return removed
            first, after = page_ids[0], page_ids[-1]
            found = _unneeded(connection, first, after)
        if found:
            # all blobs of a page in one transaction: a check must not find half of a chain
            with store.write() as connection:
                lock_blobs(connection)
                found = _unneeded(connection, first, after)
                for page_id, name in found:
                    this = and_(blobs.c.page_id == page_id, blobs.c.digest == name)
                    connection.execute(delete(blobs).where(this))
            removed += len(found)


def _unneeded(connection: Connection, first: int, last: int) -> list[BlobKey]:
    """Return the keys of the blobs of these pages that no version or state of theirs is built from."""
    query = select(blobs.c.page_id, blobs.c.digest, blobs.c.base).where(blobs.c.page_id.between(first, last))
    bases = {(page_id, name): base for page_id, name, base in connection.execute(query)}
    needed: set[BlobKey] = set()
    for page_key, *columns in (
        (versions.c.page_id, versions.c.body, versions.c.text),
        (states.c.page_id, states.c.kept_body, states.c.kept_text),
    ):
        for page_id, *names in connection.execute(select(page_key, *columns).where(page_key.between(first, last))):
            for name in names:
                at: bytes | None = name
                while at is not None and (page_id, at) not in needed:
                    needed.add((page_id, at))
                    at = bases.get((page_id, at))
    return [key for key in bases if key not in needed]
