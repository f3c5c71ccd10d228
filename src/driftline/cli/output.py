"""How things are told to people and to programs: plain sentences, colours on a terminal, one JSON document.

Whatever a page sent (its address, title or text) goes through `clean` before it reaches a terminal: a hostile page must
not move the cursor, change colours or reorder what is read.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from driftline.model import Turn, Verdict
from driftline.urls.parts import without_password

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console
    from rich.text import Text

    from driftline.model import Event

NOTHING_YET = "No pages are watched yet: 'driftline add URL' adds one."
VERDICT_STYLES = {
    Verdict.NEW: "cyan",
    Verdict.CHANGED: "yellow",
    Verdict.UNCHANGED: "green",
    Verdict.FAILED: "red",
}
EVENT_STYLES: dict[str, str] = {
    Verdict.CHANGED: "yellow",
    Turn.FAILING: "red",
    Turn.RECOVERED: "green",
    "warning": "red",
    "new": "cyan",
    "gone": "red",
    "moved": "magenta",
}
_REPLACEMENT = "\ufffd"
_DIRECTIONS = (*range(0x200E, 0x2010), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_CONTROLS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), *_DIRECTIONS, *range(0xD800, 0xE000)), _REPLACEMENT)
_CONTROLS_IN_LINES = {code: text for code, text in _CONTROLS.items() if code not in (0x09, 0x0A)}
_OWN_WORDS = ("text", "unified", "excerpt", "examples", "body_base64")  # what a page says, and is shown as it is
_UNBOUNDED = 1_000_000  # columns: what is piped must not be wrapped at the width of nobody's terminal
_AGES = ((604_800, "week"), (86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def clean(text: str, *, lines: bool = False) -> str:
    """The text with every control character replaced; line ends and tabs stay if `lines`, which are a page's own.

    In what is not the text of a page, no password of an address is shown.
    """
    return text.translate(_CONTROLS_IN_LINES) if lines else without_password(text).translate(_CONTROLS)


def clean_lines(text: str) -> str:
    """Return a text of several lines, each cleaned like any other sentence."""
    return "\n".join(map(clean, text.splitlines()))


@cache
def out() -> Console:
    """Standard output, for what was asked for."""
    return _console(stderr=False)


@cache
def err() -> Console:
    """Standard error, for progress and remarks."""
    return _console(stderr=True)


def say(*parts: str | tuple[str, str] | Text, to_stderr: bool = False) -> None:
    """Print one line of texts, or (text, style) pairs, as they are: nothing in them is taken as markup."""
    from rich.text import Text

    (err() if to_stderr else out()).print(Text.assemble(*parts), soft_wrap=True)


def remark(sentence: str) -> None:
    """Print a sentence on standard error."""
    say(clean(sentence), to_stderr=True)


def complain(sentence: str) -> None:
    """One sentence on standard error; quick, so that nothing else has to be loaded to say it."""
    name = "driftline:"
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        name = f"\x1b[31m{name}\x1b[0m"
    with contextlib.suppress(OSError):  # a standard error that is full or gone must not change the exit status
        print(name, clean(" ".join(sentence.split())), file=sys.stderr)


def print_json(document: object) -> None:
    """Print one JSON document on standard output; no password of an address is in it.

    The lists of an object are written item by item: as one text, those of a million pages would take the most memory.
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
    """Print a JSON list on standard output as its items come, one a line; no password of an address is in it."""
    between = "[\n  "
    for item in items:
        _write(between, _as_json(item, "", None))
        between = ",\n  "
    _write("[]\n" if between.startswith("[") else "\n]\n")
    sys.stdout.flush()


def _as_json(item: object, name: str, indent: str | None = "") -> str:
    """Return an item as JSON, without passwords; `name` is that of the field which it is the value of.

    It takes several lines, after the first each with this indentation; with None, it takes one.
    """
    readable = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    lines = None if indent is None else 2
    text = json.dumps(item, indent=lines, ensure_ascii=not readable)
    if without_password(text) != text:
        text = json.dumps(_without_passwords(item, name), indent=lines, ensure_ascii=not readable)
    return text.replace("\n", "\n" + indent) if indent else text


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


def iso(at: float | None) -> str | None:
    """A time for programs: ISO 8601 in UTC."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def local_time(at: float) -> str:
    """A time for people: date and time of day where they are."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def ago(at: float | None, now: float) -> str:
    """How long ago that was, in words."""
    if at is None:
        return "never"
    age = now - at
    for seconds, unit in _AGES:
        amount = int(age // seconds)
        if amount >= 1:
            return f"{count(amount, unit)} ago"
    return "just now"


def size(amount: float) -> str:
    """A number of bytes, in the unit that suits it."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 999.5:
            return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{amount:,.3g} {unit}"
        amount /= 1000
    return f"{amount:,.3g} TB"


def count(amount: int, noun: str) -> str:
    """A number with its noun: '1 page', '6,540 pages'."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def named(event: Event) -> str:
    """The page of an event, or how many of a host there are."""
    return clean(event.urls[0] if len(event.urls) == 1 else f"{count(len(event.urls), 'page')} of {event.host}")


def fields(item: Any, *names: str) -> dict[str, Any]:
    """These attributes as a JSON object would hold them."""
    return {name: getattr(item, name) for name in names}


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            """Tell whoever prints that nobody reads it; rich would end the thread, and let all others print nowhere."""
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _UNBOUNDED
    return Output(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)
