"""What was fetched with a browser: screenshots of versions, and the hosts whose pages need one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, func, select

from driftline.store.locks import patiently
from driftline.store.schema import screenshots, scripted_hosts

if TYPE_CHECKING:
    from collections.abc import Callable

    from driftline.model.page import Page
    from driftline.store.engine import Store


class Screenshots:
    """Reads the screenshots of versions; the ledger stores them with the versions."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, page: Page, number: int) -> bytes | None:
        """Return the screenshot of a version as PNG; None if there is none."""
        this = and_(screenshots.c.page_id == page.id, screenshots.c.number == number)
        with self._store.read() as connection:
            return connection.scalar(select(screenshots.c.data).where(this)) or None

    def numbers(self, page: Page) -> set[int]:
        """Return the numbers of the versions of a page that have a screenshot."""
        pictured = and_(screenshots.c.page_id == page.id, func.length(screenshots.c.data) > 0)
        with self._store.read() as connection:
            return set(connection.scalars(select(screenshots.c.number).where(pictured)))


class RenderedVersions:
    """Knows which versions were fetched with a browser, and the hosts whose pages are empty without one.

    The hosts are read once, when they are first needed. Used by any thread.
    """

    def __init__(self, store: Store, clock: Callable[[], float], stopped: Callable[[], bool] = lambda: True) -> None:
        self._store = store
        self._clock = clock
        self._stopped = stopped
        self._hosts: set[str] | None = None

    def __repr__(self) -> str:
        return f"<RenderedVersions hosts={'unread' if self._hosts is None else len(self._hosts)}>"

    def needed_at(self, host: str) -> bool:
        """Return whether pages of this host were found to need a browser."""
        if self._hosts is None:
            self._hosts = patiently(self._read, self._stopped)
        return host in self._hosts

    def need_at(self, host: str) -> None:
        """Use a browser from now on for pages of this host that are watched with `--render auto`."""
        if not self.needed_at(host):
            patiently(lambda: self._write(host), self._stopped)
            self._hosts = {*(self._hosts or ()), host}

    def was_used(self, page_id: int, version: int) -> bool:
        """Return whether this version was fetched with a browser."""
        this = and_(screenshots.c.page_id == page_id, screenshots.c.number == version)

        def read() -> bool:
            with self._store.read() as connection:
                return connection.scalar(select(screenshots.c.number).where(this)) is not None

        return patiently(read, self._stopped)

    def _read(self) -> set[str]:
        with self._store.read() as connection:
            return set(connection.scalars(select(scripted_hosts.c.host)))

    def _write(self, host: str) -> None:
        with self._store.write() as connection:
            self._store.statements.scripted_host.many(connection, [(host, self._clock())])
