"""The blocklists of the store: adding them from files and URLs, updating and removing them."""

from __future__ import annotations

import gzip
import io
import logging
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from driftline.errors import DriftlineError, UnreadableBody, UsageError
from driftline.fetch.curl import Transfers, fetch_following_redirects
from driftline.http.codings import decode_body
from driftline.http.headers import content_encodings, last_response
from driftline.model.outcome import Link
from driftline.safety.blocklist_formats import read_list
from driftline.store.safety_records import SafetyRecords
from driftline.urls import without_password
from driftline.urls.canonical import written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from driftline.settings import Settings
    from driftline.store.engine import Store
    from driftline.store.safety_records import Blocklist

_LOG = logging.getLogger(__name__)
_GZIP = b"\x1f\x8b"
LARGEST = 500_000_000  # bytes of a list


def download(settings: Settings, url: str) -> bytes:
    """Fetch the list at a URL and return its bytes; raises DriftlineError."""
    transfers = Transfers(settings.model_copy(update={"max_body": LARGEST}))
    try:
        document = fetch_following_redirects(Link(0, written(url), 1, None), transfers)
    finally:
        transfers.close()
    if document.failure is not None:
        raise DriftlineError(f"The blocklist {url} cannot be fetched: {document.failure.sentence}")
    try:
        return decode_body(document.body, content_encodings(last_response(document.headers)), LARGEST)
    except UnreadableBody as error:
        raise DriftlineError(f"The blocklist {url} cannot be read: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedBlocklist:
    """A list that was read and stored, and its first lines that could not be used."""

    blocklist: Blocklist
    problems: list[tuple[int, str]]


class Blocklists:
    """Adds, updates, lists and removes blocklists. `fetch` returns the bytes at a URL."""

    def __init__(self, store: Store, clock: Callable[[], float], fetch: Callable[[str], bytes]) -> None:
        self._store = store
        self._records = SafetyRecords(store)
        self._clock = clock
        self._fetch = fetch

    def __repr__(self) -> str:
        return f"<Blocklists of {self._records!r}>"

    def add(self, source: str, name: str | None = None) -> LoadedBlocklist:
        """Store the list in a file or at a URL; it replaces a list with the same source or name."""
        on_web = source.lower().startswith(("http://", "https://"))
        source = source if on_web else str(Path(source).expanduser().absolute())
        known = self._records.name_of_blocklist(source)
        return self._load(source, name or known or _name_of(source))

    def update(self) -> list[LoadedBlocklist | DriftlineError]:
        """Read all lists again. A list that cannot be read stays as it is, with the error in its place."""
        results: list[LoadedBlocklist | DriftlineError] = []
        for one in self.all():
            try:
                results.append(self._load(one.source, one.name))
            except DriftlineError as error:
                _LOG.info("blocklist not updated: %s", error, extra={"blocklist": one.name})
                results.append(DriftlineError(f"{str(error).rstrip('.')}; the list '{one.name}' stays as it was."))
        return results

    def remove(self, name: str) -> Blocklist:
        """Remove the list with this name or source, and return it."""
        given = {name, str(Path(name).expanduser().absolute())}
        found = next((one for one in self.all() if one.name == name or one.source in given), None)
        if found is None:
            raise UsageError(f"There is no blocklist '{name}': 'driftline blocklist list' shows those there are.")
        self._records.remove_blocklist(found.name)
        _LOG.info("blocklist removed", extra={"blocklist": found.name})
        return found

    def all(self) -> list[Blocklist]:
        """Return the lists in the order in which they were added."""
        return self._records.blocklists()

    def _load(self, source: str, name: str) -> LoadedBlocklist:
        self._store.require_writable()
        read = read_list(self._lines(source), without_password(source))
        if not (read.hosts or read.addresses or read.exceptions):
            first = f": line {read.problems[0][0]}: {read.problems[0][1]}" if read.problems else "."
            raise DriftlineError(f"{without_password(source)} names no host and no address{first}")
        blocklist = self._records.save_blocklist(
            name, source, format_=read.format.value, updated_at=self._clock(), skipped=read.skipped, hosts=read.hosts,
            exceptions=read.exceptions, addresses=read.addresses,
        )  # fmt: skip
        figures = {"hosts": blocklist.hosts, "addresses": blocklist.addresses, "skipped": blocklist.skipped}
        _LOG.info("blocklist read", extra={"blocklist": name, **figures})
        return LoadedBlocklist(blocklist=blocklist, problems=read.problems)

    def _lines(self, source: str) -> Iterable[bytes]:
        if source.lower().startswith(("http://", "https://")):
            data = self._fetch(source)
        else:
            try:
                data = Path(source).read_bytes()
            except OSError as error:
                raise DriftlineError(f"{source} cannot be read: {error.strerror}.") from None
        if data.startswith(_GZIP):
            data = _unpacked(data, source)
        return io.BytesIO(data)


def _unpacked(data: bytes, source: str) -> bytes:
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            whole = stream.read(LARGEST + 1)
    except (OSError, EOFError, zlib.error):
        raise DriftlineError(f"{without_password(source)} is no valid gzip file.") from None
    if len(whole) > LARGEST:
        raise DriftlineError(f"{without_password(source)} is larger than {LARGEST:,} bytes.")
    return whole


def _name_of(source: str) -> str:
    """Return the default name of a list: the last part of its path, or its host."""
    parts = urlsplit(source)
    return Path(parts.path).name or parts.hostname or source
