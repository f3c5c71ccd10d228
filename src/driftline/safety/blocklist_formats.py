"""Parsing blocklists: the format of a list, and the hosts and URLs on its lines.

These are kept as digests of eight bytes: a list of a million hosts takes 8 MB, and can be searched as it is. A line
that cannot be used is reported with its number, and the others are used.
"""

from __future__ import annotations

import csv
import re
from array import array
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice
from typing import TYPE_CHECKING

from ada_url import idna_to_ascii
from xxhash import xxh3_64_intdigest

from driftline.errors import BadURL, DriftlineError
from driftline.urls.canonical import reduced, written
from driftline.urls.tracking import KNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_LOOKED_AT = 1_000  # lines from which the format is recognised
_REPORTED = 100  # lines that are reported at most
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"(?:{_LABEL}\.)+(?:[a-z][a-z0-9-]{{0,61}}[a-z0-9])")
_IPV4 = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}")
_ADDRESS = re.compile(r"(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f:]*:[0-9a-f:]*(?:%\w+)?)\s+\S", re.IGNORECASE)
_USUAL = ("0.0.0.0", "127.0.0.1")  # noqa: S104 nothing is bound to it
_NOWHERE = re.compile(r"0\.0\.0\.0|127(?:\.\d+){3}|::1?|0|fe80::1%\w+", re.IGNORECASE)
_WEB = re.compile(r"https?://", re.IGNORECASE)
_RULE = re.compile(r"(@@)?\|\|(?:\*\.)?([^\s/^$|*]+)\^?\|?(?:\$([\w,-]+))?", re.IGNORECASE)
_WHOLE_PAGE = frozenset(("important", "all", "document", "doc"))  # options with which a rule still blocks a whole host
_REMARKS = "#!;"
_COSMETIC = re.compile(r"#[@?$%]*#")
#: names of the local machine, which are in every hosts file
_OWN_NAMES = frozenset((
    "localhost", "localhost.localdomain", "local", "broadcasthost", "ip6-localhost", "ip6-loopback", "ip6-localnet",
    "ip6-mcastprefix", "ip6-allnodes", "ip6-allrouters", "ip6-allhosts", "localhost4", "localhost6",
    "localhost4.localdomain4", "localhost6.localdomain6", *_USUAL,
))  # fmt: skip


class BlocklistFormat(StrEnum):
    """The formats of blocklists."""

    HOSTS = "hosts"
    DOMAINS = "domains"
    ADBLOCK = "adblock"
    CSV = "csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedBlocklist:
    """The hosts, exceptions and URLs of a list as sorted digests, and the lines that could not be used."""

    format: BlocklistFormat
    hosts: bytes
    exceptions: bytes
    addresses: bytes
    skipped: int
    problems: list[tuple[int, str]]


class _Found:
    """Collects the digests of a list while its lines are parsed."""

    def __init__(self) -> None:
        self.hosts = array("Q")
        self.exceptions = array("Q")
        self.addresses = array("Q")


class _Bad(Exception):
    """A line that cannot be used, and why."""


def digest_of(text: str) -> int:
    """Return the digest of a host or a URL."""
    return xxh3_64_intdigest(text.encode("utf-8", "replace"))


def key_of(url: str) -> str:
    """Return a canonical URL without scheme, user, password and fragment, by which it is looked up."""
    host, slash, path = url.partition("#")[0].partition("://")[2].partition("/")
    return f"{host.rpartition('@')[2]}{slash}{path}"


def read_list(lines: Iterable[bytes], called: str) -> ParsedBlocklist:
    """Parse the lines of a blocklist; raises DriftlineError if they are in no known format."""
    texts = (line.decode("utf-8", "replace") for line in lines)
    start = list(islice(texts, _LOOKED_AT))
    if start:
        start[0] = start[0].removeprefix("\ufeff")
    kind = _recognise(start)
    if kind is None:
        raise DriftlineError(
            f"{called} is no blocklist: none of its first lines is one of a hosts file, a domain, a rule such as "
            "||example.com^, or a CSV line with an address."
        )
    found, take = _Found(), _TAKERS[kind]
    skipped = 0
    problems: list[tuple[int, str]] = []
    for number, text in enumerate(chain(start, texts), start=1):
        line = text.strip()
        if not line or line[0] in _REMARKS:
            continue
        try:
            take(line, found)
        except _Bad as error:
            skipped += 1
            if len(problems) < _REPORTED:
                problems.append((number, str(error)))
    return ParsedBlocklist(
        format=kind, hosts=_sorted(found.hosts), exceptions=_sorted(found.exceptions),
        addresses=_sorted(found.addresses), skipped=skipped, problems=problems,
    )  # fmt: skip


def _recognise(lines: list[str]) -> BlocklistFormat | None:
    """Return the format of most of the lines; None if no line has any."""
    votes = dict.fromkeys(BlocklistFormat, 0)
    for text in lines:
        line = text.strip()
        if line.lower().startswith("[adblock"):
            return BlocklistFormat.ADBLOCK
        if not line or line[0] in _REMARKS:
            continue
        if line.startswith(("||", "@@")) or _COSMETIC.search(line):
            votes[BlocklistFormat.ADBLOCK] += 1
        elif _ADDRESS.match(line):
            votes[BlocklistFormat.HOSTS] += 1
        elif _WEB.match(line) or (_WEB.search(line) and "," in line):
            votes[BlocklistFormat.CSV] += 1
        elif _is_host(_bare(line).lower()):
            votes[BlocklistFormat.DOMAINS] += 1
    best = max(votes, key=lambda one: votes[one])
    return best if votes[best] else None


def _take_hosts(line: str, found: _Found) -> None:
    address, *names = line.partition("#")[0].split()
    if address not in _USUAL and not _NOWHERE.fullmatch(address):
        raise _Bad(f"'{_cut(line)}' has an address other than 0.0.0.0 or 127.0.0.1, and blocks nothing.")
    if not names:
        raise _Bad(f"'{_cut(line)}' names no host.")
    for name in names:
        lowered = name.lower()
        if lowered not in _OWN_NAMES:
            found.hosts.append(digest_of(_host(lowered)))


def _take_domain(line: str, found: _Found) -> None:
    found.hosts.append(digest_of(_host(_bare(line).lower())))


def _take_rule(line: str, found: _Found) -> None:
    if line.startswith("["):
        return
    rule = _RULE.fullmatch(line)
    if rule is None or not _WHOLE_PAGE.issuperset(filter(None, (rule[3] or "").lower().split(","))):
        if rule is None and _HOST.fullmatch(line.lower()):
            found.hosts.append(digest_of(_host(line.lower())))  # such lists may contain bare hosts, too
            return
        raise _Bad(f"'{_cut(line)}' is not a rule for a whole host, such as ||example.com^.")
    (found.exceptions if rule[1] else found.hosts).append(digest_of(_host(rule[2].lower())))


def _take_address(line: str, found: _Found) -> None:
    cells = next(csv.reader([line])) if '"' in line or ("," in line and not _WEB.match(line)) else [line]
    url = next((cell.strip() for cell in cells if _WEB.match(cell.strip())), None)
    if url is None:
        raise _Bad(f"'{_cut(line)}' has no address that begins with http:// or https://.")
    try:
        found.addresses.append(digest_of(key_of(reduced(written(url), KNOWN))))
    except BadURL as error:
        raise _Bad(str(error)) from None


_TAKERS: dict[BlocklistFormat, Callable[[str, _Found], None]] = {
    BlocklistFormat.HOSTS: _take_hosts,
    BlocklistFormat.DOMAINS: _take_domain,
    BlocklistFormat.ADBLOCK: _take_rule,
    BlocklistFormat.CSV: _take_address,
}


def _bare(line: str) -> str:
    """Return the host on a line of a domain list, without a comment after it and '*.' before it."""
    return line.partition("#")[0].strip().removeprefix("*.").removeprefix(".")


def _host(name: str) -> str:
    """Return a host as it is looked up; raises `_Bad` if it is none."""
    if not name.isascii():
        name = idna_to_ascii(name).decode("ascii") or name
    name = name.removesuffix(".")
    if len(name) > 253 or not (_HOST.fullmatch(name) or _IPV4.fullmatch(name)):
        why = "" if "." in name else ": it has no dot"
        raise _Bad(f"'{_cut(name)}' is not the name of a host{why}.")
    return name


def _is_host(name: str) -> bool:
    try:
        return bool(_host(name))
    except _Bad:
        return False


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"


def _sorted(found: array[int]) -> bytes:
    """Return the digests in order, each once."""
    import numpy as np  # a slow import, which most commands do not need

    return np.unique(np.frombuffer(found, np.uint64)).astype("<u8").tobytes() if found else b""
