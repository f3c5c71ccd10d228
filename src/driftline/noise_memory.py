"""What was learned of a page or of a host's pages: what changes there by itself, and the user's feedback.

Lines and places are stored as short keys (`detection.diff.lines.key_of`), each with the number of the check at which it
changed first, the time at which it changed last, and how often it changed. What changes at nearly every check is noise
until it stops: its share of the checks falls with each one that finds it unchanged. But only what changes again within
days counts: on a page that is checked every other week, an edit at each check is news. The user's feedback is pinned,
and takes precedence.

Of a page whose new lines are reported only if they never stood there before, the lines that it had are remembered, too.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from driftline.model.change import Importance

if TYPE_CHECKING:
    from collections.abc import Iterable

    #: a key, and what is known of it: the number of a check, minutes since 1970, and a count
    _Entry = tuple[bytes, tuple[int, int, int]]

_ENTRY = struct.Struct("<8sIIH")  # key, number of the check, minutes since 1970, count
_PINS = {Importance.NOISE: 0xFFFF, Importance.IMPORTANT: 0xFFFE, Importance.MINOR: 0xFFFD}
_PINNED = {count: importance for importance, count in _PINS.items()}
_SEEN = 0xFFFB  # instead of a count: a line that the page had
_MOST_SEEN = 20_000
_MOST_COUNTED = 0xFFF0
_MOST = 800  # entries that were learned of a page
_ENOUGH = 2  # changes before something can be noise
_NEARLY_EVERY = 0.6  # share of the checks
_OFTEN = 0.4  # share of the checks at which one of two alternating variants comes or goes
_TWICE_OVER, _SELDOM = 4, 0.1  # the same for what came and went, and came and went again
_SOON = 7 * 24 * 60  # minutes: what changes again only after a longer time does not change by itself


class Memory:
    """The entries of one page, or of the pages of one host. Read from bytes and written to bytes.

    The memory of a host counts pages, not checks.
    """

    def __init__(self, data: bytes = b"") -> None:
        whole = len(data) - len(data) % _ENTRY.size
        self._entries: dict[bytes, tuple[int, int, int]] = {
            key: (first, last, count) for key, first, last, count in _ENTRY.iter_unpack(data[:whole])
        }
        self._pins: set[bytes] | None = None

    def to_bytes(self) -> bytes:
        """Return the memory as it is stored: all pinned entries, and of too many others the newest."""
        kept = list(self._entries.items())
        if len(kept) > _MOST:
            seen = [entry for entry in kept if entry[1][2] == _SEEN]
            pinned = [entry for entry in kept if entry[1][2] in _PINNED]
            learned = [entry for entry in kept if entry[1][2] < _SEEN]
            kept = pinned + _newest(seen, _MOST_SEEN) + _newest(learned, _MOST)
        return b"".join([_ENTRY.pack(key, *entry) for key, entry in kept])

    def note(self, keys: Iterable[bytes], check: int, at: float, *, within: int = _SOON) -> list[bytes]:
        """Record that these changed at this check and time. Return those that now changed often enough to be noise.

        What did not change `within` so many minutes before begins anew.
        """
        enough: list[bytes] = []
        minutes = _minutes(at)
        for key in keys:
            first, last, count = self._entries.get(key, (check, minutes, 0))
            if count not in _PINNED:
                if minutes - last > within:
                    first, count = check, 0
                self._entries[key] = (first, minutes, min(count + 1, _MOST_COUNTED))
                if count + 1 == _ENOUGH:
                    enough.append(key)
        return enough

    def count(self, keys: Iterable[bytes]) -> None:
        """Count one more page of the host on which these are noise."""
        for key in keys:
            _, _, count = self._entries.get(key, (0, 0, 0))
            if count not in _PINNED:
                self._entries[key] = (0, 0, min(count + 1, _MOST_COUNTED))

    def mutes(self, key: bytes, check: int, at: float) -> bool:
        """Return whether this changed at nearly every check before the given one."""
        return self._changed(key, check, at, _NEARLY_EVERY)

    def comes_and_goes(self, key: bytes, check: int, at: float, *, within: int = _SOON) -> bool:
        """Return whether this was added and removed as if it were part of one of two alternating variants."""
        again = self.times(key) >= _TWICE_OVER and self._changed(key, check, at, _SELDOM, within)
        return again or self._changed(key, check, at, _OFTEN, within)

    def _changed(self, key: bytes, check: int, at: float, share: float, within: int = _SOON) -> bool:
        first, last, count = self._entries.get(key, (0, 0, 0))
        often = _ENOUGH <= count <= _MOST_COUNTED and count >= share * (check - first)
        return often and _minutes(at) - last <= within

    def see(self, keys: Iterable[bytes], at: float) -> None:
        """Remember that the page had these lines at this time."""
        minutes = _minutes(at)
        for key in keys:
            self._entries[key] = (0, minutes, _SEEN)

    def has_seen(self, key: bytes) -> bool:
        """Return whether the page is remembered to have had a line."""
        return self._entries.get(key, (0, 0, 0))[2] == _SEEN

    def times(self, key: bytes) -> int:
        """Return how many times this changed."""
        count = self._entries.get(key, (0, 0, 0))[2]
        return 0 if count in _PINNED or count == _SEEN else count

    def keep_pins_of(self, other: Memory) -> None:
        """Copy the user's feedback, withdrawals included, from another memory of the same page."""
        own = {key: entry for key, entry in self._entries.items() if entry[2] not in _PINNED}
        self._entries = own | {key: entry for key, entry in other._entries.items() if entry[2] in _PINNED}
        self._pins = None

    def pin(self, keys: Iterable[bytes], importance: Importance) -> None:
        """Record the user's feedback on these."""
        for key in keys:
            self._entries[key] = (0, 0, _PINS[importance])
        self._pins = None

    def unpin(self, keys: Iterable[bytes]) -> None:
        """Remove the user's feedback on these."""
        for key in keys:
            if self.pinned(key) is not None:
                del self._entries[key]
        self._pins = None

    def pinned(self, key: bytes) -> Importance | None:
        """Return the user's feedback on this, None if there is none."""
        return _PINNED.get(self._entries.get(key, (0, 0, 0))[2])

    @property
    def pins(self) -> set[bytes]:
        """The keys that have feedback of the user."""
        if self._pins is None:
            self._pins = {key for key, entry in self._entries.items() if entry[2] in _PINNED}
        return self._pins

    def __bool__(self) -> bool:
        return bool(self._entries)


def _newest(entries: list[_Entry], most: int) -> list[_Entry]:
    return entries if len(entries) <= most else sorted(entries, key=lambda entry: entry[1][1:], reverse=True)[:most]


def _minutes(at: float) -> int:
    return max(0, min(int(at // 60), 0xFFFFFFFF))
