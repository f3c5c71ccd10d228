"""The filters of a page: which parts of it are compared, and which of its changes are reported.

`select` keeps parts and `drop` removes parts, named by CSS, XPath (`xpath:`) or JSONPath (`json:`), all in the document
as it is; what any `select` names is kept. `select main` finds the main content automatically. `also` adds what a page
has besides its text. `read source` takes the markup for the text, and `read offers` price and stock.

Then `ignore`, `keep`, `extract`, `replace` and `lines` change the lines, each those that the one before it left. The
others say which changes are reported: `trigger`, `trigger-removed`, `when`, `quiet-while` and `only`.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from driftline.detection.extract.conditions import is_met, parse_condition
from driftline.detection.extract.line_filters import (
    LineStep,
    NumberedLine,
    Rule,
    add_line_step,
    matches,
    pattern_of,
    time_limit,
)
from driftline.detection.messages import listed
from driftline.errors import BadFilter, FailureKind, NothingSelected, UnreadableBody
from driftline.model.change import Importance
from driftline.model.page import (
    ACCEPT_EMPTY,
    REPORTING_FILTERS,
    REQUEST_FILTERS,
    SINGLE_FILTERS,
    Also,
    ChangeSide,
    Filter,
    FilterKind,
    LineOrder,
)
from driftline.store.blobs import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


EXTRACTOR = 7  # increased with every change of the extraction, which must not be reported as a change of the pages
CSS, XPATH, JSON = "css", "xpath", "json"
_LANGUAGES = {CSS: "a CSS selector", XPATH: "an XPath expression", JSON: "a JSONPath expression"}
_MAIN = "main"
_ALL = "all"
_PREFIX = re.compile(rf"({CSS}|{XPATH}|{JSON}):\s*(.*)", re.DOTALL)
_WHOLE = ("html", "body")
_SOURCE, _OFFERS = "source", "offers"
_IN_ORDER = (
    FilterKind.EXTRACT,
    FilterKind.REPLACE,
    FilterKind.LINES,
    FilterKind.KEEP,
)  # what each does depends on those before
_VALUES: dict[FilterKind, tuple[str, ...]] = {
    FilterKind.LINES: (*LineOrder,), FilterKind.ONLY: (*ChangeSide,), FilterKind.READ: (_SOURCE, _OFFERS),
}  # fmt: skip
_APART_FROM_TEXT = REPORTING_FILTERS | REQUEST_FILTERS | {FilterKind.ACCEPT}
_METHODS = ("GET", "POST", "PUT")
_STATUS = re.compile(r"[45](?:\d\d|xx)")
_CONTENT_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(?: ?; ?[\w-]+=[\w\"=.+-]+)*", re.ASCII)
_LONGEST, _LONGEST_DATA = 1_000, 20_000  # characters
_CACHED = 256
_NO_PARTS = {
    _SOURCE: "The filter 'read source' compares the markup line by line, in which no parts can be named",
    _OFFERS: "The filter 'read offers' finds price and stock of the whole page by itself",
}


class Selector(NamedTuple):
    """A `select` or `drop` that names parts of a document."""

    drops: bool
    language: str
    expression: str

    def __str__(self) -> str:
        prefix = "" if self.language == CSS else f"{self.language}:"
        return f"{FilterKind.DROP if self.drops else FilterKind.SELECT} {prefix}{self.expression}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sieve:
    """The filters of a page, ready to use."""

    steps: tuple[Selector, ...]
    main: bool
    line_steps: tuple[LineStep, ...]
    triggers: tuple[Rule, ...]
    removed_triggers: tuple[Rule, ...]
    quiet: tuple[Rule, ...]
    conditions: tuple[str, ...]
    only: ChangeSide | None
    also: frozenset[str]
    reads: str

    @property
    def narrows(self) -> bool:
        """Return whether it leaves out any of the text."""
        return self.main or bool(self.reads or self.steps or self.line_steps)

    @property
    def reads_source(self) -> bool:
        """Return whether the markup is taken for the text."""
        return self.reads == _SOURCE

    @property
    def waits(self) -> bool:
        """Return whether only what the user waits for is reported."""
        return bool(self.triggers or self.removed_triggers or self.conditions)

    @property
    def names_elements(self) -> bool:
        """Return whether it needs the elements of the document, which its source and its prices as lines lack."""
        return self.main or bool(self.steps or self.also)

    @property
    def may_leave_nothing(self) -> bool:
        """Return whether a page may have no line that is watched now; if it ignores every line, that is a mistake."""
        return any(step.kind is not FilterKind.IGNORE for step in self.line_steps)

    @property
    def names_parts(self) -> bool:
        """Return whether it names parts to select."""
        return any(not step.drops for step in self.steps)

    @property
    def selects(self) -> bool:
        """Return whether it selects named parts or the main content."""
        return self.main or self.names_parts

    def filtered(self, lines: Iterable[str]) -> list[NumberedLine]:
        """Return the lines as the filters make them, each with the number of the line that it comes from."""
        left = [(line, at) for at, line in enumerate(lines)]
        with time_limit():
            for step in self.line_steps:
                left = step.apply(left)
        return left


def how_read(filters: Sequence[Sequence[str]] | None) -> str:
    """Return a fingerprint of extractor and filters. Two texts of a page can be compared only if it is the same."""
    relevant = [list(one) for one in filters or () if one[0] not in _APART_FROM_TEXT]
    if not relevant:
        return str(EXTRACTOR)
    return f"{EXTRACTOR}:{digest(json.dumps(relevant).encode())[:8].hex()}"


def sieve_of(filters: Sequence[Sequence[str]] | None) -> Sieve | None:
    """Return these filters ready to use, None if there are none. Raise BadFilter for one that is not valid."""
    return _sieve(tuple((kind, value) for kind, value in filters)) if filters else None


@lru_cache(_CACHED)
def _sieve(filters: tuple[tuple[str, str], ...]) -> Sieve:
    steps: list[Selector] = []
    line_steps: list[LineStep] = []
    rules: dict[FilterKind, list[Rule]] = defaultdict(list)
    also: set[str] = set()
    main = False
    reads = ""
    conditions: list[str] = []
    only: ChangeSide | None = None
    for name, value in filters:
        kind = _kind_named(name)
        if value not in _VALUES.get(kind, (value,)):
            raise _unknown_value(kind, value)
        if kind in (FilterKind.SELECT, FilterKind.DROP):
            if kind is FilterKind.SELECT and value == _MAIN:
                main = True
            else:
                steps.append(_step(kind, value))
        elif kind is FilterKind.ALSO:
            also.add(value)
        elif kind is FilterKind.READ:
            reads = value
        elif kind is FilterKind.ONLY:
            only = ChangeSide(value)
        elif kind in REQUEST_FILTERS or kind is FilterKind.ACCEPT:
            continue
        elif kind is FilterKind.WHEN:
            parse_condition(value)
            conditions.append(value)
        elif kind in REPORTING_FILTERS:
            rules[kind].append(Rule(kind, value, pattern_of(kind, value)))
        else:
            add_line_step(line_steps, kind, value)
    return Sieve(
        steps=tuple(steps), main=main, line_steps=tuple(line_steps), triggers=tuple(rules[FilterKind.TRIGGER]),
        removed_triggers=tuple(rules[FilterKind.TRIGGER_REMOVED]), quiet=tuple(rules[FilterKind.QUIET_WHILE]),
        conditions=tuple(conditions), only=only, also=frozenset(also), reads=reads,
    )  # fmt: skip


def check_filters(filters: Iterable[tuple[str, str]]) -> list[Filter]:
    """Return the filters as they are stored. Raise BadFilter with what is wrong, and where, for the first bad one."""
    checked = [one for kind, value in filters for one in _parted(_kind_named(kind), value.strip())]
    for kind, value in checked:
        if not value:
            raise BadFilter(f"The filter '{kind}' is empty: give it a value.")
        longest = _LONGEST_DATA if kind is FilterKind.DATA else _LONGEST
        if len(value) > longest:
            raise BadFilter(f"The filter '{kind} {value[:20]}…' is too long: {longest:,} characters are the most.")
    sieve = sieve_of(checked)
    for step in sieve.steps if sieve else ():
        _check_step(step)
    if sieve is not None:
        _check_together(sieve, checked)
    return checked


def merged_filters(before: Sequence[Filter], added: Sequence[Filter]) -> list[Filter]:
    """Return the filters of a page to which some are added. Raise BadFilter if they exclude each other.

    One that is there already is not added again, except among those that change lines one after the other.
    """
    merged = list(before)
    replaced = {one.kind for one in added if one.kind in SINGLE_FILTERS}
    merged = [one for one in merged if one.kind not in replaced]
    merged += [one for one in added if one not in merged or one.kind in _IN_ORDER]
    sieve = sieve_of(merged)
    if sieve is not None:
        _check_together(sieve, merged)
    return merged


def _check_together(sieve: Sieve, filters: Sequence[Filter]) -> None:
    values = {kind: {one.value for one in filters if one.kind is kind} for kind in SINGLE_FILTERS}
    sides = values[FilterKind.ONLY]
    several = next((kind for kind in (*REQUEST_FILTERS, FilterKind.READ) if len(values[kind]) > 1), None)
    if several is not None:
        raise BadFilter(f"A page has one '{several}': give only one of {listed(sorted(values[several]), 'or')}.")
    if values[FilterKind.CONTENT_TYPE] and not values[FilterKind.DATA]:
        raise BadFilter("A 'content-type' is that of 'data' which is sent: give both.")
    if values[FilterKind.DATA] and values[FilterKind.METHOD] == {"GET"}:
        raise BadFilter("A request with 'data' needs the 'method' POST or PUT.")
    if sieve.reads and sieve.names_elements:
        raise BadFilter(
            f"{_NO_PARTS[sieve.reads]}: leave out select, drop and also, and choose lines by keep, ignore or extract."
        )
    if len(sides) > 1:
        named = listed([f"'only {side}'" for side in sorted(sides)])
        raise BadFilter(f"The filters {named} exclude each other: leave out all for all changes.")
    if sides and sieve.waits:
        raise BadFilter(
            "The filter 'only' does not go with a trigger or a condition: 'trigger' is about what was added, "
            "'trigger-removed' about what was removed, and 'when' about both."
        )


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


def parts_without_elements(sieve: Sieve) -> UnreadableBody:
    """Return the error for a page whose filters name parts of what has no elements."""
    sentence = f"{_NO_PARTS[sieve.reads]}: remove select, drop and also with 'driftline edit --no-filters'."
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
    """Return the importance of a change by what the user waits for: noise if no condition is met, and no line that
    matches a trigger was added, or removed for `trigger-removed`.

    It matters if a condition is met, or if more lines match than before, or fewer. Where a matching line was only
    rewritten, or the user waits for nothing, None is returned: other rules decide.
    """
    sieve = sieve_of(filters)
    if sieve is None or not sieve.waits:
        return None
    if is_met(sieve.conditions, old, new):
        return Importance.IMPORTANT
    with time_limit():
        found = [_appeared(sieve.triggers, old, new), _appeared(sieve.removed_triggers, new, old)]
    if not any(some for some, _ in found):
        return Importance.NOISE
    return Importance.IMPORTANT if any(more for _, more in found) else None


def _appeared(rules: Sequence[Rule], old: str, new: str) -> tuple[bool, bool]:
    """Return whether lines appeared that match one of these rules, and whether more lines match than before."""
    if not rules:
        return False, False
    before, after = (Counter(line for line in text.split("\n") if matches(rules, line)) for text in (old, new))
    return bool(after - before), after.total() > before.total()


def may_be_quiet(filters: Sequence[Sequence[str]] | None) -> bool:
    """Return whether there is a `quiet-while` filter."""
    return any(kind == FilterKind.QUIET_WHILE for kind, _ in filters or ())


def is_quiet(filters: Sequence[Sequence[str]] | None, text: str) -> bool:
    """Return whether a page with this text is not to be reported now, by its `quiet-while` filters."""
    sieve = sieve_of(filters)
    if sieve is None:
        return False
    with time_limit():
        return any(matches(sieve.quiet, line) for line in text.split("\n"))


def counts_also(filters: Sequence[Sequence[str]] | None) -> bool:
    """Return whether there is an `also` filter, so that the text has notes."""
    return any(kind == FilterKind.ALSO for kind, _ in filters or ())


def _unknown_value(kind: FilterKind, value: str) -> BadFilter:
    return BadFilter(f"There is no '{kind} {value}': use {listed(_VALUES[kind], 'or')}.")


def _accepted(value: str) -> str:
    if value != ACCEPT_EMPTY and not _STATUS.fullmatch(value):
        raise BadFilter(f"There is no 'accept {value}': use an error status such as 404 or 5xx, or {ACCEPT_EMPTY}.")
    return value


def _kind_named(name: str) -> FilterKind:
    """Return the kind of filter of this name; raise BadFilter if there is none."""
    try:
        return FilterKind(name)
    except ValueError:
        raise BadFilter(f"There is no filter '{name}': use {', '.join(FilterKind)}.") from None


def _parted(kind: FilterKind, value: str) -> list[Filter]:
    """Return one filter for each value of an `also` or `lines` filter that names several."""
    if kind in _VALUES and value:
        values = [name.strip().lower() for name in value.split(",")] if kind is FilterKind.LINES else [value.lower()]
        bad = next((one for one in values if one not in _VALUES[kind]), None)
        if bad is not None:
            raise _unknown_value(kind, bad)
        return [Filter(kind, one) for one in values]
    if kind is FilterKind.METHOD and value:
        if value.upper() not in _METHODS:
            raise BadFilter(f"There is no 'method {value}': use {listed(_METHODS, 'or')}.")
        return [Filter(kind, value.upper())]
    if kind is FilterKind.CONTENT_TYPE and value and not _CONTENT_TYPE.fullmatch(value):
        raise BadFilter(f"The content type '{value}' is none: write one such as text/xml.")
    if kind is FilterKind.ACCEPT and value:
        return [Filter(kind, _accepted(one.strip().lower())) for one in value.split(",")]
    if kind is not FilterKind.ALSO:
        return [Filter(kind, value)]
    named = [name.strip().lower() for name in value.split(",")]
    unknown = next((name for name in named if name not in [*Also, _ALL]), None)
    if unknown is not None:
        raise BadFilter(f"There is no 'also {unknown}': use {', '.join(Also)} or {_ALL}.")
    return [Filter(kind, one) for one in Also if one in named or _ALL in named]


def _step(kind: str, value: str) -> Selector:
    found = _PREFIX.fullmatch(value)
    language, expression = found.groups() if found else (CSS, value)
    return Selector(kind == FilterKind.DROP, language, expression)


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
