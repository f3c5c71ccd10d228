"""Detecting a database server that hangs: its machine still answers, so that no time-out of TCP ever expires.

A query may take long for good reasons, so none is aborted for its age alone. When one takes long, another connection is
tried: if the server does not accept that either, every connection in use is shut down, which raises an error in the
threads that wait for an answer.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from sqlalchemy import event

if TYPE_CHECKING:
    from sqlalchemy import Engine

_LOG = logging.getLogger(__name__)

_LOOK = 0.5  # seconds between two checks
_LONG = 4.0  # seconds that a connection is in use before the server is tried
_LONG_IN_A_HURRY = 0.5
_AGAIN = 4.0  # seconds after which a server that answered is tried again
_GREETING = 3  # seconds that the server has to accept another connection


class ServerWatch:
    """Watches the connections of an engine that are in use, in a thread that starts with the first of them.

    `hurry` is for a process that is about to end: the server is tried at once, and has less time.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._in_use: dict[object, tuple[Any, float]] = {}  # by the pool's record, which outlives its connection
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self._hurried = False
        event.listen(engine, "checkout", self._on_checkout)
        event.listen(engine, "checkin", self._on_checkin)

    def __repr__(self) -> str:
        return f"<ServerWatch connections_in_use={len(self._in_use)}>"

    def hurry(self) -> None:
        """Try the server as soon as a connection is in use for half a second."""
        self._hurried = True

    def close(self) -> None:
        """End the thread."""
        self._closed.set()

    def _on_checkout(self, connection: Any, record: object, _proxy: object) -> None:
        with self._lock:
            self._in_use[record] = (connection, time.monotonic())
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._work, name="server watch", daemon=True)
                self._thread.start()

    def _on_checkin(self, _connection: Any, record: object) -> None:
        with self._lock:
            self._in_use.pop(record, None)

    def _work(self) -> None:
        answered_at = 0.0
        while not self._closed.wait(_LOOK):
            now = time.monotonic()
            long = _LONG_IN_A_HURRY if self._hurried else _LONG
            with self._lock:
                waiting = any(since < now - long for _, since in self._in_use.values())
            if not waiting or (now < answered_at + _AGAIN and not self._hurried):
                continue
            if self._greets():
                answered_at = time.monotonic()
            else:
                self._hang_up()

    def _greets(self) -> bool:
        """Return whether the server accepts another connection. One that refuses it with an error is alive, too."""
        dialect = self._engine.dialect
        arguments, options = dialect.create_connect_args(self._engine.url)
        timeout = 2 if self._hurried else _GREETING
        options["connect_timeout"] = timeout
        driver: Any = dialect.import_dbapi()
        started = time.monotonic()
        try:
            driver.connect(*arguments, **options).close()
        except driver.Error:
            return time.monotonic() - started < timeout
        return True

    def _hang_up(self) -> None:
        with self._lock:
            connections = [connection for connection, _ in self._in_use.values()]
        _LOG.debug("the database server hangs: shutting down %d connections", len(connections))
        driver: Any = self._engine.dialect.import_dbapi()
        for connection in connections:
            # a connection closed meanwhile has no socket, or one that is shut
            with contextlib.suppress(OSError, driver.Error):
                _shut_down(connection.fileno())


def _shut_down(descriptor: int) -> None:
    """Shut a connection down in both directions, also while a thread reads from it; the descriptor stays open."""
    with socket.socket(fileno=os.dup(descriptor)) as copy:
        copy.shutdown(socket.SHUT_RDWR)
