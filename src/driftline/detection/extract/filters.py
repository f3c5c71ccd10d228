"""The filters of a page: which parts of it are compared.

`select` keeps parts and `drop` removes parts, named by CSS, XPath (`xpath:`) or JSONPath (`json:`), all in the document
as it is; what any `select` names is kept. `select main` finds the main content automatically. Of the lines that are
left, `ignore` leaves out some, and a change matters only if a line that matches a `trigger` appears. `also` adds what a
page has besides its text.

Regular expressions have a time limit, because some take exponential time.
"""

from __future__ import annotations

import json
import re
import signal
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from driftline.detection.messages import listed
from driftline.errors import BadFilter, DriftlineError, FailureKind, NothingSelected, UnreadableBody
from driftline.model.change import Importance
from driftline.model.page import Also, Filter, FilterKind
from driftline.store.blobs import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import FrameType

EXTRACTOR = 7  # increased with every change of the extraction, which must not be reported as a change of the pages
CSS, XPATH, JSON = "css", "xpath", "json"
_LANGUAGES = {CSS: "a CSS selector", XPATH: "an XPath expression", JSON: "a JSONPath expression"}
_MAIN = "main"
_ALL = "all"
_PREFIX = re.compile(rf"({CSS}|{XPATH}|{JSON}):\s*(.*)", re.DOTALL)
_REGEX = re.compile(r"/(.+)/(i?)", re.DOTALL)
_OTHER_FLAGS = re.compile(r"/(?:[^/\\]|\\.)+/([gimsuxy]+)", re.DOTALL)  # as other programs have them
_WHOLE = ("html", "body")
_LONGEST = 1_000  # characters
_CACHED = 256
_TIME_LIMIT = 2.0  # seconds of processor time for all regular expressions of a page
_TICK = 0.1


class Selector(NamedTuple):
    """A `select` or `drop` that names parts of a document."""

    drops: bool
    language: str
    expression: str

    def __str__(self) -> str:
        prefix = "" if self.language == CSS else f"{self.language}:"
        return f"{FilterKind.DROP if self.drops else FilterKind.SELECT} {prefix}{self.expression}"


class Rule(NamedTuple):
    """An `ignore` or `trigger`."""

    kind: str
    value: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sieve:
    """The filters of a page, ready to use."""

    steps: tuple[Selector, ...]
    main: bool
    ignored: tuple[Rule, ...]
    triggers: tuple[Rule, ...]
    also: frozenset[str]

    @property
    def narrows(self) -> bool:
        """Return whether it leaves out any of the text."""
        return self.main or bool(self.steps or self.ignored)

    @property
    def names_parts(self) -> bool:
        """Return whether it names parts to select."""
        return any(not step.drops for step in self.steps)

    @property
    def selects(self) -> bool:
        """Return whether it selects named parts or the main content."""
        return self.main or self.names_parts

    def ignores(self, line: str) -> bool:
        """Return whether this line is left out."""
        return _matches(self.ignored, line)

    def kept(self, lines: Iterable[str]) -> list[str]:
        """Return the lines that are not ignored."""
        with time_limit():
            return [line for line in lines if not self.ignores(line)]


def how_read(filters: Sequence[Sequence[str]] | None) -> str:
    """Return a fingerprint of extractor and filters. Two texts of a page can be compared only if it is the same."""
    relevant = [list(one) for one in filters or () if one[0] != FilterKind.TRIGGER]
    if not relevant:
        return str(EXTRACTOR)
    return f"{EXTRACTOR}:{digest(json.dumps(relevant).encode())[:8].hex()}"


def sieve_of(filters: Sequence[Sequence[str]] | None) -> Sieve | None:
    """Return these filters ready to use, None if there are none. Raise BadFilter for one that is not valid."""
    return _sieve(tuple((kind, value) for kind, value in filters)) if filters else None


@lru_cache(_CACHED)
def _sieve(filters: tuple[tuple[str, str], ...]) -> Sieve:
    named: dict[str, list[str]] = {kind.value: [] for kind in FilterKind}
    steps: list[Selector] = []
    main = False
    for kind, value in filters:
        named[_kind_named(kind)].append(value)
        if kind == FilterKind.SELECT and value == _MAIN:
            main = True
        elif kind in (FilterKind.SELECT, FilterKind.DROP):
            steps.append(_step(kind, value))
    ignored, triggers = (
        tuple(Rule(kind, value, _pattern(kind, value)) for value in named[kind])
        for kind in (FilterKind.IGNORE, FilterKind.TRIGGER)
    )
    also = frozenset(named[FilterKind.ALSO])
    return Sieve(steps=tuple(steps), main=main, ignored=ignored, triggers=triggers, also=also)


def check_filters(filters: Iterable[tuple[str, str]]) -> list[Filter]:
    """Return the filters as they are stored. Raise BadFilter with what is wrong, and where, for the first bad one."""
    checked = [one for kind, value in filters for one in _parted(_kind_named(kind), value.strip())]
    for kind, value in checked:
        if not value:
            raise BadFilter(f"The filter '{kind}' is empty: give it a selector or a text.")
        if len(value) > _LONGEST:
            raise BadFilter(f"The filter '{kind} {value[:20]}…' is too long: {_LONGEST:,} characters are the most.")
    sieve = sieve_of(checked)
    for step in sieve.steps if sieve else ():
        _check_step(step)
    return checked


def nothing_selected(steps: Sequence[Selector]) -> NothingSelected:
    """Return the error for a page on which none of these `select` filters matches anything."""
    filters = f"The filter '{steps[0]}' matches nothing"
    if len(steps) > 1:
        named = listed([f"'{step}'" for step in steps])
        filters = f"None of the filters {named} matches anything"
    sentence = f"{filters} on this page: look at the page, and change the filter with 'driftline edit'."
    return NothingSelected(FailureKind.SELECTION, sentence)


def nothing_left() -> UnreadableBody:
    """Return the error for a page of which every line is ignored."""
    sentence = "The filters ignore every line of this page: change the filters with 'driftline edit'."
    return UnreadableBody(FailureKind.SELECTION, sentence)


def failed_selection(step: Selector, error: Exception) -> UnreadableBody:
    """Return the error for a page on which an expression cannot be evaluated."""
    return UnreadableBody(FailureKind.SELECTION, f"The filter '{step}' fails on this page: {error}.")


def refuse_others(steps: Iterable[Selector], languages: Sequence[str], kind: str) -> None:
    """Raise UnreadableBody for a `select` in a language that this kind of document does not support."""
    for step in steps:
        if not step.drops and step.language not in languages:
            document = kind or "a document of no type"
            sentence = f"The filter '{step}' is {_LANGUAGES[step.language]}, which selects nothing from {document}."
            raise UnreadableBody(FailureKind.SELECTION, sentence)


def awaited_by(filters: Sequence[Sequence[str]] | None, old: str, new: str) -> Importance | None:
    """Return the importance of a change by the `trigger` filters: noise if no added line matches one of them.

    It matters if more lines match than before. Where a matching line was only rewritten, or there is no trigger, None
    is returned: other rules decide.
    """
    sieve = sieve_of(filters)
    if sieve is None or not sieve.triggers:
        return None
    with time_limit():
        before, after = (
            Counter(line for line in text.split("\n") if _matches(sieve.triggers, line)) for text in (old, new)
        )
    if not after - before:
        return Importance.NOISE
    return Importance.IMPORTANT if after.total() > before.total() else None


def counts_also(filters: Sequence[Sequence[str]] | None) -> bool:
    """Return whether there is an `also` filter, so that the text has notes."""
    return any(kind == FilterKind.ALSO for kind, _ in filters or ())


def _kind_named(name: str) -> FilterKind:
    """Return the kind of filter of this name; raise BadFilter if there is none."""
    try:
        return FilterKind(name)
    except ValueError:
        raise BadFilter(f"There is no filter '{name}': use {', '.join(FilterKind)}.") from None


def _parted(kind: FilterKind, value: str) -> list[Filter]:
    """Return one filter for each value of an `also` filter that names several."""
    if kind is not FilterKind.ALSO:
        return [Filter(kind, value)]
    named = [name.strip().lower() for name in value.split(",")]
    unknown = next((name for name in named if name not in [*Also, _ALL]), None)
    if unknown is not None:
        raise BadFilter(f"There is no 'also {unknown}': use {', '.join(Also)} or {_ALL}.")
    return [Filter(kind, one) for one in Also if one in named or _ALL in named]


def _matches(rules: Iterable[Rule], line: str) -> bool:
    for rule in rules:
        try:
            if is_found(rule.pattern, line):
                return True
        except RegexTimeout:
            sentence = (
                f"The filter '{rule.kind} {rule.value}' takes too long on this page: avoid nested repetitions such as "
                "(a+)+, and change it with 'driftline edit'."
            )
            raise UnreadableBody(FailureKind.SELECTION, sentence) from None
    return False


def _step(kind: str, value: str) -> Selector:
    found = _PREFIX.fullmatch(value)
    language, expression = found.groups() if found else (CSS, value)
    return Selector(kind == FilterKind.DROP, language, expression)


def _pattern(kind: str, value: str) -> re.Pattern[str]:
    found = _REGEX.fullmatch(value)
    others = _OTHER_FLAGS.fullmatch(value) if found is None else None
    if others is not None:
        raise BadFilter(
            f"The filter '{kind} {value}' has the flags '{others[1]}', and only 'i' is known: write /…/ or /…/i, and "
            "a text that begins with a slash as /\\/…/."
        )
    if found is None:
        return re.compile(re.escape(" ".join(value.split())), re.IGNORECASE)
    expression, flag = found.groups()
    try:
        with warnings.catch_warnings(action="ignore"):
            return re.compile(expression, re.IGNORECASE if flag else 0)
    except re.error as error:
        where = "" if error.pos is None else f" at character {error.pos + 1}"
        raise BadFilter(f"The filter '{kind} {value}' is not a regular expression: {error.msg}{where}.") from None


def _check_step(step: Selector) -> None:
    is_valid = _CHECKS[step.language]
    if step.expression and is_valid(step.expression):
        if step.drops and _drops_all(step):
            raise BadFilter(f"The filter '{step}' would leave nothing of any page: name the parts to leave out.")
        return
    # no parser reports where it failed: find the longest start that is valid
    ends = range(len(step.expression) - 1, 0, -1)
    good = next((end for end in ends if is_valid(step.expression[:end])), 0)
    bad = step.expression[good:].strip() or step.expression
    where = f"it cannot be read from '{bad}' on" if good else "it cannot be read"
    raise BadFilter(f"The filter '{step}' is not {_LANGUAGES[step.language]}: {where}.")


def _is_css(expression: str) -> bool:
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    try:
        LexborHTMLParser("<p>").css(expression)
    except SelectolaxError:
        return False
    return True


def _is_xpath(expression: str) -> bool:
    from lxml import etree

    try:
        etree.XPath(expression)(etree.Element("html"))
    except etree.XPathError:
        return False
    return True


def _is_json_path(expression: str) -> bool:
    from jsonpath import JSONPathError
    from jsonpath import compile as compile_path

    try:
        compile_path(expression)
    except JSONPathError:
        return False
    return True


def _drops_all(step: Selector) -> bool:
    """Return whether it removes the whole body of any HTML document."""
    if step.language == CSS:
        from selectolax.lexbor import LexborHTMLParser

        return any(node.tag in _WHOLE for node in LexborHTMLParser("<p>").css(step.expression))
    if step.language == XPATH:
        from lxml import html

        found = html.document_fromstring("<p>").xpath(step.expression)
        return isinstance(found, list) and any(getattr(item, "tag", "") in _WHOLE for item in found)
    return False


_CHECKS: dict[str, Callable[[str], bool]] = {CSS: _is_css, XPATH: _is_xpath, JSON: _is_json_path}


class RegexTimeout(DriftlineError):
    """A regular expression exceeded its time limit."""


class _Timer:
    """State of the timer. Signals are global, so it is used only in processes that do nothing but read pages."""

    set_up = False
    searching = False


def watch_expressions() -> None:
    """Enforce the time limit in this process from now on. Call it in the main thread."""
    signal.signal(signal.SIGVTALRM, _on_tick)
    _Timer.set_up = True


def _on_tick(_number: int, _frame: FrameType | None) -> None:
    if _Timer.searching:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        raise RegexTimeout


@contextmanager
def time_limit() -> Iterator[None]:
    """Limit the time of the expressions within this block, if `watch_expressions` was called."""
    if not _Timer.set_up:
        yield
        return
    # repeatedly: the first signal may arrive between two searches
    signal.setitimer(signal.ITIMER_VIRTUAL, _TIME_LIMIT, _TICK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def is_found(pattern: re.Pattern[str], line: str) -> bool:
    """Return whether the expression matches a part of the line. Raise RegexTimeout when it takes too long."""
    _Timer.searching = True
    try:
        return pattern.search(line) is not None
    finally:
        _Timer.searching = False
