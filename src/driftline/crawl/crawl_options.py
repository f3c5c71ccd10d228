"""The options of a crawl, and its limits: in proportion to the pages that it is to fetch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from driftline.crawl.scope import keywords_of, scope_of
from driftline.durations import parse_interval
from driftline.errors import BadSetting, UsageError
from driftline.store.blobs import digest
from driftline.store.pages import check_tags

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from driftline.crawl.scope import Scope


MOST = 1_000_000  # pages of one crawl, unless it is set
_WAITING_PER_PAGE = 10  # as many addresses may wait as pages are to be fetched
_FEWEST_WAITING, _MOST_WAITING = 10_000, 1_000_000
_FEWEST_LISTS, _MOST_LISTS = 10, 5_000


class Limits(NamedTuple):
    """The limits of one crawl: `pages` to fetch, addresses that may be `waiting`, and `lists`.

    The latter is for the sitemaps that are read, and for the hosts whose sitemaps are requested.
    """

    pages: int
    waiting: int
    lists: int


def limits_of(most: int | None) -> Limits:
    """Return the limits of a crawl of at most so many pages: what a site lists beyond them would hardly be fetched."""
    pages = MOST if most is None else most
    return Limits(
        pages,
        max(_FEWEST_WAITING, min(_WAITING_PER_PAGE * pages, _MOST_WAITING)),
        min(_FEWEST_LISTS + pages // _WAITING_PER_PAGE, _MOST_LISTS),
    )


_STEERING = ("keywords", "most", "every")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a site is crawled. When a crawl is continued, `keywords`, `most`, `tag` and `every` may differ.

    A site that was crawled with a tag is kept watched under it by later crawls too, until one is `unwatched`; a run
    crawls it again `every` so often.
    """

    within: str = "host"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    depth: int | None = None
    keywords: tuple[str, ...] = ()
    most: int | None = None
    tag: str | None = None
    unwatched: bool = False
    every: str | None = None

    def __post_init__(self) -> None:
        if self.depth is not None and self.depth < 0:
            raise BadSetting(f"--depth must be 0 or more, not {self.depth}.")
        if self.most is not None and self.most < 1:
            raise BadSetting(f"--most must be 1 or more, not {self.most}.")
        if self.tag is not None:
            check_tags([self.tag])
        if self.every is not None:
            parse_interval(self.every)
        keywords_of(self.keywords)
        scope_of(["https://example.com/"], self.within, self.include, self.exclude)

    def scope(self, seeds: Sequence[str]) -> Scope:
        """Return which addresses belong to the site of these seeds; raise UsageError if a seed itself does not."""
        scope = scope_of(seeds, self.within, (), self.exclude)
        for seed in seeds:
            if not scope.holds(seed):
                raise UsageError(f"The seed {seed} is excluded by --exclude: nothing would be found.")
        return scope_of(seeds, self.within, self.include, self.exclude)

    @classmethod
    def of_kept(cls, kept: Mapping[str, Any], tag: str) -> Self:
        """Return the options that `kept` returned, for a site that is watched under this tag."""
        given: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in kept.items()}
        return cls(**given, tag=tag)

    def kept(self) -> dict[str, Any]:
        """Return the options that are stored for the next crawl of the site, as plain data."""
        kept = asdict(self)
        del kept["tag"], kept["unwatched"]
        return kept


def site_key(seeds: Sequence[str], options: Options) -> bytes:
    """Return the key of a site: a crawl with the same seeds and options continues it, or is its next round."""
    known_by = {name: value for name, value in options.kept().items() if name not in _STEERING}
    return digest(json.dumps([sorted(seeds), known_by], sort_keys=True).encode())[:16]
