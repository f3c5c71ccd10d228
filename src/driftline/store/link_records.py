"""Reading links: the pages that a run still has to check, with what the store knows of each."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, cast, func, or_, select

from driftline.http.credentials import Access
from driftline.model.outcome import Known, Link
from driftline.model.page import stored_render
from driftline.store.locks import patiently
from driftline.store.schema import pages, states, tags
from driftline.store.statements import BATCHES, BINARY, LINK_COLUMNS, in_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import ColumnElement, Connection, Select

    from driftline.store.engine import Store

_TAGS = select(tags.c.name, cast(tags.c.settings, Text))
_NO_TAGS = "[]"
_LINKS = select(*LINK_COLUMNS).join(states, states.c.page_id == pages.c.id)


class LinkRecords:
    """Reads links from a store, and waits for one that is locked or unreachable until the run is `stopped`."""

    def __init__(self, store: Store, stopped: Callable[[], bool]) -> None:
        self._store = store
        self._stopped = stopped

    def __repr__(self) -> str:
        return f"<LinkRecords of {self._store!r}>"

    def count_unrecorded(self, run_id: int, page_ids: Sequence[int] | None) -> int:
        """Return how many of these pages the run has not recorded yet; None means every page."""
        query = select(func.count()).select_from(states).where(_not_recorded(run_id))

        def count() -> int:
            with self._store.read() as connection:
                if page_ids is None:
                    return connection.scalar(query) or 0
                found = (connection.scalar(query.where(states.c.page_id.in_(some))) for some in in_batches(page_ids))
                return sum(one or 0 for one in found)

        return patiently(count, self._stopped)

    def unrecorded(self, run_id: int, page_ids: Sequence[int] | None) -> Iterator[Link]:
        """Yield the links of those of these pages that the run has not recorded yet, in order of page id.

        They are read a thousand at a time; None means every page.
        """
        if page_ids is not None:
            for some in in_batches(sorted(page_ids), BATCHES.links):
                yield from self._made(self._rows(_unrecorded(run_id).where(pages.c.id.in_(some))))
            return
        after: int | None = 0
        while after is not None:
            up_to = after + BATCHES.links
            rows = self._rows(_unrecorded(run_id, (after, up_to)))
            yield from self._made(rows)
            after = up_to if rows else self._last_before_next(up_to)

    def _last_before_next(self, page_id: int) -> int | None:
        """Return the id just before the next page after `page_id`, as ids may have wide gaps; None if there is none."""
        found = self._rows(select(func.min(pages.c.id)).where(pages.c.id > page_id))[0][0]
        return None if found is None else int(found) - 1

    def links(self, page_ids: Sequence[int]) -> list[Link]:
        """Return the current links of these pages, in this order, without those that are no longer watched."""
        found: dict[int, Link] = {}
        for some in in_batches(page_ids, BATCHES.links):
            rows = self._rows(_LINKS.where(pages.c.id.in_(some)))
            found.update((link.page_id, link) for link in self._made(rows))
        return [found[page_id] for page_id in page_ids if page_id in found]

    def _made(self, rows: Sequence[Any]) -> Iterator[Link]:
        """Return the links of these rows, with the credentials of their pages and tags."""
        if all(row[-1] == _NO_TAGS for row in rows):
            return map(_link, rows)
        by_tag = {name: access for name, settings in self._rows(_TAGS) if (access := _access(settings))}
        return (_with_access_of_tags(_link(row), row[-1], by_tag) for row in rows)

    def _rows(self, query: Select[Any]) -> Sequence[Any]:
        """Return the rows of a query as the driver's own: wrapping them would cost as much as reading them."""

        def read() -> Sequence[Any]:
            with self._store.read() as connection:
                return connection.execute(query, execution_options=BINARY).cursor.fetchall()

        return patiently(read, self._stopped)


def has_unrecorded(connection: Connection, run_id: int, page_ids: Sequence[int] | None) -> bool:
    """Return whether the run has not recorded one of these pages yet; None means every page."""
    query = select(states.c.page_id).where(_not_recorded(run_id)).limit(1)
    if page_ids is None:
        return connection.scalar(query) is not None
    found = (connection.scalar(query.where(states.c.page_id.in_(some))) for some in in_batches(page_ids))
    return any(page_id is not None for page_id in found)


def _unrecorded(run_id: int, within: tuple[int, int] | None = None) -> Select[Any]:
    """Return the query for links of pages that the run has not recorded yet, in order of page id.

    `within` limits it to ids after the first and up to the second. A range, not a LIMIT: without statistics of the
    tables, PostgreSQL would sort all later pages for each batch. It also does not conclude from a range of pages that
    it holds for their states, so there is a condition on both.
    """
    query = _LINKS.where(_not_recorded(run_id)).order_by(pages.c.id)
    if within is None:
        return query
    after, up_to = within
    return query.where(pages.c.id > after, pages.c.id <= up_to, states.c.page_id > after, states.c.page_id <= up_to)


def _not_recorded(run_id: int) -> ColumnElement[bool]:
    return or_(states.c.run_id.is_(None), states.c.run_id != run_id)


def _link(row: tuple[Any, ...]) -> Link:
    page_id, url, sequence, version, etag, last_modified, wire, settings, failures, failing_at, _ = row
    known = Known(version, etag, last_modified, wire) if version else None
    failing = failing_at is not None
    if settings == "{}":
        return Link(page_id, url, sequence + 1, known, None, failures, failing)
    given = json.loads(settings)
    access, render = _access(settings), stored_render(given)
    return Link(page_id, url, sequence + 1, known, given.get("filters"), failures, failing, access, render)


def _access(settings: str) -> Access | None:
    stored = json.loads(settings).get("access")
    return Access.from_stored(stored) if stored else None


def _with_access_of_tags(link: Link, tags: str, by_tag: dict[str, Access]) -> Link:
    """Return the link with the credentials of its page's tags added to those of the page, which take precedence."""
    access = link.access
    for tag in json.loads(tags):
        if tag in by_tag:
            access = by_tag[tag] if access is None else access.before(by_tag[tag])
    return link if access is link.access else replace(link, access=access)
