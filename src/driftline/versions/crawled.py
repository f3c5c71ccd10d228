"""The words of a crawl as data: its rounds, the addresses that it met, and what came of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

KNOWN = 1_000_000.0  # the priority of pages that earlier rounds found: they come after all that is new


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A round of a crawl, and whether it is one that was cut short and goes on now.

    Its pages are watched under the `tag`, if there is one. It `adopts` what is known of the site if that is watched
    from now on, and was not before.
    """

    site_id: int
    number: int
    continued: bool
    started_at: float
    tag: str | None
    adopts: bool


class Site(NamedTuple):
    """A site that is kept watched: what it was crawled with, and when its last round was begun or gone on with.

    That round is open while it has not `finished_at` some time.
    """

    id: int
    seeds: list[str]
    options: dict[str, Any]
    tag: str
    round: int
    started_at: float
    finished_at: float | None


class Met(NamedTuple):
    """An address that was met, to be fetched. `priority`: what is lower comes first."""

    key: bytes
    url: str
    kind: str
    source: str
    via: int | None
    depth: int
    hops: int
    priority: float
    lastmod: str


class Waiting(NamedTuple):
    """A place in the frontier."""

    priority: float
    id: int
    kind: str


class Address(NamedTuple):
    """An address that waits, with what was found there before."""

    id: int
    url: str
    kind: str
    source: str
    depth: int
    hops: int
    priority: float
    digest: bytes | None
    good_round: int


class Result(NamedTuple):
    """What came of an address. One that is no page keeps what it said when it was one.

    A page that is not `lasting` is not looked for again unless something leads to it.
    """

    id: int
    state: str
    reason: str | None = None
    status: int = 0
    target: str | None = None
    title: str = ""
    digest: bytes | None = None
    mark: int = 0
    twin: int | None = None
    changed: bool = False
    score: float = 0.0
    at: float = 0.0
    good: bool = False
    lasting: bool = True
    gone: bool = False
    url: str = ""
