"""Collecting a body as it comes."""

from __future__ import annotations

_MANY = 4_096  # chunks


class Body:
    """The chunks of a body, put together once they are all there: a buffer would copy each of them.

    A server that sends them byte by byte would make a list of them take fifty times what the body takes, so that many
    of them are put together meanwhile.
    """

    __slots__ = ("_chunks", "_parts")

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._parts: list[bytes] = []

    def add(self, chunk: bytes) -> None:
        """One more chunk."""
        chunks = self._chunks
        chunks.append(chunk)
        if len(chunks) == _MANY:
            self._parts.append(b"".join(chunks))
            chunks.clear()

    def take(self) -> bytes:
        """All that came, leaving nothing."""
        chunks = self._chunks
        body = chunks[0] if len(chunks) == 1 and not self._parts else b"".join((*self._parts, *chunks))
        chunks.clear()
        self._parts.clear()
        return body
