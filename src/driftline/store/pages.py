"""The watch list: adding, finding, editing and removing pages."""

from __future__ import annotations

import time
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from sqlalchemy import Text, and_, bindparam, cast, delete, exists, func, insert, or_, select, true, update

from driftline.durations import utc, utc_or_none
from driftline.errors import BadFilter, BadSetting, FailureKind, StoreError, UnknownPage, UsageError
from driftline.http.credentials import Access, CredentialScope
from driftline.model.outcome import Incomparable, Verdict
from driftline.model.page import (
    REQUEST_FILTERS,
    SINGLE_FILTERS,
    Failure,
    Filter,
    FilterKind,
    Page,
    PageState,
    stored_render,
)
from driftline.store.feedback import forget_on_hosts, keys_on_hosts
from driftline.store.locks import count_revision, lock_addresses, lock_states, patiently, write_once
from driftline.store.schema import checks, pages, states, versions
from driftline.store.schema import tags as tag_settings
from driftline.store.statements import in_batches
from driftline.urls import HIDDEN, host_of, without_password
from driftline.urls.canonical import acceptable, canonical, problem_with, reduced, written
from driftline.urls.tracking import Tracking

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from sqlalchemy import ColumnElement, Connection, Row

    from driftline.model.page import Render
    from driftline.store.engine import Store

    #: raises BadFilter for filters that exclude each other
    CheckFilters: TypeAlias = Callable[[Sequence[Filter]], object]

_FILTERS = ("filters", "own_filters")  # in the settings of a page
_COMMITTED = 2_000  # pages added in one transaction: it should be short for other writers
_PORTION = 1_000  # pages that are read at a time
_Value = TypeVar("_Value")


class Catalog:
    """The watched pages, each under its canonical address as of the day on which it was added.

    `tracking` are the user's changes to the list of tracking parameters that are dropped from addresses. `check` raises
    BadFilter for filters that exclude each other.
    """

    def __init__(
        self, store: Store, clock: Callable[[], float] = time.time, tracking: Iterable[str] = (),
        check: CheckFilters = lambda _: None,
    ) -> None:  # fmt: skip
        self._store = store
        self._check = check
        self._clock = clock
        self._tracking = Tracking(tracking)

    def __repr__(self) -> str:
        return f"<Catalog of {self._store!r}>"

    def add(
        self, urls: Iterable[str], *, every: float | None = None, tags: Sequence[str] = (),
        filters: Sequence[Filter] = (), render: Render | None = None, stopped: Callable[[], bool] = lambda: True,
    ) -> list[str]:  # fmt: skip
        """Watch these addresses. Returns those not watched before, in canonical form. BadURL if any is bad.

        A few thousand are added in each transaction, so that others can write in between: after an error of the store,
        which says how many were added, those before it are watched. If the store is locked or cannot be reached, this
        waits for it until `stopped`.
        """
        forms = self._forms(urls)
        addresses = dict.fromkeys(patiently(lambda: self._names(forms), stopped).values())
        _refuse_both(filters, render)
        values = self._values(every, tags, _stored(filters, filters, render))
        return [url for _, fresh in self._add(in_batches(addresses, _COMMITTED), values, stopped) for url in fresh]

    def add_in_portions(
        self, urls: Iterable[str], *, every: float | None = None, tags: Sequence[str] = ()
    ) -> Iterator[tuple[list[str], list[str]]]:  # fmt: skip
        """Watch these addresses as they come, however many there are. BadURL if one is bad.

        Yields those of each portion in canonical form, and those of them not watched before.
        """
        values = self._values(every, tags, {})
        portions = (list(dict.fromkeys(self.names(some).values())) for some in in_batches(urls, _COMMITTED))
        yield from self._add(portions, values)

    def _values(self, every: float | None, tags: Sequence[str], settings: dict[str, Any]) -> dict[str, Any]:
        return {"every": every, "tags": check_tags(tags), "settings": settings, "added_at": self._clock()}

    def _add(
        self, portions: Iterable[list[str]], values: dict[str, Any], stopped: Callable[[], bool] = lambda: True
    ) -> Iterator[tuple[list[str], list[str]]]:  # fmt: skip
        """Add each portion in a transaction, with these values. Yields it, and those of it not watched before."""
        done = 0
        for portion in portions:
            try:
                fresh = write_once(self._store, partial(_insert_pages, portion, values, self._check), stopped)
            except StoreError as error:
                if not done:
                    raise
                raise type(error)(
                    f"{error} {done:,} pages were added before: add the same again for the rest."
                ) from None
            done += len(fresh)
            yield portion, fresh

    def names(self, urls: Iterable[str]) -> dict[str, str]:
        """Return the address that each of these is watched under, or would be. BadURL if any is bad."""
        return self._names(self._forms(urls))

    def old_names(self) -> Iterator[str]:
        """Yield the addresses of pages that would get another canonical form if they were added today."""
        query = select(pages.c.url).order_by(pages.c.id).execution_options(yield_per=_PORTION)
        with self._store.read() as connection:
            for some in connection.scalars(query).partitions():
                yield from (url for url, now in self._forms(some).items() if now.canonical != url)

    def unwatched(self, urls: Iterable[str]) -> list[str]:
        """Return those of these addresses that are not watched, in canonical form, each once. BadURL if any is bad."""
        forms = self._forms(urls)
        with self._store.read() as connection:
            addresses = dict.fromkeys(_names(connection, forms).values())
            return [url for some in in_batches(addresses) for url in _unwatched(connection, some)]

    def asked(self) -> dict[str, float]:
        """Return the checks per second that each page with an interval of its own needs, by address."""
        with self._store.read() as connection:
            rows = connection.execute(select(pages.c.url, pages.c.every).where(pages.c.every.is_not(None)))
            return {row.url: 1.0 / row.every for row in rows}

    def find(self, url: str) -> Page:
        """Return the page at an address; UnknownPage if it is not watched."""
        return self.find_all([url])[0]

    def find_all(self, urls: Iterable[str]) -> list[Page]:
        """Return the pages at these addresses, each once, in order; UnknownPage names the first that is not watched.

        A password may be hidden in an address, as it is when it is shown.
        """
        forms = self._forms(urls)
        found: dict[str, Page] = {}
        with self._store.read() as connection:
            addresses = dict.fromkeys(_names(connection, forms).values())
            for some in in_batches(addresses):
                found |= {row.url: _page(row) for row in connection.execute(_PAGES.where(pages.c.url.in_(some)))}
        for url in addresses:
            if url not in found:
                raise UnknownPage(url)
        return [found[url] for url in addresses]

    def all(self, tag: str | None = None) -> list[Page]:
        """Return all pages in the order in which they were added, or those that carry a tag."""
        return list(self.chosen(tag))

    def chosen(
        self, tag: str | None = None, page_states: Collection[PageState] = (), limit: int | None = None, offset: int = 0
    ) -> Iterator[Page]:  # fmt: skip
        """Yield the pages that carry a tag and are in one of these states, or all, in the order they were added.

        `offset` pages are skipped, then at most `limit` yielded. They are read a thousand at a time, so that a million
        of them take little memory.
        """
        conditions = [] if tag is None else [carries(self._store, tag)]
        if page_states:
            conditions.append(or_(*(_IN_STATE[state] for state in page_states)))
        after = 0
        if offset:
            before = select(pages.c.id).join(states, states.c.page_id == pages.c.id).where(*conditions)
            with self._store.read() as connection:
                last = connection.scalar(before.order_by(pages.c.id).offset(offset - 1).limit(1))
            if last is None:
                return
            after = last
        query = _PAGES.where(*conditions).order_by(pages.c.id)
        while limit is None or limit > 0:
            portion = _PORTION if limit is None else min(limit, _PORTION)
            with self._store.read() as connection:
                rows = connection.execute(query.where(pages.c.id > after).limit(portion)).all()
            yield from map(_page, rows)
            if len(rows) < portion:
                return
            after = rows[-1].id
            limit = None if limit is None else limit - portion

    def counts(self) -> tuple[int, bool]:
        """Return how many pages are watched, and whether any of them is rendered."""
        rendered = exists().where(cast(pages.c.settings, Text).contains('"render"'))
        with self._store.read() as connection:
            return connection.scalar(select(func.count()).select_from(pages)) or 0, bool(
                connection.scalar(select(rendered))
            )

    def hosts(self) -> set[str]:
        """Return the hosts of all pages."""
        with self._store.read() as connection:
            return {
                host_of(url) for url in connection.scalars(select(pages.c.url).execution_options(yield_per=_PORTION))
            }

    def unused_tags(self, some: Iterable[str]) -> list[str]:
        """Return those of these tags that no page carries: they are mistyped, or for pages to come."""
        with self._store.read() as connection:
            return [tag for tag in some if not connection.scalar(select(exists().where(carries(self._store, tag))))]

    def edit(
        self, url: str, *, every: float | None = None, clear_every: bool = False, tag: Sequence[str] = (),
        untag: Sequence[str] = (), tags: Sequence[str] | None = None, move_to: str | None = None,
        filters: Callable[[Sequence[Filter]], Sequence[Filter]] = lambda kept: kept,
        render: Callable[[Render | None], Render | None] = lambda kept: kept,
    ) -> Page:  # fmt: skip
        """Change the settings of a page, keeping its history. Returns the page as it is now.

        `tags` replace those that it has; `tag` are added to them and `untag` removed. `filters` is called with its
        filters, and returns those that it is to have; likewise `render`. Credentials of an address are not sent to a
        new one unless that has the same origin: otherwise all of the page's own access is removed, except its proxy.
        """
        found = self.find(url)
        labels, replaced = check_tags(tag), None if tags is None else check_tags(tags)
        target = None if move_to is None else canonical(move_to, self._tracking)
        # a run in progress would record an answer of the old address under the new one
        with nullcontext() if target is None else self._store.right_to_check(), self._store.write() as connection:
            lock_addresses(connection)  # also against a tag whose filters are being changed
            # read again under a lock, to keep what others changed meanwhile; checks wait only if the page moves
            this = _PAGES.where(pages.c.id == found.id).with_for_update(of=pages, key_share=target is None)
            row = connection.execute(this).first()
            if row is None:
                raise UnknownPage(url)
            page = _page(row)
            moves = target is not None and target != page.url
            if moves and connection.scalar(select(pages.c.id).where(pages.c.url == target)):
                raise UsageError(f"{target} is watched already.")
            own_filters = tuple(filters(page.own_filters))
            fetched = render(page.render)
            address = target or page.url
            kept = page.tags if replaced is None else replaced
            carried = list(dict.fromkeys(label for label in (*kept, *labels) if label not in untag))
            new_filters = tuple(with_shared(_shared_by(connection, carried), own_filters))
            self._check(new_filters)
            _refuse_both(new_filters, fetched)
            values: dict[str, Any] = {
                "url": address,
                "tags": carried,
                "every": every if every is not None or clear_every else row.every,
                "settings": _others(row.settings, keep_credentials=CredentialScope(page.url).covers(address))
                | _stored(new_filters, own_filters, fetched),
            }
            if moves or new_filters != page.filters or fetched != page.render:
                # answers of another address, or texts by other filters, prove nothing: compare in full
                reset: dict[str, Any] = {"etag": None, "last_modified": None, "wire": b""}
                if fetched != page.render or _requests(new_filters) != _requests(page.filters):
                    reset["reading"] = Incomparable.FETCHED_OTHERWISE.value
                connection.execute(update(states).where(states.c.page_id == page.id).values(**reset))
            connection.execute(update(pages).where(pages.c.id == page.id).values(**values))
            count_revision(connection)
        return self.find(address)

    def accept(self, page_ids: Sequence[int]) -> None:
        """Take the result of the next check of these pages as the page, even if it looks like an error or a wall."""
        reset: dict[str, Any] = {
            "etag": None,
            "last_modified": None,
            "wire": b"",
            "reading": Incomparable.GIVEN_UP.value,
        }
        with self._store.write() as connection:
            for some in in_batches(sorted(page_ids)):
                lock_states(connection, some)
                connection.execute(update(states).where(states.c.page_id.in_(some)).values(**reset))

    def remove(self, urls: Iterable[str]) -> list[str]:
        """Stop watching these pages, and remove their history and the feedback on it.

        Raises UnknownPage, and removes none, if one is not watched.
        """
        removed = self.find_all(urls)
        ids = [page.id for page in removed]
        with self._store.write() as connection:
            feedback_keys: dict[str, set[bytes]] = {}
            for some in in_batches(sorted(ids)):
                # from here on no feedback on them can be added
                locked = select(pages.c.id).where(pages.c.id.in_(some)).order_by(pages.c.id).with_for_update()
                connection.execute(locked)
                for host, keys in keys_on_hosts(connection, some).items():
                    feedback_keys[host] = feedback_keys.get(host, set()) | keys
                lock_states(connection, some)
                connection.execute(delete(pages).where(pages.c.id.in_(some)))
                # after their pages, to find checks that were recorded until then
                connection.execute(delete(checks).where(checks.c.page_id.in_(some)))
            forget_on_hosts(self._store, connection, feedback_keys)
            count_revision(connection)
        return [page.url for page in removed]

    def _names(self, forms: dict[str, _Forms]) -> dict[str, str]:
        with self._store.read() as connection:
            return _names(connection, forms)

    def _forms(self, urls: Iterable[str]) -> dict[str, _Forms]:
        found: dict[str, _Forms] = {}
        for url in urls:
            if url not in found:
                address = written(url)
                found[url] = _Forms(address, reduced(address, self._tracking))
        return found


def urls_of(store: Store, page_ids: Iterable[int]) -> dict[int, str]:
    """Return the addresses of these pages by page id, without those that are no longer watched."""
    found: dict[int, str] = {}
    with store.read() as connection:
        for some in in_batches(page_ids):
            rows = connection.execute(select(pages.c.id, pages.c.url).where(pages.c.id.in_(some)))
            found |= {row.id: row.url for row in rows}
    return found


def urls_after(store: Store, page_id: int, limit: int) -> Sequence[tuple[int, str]]:
    """Return the ids and addresses of the next pages after this id, at most `limit`, in order of id."""
    query = select(pages.c.id, pages.c.url).where(pages.c.id > page_id).order_by(pages.c.id).limit(limit)
    with store.read() as connection:
        found: Sequence[tuple[int, str]] = connection.execute(query).cursor.fetchall()
        return found


class _Forms(NamedTuple):
    """The forms in which an address may be watched: as written, if it was added under other rules, and canonical."""

    written: str
    canonical: str


def _names(connection: Connection, forms: dict[str, _Forms]) -> dict[str, str]:
    """Return what `Catalog.names` returns for these."""
    shown = {url: pair for url, pair in forms.items() if f":{HIDDEN}@" in pair.written}
    whole = {url: _Forms(*(_with_password(connection, one) for one in pair)) for url, pair in shown.items()}
    forms = forms | whole
    unsure = dict.fromkeys(one for one, now in forms.values() if one != now or problem_with(now))
    watched: set[str] = set()
    for some in in_batches(unsure):
        watched.update(connection.scalars(select(pages.c.url).where(pages.c.url.in_(some))))
    return {url: pair.written if pair.written in watched else acceptable(pair.canonical) for url, pair in forms.items()}


def _insert_pages(
    portion: Sequence[str], values: dict[str, Any], check: CheckFilters, connection: Connection
) -> list[str]:  # fmt: skip
    """Add those of these pages that are not watched, with these values. Returns the added ones."""
    lock_addresses(connection)
    fresh = [url for some in in_batches(portion) for url in _unwatched(connection, some)]
    shared = _shared_by(connection, values["tags"])
    if shared:
        own = [Filter(FilterKind(kind), value) for kind, value in values["settings"].get("filters", ())]
        merged = with_shared(shared, own)
        check(merged)
        _refuse_both(merged, stored_render(values["settings"]))
        settings = values["settings"] | _stored_filters(merged, own)
        values = values | {"settings": settings}
    for some in in_batches(fresh):
        connection.execute(insert(pages), [{"url": url, **values} for url in some])
        ids = connection.scalars(select(pages.c.id).where(pages.c.url.in_(some)))
        blank = [{"page_id": key, "sequence": 0, "version": 0, "failures": 0} for key in ids]
        connection.execute(insert(states), blank)
    if fresh:
        count_revision(connection)
    return fresh


def _unwatched(connection: Connection, some: Sequence[str]) -> list[str]:
    known = set(connection.scalars(select(pages.c.url).where(pages.c.url.in_(some))))
    return [url for url in some if url not in known]


def _with_password(connection: Connection, url: str) -> str:
    """Return the address of the watched page that is shown as this one, if its password is hidden in it."""
    before, hidden, after = url.partition(f":{HIDDEN}@")
    if not hidden:
        return url
    alike = pages.c.url.startswith(f"{before}:", autoescape=True) & pages.c.url.endswith(f"@{after}", autoescape=True)
    watched = connection.scalars(select(pages.c.url).where(alike))
    return next((one for one in watched if without_password(one) == url), url)


def check_tags(tags: Iterable[str]) -> list[str]:
    """Return the tags, each once; BadSetting unless every one is a short word."""
    labels = list(dict.fromkeys(tag.strip() for tag in tags))
    for label in labels:
        # a character that stands for a byte which is not UTF-8 cannot be stored
        wrong = any(one.isspace() or one in ",\0" or "\ud800" <= one <= "\udfff" for one in label)
        if not label or len(label) > 64 or wrong:
            raise BadSetting(f"'{label}' is not a tag: use up to 64 characters without spaces or commas.")
    return labels


def carries(store: Store, tag: str) -> ColumnElement[bool]:
    """Return the condition that a page carries this tag."""
    each = func.json_each if store.path is not None else func.json_array_elements_text
    one = each(pages.c.tags).table_valued("value", joins_implicitly=True)
    return and_(cast(pages.c.tags, Text) != "[]", exists().where(one.c.value == tag))


_IN_STATE: dict[PageState, ColumnElement[bool]] = {
    PageState.UNCHECKED: states.c.verdict.is_(None),
    PageState.FAILING: states.c.failing_at.is_not(None),
    **{state: states.c.verdict == state.value for state in PageState if state.value in frozenset(Verdict)},
}

_PAGES = (
    select(
        pages, states.c.sequence, states.c.version, states.c.checked_at, states.c.changed_at, states.c.verdict,
        states.c.failure_kind, states.c.failure, states.c.failures, versions.c.title,
    )
    .join(states, states.c.page_id == pages.c.id)
    .outerjoin(versions, (versions.c.page_id == pages.c.id) & (versions.c.number == states.c.version))
)  # fmt: skip


def _stored_filters(filters: Sequence[Filter], own: Sequence[Filter]) -> dict[str, Any]:
    """Return the filters of a page as they are stored; its own ones only if it shares others, too."""
    found: dict[str, Any] = {"filters": [list(one) for one in filters]} if filters else {}
    if len(own) < len(filters):
        found["own_filters"] = [list(one) for one in own]
    return found


def _stored(filters: Sequence[Filter], own: Sequence[Filter], render: Render | None) -> dict[str, Any]:
    """Return the settings of a page as they are stored, without defaults: most pages have none at all."""
    found = _stored_filters(filters, own)
    if render is not None:
        given = {"mode": render.mode.value, "wait_for": render.wait_for, "steps": list(render.steps)}
        found["render"] = {name: value for name, value in given.items() if value}
    return found


def _requests(filters: Sequence[Filter]) -> set[Filter]:
    return {one for one in filters if one.kind in REQUEST_FILTERS}


def _refuse_both(filters: Sequence[Filter], render: Render | None) -> None:
    if render is not None and _requests(filters):
        raise UsageError(
            "A browser requests a page by GET, without data: leave out --render, or --method, --data and "
            "--content-type."
        )


def _others(settings: dict[str, Any], *, keep_credentials: bool) -> dict[str, Any]:
    """Return the settings that `_stored` does not write; of the access only its proxy unless `keep_credentials`."""
    found = {name: value for name, value in settings.items() if name not in (*_FILTERS, "render", "access")}
    access = Access.from_stored(settings.get("access", {}))
    kept = access if keep_credentials else access.only_proxy()
    return found | ({"access": kept.stored()} if kept else {})


def _page(row: Row[Any]) -> Page:
    failure = Failure(kind=FailureKind(row.failure_kind), sentence=row.failure) if row.failure_kind else None
    return Page(
        id=row.id, url=row.url, every=None if row.every is None else timedelta(seconds=row.every),
        tags=tuple(row.tags), added_at=utc(row.added_at), checks=row.sequence,
        versions=row.version, checked_at=utc_or_none(row.checked_at), changed_at=utc_or_none(row.changed_at),
        verdict=Verdict(row.verdict) if row.verdict else None, failure=failure, failures=row.failures, title=row.title,
        filters=_read_filters(row.settings), render=stored_render(row.settings),
        own_filters=_read_filters(row.settings, *reversed(_FILTERS)),
    )  # fmt: skip


def _read_filters(settings: dict[str, Any], *names: str) -> tuple[Filter, ...]:
    """Return the filters that settings have by the first of these names that they have, by default all of them."""
    found = next((settings[name] for name in names or _FILTERS[:1] if name in settings), ())
    return tuple(Filter(FilterKind(kind), value) for kind, value in found)


class SharedFilters:
    """The filters of a tag, or of all pages (an empty tag). Each page has them in its settings, before its own."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __repr__(self) -> str:
        return f"<SharedFilters of {self._store!r}>"

    def all(self) -> dict[str, tuple[Filter, ...]]:
        """Return the filters of all pages and of tags, by tag."""
        with self._store.read() as connection:
            rows = connection.execute(select(tag_settings).order_by(tag_settings.c.name)).all()
        return {name: found for name, settings in rows if (found := _read_filters(settings))}

    def edit(
        self, tag: str, change: Callable[[Sequence[Filter]], Sequence[Filter]], check: CheckFilters = lambda _: None
    ) -> int:  # fmt: skip
        """Change the filters of a tag, also of the pages that have it. Returns how many pages these are.

        Raises BadFilter, and changes nothing, if they and the other filters of a page exclude each other by `check`.
        """
        condition = true() if not tag else carries(self._store, tag)
        self._refuse_conflicts(tag, change(self.all().get(tag, ())), condition, check)
        with self._store.write() as connection:
            lock_addresses(connection)  # pages that are added meanwhile have the old filters, and are found below
            # a tag without settings has no row that others could wait for, until it is inserted
            settings = connection.execute(self._store.statements.tag, {"name": tag, "settings": {}}).scalar_one()
            new = change(_read_filters(settings))
            others = {name: value for name, value in settings.items() if name not in _FILTERS}
            kept = others | _stored_filters(new, new)
            this = tag_settings.c.name == tag
            connection.execute(
                update(tag_settings).where(this).values(settings=kept) if kept else delete(tag_settings).where(this)
            )
        changed, after = 0, 0
        while ids := self._portion(condition, after):
            with self._store.write() as connection:
                self._renew(connection, ids)
            changed, after = changed + len(ids), ids[-1]
        return changed

    def _refuse_conflicts(
        self, tag: str, new: Sequence[Filter], condition: ColumnElement[bool], check: CheckFilters
    ) -> None:  # fmt: skip
        shared, after = self.all() | {tag: tuple(new)}, 0
        query = select(pages.c.id, pages.c.url, pages.c.tags, pages.c.settings).where(condition).order_by(pages.c.id)
        checked: set[tuple[object, ...]] = set()  # most pages have the same filters
        while True:
            with self._store.read() as connection:
                rows = connection.execute(query.where(pages.c.id > after).limit(_COMMITTED)).all()
            if not rows:
                return
            for _, url, labels, settings in rows:
                own = _read_filters(settings, *reversed(_FILTERS))
                merged = with_shared([one for name in ("", *labels) for one in shared.get(name, ())], own)
                render = stored_render(settings)
                if (*merged, render is None) in checked:
                    continue
                try:
                    check(merged)
                    _refuse_both(merged, render)
                except UsageError as error:
                    raise BadFilter(f"{url} has other filters or is rendered: {error}") from None
                checked.add((*merged, render is None))
            after = rows[-1].id

    def _portion(self, condition: ColumnElement[bool], after: int) -> list[int]:
        query = select(pages.c.id).where(condition, pages.c.id > after).order_by(pages.c.id).limit(_COMMITTED)
        with self._store.read() as connection:
            return list(connection.scalars(query))

    def _renew(self, connection: Connection, ids: Sequence[int]) -> None:
        """Set the filters of pages to those that they share now, and their own."""
        query = select(pages.c.id, pages.c.tags, pages.c.settings).where(pages.c.id.in_(ids)).order_by(pages.c.id)
        by_tag = {name: stored for name, stored in connection.execute(select(tag_settings))}  # noqa: C416 rows are no pairs
        changed: list[dict[str, Any]] = []
        fetched_otherwise: list[int] = []
        for page_id, labels, settings in connection.execute(query.with_for_update(key_share=True)).all():
            own = _read_filters(settings, *reversed(_FILTERS))
            shared = [one for name in ("", *labels) if name in by_tag for one in _read_filters(by_tag[name])]
            new = with_shared(shared, own)
            if tuple(new) != _read_filters(settings):
                others = {name: value for name, value in settings.items() if name not in _FILTERS}
                if _requests(new) != _requests(_read_filters(settings)):
                    fetched_otherwise.append(page_id)
                changed.append({"key": page_id, "settings": others | _stored_filters(new, own)})
        if changed:
            connection.execute(update(pages).where(pages.c.id == bindparam("key")), changed)
            these = [one["key"] for one in changed]
            lock_states(connection, these)
            reset = update(states).where(states.c.page_id.in_(these))
            connection.execute(reset.values(etag=None, last_modified=None, wire=b""))
            otherwise = update(states).where(states.c.page_id.in_(fetched_otherwise))
            connection.execute(otherwise.values(reading=Incomparable.FETCHED_OTHERWISE.value))


def _shared_by(connection: Connection, labels: Sequence[str]) -> list[Filter]:
    """Return the filters that a page with these tags shares: those of all pages, then those of each tag."""
    query = select(tag_settings.c.name, tag_settings.c.settings).where(tag_settings.c.name.in_(("", *labels)))
    found = {name: stored for name, stored in connection.execute(query)}  # noqa: C416 rows are no pairs
    return [one for name in ("", *labels) if name in found for one in _read_filters(found[name])]


def with_shared(shared: Sequence[Filter], own: Sequence[Filter]) -> list[Filter]:
    """Return the filters of a page that shares some: its own come last, and replace those it can have one of."""
    given = {one.kind for one in own}
    kept = [one for one in dict.fromkeys(shared) if one.kind not in SINGLE_FILTERS or one.kind not in given]
    return [*kept, *own]
