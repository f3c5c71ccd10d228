"""A simulated web as pure numbers: the content of every page at every moment, and which pages really changed.

Nothing here does any I/O. Everything follows from the fields of a `World`, so a test, an experiment and the
server in its own process agree on the truth without talking to each other.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import Any, Literal, Self, get_args

from driftline.errors import BadSetting
from driftline.lab.simweb import pages_markup

Sizes = Literal["real", "fixed"]
Noise = Literal["off", "hidden", "visible"]
LatencyShape = Literal["none", "fixed", "lognormal"]
BlockChoice = Literal["all", "short"]
ServerFailure = Literal["server_error", "not_found", "cut_short"]

LARGEST_PAGE = 1_000_000

_QUANTILES = (
    (0.00, 2_000),
    (0.04, 8_000),
    (0.11, 16_000),
    (0.23, 32_000),
    (0.40, 64_000),
    (0.60, 128_000),
    (0.76, 256_000),
    (0.91, 512_000),
    (0.98, 1_000_000),
    (1.00, 1_400_000),
)
"""Share of real pages below a size in bytes: 8,660 pages of 46 public collections."""

_FAILURES: tuple[ServerFailure, ...] = ("server_error", "not_found", "cut_short")
_MASK = (1 << 64) - 1
_UNIT = 1.0 / (1 << 64)
_NORMAL = NormalDist()

# One number for each use of chance, so that, say, the large pages are not also the slow ones.
_SIZE, _CONTENT, _CHANGE, _FAILURE, _DELAY, _HIDDEN, _VISIBLE = range(7)


def mix(*parts: int) -> int:
    """Return a well-mixed 64-bit hash of some integers, equal on every machine and Python version."""
    state = 0x9E3779B97F4A7C15
    for part in parts:
        state = ((state ^ part) * 0xBF58476D1CE4E5B9) & _MASK
        state ^= state >> 31
        state = (state * 0x94D049BB133111EB) & _MASK
        state ^= state >> 29
    return state


def lognormal(*, mean: float, sigma: float, share: float) -> float:
    """Return the value below which `share` of a log-normal distribution with this mean lies."""
    place = _NORMAL.inv_cdf(min(max(share, 1e-9), 1 - 1e-9))
    return mean * math.exp(sigma * place - sigma * sigma / 2)


def real_size(share: float) -> float:
    """Return the size below which `share` of real pages lie, by interpolating its logarithm."""
    for (low, small), (high, large) in pairwise(_QUANTILES):
        if share <= high:
            return float(small * (large / small) ** ((share - low) / (high - low)))
    return float(_QUANTILES[-1][1])


@lru_cache(maxsize=32)
def _size_scale(mean: int) -> float:
    """Return the factor for real sizes that makes their mean `mean` after the largest were cut."""
    sizes = [real_size((step + 0.5) / 2000) for step in range(2000)]
    low, high = 0.0, 100.0
    for _ in range(50):
        scale = (low + high) / 2
        if sum(min(size * scale, LARGEST_PAGE) for size in sizes) < mean * len(sizes):
            low = scale
        else:
            high = scale
    return high


#: the robots.txt of every host: some rules as sites have them, and none that forbids a page
ROBOTS_TXT = b"User-agent: *\n" + b"".join(
    b"Disallow: %s\n" % path
    for path in (
        b"/admin/", b"/account/", b"/basket", b"/cart/", b"/cgi-bin/", b"/checkout/", b"/internal/", b"/login",
        b"/print/", b"/private/", b"/search", b"/tmp/", b"/user/", b"/wp-admin/", b"/*?session=", b"/*/feed/$",
    )
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """All parameters of a simulated web. Equal worlds show equal pages, failures and delays.

    Time passes in generations, counted from 0: between two generations, about `change_rate` of the pages
    really change. Page `i` lives on host `i % hosts`; every host is a loopback address of its own.

    `latency` is a mean in seconds; `bandwidth` is in bytes a second over all connections together, 0 for no
    cap. Pages of "short" `blocks` are tables and lists of a few words in each place, of which reading takes long.
    `noise` is what differs in every answer without being a change: "hidden" never touches the visible
    text, "visible" also moves a clock and counters in the footer. `notice` is a sentence in the footer of all
    pages. `error_rate` is the share of pages that fail in a generation, however often they are requested.
    """

    pages: int = 1000
    hosts: int = 1
    seed: int = 1
    size_mean: int = 67_000
    sizes: Sizes = "real"
    change_rate: float = 0.05
    blocks: BlockChoice = "all"
    noise: Noise = "off"
    notice: str = ""
    etag: bool = False
    last_modified: bool = False
    latency: float = 0.0
    latency_shape: LatencyShape = "none"
    latency_sigma: float = 0.5
    bandwidth: int = 0
    error_rate: float = 0.0

    def __post_init__(self) -> None:
        if self.pages < 1 or self.hosts < 1:
            raise BadSetting("a world has at least one page and one host")
        if self.hosts > 254 * 256 * 254:
            raise BadSetting("the loopback range has no room for so many hosts")
        if not 0 < self.size_mean <= LARGEST_PAGE:
            raise BadSetting(f"size_mean is at most {LARGEST_PAGE} bytes")
        if not (0 <= self.change_rate <= 1 and 0 <= self.error_rate <= 1):
            raise BadSetting("change_rate and error_rate are shares between 0 and 1")
        if self.latency < 0 or self.latency_sigma < 0 or self.bandwidth < 0:
            raise BadSetting("latency, latency_sigma and bandwidth are not negative")
        for value, kind in (
            (self.sizes, Sizes), (self.blocks, BlockChoice), (self.noise, Noise), (self.latency_shape, LatencyShape),
        ):  # fmt: skip
            if value not in get_args(kind):
                raise BadSetting(f"{value!r} is not one of {', '.join(get_args(kind))}")

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """Return the world of a dictionary made by `fields`, for example after a trip through JSON."""
        try:
            return cls(**fields)
        except TypeError as error:
            raise BadSetting(f"a world cannot be made of that: {error}") from error

    def fields(self) -> dict[str, Any]:
        return asdict(self)

    # Addresses.

    def address(self, host: int) -> str:
        """Return the loopback address of a host. Its last octet is never 0 or 255: some software rejects those."""
        return f"127.{1 + host // 65_024}.{host // 254 % 256}.{1 + host % 254}"

    def path(self, page: int) -> str:
        return f"/p/{page:05d}"

    def url(self, page: int, port: int) -> str:
        return f"http://{self.address(page % self.hosts)}:{port}{self.path(page)}"

    # Real changes.

    def changes(self, page: int, generation: int) -> bool:
        """Return whether the page really changed from the generation before to this one."""
        return generation > 0 and mix(self.seed, _CHANGE, page, generation) * _UNIT < self.change_rate

    def revision(self, page: int, generation: int) -> int:
        """Return how many times the page really changed up to this generation."""
        return sum(self.changes(page, past) for past in range(1, generation + 1))

    def changed_at(self, page: int, generation: int) -> int:
        """Return the latest generation up to this one in which the page really changed; 0 if it never did."""
        return next((past for past in range(generation, 0, -1) if self.changes(page, past)), 0)

    def truth(self, generation: int) -> frozenset[int]:
        """Return the pages whose real content differs from the generation before."""
        return frozenset(page for page in range(self.pages) if self.changes(page, generation))

    def changed_between(self, first: int, second: int) -> frozenset[int]:
        """Return the pages whose real content differs between two generations."""
        low, high = sorted((first, second))
        return frozenset(
            page
            for page in range(self.pages)
            if any(self.changes(page, generation) for generation in range(low + 1, high + 1))
        )

    # Contents of pages.

    def size(self, page: int) -> int:
        """Return the approximate size of the page in bytes, at least some 5 kB for its frame."""
        if self.sizes == "fixed":
            return self.size_mean
        share = mix(self.seed, _SIZE, page) * _UNIT
        return min(LARGEST_PAGE, int(real_size(share) * _size_scale(self.size_mean)))

    def pieces(self, page: int, revision: int) -> list[pages_markup.MarkupPiece]:
        """Return the page without its tail, in pieces that carry their compressed form."""
        return pages_markup.document(
            pages_markup.pool(self.seed, short=self.blocks == "short"),
            page=page,
            address=self.address(page % self.hosts),
            revision=revision,
            size=self.size(page),
            pick=mix(self.seed, _CONTENT, page),
        )

    def tail(self, page: int, generation: int = 0, attempt: int = 0) -> bytes:
        """Return the end of the page as one request gets it: the only part with noise.

        Without noise it is the same for every generation and attempt.
        """
        hidden = visible = mix(self.seed, _HIDDEN, page)
        clock = 43_200
        if self.noise != "off":
            hidden = mix(self.seed, _HIDDEN, page, generation, attempt)
        if self.noise == "visible":
            visible = mix(self.seed, _VISIBLE, page, generation, attempt)
            clock += 1 + 61 * attempt + 3_607 * generation
        return pages_markup.tail(page=page, hidden=hidden, visible=visible, clock=clock, notice=self.notice)

    def body(self, page: int, revision: int, *, generation: int = 0, attempt: int = 0) -> bytes:
        """Return the HTML of the page, as one request gets it."""
        pieces = b"".join([piece.html for piece in self.pieces(page, revision)])
        return pieces + self.tail(page, generation, attempt)

    # Delays and failures.

    def delay(self, page: int, generation: int) -> float:
        """Return the delay of the page's responses in seconds, the same within a generation so that runs compare."""
        if self.latency_shape == "none":
            return 0.0
        if self.latency_shape == "fixed":
            return self.latency
        share = mix(self.seed, _DELAY, page, generation) * _UNIT
        return lognormal(mean=self.latency, sigma=self.latency_sigma, share=share)

    def failure(self, page: int, generation: int) -> ServerFailure | None:
        """Return how the page fails in this generation, or None if it does not."""
        chance = mix(self.seed, _FAILURE, page, generation)
        if chance * _UNIT >= self.error_rate:
            return None
        return _FAILURES[chance % len(_FAILURES)]
