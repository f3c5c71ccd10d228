"""Which pages are blocked by lists and users' reports, and why; adding and withdrawing reports.

It is looked up before each fetch, so it has to be fast. All lists and reports are in one object that is never changed,
only replaced: producers use it while lists are read again.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from contextlib import suppress
from typing import TYPE_CHECKING

from driftline.errors import BadSetting
from driftline.model.page import BlockedPage
from driftline.plurals import count
from driftline.safety.blocklist_formats import digest_of, key_of
from driftline.store.pages import urls_after, urls_of
from driftline.store.safety_records import SafetyRecords
from driftline.urls import host_of
from driftline.urls.canonical import reduced
from driftline.urls.tracking import KNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.store.engine import Store
    from driftline.store.safety_records import BlocklistDigests, UnsafeReport

_LOG = logging.getLogger(__name__)
_CACHED = 65_536  # hosts whose verdicts are cached
_PORTION = 20_000  # pages that are read at a time
_READ_AGAIN = 60.0  # seconds after which the URLs of all pages are read again, because they can be edited

_MOST_VOTES = 1_000_000
_LONGEST_REASON = 500  # characters


class UnsafePages:
    """Pages blocked by lists and reports, as of the last `refresh`; none before the first. Used by any thread."""

    def __init__(
        self, store: Store, votes: int, ticks: Callable[[], float] = time.monotonic
    ) -> None:  # fmt: skip
        self._store = store
        self._votes = votes
        self._records = SafetyRecords(store)
        self._ticks = ticks
        self._stamp: object = None
        self._known: _Known | None = None
        self._blocked: dict[int, BlockedPage] = {}
        self._seen_to = 0
        self._read_again_at = 0.0

    def __repr__(self) -> str:
        return f"<UnsafePages any={self.any} single={self.single} votes={self._votes} blocked={len(self._blocked)}>"

    @property
    def any(self) -> bool:
        """Return whether anything is blocked at all, by a list or by reports."""
        return self._known is not None

    @property
    def single(self) -> bool:
        """Return whether single URLs are blocked, and not only whole hosts."""
        known = self._known
        return known is not None and known.single

    def why(self, url: str) -> str | None:
        """Return why the page at a canonical URL must not be fetched, as a sentence; None if it may be."""
        known = self._known
        return None if known is None else known.why(url)

    def refresh(self) -> None:
        """Read lists and reports if any of them changed since the last time."""
        stamp = self._records.revision()
        if stamp == self._stamp:
            return
        reported = [one for one in self._records.reports() if one.votes >= self._votes]
        lists = [_List(one) for one in self._records.blocklist_digests()]
        self._known = _Known(lists, reported) if lists or reported else None
        self._stamp, self._read_again_at = stamp, 0.0
        _LOG.debug("read %s, and reports of %s", count(len(lists), "blocklist"), count(len(reported), "page"))

    def pages(self, page_ids: Sequence[int] | None = None) -> dict[int, BlockedPage]:
        """Return the watched pages that are blocked, or those among `page_ids`, by their ids, after a `refresh`.

        Without `page_ids`, only pages added since the last time are checked, and all of them once a minute.
        """
        self.refresh()
        known = self._known
        if known is None:
            self._blocked, self._seen_to = {}, 0
            return {}
        if page_ids is not None:
            return self._among(known, page_ids)
        if self._ticks() >= self._read_again_at:
            self._blocked, self._seen_to = {}, 0
            self._read_again_at = self._ticks() + _READ_AGAIN
        blocked = dict(self._blocked)
        while True:
            rows = urls_after(self._store, self._seen_to, _PORTION)
            blocked |= {page: BlockedPage(url, reason) for page, url in rows if (reason := known.why(url)) is not None}
            if rows:
                self._seen_to = rows[-1][0]
            if len(rows) < _PORTION:
                self._blocked = blocked
                return blocked

    def _among(self, known: _Known, page_ids: Sequence[int]) -> dict[int, BlockedPage]:
        urls = urls_of(self._store, page_ids)
        return {page: BlockedPage(url, reason) for page, url in urls.items() if (reason := known.why(url)) is not None}


class Reports:
    """Users' reports of unsafe pages, each for a canonical URL: votes with reasons, valid until withdrawn."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._records = SafetyRecords(store)
        self._clock = clock

    def __repr__(self) -> str:
        return f"<Reports of {self._records!r}>"

    def add(self, url: str, *, reason: str = "", votes: int = 1, whole_host: bool = False) -> UnsafeReport:
        """Add a report with this many votes. Returns all reports of the page added up; raises BadSetting."""
        if not 1 <= votes <= _MOST_VOTES:
            raise BadSetting(f"A report counts as 1 to {_MOST_VOTES:,} votes, not {votes:,}.")
        reason = " ".join(reason.split())
        if len(reason) > _LONGEST_REASON:
            raise BadSetting(f"A reason has {_LONGEST_REASON} characters at most; this one has {len(reason):,}.")
        return self._records.add_report(url, whole_host=whole_host, votes=votes, reason=reason, at=self._clock())

    def withdraw(self, url: str, *, whole_host: bool = False) -> int:
        """Remove the reports of a page. Returns how many there were."""
        return self._records.remove_reports(url, whole_host=whole_host)

    def all(self) -> list[UnsafeReport]:
        """Return the reports added up by page, in the order of the first report of each."""
        return self._records.reports()


class _Digests:
    """Sorted digests: an index by their first bits makes a search short."""

    __slots__ = ("_digests", "_shift", "_starts")

    def __init__(self, digests: bytes) -> None:
        import numpy as np  # a slow import, which is not needed where there are no lists

        numbers = np.frombuffer(digests, "<u8")
        bits = min(16, max(1, len(numbers).bit_length()))
        firsts = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
        self._shift = 64 - bits
        self._starts = [*np.searchsorted(numbers, firsts).tolist(), len(numbers)]
        self._digests = memoryview(numbers.astype(np.uint64).tobytes()).cast("Q")

    def __len__(self) -> int:
        return len(self._digests)

    def __contains__(self, digest: int) -> bool:
        place = digest >> self._shift
        end = self._starts[place + 1]
        at = bisect_left(self._digests, digest, self._starts[place], end)
        return at < end and self._digests[at] == digest


class _List:
    """The hosts, exceptions and URLs of one list."""

    __slots__ = ("addresses", "exceptions", "hosts", "name")

    def __init__(self, one: BlocklistDigests) -> None:
        self.name = one.name
        self.hosts, self.exceptions = _Digests(one.hosts), _Digests(one.exceptions)
        self.addresses = _Digests(one.addresses)


class _Known:
    """All lists and reports at one moment."""

    def __init__(self, lists: Sequence[_List], reported: Sequence[UnsafeReport]) -> None:
        self._lists = lists
        self._with_addresses = [one for one in lists if len(one.addresses)]
        self._pages = {key_of(one.url): _reason(one) for one in reported if not one.whole_host}
        self._sites = {_name(host_of(one.url)): _reason(one) for one in reported if one.whole_host}
        self._hosts: dict[str, tuple[str | None, bool]] = {}

    def __repr__(self) -> str:
        return (
            f"<_Known lists={len(self._lists)} pages={len(self._pages)} hosts={len(self._sites)} "
            f"cached_hosts={len(self._hosts)}>"
        )

    @property
    def single(self) -> bool:
        return bool(self._pages or self._with_addresses)

    def why(self, url: str) -> str | None:
        host = host_of(url)
        found = self._hosts.get(host)
        if found is None:
            found = self._judge(_name(host))
            if len(self._hosts) >= _CACHED:
                self._hosts.clear()
            self._hosts[host] = found
        reason, excepted = found
        if reason is not None or not self.single:
            return reason
        key = key_of(reduced(url, KNOWN))
        if self._pages and (reason := self._pages.get(key) or self._pages.get(key_of(url))):
            return reason
        if self._with_addresses and not excepted:
            digest = digest_of(key)
            for one in self._with_addresses:
                if digest in one.addresses:
                    return f"This address is on the blocklist '{one.name}'."
        return None

    def _judge(self, name: str) -> tuple[str | None, bool]:
        """Return why a host is blocked, and whether an exception keeps lists from blocking it."""
        parents = _parents(name)
        for parent in parents:
            if parent in self._sites:
                return self._sites[parent], False
        digests = [(parent, digest_of(parent)) for parent in parents]
        if any(digest in one.exceptions for one in self._lists if one.exceptions for _, digest in digests):
            return None, True
        for one in self._lists:
            for parent, digest in digests:
                if digest in one.hosts:
                    return f"The host {parent} is on the blocklist '{one.name}'.", False
        return None, False


def _reason(one: UnsafeReport) -> str:
    what = f"The host {_name(host_of(one.url))}" if one.whole_host else "This page"
    votes = count(one.votes, "vote")
    return f"{what} was reported as unsafe ({votes}{': ' if one.reasons else ''}{'; '.join(one.reasons)})."


def _name(host: str) -> str:
    """Return a host without its port and a dot at its end."""
    return host if host.startswith("[") else host.partition(":")[0].removesuffix(".")


def _parents(name: str) -> list[str]:
    """Return a host and its parent domains, without the top-level one; an IP address has none."""
    found = [name]
    if not name[-1:].isdigit():
        with suppress(ValueError):
            while "." in (name := name[name.index(".") + 1 :]):
                found.append(name)
    return found
