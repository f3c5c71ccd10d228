"""Searching the past: the versions in which words appeared, and those in which they disappeared.

Words appear in a version that has all of them, and at least one of them more often than the version before, if that one
did not have them all, or if the new lines have them all. They disappear if the same is true with the two versions
exchanged. So an edit around the words is no result, nor is a line with them that moved.

The index finds candidates, whose texts are then read: the index has no phrases, and does not store which words of a
page were there at the same time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, select

from driftline.durations import utc
from driftline.model.change import Mention, MentionKind
from driftline.store.schema import pages, states, versions
from driftline.store.search_index import GAINED, KEPT, WordIndex, WordQuery, differing
from driftline.store.words import letters_of, lines_of, parse, tokens_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import Row, Select

    from driftline.store.engine import Store
    from driftline.store.history import Repository
    from driftline.store.words import Term

_AT_ONCE = 25  # sides of versions whose texts are read together
_IN_PARTS = {"yield_per": _AT_ONCE}
_LONGEST_EXCERPT = 160  # characters
_BEFORE_MARK = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchScope:
    """Where to search: one page or those with a tag, versions from a time and before another, only current texts."""

    page_id: int | None = None
    tag: str | None = None
    since: float | None = None
    until: float | None = None
    now: bool = False


class _Excerpt(NamedTuple):
    text: str
    marks: tuple[tuple[int, int], ...]


class Search:
    """Finds words in the versions of all pages."""

    def __init__(self, store: Store, repository: Repository) -> None:
        self._store = store
        self._repository = repository
        self._index = WordIndex(store, repository)

    def find(
        self, query: str, scope: SearchScope, limit: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Mention]:  # fmt: skip
        """Return the newest mentions, the latest first; UsageError if the query has no word in it.

        Versions that are not indexed yet are indexed first, only those of the page if just one is searched; `progress`
        is called with how many of how many are done. In a read-only store their texts are searched instead, which finds
        the same and takes longer.
        """
        terms = parse(query)
        self._index.update(progress, page_id=scope.page_id)
        found: list[Mention] = []
        mentioned_now: dict[int, bool] = {}
        with (
            self._store.read() as connection,
            connection.execute(self._candidates(terms, scope), execution_options=_IN_PARTS) as rows,
        ):
            for some in rows.partitions():
                for row, texts in self._with_texts(some, scope):
                    if scope.now and row.id not in mentioned_now:
                        mentioned_now[row.id] = _has_all(terms, texts.get(row.kept_text))
                    mention = _mention(terms, row, texts) if mentioned_now.get(row.id, True) else None
                    if mention is not None:
                        found.append(mention)
                    if len(found) == limit:
                        return found
        return found

    def _candidates(self, terms: Sequence[Term], scope: SearchScope) -> Select[Any]:
        """Return a query for the sides of versions on which the words may have been added or removed, latest first."""
        sides = self._index.sides(_moved(terms)).subquery()
        previous = versions.alias("previous")
        query = (
            select(
                pages.c.id,
                pages.c.url,
                pages.c.tags,
                sides.c.number,
                sides.c.side,
                versions.c.at,
                versions.c.text.label("after"),
                previous.c.text.label("before"),
                states.c.kept_text,
            )
            .select_from(sides)
            .join(pages, pages.c.id == sides.c.page_id)
            .join(states, states.c.page_id == sides.c.page_id)
            .join(versions, and_(versions.c.page_id == sides.c.page_id, versions.c.number == sides.c.number))
            .outerjoin(previous, and_(previous.c.page_id == sides.c.page_id, previous.c.number == sides.c.number - 1))
            .order_by(versions.c.at.desc(), pages.c.id.desc(), sides.c.number.desc(), sides.c.side)
        )
        for word in _every_word(terms):
            ever = self._index.sides([word]).subquery()
            query = query.where(sides.c.page_id.in_(select(ever.c.page_id).where(ever.c.side == GAINED)))
        if scope.page_id is not None:
            query = query.where(sides.c.page_id == scope.page_id)
        if scope.since is not None:
            query = query.where(versions.c.at >= scope.since)
        if scope.until is not None:
            query = query.where(versions.c.at < scope.until)
        return query

    def _with_texts(
        self, rows: Sequence[Row[Any]], scope: SearchScope
    ) -> Iterator[tuple[Row[Any], dict[bytes, bytes]]]:
        chosen = [row for row in rows if scope.tag is None or scope.tag in row.tags]
        keys = {(row.id, name) for row in chosen for name in (row.after, row.before) if name is not None}
        if scope.now:
            keys |= {(row.id, row.kept_text) for row in chosen}
        texts = self._repository.texts(keys)
        return ((row, texts) for row in chosen)


def _moved(terms: Sequence[Term]) -> list[WordQuery]:
    """Return the words of which one was added if the terms appeared, and one removed if they disappeared."""
    queries: list[WordQuery] = []
    for term in terms:
        if len(term.words) == 1:
            queries.append(WordQuery(term.words[0], term.is_prefix))
        else:
            # a phrase can be new though its words are not; the longest of them is likely to be the rarest
            word = max(term.words[:-1] if term.is_prefix else term.words, key=len)
            queries += [WordQuery(word, False), WordQuery(KEPT + word, False)]
    return queries


def _every_word(terms: Sequence[Term]) -> set[WordQuery]:
    """Return the words that a page must have had; none if there is only one, which `_moved` looks for already."""
    words = {
        WordQuery(word, term.is_prefix and place == len(term.words))
        for term in terms
        for place, word in enumerate(term.words, start=1)
    }
    return words if len(words) > 1 else set()


def _mention(terms: Sequence[Term], row: Row[Any], texts: dict[bytes, bytes]) -> Mention | None:
    """Return the mention of the terms on this side of the version; None if there is none, or it cannot be read."""
    if row.after not in texts:
        return None
    before, after = lines_of(texts.get(row.before, b"")), lines_of(texts[row.after])
    appeared = row.side == GAINED
    excerpt = _appearance(terms, before, after) if appeared else _appearance(terms, after, before)
    if excerpt is None:
        return None
    return Mention(
        url=row.url, version=row.number, at=utc(row.at), excerpt=excerpt.text, marks=excerpt.marks,
        kind=MentionKind.APPEARED if appeared else MentionKind.DISAPPEARED,
    )  # fmt: skip


def _appearance(terms: Sequence[Term], before: Sequence[str], after: Sequence[str]) -> _Excerpt | None:
    """Return where to see that the terms appeared between two texts; None if they did not."""
    added, removed = differing(before, after)
    came, went = _counts(terms, added), _counts(terms, removed)
    if not any(more > less for more, less in zip(came, went, strict=True)):
        return None
    if not all(came):
        have = _counts(terms, Counter(after))
        had = [count - more + less for count, more, less in zip(have, came, went, strict=True)]
        if not all(have) or all(had):
            return None
    places = [(line, _places(terms, line)) for line in added]
    line, found = max(places, key=lambda place: sum(map(bool, place[1])))
    return _excerpt(line, sorted({span for spans in found for span in spans}))


def _has_all(terms: Sequence[Term], text: bytes | None) -> bool:
    return text is not None and all(_counts(terms, Counter(lines_of(text))))


def _counts(terms: Sequence[Term], lines: Counter[str]) -> list[int]:
    """Return how often each term occurs in these lines."""
    totals = [0] * len(terms)
    for line, times in lines.items():
        for place, found in enumerate(_places(terms, line)):
            totals[place] += len(found) * times
    return totals


def _places(terms: Sequence[Term], line: str) -> list[list[tuple[int, int]]]:
    """Return where each term occurs in a line."""
    letters = letters_of(line)
    tokens = tokens_of(line) if any(term.may_stand_in(letters) for term in terms) else []
    return [term.places(tokens) for term in terms]


def _excerpt(line: str, spans: Sequence[tuple[int, int]]) -> _Excerpt:
    """Return the part of a line around its first mark, cut between words if possible."""
    first, first_end = spans[0]
    start = max(0, first - _BEFORE_MARK)
    if start:
        start = line.find(" ", start, first) + 1 or start
    end = max(start + _LONGEST_EXCERPT, first_end)
    if end < len(line):
        end = max(line.rfind(" ", first_end, end), first_end) if " " in line[first_end:end] else end
    head, tail = "… " if start else "", " …" if end < len(line) else ""
    shift = len(head) - start
    marks = [(begin + shift, stop + shift) for begin, stop in _merged(spans) if stop <= end]
    return _Excerpt(f"{head}{line[start:end]}{tail}", tuple(marks))


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans in order, with overlapping ones joined."""
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
