"""Driftline for Python programs: watch pages, check them, look back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from driftline.detection.difference import Piece, by_word, unified
from driftline.errors import StoreError
from driftline.pages.catalog import Catalog
from driftline.pages.intervals import parse_interval
from driftline.pipeline.plan import Plan
from driftline.pipeline.run import Report, Run
from driftline.pipeline.stopping import Stop
from driftline.settings import Settings, load_settings
from driftline.versions.compaction import Compacted, compact
from driftline.versions.ledger import Ledger
from driftline.versions.repository import Repository
from driftline.versions.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from driftline.model import Check, Outcome, Page, Version


class Driftline:
    """A watch list with its history. Use it in a `with` block, or call `close` in the end."""

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self.settings = settings
        self.catalog = Catalog(store, clock)
        self.repository = Repository(store)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def where(self) -> str:
        """Where the store is, without its password."""
        return self._store.where

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def add(self, *urls: str, every: str | None = None, tags: Sequence[str] = ()) -> list[str]:
        """Watch pages; those that were not watched before, in canonical form."""
        return self.catalog.add(urls, every=None if every is None else parse_interval(every), tags=tags)

    def remove(self, *urls: str) -> list[str]:
        """Stop watching pages and forget their history."""
        return self.catalog.remove(urls)

    def pages(self, tag: str | None = None) -> list[Page]:
        """The pages that are watched, in the order in which they were added."""
        return self.catalog.all(tag)

    def check(
        self, *urls: str, plan: Plan | None = None, fresh: bool = False, stop: Stop | None = None,
        told: Callable[[Sequence[Outcome]], None] | None = None, begun: Callable[[int, bool], None] | None = None,
    ) -> Report:  # fmt: skip
        """Check these pages, or all of them, once, and record what came of it.

        A run that was cut short is continued unless `fresh`. `begun` is told how many pages there are and whether a run
        is continued, and `told` every batch of outcomes right after it is committed.
        """
        page_ids = [page.id for page in self.catalog.find_all(urls)] if urls else None
        return self.check_pages(page_ids, plan=plan, fresh=fresh, stop=stop, told=told, begun=begun)

    def check_pages(
        self, page_ids: Sequence[int] | None, *, plan: Plan | None = None, fresh: bool = False,
        stop: Stop | None = None,
        told: Callable[[Sequence[Outcome]], None] | None = None, begun: Callable[[int, bool], None] | None = None,
    ) -> Report:  # fmt: skip
        """The same for pages named by their ids, None for all."""
        plan = plan or Plan(capacity=self.settings.capacity)
        ledger = Ledger(self._store, self._clock)
        with self._store.exclusive_run():
            run = Run(ledger, self.repository, self.settings, plan, stop or Stop())
            return run.check(page_ids, fresh=fresh, told=told, begun=begun)

    def history(self, url: str, limit: int | None = None) -> list[Check]:
        """The checks of a page, the latest first."""
        return self.repository.history(self.catalog.find(url), limit)

    def version(self, url: str, number: int | None = None) -> Version:
        """A version of a page with its body and text, the newest one unless a number is given."""
        return self.repository.version(self.catalog.find(url), number)

    def diff(self, url: str, old: int | None = None, new: int | None = None) -> str:
        """The unified diff between two versions, those of the newest change unless told; empty if they are equal."""
        before, after = self._two_versions(url, old, new)
        return unified(
            _text(before), _text(after), f"{after.url} version {before.number}", f"{after.url} version {after.number}"
        )

    def word_diff(self, url: str, old: int | None = None, new: int | None = None) -> list[list[Piece]]:
        """The places that differ between two versions, word by word."""
        before, after = self._two_versions(url, old, new)
        return by_word(_text(before), _text(after))

    def compact(self, told: Callable[[int, int], None] | None = None) -> Compacted:
        """Make the store smaller by compressing again what was kept since the last time; checks may go on meanwhile.

        `told` how many of how many contents are done.
        """
        return compact(self._store, told)

    def doctor(self) -> list[str]:
        """Everything that is wrong with the store; empty when every version can be read back to the byte."""
        problems = self._store.problems()
        names = list(self.repository.every_blob())
        for name in names:
            try:
                self.repository.content(name)
            except StoreError as error:
                problems.append(str(error))
        return problems

    def _two_versions(self, url: str, old: int | None, new: int | None) -> tuple[Version, Version]:
        page = self.catalog.find(url)
        if old is None and new is None and page.versions > 1:
            old, new = self.repository.newest_change(page)
        after = self.repository.version(page, new)
        before = self.repository.version(page, after.number - 1 if old is None else old)
        return before, after


def open(store: str | None = None, settings: Settings | None = None) -> Driftline:  # noqa: A001 read as driftline.open
    """Open a watch list: a path or `postgresql://` URL, or the one in the user's data folder."""
    settings = settings or load_settings(store=store)
    return Driftline(Store.open(store or settings.store), settings)


def _text(version: Version) -> str:
    return version.text.decode("utf-8", "replace")
