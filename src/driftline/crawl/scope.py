"""What a crawl is about: which addresses belong to the site, and keywords that say which links come first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args
from urllib.parse import unquote

from driftline.errors import BadSetting
from driftline.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


Within = Literal["host", "domain", "prefix"]
WITHIN: tuple[Within, ...] = get_args(Within)
#: endings of what is no page: a link to it is not followed, for its answer would be thrown away
_FILES = re.compile(
    r"\.(?:jpe?g|png|gif|webp|avif|svg|ico|bmp|tiff?|css|m?js|map|woff2?|ttf|otf|eot|mp[34]|m4[av]|ogg|oga|ogv|webm|wav"
    r"|flac|avi|mov|mkv|wmv|zip|gz|tgz|bz2|xz|zst|7z|rar|tar|iso|dmg|exe|msi|deb|rpm|apk|jar|war|bin|img|swf|psd|epub"
    r"|mobi|torrent|parquet|sqlite|db)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a crawl is about. `hosts` and `prefixes` are those of the seeds; patterns have '*' for anything."""

    within: Within
    hosts: frozenset[str]
    prefixes: tuple[str, ...]
    include: tuple[re.Pattern[str], ...]
    exclude: tuple[re.Pattern[str], ...]

    def holds(self, url: str) -> bool:
        """Return whether an address in canonical form belongs to the site."""
        host = _plain_host(url)
        if self.within == "prefix":
            inside = f"{host}/{_path(url)}".startswith(self.prefixes)
        else:
            inside = host in self.hosts
            if not inside and self.within == "domain":
                inside = any(host.endswith(f".{one}") for one in self.hosts)
        if not inside or any(pattern.search(url) for pattern in self.exclude):
            return False
        return not self.include or any(pattern.search(url) for pattern in self.include)


def scope_of(
    seeds: Sequence[str], within: str = "host", include: Iterable[str] = (), exclude: Iterable[str] = ()
) -> Scope:
    """Return the scope of these seeds, in canonical form; raise BadSetting if a pattern means nothing.

    A host counts with and without 'www.', and by either scheme. A domain is the host of a seed and all below it. A
    prefix is the folder that a seed is in.
    """
    chosen = [one for one in WITHIN if one == within]
    if not chosen:
        raise BadSetting(f"There is no scope '{within}': use {', '.join(WITHIN)}.")
    return Scope(
        within=chosen[0],
        hosts=frozenset(map(_plain_host, seeds)),
        prefixes=tuple(sorted({_folder(seed) for seed in seeds})),
        include=tuple(_pattern("--include", one) for one in include),
        exclude=tuple(_pattern("--exclude", one) for one in exclude),
    )


def is_file(url: str) -> bool:
    """Return whether an address ends as those of pictures, archives and the like do."""
    path = url.partition("?")[0].partition("#")[0]
    return _FILES.search(path, path.find("/", 8)) is not None


def _plain_host(url: str) -> str:
    return host_of(url).removeprefix("www.")


def _path(url: str) -> str:
    """Return the path without its first '/', and what follows it."""
    return url.split("/", 3)[3]


def _folder(seed: str) -> str:
    path = _path(seed).partition("?")[0].partition("#")[0]
    return f"{_plain_host(seed)}/{path[: path.rfind('/') + 1]}"


def _pattern(option: str, text: str) -> re.Pattern[str]:
    """Return a pattern for the whole address, or for path and query if it begins with '/'; else for any part."""
    wanted = text.strip()
    if not wanted or wanted.strip("*") == "":
        raise BadSetting(f"{option} '{text}' says nothing: write /blog/*, *.pdf or https://example.com/news/*.")
    parts = ".*".join(re.escape(part) for part in wanted.split("*"))
    if wanted.startswith("/"):
        return re.compile(rf"^https?://[^/]*{parts}$")
    return re.compile(rf"^{parts}$" if "://" in wanted else rf"{'' if wanted[0] == '*' else '^.*'}{parts}$")


_ENOUGH = 5  # times that a keyword stands in a text, after which more of it says no more
_ANCHOR, _ADDRESS, _PAGE = 0.5, 0.2, 0.3  # the weight of each for a link


class Focus:
    """Keywords, each a word or several; case does not matter."""

    def __init__(self, keywords: Sequence[str]) -> None:
        self._patterns = [re.compile(rf"(?<!\w){re.escape(one)}") for one in keywords]

    def text(self, text: str) -> float:
        """Return how much a text is about the keywords, from 0 to 1."""
        if not self._patterns:
            return 0.0
        folded = text.casefold()
        return self._mean(min(len(pattern.findall(folded)), _ENOUGH) / _ENOUGH for pattern in self._patterns)

    def link(self, url: str, anchor: str, page: float) -> float:
        """Return how promising a link is, from 0 to 1: by its anchor, its address, and the page that it is on."""
        if not self._patterns:
            return 0.0
        return _ANCHOR * self._share(anchor) + _ADDRESS * self._share(_words_of(url)) + _PAGE * page

    def _share(self, text: str) -> float:
        folded = text.casefold()
        return self._mean(float(pattern.search(folded) is not None) for pattern in self._patterns)

    def _mean(self, shares: Iterable[float]) -> float:
        return sum(shares) / len(self._patterns)


def keywords_of(given: Iterable[str]) -> tuple[str, ...]:
    """Return the keywords of a list with commas or of several options, folded, each once; BadSetting if none."""
    texts = [*given]
    found = dict.fromkeys(" ".join(word.casefold().split()) for text in texts for word in text.split(","))
    found.pop("", None)
    if texts and not found:
        raise BadSetting("--keywords names no word: write --keywords 'privacy, cookies'.")
    return tuple(found)


def _words_of(url: str) -> str:
    return re.sub(r"[\W_]+", " ", unquote(url.partition("://")[2].partition("/")[2]))
