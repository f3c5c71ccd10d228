"""Looking back: the checks and versions of a page, what differs between two versions, and feedback on changes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from driftline.api.arguments import capped, check_flags, check_number, check_texts, check_urls
from driftline.errors import UnknownChange, UnknownVersion, UsageError
from driftline.model.change import Importance
from driftline.store.feedback import all_said, find_change, keys_of_ignored, remember, withdraw
from driftline.urls import host_of, without_password

if TYPE_CHECKING:
    from driftline.api.workspace import Workspace
    from driftline.detection.diff.markup import MarkupChange
    from driftline.detection.diff.tables import ChangedCell
    from driftline.detection.diff.text_diff import WordPiece
    from driftline.detection.extract.conditions import MeasuredVersion
    from driftline.detection.extract.outline import TextBlock
    from driftline.model.change import Feedback
    from driftline.model.outcome import Check, Version
    from driftline.model.page import Page


class PageHistory:
    """Look back at what was found: checks, versions, screenshots and differences, and say which changes matter.

    Where two versions are compared and none is named, they are those of the newest change.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def __repr__(self) -> str:
        return f"<PageHistory of {self._workspace.store.where}>"

    def checks(self, url: str, limit: int | None = None, *, news_only: bool = False) -> list[Check]:
        """Return the checks of a page, the newest first.

        With `news_only`, leave out those that found nothing or only noise, as `driftline history` does.
        """
        check_number("limit", limit)
        check_flags(news_only=news_only)
        most = None if limit is None else capped(limit)
        return self._workspace.repository.history(self._page("checks", url), most, news_only=news_only)

    def version(self, url: str, version: int | None = None) -> Version:
        """Return a version of a page with its body and text, the newest one by default."""
        check_number("version", version, 1)
        return self._workspace.repository.version(self._page("version", url), version)

    def values(self, url: str, limit: int | None = None) -> list[MeasuredVersion]:
        """Return what was measured in the versions of a page, the newest first: price, stock, or a number.

        That is what the conditions of the page are about, price and stock if it reads offers, or else its first number.
        """
        from driftline.detection.extract.conditions import MeasuredVersion, measured
        from driftline.detection.extract.filters import sieve_of

        check_number("limit", limit)
        page = self._page("values", url)
        if not page.versions:
            self._workspace.repository.version(page)  # raises why there is none
        sieve = sieve_of(page.filters)
        conditions = () if sieve is None else sieve.conditions
        numbers = range(page.versions, 0, -1)
        found: list[MeasuredVersion] = []
        for number in numbers if limit is None else numbers[: capped(limit)]:
            version = self._workspace.repository.version(page, number)
            found.append(MeasuredVersion(number, version.at, measured(version.words, conditions)))
        return found

    def screenshot(self, url: str, version: int | None = None) -> bytes:
        """Return the picture (PNG) of a version that a browser rendered, by default the newest that has one."""
        check_number("version", version, 1)
        page = self._page("screenshot", url)
        pictured = self._workspace.screenshots.numbers(page)
        found = self._workspace.screenshots.of(page, max(pictured, default=0) if version is None else capped(version))
        if found is not None:
            return found
        if not pictured:
            raise UnknownVersion(f"There are no pictures of {page.url}: they are taken of pages with --render.")
        have = ", ".join(map(str, sorted(pictured)))
        raise UnknownVersion(f"There is no picture of version {version} of {page.url}, but of these: {have}.")

    def diff(
        self, url: str, old: int | None = None, new: int | None = None, *, cells: list[ChangedCell] | None = None
    ) -> str:
        """Return the unified diff between two versions; empty if their texts are equal.

        `cells` are the result of `table_changes`, if the caller has it already.
        """
        from driftline.detection.diff.tables import cells_between, heading
        from driftline.detection.diff.text_diff import unified

        before, after = self._versions(url, old, new)
        shown = without_password(after.url)
        return unified(
            before.words, after.words, f"{shown} version {before.number}", f"{shown} version {after.number}",
            headed=partial(heading, cells_between(before, after) if cells is None else [*cells]),
        )  # fmt: skip

    def word_diff(self, url: str, old: int | None = None, new: int | None = None) -> list[list[WordPiece]]:
        """Return the places that differ between two versions, word by word."""
        from driftline.detection.diff.text_diff import by_word

        before, after = self._versions(url, old, new)
        return by_word(before.words, after.words)

    def headings_of_diff(self, url: str, old: int | None = None, new: int | None = None) -> list[str]:
        """Return the heading above each place of `word_diff`, or the number of its line if there is none."""
        from driftline.detection.diff.text_diff import starts
        from driftline.detection.extract.document import Extraction
        from driftline.errors import UnreadableBody

        before, after = self._versions(url, old, new)
        lines = after.words.split("\n")
        try:
            filters = self._workspace.catalog.find(url).filters
            headings = (
                Extraction(after.body, f"{after.content_type}; charset={after.charset}", filters).blocks().headings
            )
        except UnreadableBody:
            headings = set()
        found: list[str] = []
        for start in starts(before.words, after.words):
            above = next((lines[at] for at in range(min(start, len(lines)) - 1, -1, -1) if lines[at] in headings), None)
            found.append(above or f"line {start + 1:,}")
        return found

    def html_diff(self, url: str, old: int | None = None, new: int | None = None) -> str:
        """Return the differences between two versions as one HTML document, which is safe to open."""
        from driftline.detection.diff.html_diff import render
        from driftline.detection.diff.markup import kinds_between
        from driftline.detection.diff.tables import cells_between

        workspace = self._workspace
        before, after = self._versions(url, old, new)
        page = workspace.catalog.find(url)
        change = workspace.repository.change(page, before.number, after.number)
        taken = {version.number: workspace.screenshots.of(page, version.number) for version in (before, after)}
        pictures = {number: picture for number, picture in taken.items() if picture is not None}
        return render(before, after, kinds_between(before, after), change, cells_between(before, after), pictures)

    def table_changes(self, url: str, old: int | None = None, new: int | None = None) -> list[ChangedCell]:
        """Return the cells of tables that differ between two versions, by row and column."""
        from driftline.detection.diff.tables import cells_between

        return cells_between(*self._versions(url, old, new))

    def markup_changes(self, url: str, old: int | None = None, new: int | None = None) -> list[MarkupChange]:
        """Return how two versions differ besides their text: in links, media, structure and metadata."""
        from driftline.detection.diff.markup import kinds_between

        return kinds_between(*self._versions(url, old, new))

    def outline(self, url: str, version: int | None = None) -> list[TextBlock]:
        """Return the blocks of text of a version, each with its role, its CSS selector and its links."""
        from driftline.detection.extract.document import Extraction
        from driftline.detection.extract.outline import outline

        page = self._page("outline", url)
        found = self.version(url, version)
        content_type = f"{found.content_type}; charset={found.charset}"
        read, again = (Extraction(found.body, content_type, page.filters) for _ in range(2))
        return outline(read.body, again.blocks())

    def feedback(self, change: str, importance: Importance | str) -> str:
        """Say that a change, named by its id, is `important`, `minor` or `noise`. Returns the URL of its page.

        From now on the same lines, the same place and the same words with other numbers are judged so, on this page and
        on others of its host. If parts of the page are ignored since a change, `important` has these reported again.
        """
        from driftline.detection.examine import Side, experience_of, weigh
        from driftline.detection.messages import listed
        from driftline.detection.noise.learning import feedback_keys

        check_texts(change=change, importance=importance)
        if importance not in frozenset(Importance):
            raise UsageError(f"A change is {listed([*Importance], 'or')}, not {importance!r}.")
        chosen = Importance(importance)
        workspace, repository = self._workspace, self._workspace.repository
        named = find_change(workspace.store, change)
        ignored = keys_of_ignored(workspace.store, named) if chosen is Importance.IMPORTANT else None
        if ignored is not None:
            remember(workspace.store, named, *ignored, chosen, workspace.clock())
            return named.url
        page = workspace.catalog.find(named.url)
        sides = [repository.version(page, number) for number in (named.from_version, named.to_version)]
        old, new = (Side(one.body, one.words, one.at.timestamp()) for one in sides)
        content_type = f"{sides[1].content_type}; charset={sides[1].charset}"
        filters = [list(one) for one in page.filters] or None
        in_force = repository.recall([page.id])
        known = repository.recall_contents(in_force, {page.id: host_of(named.url)})[page.id].contents
        assert known is not None
        experience = experience_of(filters, known.memory, known.host_memory, named.sequence, new.at)
        page_keys, host_keys = feedback_keys(weigh(old, new, sides[1].title, content_type, experience, filters), chosen)
        remember(workspace.store, named, page_keys, host_keys, chosen, workspace.clock())
        return named.url

    def forget_feedback(self, change: str) -> str:
        """Remove the feedback on a change, and judge others like it as before. Returns the URL of its page."""
        check_texts(change=change)
        named = find_change(self._workspace.store, change)
        if not withdraw(self._workspace.store, named):
            raise UnknownChange(f"Nothing was said of the change {change}: 'driftline feedback --list' shows what was.")
        return named.url

    def all_feedback(self) -> list[Feedback]:
        """Return the feedback on changes, the newest first."""
        return all_said(self._workspace.store)

    def _page(self, method: str, url: str) -> Page:
        check_urls(method, [url])
        return self._workspace.catalog.find(url)

    def _versions(self, url: str, old: int | None, new: int | None) -> tuple[Version, Version]:
        check_urls("diff", [url])
        check_number("old", old, 1)
        check_number("new", new, 1)
        return self._workspace.two_versions(url, old, new)
