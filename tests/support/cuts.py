"""A server between a client and PostgreSQL that ends connections at the very moment of a commit."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from enum import Enum
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

_COMMIT = b"COMMIT\0"
_SOCKET = ".s.PGSQL.5432"
_LARGEST = 1 << 20


class Cut(Enum):
    """Where a connection ends: the server never receives the commit, or the client never receives the answer."""

    BEFORE_THE_SERVER = "the server never receives the commit"
    BEFORE_THE_ANSWER = "the client never receives the answer"


class CuttingProxy:
    """Passes on what clients and a PostgreSQL server send each other, for the time of a `with` block.

    None is cut before `cut_from` says at which commits connections are.
    """

    def __init__(self, server: str, folder: str, cut: Cut) -> None:
        parts = urlsplit(server)
        self._server = f"{parse_qs(parts.query)['host'][0]}/{_SOCKET}"
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path}?host={folder}"
        self._cut = cut
        self._lock = threading.Lock()
        self._first, self._every = 0, 1
        self.commits = self.cuts = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{folder}/{_SOCKET}")
        self._listener.listen(64)
        self._open: list[socket.socket] = []

    def cut_from(self, number: int, every: int) -> None:
        """Cut the connection at this commit from now on, counted from 1, and at every so many after it."""
        with self._lock:
            self._first, self._every = number, every
            self.commits = self.cuts = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            for one in (self._listener, *self._open):
                _close(one)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                with self._lock:
                    self._open += [client, server]
                answered = _Answered()
                for work in (self._to_server, self._to_client):
                    threading.Thread(target=work, args=(client, server, answered), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket, answered: _Answered) -> None:
        with suppress(OSError):
            while data := client.recv(_LARGEST):
                if _COMMIT in data and self._is_to_be_cut():
                    if self._cut is Cut.BEFORE_THE_ANSWER:
                        answered.withhold()
                        server.sendall(data)
                        answered.wait()
                    break
                server.sendall(data)
        _close(client)
        _close(server)

    def _to_client(self, client: socket.socket, server: socket.socket, answered: _Answered) -> None:
        with suppress(OSError):
            while data := server.recv(_LARGEST):
                if answered.is_withheld():
                    break
                client.sendall(data)
        answered.note()
        _close(client)

    def _is_to_be_cut(self) -> bool:
        with self._lock:
            self.commits += 1
            after = self.commits - self._first
            cut = bool(self._first) and after >= 0 and after % self._every == 0
            self.cuts += cut
            return cut


class _Answered:
    """Whether the server's next answer is kept from the client, and whether it has come."""

    def __init__(self) -> None:
        self._withheld = threading.Event()
        self._came = threading.Event()

    def withhold(self) -> None:
        self._withheld.set()

    def is_withheld(self) -> bool:
        return self._withheld.is_set()

    def note(self) -> None:
        self._came.set()

    def wait(self) -> None:
        self._came.wait(10)


def _close(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
