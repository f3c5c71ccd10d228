"""Lists of URLs to import, one per line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftline.errors import BadURL
from driftline.urls.canonical import acceptable, reduced, written
from driftline.urls.tracking import Tracking

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLine:
    """One line of a list: its URL, or what is wrong with the line."""

    number: int
    url: str | None
    problem: str | None


def read_text_list(lines: Iterable[str], tracking: Iterable[str] = ()) -> Iterator[ImportedLine]:
    """Yield the URLs of a text with one per line, in order, without blank lines and comments.

    A comment begins with '#', after white space if it follows a URL. A bad line, and a URL that is on an earlier line
    in any spelling, are reported with their line number, and every good line is kept. `tracking` are the user's changes
    to the parameters that are dropped.
    """
    dropped = Tracking(tracking)
    first_seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        text = _without_comment(line.removeprefix("\ufeff") if number == 1 else line)
        if not text:
            continue
        try:
            address = written(text)
            url = acceptable(reduced(address, dropped))
        except BadURL as error:
            yield ImportedLine(number=number, url=None, problem=str(error))
            continue
        if url in first_seen:
            problem = f"{url} is on line {first_seen[url]} already."
            yield ImportedLine(number=number, url=None, problem=problem)
            continue
        first_seen[url] = number
        yield ImportedLine(number=number, url=address, problem=None)


def _without_comment(line: str) -> str:
    text = line.strip()
    if text.startswith("#"):
        return ""
    return re.split(r"\s#", text, maxsplit=1)[0].strip()
