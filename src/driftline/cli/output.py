"""Output of the commands: sentences for people, coloured on a terminal, and JSON for programs.

Everything that a page sent (its address, title or text) goes through `clean` before it reaches a terminal: a hostile
page must not move the cursor, change colours or reorder what is read.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from driftline.cli.log_output import is_json_log, log_sentence
from driftline.model.change import Importance
from driftline.model.event import EventKind
from driftline.model.outcome import Verdict
from driftline.plurals import count
from driftline.runtime import command_name
from driftline.urls import with_readable_hosts, without_password

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console
    from rich.text import Text

    from driftline.model.event import Event

    #: a text, or a text and its style
    Part: TypeAlias = str | tuple[str, str]

NOTHING_YET = f"No pages are watched yet: add one with '{command_name()} add https://example.com/'."
VERDICT_STYLES = {
    Verdict.NEW: "cyan",
    Verdict.CHANGED: "yellow",
    Verdict.UNCHANGED: "green",
    Verdict.FAILED: "red",
}
EVENT_STYLES = {
    EventKind.CHANGED: "yellow",
    EventKind.FAILING: "red",
    EventKind.RECOVERED: "green",
    EventKind.WARNING: "red",
    EventKind.IGNORING: "magenta",
    EventKind.NEW: "cyan",
    EventKind.GONE: "red",
    EventKind.MOVED: "magenta",
}
_NAMED_BY_CHANGE = (EventKind.CHANGED, EventKind.IGNORING)
_REPLACEMENT = "\ufffd"
_DIRECTIONS = (*range(0x200E, 0x2010), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_CONTROLS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), *_DIRECTIONS, *range(0xD800, 0xE000)), _REPLACEMENT)
_CONTROLS_IN_LINES = {code: text for code, text in _CONTROLS.items() if code not in (0x09, 0x0A)}
_OWN_WORDS = ("text", "unified", "excerpt", "examples", "body_base64")  # fields with the text of a page
_ID_WIDTH = 6  # characters, of most ids of changes
_GAP = "  "
_INDENT = " " * 4
_UNBOUNDED = 1_000_000  # columns: piped output must not be wrapped
_HALF_A_YEAR = 180 * 86_400  # seconds
_AGES = ((604_800, "week"), (86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def clean(text: str, *, lines: bool = False) -> str:
    """Return the text with every control character replaced.

    With `lines`, for the text of a page, line ends and tabs stay; otherwise passwords in addresses are hidden, and host
    names are shown as people type them.
    """
    if lines:
        return text.translate(_CONTROLS_IN_LINES)
    return with_readable_hosts(without_password(text)).translate(_CONTROLS)


def clean_lines(text: str) -> str:
    """Return a text of several lines, each cleaned like any other sentence."""
    return "\n".join(map(clean, text.splitlines()))


@cache
def out() -> Console:
    """Return standard output, for the results of a command."""
    return _console(stderr=False)


@cache
def err() -> Console:
    """Return standard error, for progress and remarks."""
    return _console(stderr=True)


def say(*parts: str | tuple[str, str] | Text, to_stderr: bool = False) -> None:
    """Print one line made of texts and (text, style) pairs; nothing in them is read as markup."""
    from rich.text import Text

    if to_stderr and is_json_log():
        log_sentence(Text.assemble(*parts).plain)
        return
    if not to_stderr:
        out().print(Text.assemble(*parts), soft_wrap=True)
        return
    try:
        err().print(Text.assemble(*parts), soft_wrap=True)
    except BrokenPipeError:
        raise
    except OSError:  # a full disk under the log must not end a run
        err.cache_clear()  # with the line in it: it would be kept, and all that follow


def remark(sentence: str) -> None:
    """Print a sentence on standard error."""
    say(clean(sentence), to_stderr=True)


def complain(sentence: str) -> None:
    """Print an error as one sentence on standard error, without loading rich."""
    if is_json_log():
        log_sentence(sentence, error=True)
        return
    name = "driftline:"
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        name = f"\x1b[31m{name}\x1b[0m"
    with contextlib.suppress(OSError):  # a standard error that is full or gone must not change the exit status
        print(name, clean(" ".join(sentence.split())), file=sys.stderr)


def print_json(document: object) -> None:
    """Print one JSON document on standard output, with passwords in addresses hidden.

    The lists of an object are written item by item, because one text for a million pages would take too much memory.
    """
    if not isinstance(document, dict) or not document:
        _write(_as_json(document, ""), "\n")
    else:
        before = "{\n  "
        for name, value in document.items():
            _write(before, _as_json(name, ""), ": ")
            if isinstance(value, list) and value:
                for number, item in enumerate(value):
                    _write(",\n    " if number else "[\n    ", _as_json(item, name, "    "))
                _write("\n  ]")
            else:
                _write(_as_json(value, name, "  "))
            before = ",\n  "
        _write("\n}\n")
    sys.stdout.flush()


def print_json_list(items: Iterable[object]) -> None:
    """Print a JSON list on standard output as its items come, one per line, with passwords in addresses hidden."""
    between = "[\n  "
    for item in items:
        _write(between, _as_json(item, "", None))
        between = ",\n  "
    _write("[]\n" if between.startswith("[") else "\n]\n")
    sys.stdout.flush()


def _as_json(item: object, name: str, indent: str | None = "") -> str:
    """Return the value of the field `name` as JSON, with passwords hidden; on one line if `indent` is None."""
    readable = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    lines = None if indent is None else 2
    text = json.dumps(item, indent=lines, ensure_ascii=not readable, default=_plain)
    if without_password(text) != text:
        text = json.dumps(_without_passwords(item, name), indent=lines, ensure_ascii=not readable, default=_plain)
    return text.replace("\n", "\n" + indent) if indent else text


def _plain(value: object) -> float:
    """Return a time in seconds since 1970, or a length of time in seconds: JSON has neither."""
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, timedelta):
        return value.total_seconds()
    raise TypeError(f"{value!r} cannot be written as JSON")


def _write(*texts: str) -> None:
    for text in texts:
        sys.stdout.write(text.encode("utf-8", "replace").decode())


def _without_passwords(item: object, name: str = "") -> object:
    if isinstance(item, str):
        return item if name in _OWN_WORDS else without_password(item)
    if isinstance(item, dict):
        return {key: _without_passwords(value, key) for key, value in item.items()}
    if isinstance(item, list | tuple):
        return [_without_passwords(value, name) for value in item]
    return item


def iso(at: datetime | None) -> str | None:
    """Return a time for programs: ISO 8601 in UTC."""
    return None if at is None else at.isoformat().replace("+00:00", "Z")


def local_time(at: datetime | float) -> str:
    """Return a time, a `datetime` or seconds since 1970, for people: date and time in their time zone."""
    moment = at if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC)
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def short_time(at: float, now: float) -> str:
    """Return a time for a narrow table on a terminal: without the seconds, and without the date if it is today's."""
    moment, today = (datetime.fromtimestamp(one, UTC).astimezone() for one in (at, now))
    if moment.date() == today.date():
        return moment.strftime("%H:%M")
    return moment.strftime("%m-%d %H:%M" if abs(at - now) < _HALF_A_YEAR else "%Y-%m-%d")


def ago(at: datetime | None, now: float) -> str:
    """Return how long ago that was, in words."""
    if at is None:
        return "never"
    age = now - at.timestamp()
    for seconds, unit in _AGES:
        amount = int(age // seconds)
        if amount >= 1:
            return f"{count(amount, unit)} ago"
    return "just now"


def size(amount: float) -> str:
    """Return a number of bytes in a readable unit."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 999.5:
            return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{amount:,.3g} {unit}"
        amount /= 1000
    return f"{amount:,.3g} TB"


def event_lines(event: Event, *before: Part, most: int | None = 10) -> list[list[Part]]:
    """Return what to print of an event after `before`: its page and what happened, or its pages, `most` of them, below.

    Changes have their ids, for 'driftline diff' and 'driftline feedback'. Where a terminal is too narrow, what happened
    has a line of its own.
    """
    from rich.cells import cell_len

    word = event.event if event.importance is Importance.IMPORTANT else event.importance
    lead = [*before, (f"{word:<10}", EVENT_STYLES[event.event])]
    margin = " " * sum(cell_len(part if isinstance(part, str) else part[0]) for part in lead)
    ids = event.ids if event.event in _NAMED_BY_CHANGE else [""] * len(event.urls)
    pages = [f"{name:<{_ID_WIDTH}}  {clean(url)}" for name, url in zip(ids, event.urls, strict=False)]
    page = pages[0] if len(pages) == 1 else clean(f"{count(len(event.urls), 'page')} of {event.host}")
    # what is ignored is reported once, with the command that undoes it
    headline = clean(event.reason if event.event is EventKind.IGNORING else event.headline)
    wide = len(margin) + cell_len(page) + len(_GAP) + cell_len(headline)
    if out().is_terminal and wide > out().width:
        lines: list[list[Part]] = [[*lead, page], [_INDENT, (headline, "dim")]]
    else:
        lines = [[*lead, page, _GAP, (headline, "dim")]]
    if len(pages) > 1:
        lines += [[margin, one] for one in pages[:most]]
        if most is not None and len(pages) > most:
            lines.append([margin, " " * (_ID_WIDTH + len(_GAP)), f"… and {len(pages) - most:,} more"])
    return lines


def suggest_commands(events: Iterable[Event]) -> None:
    """Name the commands that say more of these changes, for a person at a terminal."""
    first = next((event.ids[0] for event in events if event.event is EventKind.CHANGED and event.ids), None)
    if first is not None and out().is_terminal:
        command = command_name()
        say((f"To see a change in full:   {command} diff {first}", "dim"), to_stderr=True)
        say((f"To hide others like it:    {command} feedback {first} --noise", "dim"), to_stderr=True)


def fields(item: Any, *names: str) -> dict[str, Any]:
    """Return these attributes as a JSON object."""
    return {name: getattr(item, name) for name in names}


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            """Raise BrokenPipeError; rich would end only the current thread, and others would print into nothing."""
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _UNBOUNDED
    return Output(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)
