"""The filters that change the lines of a page one after the other, and the rules that lines are searched for.

A rule is a text, or a regular expression. These have a time limit, because some take exponential time.
"""

from __future__ import annotations

import re
import signal
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from driftline.errors import BadFilter, DriftlineError, FailureKind, UnreadableBody
from driftline.model.page import FilterKind, LineOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

_Result = TypeVar("_Result")

_REGEX = re.compile(r"/(.+)/(i?)", re.DOTALL)
_REPLACEMENT = re.compile(r"/((?:[^/\\]|\\.)+)/((?:[^/\\]|\\.)*)/(i?)", re.DOTALL)
_OTHER_FLAGS = re.compile(r"/(?:[^/\\]|\\.)+/([gimsuxy]+)", re.DOTALL)  # as other programs have them
_MAKING = (FilterKind.EXTRACT, FilterKind.REPLACE)  # make lines of their own
_MOST_MADE = 20_000_000  # characters of a page
_TIME_LIMIT = 2.0  # seconds of processor time for all regular expressions of a page
_TICK = 0.1


class Rule(NamedTuple):
    """A text or regular expression that lines are searched for, and what to replace it by."""

    kind: FilterKind
    value: str
    pattern: re.Pattern[str]
    replacement: str = ""


#: a line, and the number of the line of the document that it comes from
NumberedLine: TypeAlias = tuple[str, int]


class LineStep(NamedTuple):
    """A filter that changes the lines of a page, or several `ignore` or `keep` filters that count as one."""

    kind: FilterKind
    rules: tuple[Rule, ...] = ()
    order: LineOrder | None = None

    def apply(self, lines: list[NumberedLine]) -> list[NumberedLine]:
        """Return the lines that it makes of these."""
        if self.order is not None:
            return _ordered(lines, self.order)
        if self.kind in (FilterKind.IGNORE, FilterKind.KEEP):
            kept, rules = self.kind is FilterKind.KEEP, self.rules
            return [line for line in lines if matches(rules, line[0]) is kept]
        (rule,) = self.rules
        made = _extracted if self.kind is FilterKind.EXTRACT else _replaced
        found: list[NumberedLine] = []
        size = 0
        for line, at in lines:
            texts = [text for part in made(rule, line) if (text := " ".join(part.split()))]
            found += [(text, at) for text in texts]
            size += sum(map(len, texts))
            if size > _MOST_MADE:
                raise _makes_too_much(rule)
        return found


def _ordered(lines: list[NumberedLine], order: LineOrder) -> list[NumberedLine]:
    if order is LineOrder.SORT:
        return sorted(lines, key=lambda line: (line[0].casefold(), line[0]))
    if order is LineOrder.REVERSE:
        return lines[::-1]
    first: dict[str, NumberedLine] = {}
    for line in lines:
        first.setdefault(line[0], line)
    return [*first.values()]


def _extracted(rule: Rule, line: str) -> list[str]:
    """Return what an expression matches in a line: of each match its groups, or all of it if none of them took part."""

    def parts(found: re.Match[str]) -> str:
        groups = [group for group in found.groups() if group is not None]
        return " ".join(groups) if groups else found[0]

    return [parts(found) for found in _within_limit(rule, lambda: [*rule.pattern.finditer(line)])]


def _replaced(rule: Rule, line: str) -> list[str]:
    """Return a line with what an expression matches replaced; a line break in the replacement begins another line."""
    return _within_limit(rule, lambda: _with_replacements(rule, line)).split("\n")


def _with_replacements(rule: Rule, line: str) -> str:
    if len(line) * len(rule.replacement) < _MOST_MADE:
        return rule.pattern.sub(rule.replacement, line)
    parts: list[str] = []
    size = last = 0
    for found in rule.pattern.finditer(line):  # one after the other, to stop before the memory is full
        parts += [line[last : found.start()], made := found.expand(rule.replacement)]
        size, last = size + len(made), found.end()
        if size > _MOST_MADE:
            raise _makes_too_much(rule)
    return "".join([*parts, line[last:]])


def _makes_too_much(rule: Rule) -> UnreadableBody:
    sentence = f"The filter '{rule.kind} {rule.value}' makes more than {_MOST_MADE:,} characters of this page."
    return UnreadableBody(FailureKind.SELECTION, sentence)


def add_line_step(steps: list[LineStep], kind: FilterKind, value: str) -> None:
    """Add a filter of lines to the steps before it."""
    if kind is FilterKind.LINES:
        steps.append(LineStep(kind, order=LineOrder(value)))
        return
    rule = _replacement(value) if kind is FilterKind.REPLACE else Rule(kind, value, pattern_of(kind, value))
    # several that keep lines keep what any of them matches, unless a filter between them makes other lines
    for at in range(len(steps) - 1, -1, -1):
        if steps[at].kind in _MAKING or kind in _MAKING:
            break
        if steps[at].kind is kind:
            steps[at] = LineStep(kind, (*steps[at].rules, rule))
            return
    steps.append(LineStep(kind, (rule,)))


def matches(rules: Iterable[Rule], line: str) -> bool:
    """Return whether one of these rules matches a part of a line. Raise UnreadableBody if one takes too long."""
    _Timer.searching = True
    rule = None
    try:
        for rule in rules:
            if rule.pattern.search(line):
                return True
    except RegexTimeout:
        assert rule is not None
        raise _takes_too_long(rule) from None
    finally:
        _Timer.searching = False
    return False


def _within_limit(rule: Rule, do: Callable[[], _Result]) -> _Result:
    """Return what a search with a rule returns. Raise UnreadableBody if it takes too long."""
    _Timer.searching = True
    try:
        return do()
    except RegexTimeout:
        raise _takes_too_long(rule) from None
    finally:
        _Timer.searching = False


def _takes_too_long(rule: Rule) -> UnreadableBody:
    sentence = (
        f"The filter '{rule.kind} {rule.value}' takes too long on this page: avoid nested repetitions such as (a+)+, "
        "and change it with 'driftline edit'."
    )
    return UnreadableBody(FailureKind.SELECTION, sentence)


def _replacement(value: str) -> Rule:
    """Return the rule of a `replace` filter: '/REGEX/TEXT/'."""
    found = _REPLACEMENT.fullmatch(value)
    if found is None:
        raise BadFilter(
            f"The filter 'replace {value}' is not of the form /REGEX/TEXT/ or /REGEX/TEXT/i: write a slash within it "
            "as '\\/'."
        )
    expression, text, flag = found.groups()
    pattern = pattern_of(FilterKind.REPLACE, f"/{expression}/{flag}")
    text = text.replace("\\/", "/")
    try:
        pattern.sub(text, "")
    except (re.error, IndexError) as error:
        raise BadFilter(f"The filter 'replace {value}' has a text that cannot be put in: {error}.") from None
    return Rule(FilterKind.REPLACE, value, pattern, text)


def pattern_of(kind: str, value: str) -> re.Pattern[str]:
    """Return the expression of a filter: a text in any case, or /REGEX/. Raise BadFilter if it makes no sense."""
    found = _REGEX.fullmatch(value)
    others = _OTHER_FLAGS.fullmatch(value) if found is None else None
    if others is not None:
        raise BadFilter(
            f"The filter '{kind} {value}' has the flags '{others[1]}', and only 'i' is known: write /…/ or /…/i, and "
            "a text that begins with a slash as /\\/…/."
        )
    if found is None:
        if kind == FilterKind.EXTRACT:
            raise BadFilter(f"The filter 'extract {value}' is not a regular expression: write /REGEX/ or /REGEX/i.")
        return re.compile(re.escape(" ".join(value.split())), re.IGNORECASE)
    expression, flag = found.groups()
    try:
        with warnings.catch_warnings(action="ignore"):
            return re.compile(expression, re.IGNORECASE if flag else 0)
    except re.error as error:
        where = "" if error.pos is None else f" at character {error.pos + 1}"
        raise BadFilter(f"The filter '{kind} {value}' is not a regular expression: {error.msg}{where}.") from None


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
