"""The store's records about unsafe pages: blocklists, reports by users, and warnings found by checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, func, insert, select

from driftline.durations import utc
from driftline.model.page import PageWarning, WarningKind
from driftline.store.schema import blocklists, reports, states, versions, warnings
from driftline.store.statements import in_batches

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from sqlalchemy import Connection

    from driftline.store.engine import Store

#: bytes of a digest; a list holds those of its hosts, exceptions and addresses one after the other, sorted
DIGEST_SIZE = 8
_DIGESTS = ("hosts", "exceptions", "addresses")


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocklist:
    """A blocklist in the store: its name, where it came from, and how many entries of each kind it has."""

    name: str
    source: str
    format: str
    updated_at: datetime
    hosts: int
    exceptions: int
    addresses: int
    skipped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlocklistDigests:
    """The entries of a blocklist as sorted digests, joined."""

    name: str
    hosts: bytes
    exceptions: bytes
    addresses: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsafeReport:
    """All reports of one page, or with `whole_host` of all pages of a host; `at` is the time of the last report."""

    url: str
    whole_host: bool
    votes: int
    reasons: tuple[str, ...]
    at: datetime


class SafetyRecords:
    """Reads and writes blocklists and reports, and reads warnings. Safe to use from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __repr__(self) -> str:
        return f"<SafetyRecords of {self._store!r}>"

    def name_of_blocklist(self, source: str) -> str | None:
        """Return the name of the blocklist that came from this source; None if there is none."""
        with self._store.read() as connection:
            name: str | None = connection.scalar(select(blocklists.c.name).where(blocklists.c.source == source))
            return name

    def blocklists(self) -> list[Blocklist]:
        """Return all blocklists, in the order in which they were added."""
        counts = [(func.length(blocklists.c[name]) / DIGEST_SIZE).label(name) for name in _DIGESTS]
        columns = [blocklists.c[name] for name in ("name", "source", "format", "updated_at", "skipped")]
        with self._store.read() as connection:
            rows = connection.execute(select(*columns, *counts).order_by(blocklists.c.id))
            return [
                Blocklist(
                    name=row.name, source=row.source, format=row.format, updated_at=utc(row.updated_at),
                    skipped=row.skipped, **{name: int(row._mapping[name]) for name in _DIGESTS},
                )
                for row in rows
            ]  # fmt: skip

    def blocklist_digests(self) -> list[BlocklistDigests]:
        """Return the entries of all blocklists, in the order in which the lists were added."""
        columns = [blocklists.c[name] for name in ("name", *_DIGESTS)]
        with self._store.read() as connection:
            rows = connection.execute(select(*columns).order_by(blocklists.c.id))
            return [BlocklistDigests(**row) for row in rows.mappings()]

    def save_blocklist(
        self, name: str, source: str, *, format_: str, updated_at: float, skipped: int, hosts: bytes,
        exceptions: bytes, addresses: bytes,
    ) -> Blocklist:  # fmt: skip
        """Add a blocklist, or replace the one of the same name."""
        values = {
            "name": name, "source": source, "format": format_, "updated_at": updated_at, "skipped": skipped,
            "hosts": hosts, "exceptions": exceptions, "addresses": addresses,
        }  # fmt: skip
        with self._store.write() as connection:
            connection.execute(self._store.statements.blocklist, values)
        return Blocklist(
            name=name, source=source, format=format_, updated_at=utc(updated_at), skipped=skipped,
            hosts=len(hosts) // DIGEST_SIZE, exceptions=len(exceptions) // DIGEST_SIZE,
            addresses=len(addresses) // DIGEST_SIZE,
        )  # fmt: skip

    def remove_blocklist(self, name: str) -> None:
        """Remove the blocklist of this name, if there is one."""
        with self._store.write() as connection:
            connection.execute(delete(blocklists).where(blocklists.c.name == name))

    def revision(self) -> object:
        """Return a value that stays equal as long as no blocklist and no report is added, updated or removed."""
        lists = select(blocklists.c.id, blocklists.c.updated_at).order_by(blocklists.c.id)
        with self._store.read() as connection:
            return (
                connection.execute(lists).all(),
                connection.execute(select(reports.c.id).order_by(reports.c.id)).all(),
            )

    def add_report(self, url: str, *, whole_host: bool, votes: int, reason: str, at: float) -> UnsafeReport:
        """Store a report of a page or host, and return all that was reported of it."""
        row = {"url": url, "whole_host": int(whole_host), "votes": votes, "reason": reason, "at": at}
        with self._store.write() as connection:
            connection.execute(insert(reports).values(row))
            return next(one for one in _reports(connection) if (one.url, one.whole_host) == (url, whole_host))

    def remove_reports(self, url: str, *, whole_host: bool) -> int:
        """Remove all reports of a page or host, and return how many there were."""
        these = delete(reports).where(reports.c.url == url, reports.c.whole_host == int(whole_host))
        with self._store.write() as connection:
            return connection.execute(these).rowcount

    def reports(self) -> list[UnsafeReport]:
        """Return the reports added up by page or host, in the order of the first report of each."""
        with self._store.read() as connection:
            return _reports(connection)

    def current_warnings(self, page_ids: Iterable[int]) -> list[tuple[int, PageWarning]]:
        """Return the warnings found on these pages since their current version, each with its page."""
        current = and_(versions.c.page_id == states.c.page_id, versions.c.number == states.c.version)
        query = (
            select(warnings.c.page_id, warnings.c.kind, warnings.c.reason)
            .join(states, states.c.page_id == warnings.c.page_id)
            .join(versions, current)
            .where(warnings.c.sequence >= versions.c.sequence)
            .order_by(warnings.c.page_id, warnings.c.sequence, warnings.c.kind)
        )
        with self._store.read() as connection:
            return [
                (row.page_id, PageWarning(WarningKind(row.kind), row.reason))
                for some in in_batches(page_ids)
                for row in connection.execute(query.where(warnings.c.page_id.in_(some)))
            ]


def _reports(connection: Connection) -> list[UnsafeReport]:
    found: dict[tuple[str, bool], UnsafeReport] = {}
    for row in connection.execute(select(reports).order_by(reports.c.id)):
        key = row.url, bool(row.whole_host)
        before = found.get(key)
        reasons = (*(before.reasons if before else ()), *([row.reason] if row.reason else ()))
        found[key] = UnsafeReport(
            url=row.url, whole_host=key[1], votes=row.votes + (before.votes if before else 0),
            reasons=tuple(dict.fromkeys(reasons)), at=utc(row.at),
        )  # fmt: skip
    return list(found.values())
