"""Credentials, headers and proxies of pages, stored with the settings of a page or of a tag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, cast, delete, select, update

from driftline.http.credentials import Access
from driftline.store.locks import lock_states
from driftline.store.schema import pages, states, tags
from driftline.store.statements import in_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Connection

    from driftline.model.page import Page
    from driftline.store.engine import Store


class Accesses:
    """Reads and changes what is sent along with the requests for pages."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def all(self) -> tuple[dict[str, Access], dict[str, Access]]:
        """Return the access of pages by address, and that of tags by name."""
        with self._store.read() as connection:
            # most pages have none: the database filters them faster than their settings are parsed
            mentioned = cast(pages.c.settings, Text).contains('"access"')
            of_pages = connection.execute(select(pages.c.url, pages.c.settings).where(mentioned).order_by(pages.c.id))
            found = {url: _read(settings) for url, settings in of_pages if "access" in settings}
            rows = connection.execute(select(tags)).all()
            return found, {name: _read(settings) for name, settings in rows if "access" in settings}

    def of_page(self, page: Page) -> Access:
        """Return the access of this page itself, without that of its tags."""
        with self._store.read() as connection:
            return _read(connection.scalar(select(pages.c.settings).where(pages.c.id == page.id)) or {})

    def of_tag(self, tag: str) -> Access:
        """Return the access of this tag."""
        with self._store.read() as connection:
            return _read(connection.scalar(select(tags.c.settings).where(tags.c.name == tag)) or {})

    def edit_pages(self, some: Sequence[Page], edit: Callable[[Access], Access]) -> None:
        """Change the access of these pages themselves."""
        with self._store.write() as connection:
            for page in sorted(some, key=lambda one: one.id):  # in the order of locks, see `locks`
                kept = select(pages.c.settings).where(pages.c.id == page.id).with_for_update(key_share=True)
                settings = connection.scalar(kept) or {}
                changed = _with(settings, edit(_read(settings)))
                connection.execute(update(pages).where(pages.c.id == page.id).values(settings=changed))
            _compare_in_full(connection, [page.id for page in some])

    def edit_tag(self, tag: str, some: Sequence[Page], edit: Callable[[Access], Access]) -> None:
        """Change the access of a tag, which these pages carry."""
        with self._store.write() as connection:
            # a tag without settings has no row that others could wait for, until it is inserted
            settings = connection.execute(self._store.statements.tag, {"name": tag, "settings": {}}).scalar_one()
            changed = _with(settings, edit(_read(settings)))
            this = tags.c.name == tag
            if changed:
                connection.execute(update(tags).where(this).values(settings=changed))
            else:
                connection.execute(delete(tags).where(this))
            _compare_in_full(connection, [page.id for page in some])


def _read(settings: dict[str, Any]) -> Access:
    return Access.from_stored(settings.get("access", {}))


def _with(settings: dict[str, Any], access: Access) -> dict[str, Any]:
    others = {name: value for name, value in settings.items() if name != "access"}
    return others | ({"access": access.stored()} if access else {})


def _compare_in_full(connection: Connection, ids: Sequence[int]) -> None:
    """Forget the validators of these pages: what was sent with other credentials proves nothing any more."""
    reset = update(states).values(etag=None, last_modified=None, wire=b"")
    for some in in_batches(sorted(ids)):
        lock_states(connection, some)
        connection.execute(reset.where(states.c.page_id.in_(some)))
