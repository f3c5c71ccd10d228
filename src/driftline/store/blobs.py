"""Compressed contents of versions: zstd with an earlier version as the prefix, each blob named by its digest.

A body is compressed against the body before it, and a text against the body it was taken from, of which it is mostly
a subsequence. Every chain starts with a blob that needs no other, is at most DEEPEST steps long, and the bodies in it
are together no larger than MOST_DECODED, so that any version is read in a bounded time: chains of large ones are
shorter. Where a chain has its full length, the next body is compressed against the body that the chain starts with. The
window covers base and contents together, or zstd could not reach the base's start; long distance matching stays off,
because it makes such deltas larger.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from blake3 import blake3
from xxhash import xxh3_128_digest

from driftline.errors import BrokenVersion
from driftline.model.outcome import Blob

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

DEEPEST = 20
DEEPEST_BODY = DEEPEST - 1  # leaves a step for its text
MOST_DECODED = 10_000_000  # bytes, which take 3 to 8 ms; a body that is larger than half of it is one step away
LEVEL = 3
HIGH_LEVEL = 19
_SMALLEST_BASE = 8  # bytes: zstd takes no shorter dictionary
_LARGE = 1_000_000  # bytes of base and contents together
_LARGEST_TABLE = 24
_WORTH_BRANCHING = 0.5  # of the bytes of the full copy that the chain starts with
_LONGEST_CHAIN = 2 * DEEPEST  # a longer one is corrupt, or circular
_Parameter = zstd.CompressionParameter
_WINDOWS = _Parameter.window_log.bounds()
_LARGEST_WINDOW = zstd.DecompressionParameter.window_log_max
_READ_ANY_WINDOW: dict[int, int] = {_LARGEST_WINDOW: _LARGEST_WINDOW.bounds()[1]}


def digest(data: bytes) -> bytes:
    """Return the digest under which contents are stored, and by which they are compared."""
    return blake3(data).digest()


def fingerprint(data: bytes) -> bytes:
    """Return the hash by which the wire bytes of a page are compared with those of its last check.

    Ten times faster than `digest`, but not collision-resistant: a server could send other bytes with the same
    fingerprint, but would only hide a change of its own page. Contents are never stored under it.
    """
    return xxh3_128_digest(data)


def pack(data: bytes, name: bytes, base: Blob | None = None, base_data: bytes = b"") -> Blob:
    """Return the blob of `data`, whose digest is `name`, against `base` if that keeps the chain within DEEPEST.

    The same contents may be stored already, at another depth. So bodies stop at DEEPEST_BODY (see `pack_next`), and at
    any depth of a body, the text that is built on it is within DEEPEST.
    """
    try:
        if base is None or base.depth + 1 > DEEPEST or len(base_data) < _SMALLEST_BASE or base.digest == name:
            return Blob(name, None, 0, len(data), zstd.compress(data, LEVEL))
        return Blob(name, base.digest, base.depth + 1, len(data), _delta(data, base_data, LEVEL))
    except zstd.ZstdError as error:
        raise MemoryError from error  # compressing can only fail for lack of memory


def pack_next(data: bytes, name: bytes, last: Blob | None, last_data: bytes, blobs: Mapping[bytes, Blob]) -> Blob:
    """Return the blob of a body that follows the body `last`, given the blobs of its chain.

    The first body needs no base. Where the chain has its full length, another one branches off from its start if that
    saves enough: a page that is very different by now gets a full copy to start from.
    """
    if last is None:
        return pack(data, name)
    start, decoded = last, last.size + len(data)
    while start.base is not None:
        start = blobs[start.base]
        decoded += start.size
    if last.depth < DEEPEST_BODY and decoded <= MOST_DECODED:
        return pack(data, name, last, last_data)
    branch = pack(data, name, start, unpack(start.digest, blobs))
    return branch if len(branch.data) < len(start.data) * _WORTH_BRANCHING else pack(data, name)


def repack(blob: Blob, data: bytes, base_data: bytes) -> Blob:
    """Return the blob of `data` against the same base at the highest level; a hundred times as slow as `pack`.

    The result is verified by unpacking it; the old blob is returned where that is no larger.
    """
    if blob.base is None:
        packed = zstd.compress(data, HIGH_LEVEL)
        good = zstd.decompress(packed) == data
    else:
        packed = _delta(data, base_data, HIGH_LEVEL)
        good = _undo(packed, base_data) == data
    if not good or len(packed) >= len(blob.data):
        return blob
    return Blob(blob.digest, blob.base, blob.depth, blob.size, packed)


def unpack(name: bytes, blobs: Mapping[bytes, Blob]) -> bytes:
    """Return the contents named `name`, given the blobs of its chain; BrokenVersion unless they match the name."""
    return _undone(name, _chain(name, blobs), b"")


def unpack_both(one: bytes, other: bytes, blobs: Mapping[bytes, Blob]) -> tuple[bytes, bytes]:
    """Return two contents as `unpack` does, unpacking once what their chains have in common."""
    first, second = _chain(one, blobs), _chain(other, blobs)
    common = 0
    while common < min(len(first), len(second)) and first[common] is second[common]:
        common += 1
    start = _undone(first[common - 1].digest, first[:common], b"") if common else b""
    return _undone(one, first[common:], start), _undone(other, second[common:], start)


def unpack_all(blobs: Collection[Blob]) -> Iterator[str]:
    """Unpack all blobs of a page, each once. Yields a sentence for each whose contents do not match its name.

    Unpacked contents are kept only as long as something is left that is built on them.
    """
    built_on: dict[bytes | None, list[Blob]] = {}
    for blob in blobs:
        built_on.setdefault(blob.base, []).append(blob)
    ready = [(blob, b"") for blob in built_on.pop(None, ())]
    while ready:
        blob, base_data = ready.pop()
        try:
            data = _undone(blob.digest, [blob], base_data)
        except BrokenVersion as error:
            yield str(error)
        else:
            ready += [(other, data) for other in built_on.pop(blob.digest, ())]
    for left in built_on.values():
        yield from (_incomplete(blob.digest) for blob in left)


def chain_of(names: Sequence[bytes], blobs: Mapping[bytes, Blob]) -> dict[bytes, Blob]:
    """Return those of these blobs that the named contents are built from."""
    found: dict[bytes, Blob] = {}
    for name in names:
        at: bytes | None = name
        while at is not None and at not in found and at in blobs:
            found[at] = blobs[at]
            at = found[at].base
    return found


def _chain(name: bytes, blobs: Mapping[bytes, Blob]) -> list[Blob]:
    """Return the blobs that the named contents are built from, in the order in which they are unpacked."""
    chain: list[Blob] = []
    next_name: bytes | None = name
    while next_name is not None:
        blob = blobs.get(next_name)
        if blob is None or len(chain) > _LONGEST_CHAIN:
            raise BrokenVersion(_incomplete(name))
        chain.append(blob)
        next_name = blob.base
    chain.reverse()
    return chain


def _incomplete(name: bytes) -> str:
    return f"The stored version {name.hex()[:12]} is incomplete: run 'driftline doctor'."


def _undone(name: bytes, steps: Sequence[Blob], data: bytes) -> bytes:
    """Return the contents named `name`, which these steps make of `data`."""
    try:
        for blob in steps:
            data = zstd.decompress(blob.data) if blob.base is None else _undo(blob.data, data)
    except (zstd.ZstdError, ValueError) as error:
        if "memory" in str(error):  # zstd has no error code for it in Python
            raise MemoryError from error
        raise BrokenVersion(f"The stored version {name.hex()[:12]} cannot be read: run 'driftline doctor'.") from None
    if digest(data) != name:
        raise BrokenVersion(f"The stored version {name.hex()[:12]} is not what was stored: run 'driftline doctor'.")
    return data


def _delta(data: bytes, base_data: bytes, level: int) -> bytes:
    both = len(base_data) + len(data)
    lowest, highest = _WINDOWS
    window = min(max(both.bit_length(), lowest), highest)
    parameters: dict[int, int] = {_Parameter.compression_level: level, _Parameter.window_log: window}
    if both > _LARGE and level == LEVEL:
        # the tables of the level are too small to find matches in so much data: ten times slower, twenty times smaller
        table = min(window, _LARGEST_TABLE)
        parameters |= {_Parameter.hash_log: table, _Parameter.chain_log: table}
    compressor = zstd.ZstdCompressor(options=parameters, zstd_dict=zstd.ZstdDict(base_data, is_raw=True).as_prefix)
    return compressor.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)


def _undo(packed: bytes, base_data: bytes) -> bytes:
    return zstd.decompress(packed, zstd.ZstdDict(base_data, is_raw=True).as_prefix, options=_READ_ANY_WINDOW)
