"""Reading the history of pages: the last version for a comparison; past versions, checks and screenshots for users."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from shlex import quote
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, case, exists, func, not_, or_, select

from driftline.durations import utc, utc_or_none
from driftline.errors import BrokenVersion, FailureKind, UnknownVersion
from driftline.model.change import Change, ChangeKind, Importance, change_id
from driftline.model.outcome import Blob, Check, Incomparable, Old, OldContents, Proof, Verdict, Version
from driftline.model.page import Failure, Page, PageWarning, WarningKind
from driftline.store.blobs import chain_of, unpack, unpack_all, unpack_both
from driftline.store.feedback import ChangeKey, find_change, stored_ignored
from driftline.store.locks import patiently
from driftline.store.outbox import edits_of, stored_turn
from driftline.store.schema import (
    blobs,
    changes,
    checks,
    feedback,
    ignored,
    pages,
    screenshots,
    scripted_hosts,
    states,
    turns,
    versions,
    warnings,
)
from driftline.store.statements import BINARY, OLD_COLUMNS, all_memories_of, prefer_indexes, read_chains

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from sqlalchemy import Connection, Row

    from driftline.model.page import Page
    from driftline.store.engine import Store
    from driftline.store.statements import BlobKey

_PAGES_AT_ONCE = 1_000
_BLOBS_AT_ONCE = 100

_THIS_CHANGE = and_(changes.c.page_id == checks.c.page_id, changes.c.sequence == checks.c.sequence)
_OF_THIS_CHANGE = and_(feedback.c.page_id == changes.c.page_id, feedback.c.sequence == changes.c.sequence)
# feedback on a change outweighs what the check found
_importance = func.coalesce(feedback.c.importance, changes.c.importance)
_THIS_TURN = and_(turns.c.page_id == checks.c.page_id, turns.c.sequence == checks.c.sequence)
_FOUND_NEWS = func.coalesce(_importance != Importance.NOISE.value, checks.c.verdict != Verdict.UNCHANGED.value)
_WARNED = exists().where(warnings.c.page_id == checks.c.page_id, warnings.c.sequence == checks.c.sequence)
_THIS_IGNORED = and_(ignored.c.page_id == checks.c.page_id, ignored.c.sequence == checks.c.sequence)
_IS_NEWS = or_(turns.c.turn.is_not(None), ignored.c.kind.is_not(None), _FOUND_NEWS, _WARNED)
_IS_NOISE = or_(
    checks.c.proof == Proof.NOISE.value, and_(_importance == Importance.NOISE.value, checks.c.proof.is_(None))
)


class Repository:
    """Reads versions, checks and changes. What a comparison needs is found by primary key."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __repr__(self) -> str:
        return f"<Repository of {self._store!r}>"

    def recall(self, page_ids: Sequence[int]) -> dict[int, Old]:
        """Return the last versions of these pages, their contents unread.

        Pages that have none or are no longer watched are left out, except for an empty version of those whose next
        answer the user accepts.
        """
        with self._store.read() as connection:
            return _old_versions(connection, page_ids)

    def recall_contents(self, old: Mapping[int, Old], hosts: Mapping[int, str]) -> dict[int, Old]:
        """Return old versions of pages, which `recall` returned, with their contents; `hosts` has those of the pages.

        A page that was removed meanwhile is left out. If another process extracted its text anew, its old version is
        the one that there is now.
        """
        with self._store.read() as connection:
            found = dict(old)
            blobs = _contents_of(connection, found)
            moved = [
                page_id for page_id, one in found.items() if not {one.kept_body, one.kept_text} <= {*blobs[page_id]}
            ]
            if moved:
                now = _old_versions(connection, moved)
                blobs |= _contents_of(connection, now)
                for page_id in moved:
                    del found[page_id]
                found |= {page_id: _as_comparable_as(old[page_id], one) for page_id, one in now.items()}
            learned, of_hosts = all_memories_of(connection, [*found], {hosts[page_id] for page_id in found})
        return {
            page_id: replace(
                one,
                contents=OldContents(
                    chain_of((one.kept_body, one.kept_text), blobs[page_id]),
                    learned.get(page_id, b""),
                    of_hosts.get(hosts[page_id], b""),
                ),
            )
            for page_id, one in found.items()
        }

    def texts(self, keys: Collection[BlobKey]) -> dict[bytes, bytes]:
        """Return the contents of pages with these digests, without those that are damaged."""
        with self._store.read() as connection:
            blobs = read_chains(connection, keys)
        found: dict[bytes, bytes] = {}
        for page_id, name in keys:
            with suppress(BrokenVersion):
                found[name] = unpack(name, blobs[page_id])
        return found

    def version(self, page: Page, number: int | None = None) -> Version:
        """Return a version of the page with its contents, the newest one unless a number is given."""
        chosen = page.versions if number is None else number
        if not 1 <= chosen <= page.versions:
            raise UnknownVersion(_no_version(page, number))
        with self._store.read() as connection:
            row = connection.execute(
                select(versions).where(and_(versions.c.page_id == page.id, versions.c.number == chosen))
            ).first()
            if row is None:
                raise UnknownVersion(_no_version(page, chosen))
            chain = read_chains(connection, [(page.id, row.body), (page.id, row.text)])[page.id]
        body, words = unpack_both(row.body, row.text, chain)
        return Version(
            url=page.url, number=row.number, at=utc(row.at), size=row.size, title=row.title,
            content_type=row.content_type, charset=row.charset, final_url=row.final_url, body=body, text=words,
        )  # fmt: skip

    def history(self, page: Page, limit: int | None = None, *, news_only: bool = False) -> list[Check]:
        """Return the checks of a page, the latest first; with `news_only` without those that found nothing or noise."""
        this_version = and_(versions.c.page_id == checks.c.page_id, versions.c.sequence == checks.c.sequence)
        query = (
            select(
                checks,
                versions.c.number,
                versions.c.reread_at,
                changes.c.from_version,
                changes.c.kind,
                changes.c.score,
                changes.c.reason,
                changes.c.importance.label("found"),
                changes.c.cause,
                changes.c.edits,
                changes.c.headline,
                feedback.c.importance.label("said"),
                turns.c.turn,
                turns.c.reason.label("turned"),
                ignored.c.label,
                ignored.c.example,
                ignored.c.others,
                ignored.c.kind.label("ignored_kind"),
            )
            .outerjoin(versions, this_version)
            .outerjoin(turns, _THIS_TURN)
            .outerjoin(ignored, _THIS_IGNORED)
            .outerjoin(changes, _THIS_CHANGE)
            .outerjoin(feedback, _OF_THIS_CHANGE)
            .where(checks.c.page_id == page.id)
            .order_by(checks.c.sequence.desc())
            .limit(limit)
        )
        with self._store.read() as connection:
            rows = connection.execute(query.where(_IS_NEWS) if news_only else query)
            found = [_check(page.url, row) for row in rows]
            warned = select(warnings).where(warnings.c.page_id == page.id).order_by(warnings.c.kind)
            by_check: dict[int, tuple[PageWarning, ...]] = {}
            for row in connection.execute(warned):
                by_check[row.sequence] = (
                    *by_check.get(row.sequence, ()),
                    PageWarning(WarningKind(row.kind), row.reason),
                )
        return [replace(one, warnings=by_check[one.sequence]) if one.sequence in by_check else one for one in found]

    def quiet_checks(self, page: Page) -> tuple[int, int]:
        """Return how many checks of the page found nothing or only noise, and how many of these found noise."""
        noisy = func.coalesce(func.sum(case((_IS_NOISE, 1), else_=0)), 0)
        every = checks.outerjoin(changes, _THIS_CHANGE).outerjoin(feedback, _OF_THIS_CHANGE)
        every = every.outerjoin(turns, _THIS_TURN).outerjoin(ignored, _THIS_IGNORED)
        query = select(func.count(), noisy).select_from(every)
        with self._store.read() as connection:
            quiet, noise = connection.execute(query.where(checks.c.page_id == page.id, not_(_IS_NEWS))).one()
        return quiet, noise

    def newest_change(self, page: Page) -> tuple[int, int]:
        """Return the two versions of the newest important change, else of the newest minor one, else the newest two."""
        query = (
            select(changes.c.from_version, changes.c.to_version)
            .outerjoin(feedback, _OF_THIS_CHANGE)
            .where(changes.c.page_id == page.id)
            .where(_importance != Importance.NOISE.value)
            .order_by(case((_importance == Importance.IMPORTANT.value, 0), else_=1), changes.c.sequence.desc())
            .limit(1)
        )
        with self._store.read() as connection:
            row = connection.execute(query).first()
        return (page.versions - 1, page.versions) if row is None else (row.from_version, row.to_version)

    def change(self, page: Page, old: int, new: int) -> Change | None:
        """Return what was recorded of the change between two versions; None if they do not follow each other."""
        query = (
            select(changes, changes.c.importance.label("found"), feedback.c.importance.label("said"))
            .outerjoin(feedback, _OF_THIS_CHANGE)
            .where(and_(changes.c.page_id == page.id, changes.c.from_version == old, changes.c.to_version == new))
        )
        with self._store.read() as connection:
            row = connection.execute(query).first()
        return None if row is None else _change(page.url, row)

    def change_named(self, name: str) -> ChangeKey:
        """Return the change of an id; UsageError if it cannot be one, UnknownChange if there is none."""
        return find_change(self._store, name)

    def read_everything(self) -> Iterator[str]:
        """Read all stored contents. Yields a sentence for each that is damaged.

        Pages are read one after the other, and each blob once: one that others are built on is unpacked before them.
        """
        columns = (blobs.c.page_id, blobs.c.digest, blobs.c.base, blobs.c.depth, blobs.c.size, blobs.c.data)
        after = 0
        while True:
            portion = select(pages.c.id).where(pages.c.id > after).order_by(pages.c.id).limit(_PAGES_AT_ONCE)
            with self._store.read() as connection:
                page_ids = list(connection.scalars(portion))
                if not page_ids:
                    return
                first, after = page_ids[0], page_ids[-1]
                query = select(*columns).where(blobs.c.page_id.between(first, after)).order_by(blobs.c.page_id)
                rows = connection.execute(query, execution_options={"yield_per": _BLOBS_AT_ONCE})
                for _, some in groupby(rows, itemgetter(0)):
                    yield from unpack_all([Blob(*row[1:]) for row in some])

    def sizes(self) -> tuple[int, int, int]:
        """Return the number of versions, the bytes of their bodies and texts, and the bytes that these take stored."""
        with self._store.read() as connection:
            count = connection.scalar(select(func.count()).select_from(versions))
            raw, stored = connection.execute(select(func.sum(blobs.c.size), func.sum(func.length(blobs.c.data)))).one()
        return count or 0, raw or 0, stored or 0


def _old_versions(connection: Connection, page_ids: Sequence[int]) -> dict[int, Old]:
    in_force = and_(versions.c.page_id == states.c.page_id, versions.c.number == states.c.version)
    query = select(*OLD_COLUMNS).join(versions, in_force)
    query = query.where(and_(states.c.page_id.in_(page_ids), states.c.version > 0))
    prefer_indexes(connection)
    found = {
        row.page_id: Old(
            body=row.body, letters=row.letters, kept_body=row.kept_body, kept_text=row.kept_text, size=row.size,
            at=row.checked_at, **_reading(row.reading),
        )
        for row in connection.execute(query, execution_options=BINARY)
    }  # fmt: skip
    others = [page_id for page_id in page_ids if page_id not in found]
    if others:
        given_up = and_(states.c.version == 0, states.c.reading == Incomparable.GIVEN_UP.value)
        accepted = select(states.c.page_id).where(states.c.page_id.in_(others), given_up)
        found |= dict.fromkeys(connection.scalars(accepted), _NO_VERSION)
    return found


_NO_VERSION = Old(
    body=b"", letters=b"", kept_body=b"", kept_text=b"", size=0, at=0.0, contents=OldContents({}),
    incomparable=Incomparable.GIVEN_UP,
)  # fmt: skip


def _contents_of(connection: Connection, old: Mapping[int, Old]) -> dict[int, dict[bytes, Blob]]:
    """Return what the contents of these versions are built from, by page and digest."""
    return read_chains(
        connection, [(page_id, name) for page_id, one in old.items() for name in (one.kept_body, one.kept_text)]
    )


def _as_comparable_as(before: Old, now: Old) -> Old:
    """Return an old version with the note that was made of it before it was read again, if there was one."""
    return now if before.incomparable is None else replace(now, reading=None, incomparable=before.incomparable)


def _reading(stored: str | None) -> dict[str, Any]:
    """Return how a text was extracted, or why it is not to be compared with: one column has both."""
    if stored in tuple(Incomparable):
        return {"incomparable": Incomparable(stored)}
    return {"reading": stored}


def _no_version(page: Page, number: int | None) -> str:
    if page.failure is not None and not page.versions:
        return f"{page.url} has no version yet: its last check failed. {page.failure.sentence}"
    if not page.versions:
        return f'{page.url} has no version yet: check it with "driftline check {quote(page.url)}".'
    return f"{page.url} has no version {number}: it has versions 1 to {page.versions}."


def _change(url: str, row: Row[Any]) -> Change:
    return Change(
        id=change_id(row.page_id, row.sequence), url=url, at=utc(row.at),
        from_version=row.from_version, to_version=row.from_version + 1, kind=ChangeKind(row.kind),
        importance=Importance(row.said or row.found), score=row.score,
        headline=row.headline or row.reason, reason=row.reason, cause=row.cause or b"",
        said=Importance(row.said) if row.said else None, edits=edits_of(row.edits),
    )  # fmt: skip


def _check(url: str, row: Row[Any]) -> Check:
    failure = Failure(kind=FailureKind(row.failure_kind), sentence=row.failure) if row.failure_kind else None
    return Check(
        sequence=row.sequence, at=utc(row.at), verdict=Verdict(row.verdict), status=row.status, seconds=row.seconds,
        bytes=row.bytes, proof=Proof(row.proof) if row.proof else None, failure=failure,
        redirected_to=row.redirected_to, version=row.number, change=_change(url, row) if row.kind else None,
        reread_at=utc_or_none(row.reread_at), turned=stored_turn(url, row, row.turned) if row.turn else None,
        ignored=stored_ignored(url, row) if row.ignored_kind else None,
    )  # fmt: skip


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
