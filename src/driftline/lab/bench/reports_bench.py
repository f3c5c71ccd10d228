"""`lab reports`: what is reported of synthetic pages of forty kinds, with its headline.

Each file of `pages/` describes a page: its title, its content, ten edits that matter (lines that begin with '+') and
some that do not ('-'). An edit is `old => new`, or `old >> more` to add something behind a text; what stands after '||'
is what a second fetch gets instead of the new text. A page of HTML stands in a layout with menus, advertisements,
tokens and a footer, whose own edits fill up those that do not matter. `[[…]]` is replaced at every fetch: by the time
in a format of `strftime`, by `ago HOURS` (how long ago something was that happened so many hours before the first
check), `count FROM STEP` (a number that rises at every check) or `token`.

The page is checked after each edit, as `run` does it, at different intervals: the memory of a page works in time.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2s
from importlib.resources import files
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from driftline.lab.bench.local_watch_lists import LabError
from driftline.lab.bench.storage_bench import HTML, Replay, change_of
from driftline.model.change import Importance
from driftline.model.outcome import Failed
from driftline.store.engine import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from importlib.resources.abc import Traversable

    from driftline.model.outcome import Outcome

INTERVALS = {"1 h": 3_600.0, "1 d": 86_400.0, "14 d": 14 * 86_400.0}
EDITS = 10  # of each sort
_START = datetime(2026, 1, 5, 10, 0, tzinfo=UTC).timestamp()
_REPORTED = next(iter(Importance))
_PART = re.compile(r"^---\n", re.MULTILINE)
_LAYOUT = "_layout"
_LIVE = re.compile(r"\[\[(.+?)\]\]")
_AGES = ((86_400 * 30, "month"), (86_400, "day"), (3_600, "hour"), (60, "minute"))


class PageEdit(NamedTuple):
    """A text of a page that becomes another, and what a second fetch shows there; None if the same."""

    matters: bool
    old: str
    new: str
    second: str | None = None


class SyntheticPage(NamedTuple):
    """A page with its edits, in the order in which they are made."""

    name: str
    content_type: str
    body: str
    edits: tuple[PageEdit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedEdit:
    """What a check reported after an edit; `headline` is empty if it reported nothing, and `reason` says why."""

    edit: str
    matters: bool
    reported: bool
    level: str
    headline: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportsRow:
    """A page at an interval: how many of the edits that matter were reported, and how many of the others."""

    page: str
    interval: str
    found: int
    false_alarms: int
    edits: list[ReportedEdit]


def synthetic_pages(names: Sequence[str] = ()) -> list[SyntheticPage]:
    """Return the pages of these names, all if there are none; raise LabError for an unknown name."""
    known = {name: file for name, file in sorted(_files().items()) if not name.startswith("_")}
    for name in names:
        if name not in known:
            raise LabError(f"There is no synthetic page '{name}'. There are: {', '.join(known)}.")
    return [_page(name, known[name], number) for number, name in enumerate(known) if name in (names or known)]


def check_all(
    pages: Iterable[SyntheticPage], progress: Callable[[str], None], intervals: Iterable[str] = INTERVALS
) -> Iterator[ReportsRow]:
    """Yield what is reported of each page at each interval."""
    for page in pages:
        progress(page.name)
        for interval in intervals:
            with tempfile.TemporaryDirectory(prefix="driftline-reports-") as folder:
                store = Store.open(f"{folder}/pages.db")
                try:
                    yield _row(page, interval, store)
                finally:
                    store.close()


def _files() -> dict[str, Traversable]:
    folder = files("driftline.lab.bench").joinpath("pages")
    return {file.name.removesuffix(".txt"): file for file in folder.iterdir()}


def _page(name: str, file: Traversable, number: int) -> SyntheticPage:
    about, body, made = _read(name, file)
    content_type = about.get("type", HTML)
    real, noise = [edit for edit in made if edit.matters], [edit for edit in made if not edit.matters]
    if content_type == HTML:
        _, layout, spare = _read(_LAYOUT, _files()[_LAYOUT])
        body = layout.replace("{title}", about["title"]).replace("{body}", body)
        start = 3 * number % len(spare)
        noise += [*spare[start:], *spare[:start]][: EDITS - len(noise)]
    if (len(real), len(noise)) != (EDITS, EDITS):
        raise LabError(
            f"The page '{name}' has {len(real)} edits that matter and {len(noise)} others, not {EDITS} of each."
        )
    return SyntheticPage(name, content_type, body, tuple(chain.from_iterable(zip(noise, real, strict=True))))


def _read(name: str, file: Traversable) -> tuple[dict[str, str], str, list[PageEdit]]:
    """Return what a file says of a page, its body and its edits."""
    head, body, edits = _PART.split(file.read_text(encoding="utf-8"))
    about = dict(line.split(": ", 1) for line in head.splitlines())
    return about, body, [_edit(name, line) for line in edits.splitlines()]


def _edit(name: str, line: str) -> PageEdit:
    sign, text = line[0], line[2:].replace(r"\n", "\n")
    old, arrow, new = text.partition(" => ")
    if not arrow:
        old, arrow, more = text.partition(" >> ")
        new = old + more
    if sign not in "+-" or not arrow:
        raise LabError(f"'{line}' of the page '{name}' is no edit.")
    first, again, second = new.partition(" || ")
    return PageEdit(sign == "+", old, first, (second if " => " in text else old + second) if again else None)


def _row(page: SyntheticPage, interval: str, store: Store) -> ReportsRow:
    url = f"https://{page.name}.example/"
    replay = Replay(store, [url])
    replay.check(url, _fetched(page.body, _START, 0), _START, content_type=page.content_type)
    body = page.body
    drawn: list[tuple[str, str]] = []  # what each second fetch has instead of the first
    reported: list[ReportedEdit] = []
    for number, edit in enumerate(page.edits, start=1):
        body = _applied(edit, body, page.name)
        drawn += [] if edit.second is None else [(edit.new, edit.second)]
        second = body
        for first, other in drawn:
            second = second.replace(first, other)
        at = _START + number * INTERVALS[interval]
        again = _fetched(second, at, number, fetch=1)
        outcome = replay.check(url, _fetched(body, at, number), at, partial(bytes, again), page.content_type)
        reported.append(_reported(edit, outcome))
    return ReportsRow(
        page=page.name, interval=interval, found=sum(one.reported for one in reported if one.matters),
        false_alarms=sum(one.reported for one in reported if not one.matters), edits=reported,
    )  # fmt: skip


def _applied(edit: PageEdit, body: str, name: str) -> str:
    if body.count(edit.old) != 1:
        raise LabError(f"'{edit.old}' is {body.count(edit.old)} times on the page '{name}', not once.")
    return body.replace(edit.old, edit.new)


def _reported(edit: PageEdit, outcome: Outcome) -> ReportedEdit:
    change = change_of(outcome)
    reported, level, headline, reason = False, "", "", "What can be seen is the same."
    if isinstance(outcome, Failed):
        level, reason = outcome.verdict.value, outcome.failure.sentence
    elif change is not None:
        reported, level = change.importance is _REPORTED, change.importance.value
        headline, reason = change.headline, change.reason
    return ReportedEdit(
        edit=_shown(edit), matters=edit.matters, reported=reported, level=level, headline=headline, reason=reason
    )  # fmt: skip


def _shown(edit: PageEdit) -> str:
    added = edit.new.removeprefix(edit.old)
    return f"+ {added}" if added != edit.new and added else f"{edit.old} → {edit.new}"


def _fetched(body: str, at: float, check: int, fetch: int = 0) -> bytes:
    """Return the body as a fetch gets it, with what changes at every fetch."""

    def live(found: re.Match[str]) -> str:
        word, *numbers = found[1].split()
        if word == "ago":
            return _age(at - _START + float(numbers[0]) * 3_600)
        if word == "count":
            return f"{int(numbers[0]) + int(numbers[1]) * check:,}"
        if word == "token":
            return blake2s(f"{found.start()} {check} {fetch}".encode(), digest_size=12).hexdigest()
        return datetime.fromtimestamp(at, UTC).strftime(found[1])

    return _LIVE.sub(live, body).encode()


def _age(seconds: float) -> str:
    size, unit = next((size, unit) for size, unit in _AGES if seconds >= size or size == _AGES[-1][0])
    amount = int(seconds // size)
    return f"{amount} {unit}{'' if amount == 1 else 's'} ago"
