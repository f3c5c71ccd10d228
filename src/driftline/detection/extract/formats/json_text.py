"""JSON, one line for each value with its path, such as `$.items[id=7].price: 12.5`.

The elements of an array are named by an identifier where they have one, so that an insertion does not rename those that
follow. The order of keys means nothing, that of an array does.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from driftline.detection.extract.filters import JSON, failed_selection, nothing_selected, refuse_others
from driftline.detection.extract.formats.base import FormattedText, bounded, folded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from driftline.detection.extract.filters import Selector

    _Places: TypeAlias = frozenset[tuple[str | int, ...]]

_NAME = re.compile(r"[^\W\d][\w-]*")
_NO_TEXT = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_IDENTIFIERS = ("id", "_id", "@id", "uuid", "guid", "key", "code", "sku", "slug", "name", "url", "href", "title")
_LONGEST_IDENTIFIER = 100  # characters
_DEEPEST = 60  # levels: deeper values are written as JSON, on one line


class _Number(float):
    """A number that is shown as it was written, with all its digits."""

    __slots__ = ("written",)
    written: str

    def __new__(cls, written: str) -> Self:
        number = super().__new__(cls, written)
        number.written = written
        return number


def render(text: str, kind: str, steps: Sequence[Selector]) -> FormattedText | None:
    """Return the lines of a JSON document, or of one with a JSON value on every line; None if it is neither."""
    try:
        document = _parse(text)
        refuse_others(steps, (JSON,), kind)
        chosen = [(step, _places(document, step)) for step in steps if step.language == JSON]
        selects = [step for step, _ in chosen if not step.drops]
        if selects and not any(places for step, places in chosen if not step.drops):
            raise nothing_selected(selects)
        in_order, by_name = (bounded(_Walk(chosen, by_name=one).lines(document)) for one in (False, True))
    except (ValueError, RecursionError):
        return None
    return None if in_order is None else FormattedText(lines=in_order, compared=by_name)


def _parse(text: str) -> Any:
    read = json.JSONDecoder(parse_float=_Number, parse_int=_Number, parse_constant=str).decode
    text = text.removeprefix("\ufeff").strip()
    try:
        return read(text)
    except ValueError:
        lines = text.splitlines()
        if len(lines) < 2:
            raise
        return [read(line) for line in lines if line.strip()]


def _places(document: Any, step: Selector) -> _Places:
    """Return the locations in the document that the expression matches."""
    from jsonpath import JSONPathError, finditer

    try:
        return frozenset(tuple(match.parts) for match in finditer(step.expression, document))
    except JSONPathError as error:
        raise failed_selection(step, error) from None


class _Walk:
    """Walks a document without what filters leave out; keys in their order, or sorted by name."""

    def __init__(self, chosen: Sequence[tuple[Selector, _Places]], *, by_name: bool) -> None:
        self._selects = any(not step.drops for step, _ in chosen)
        self._selected, self._dropped = (
            frozenset[tuple[str | int, ...]]().union(*(places for step, places in chosen if step.drops is dropping))
            for dropping in (False, True)
        )
        self._by_name = by_name

    def lines(self, document: Any) -> Iterator[str]:
        """Return the lines of the document."""
        return self._lines(document, "$", (), wanted=not self._selects)

    def _lines(self, value: Any, path: str, place: tuple[str | int, ...], *, wanted: bool) -> Iterator[str]:
        """Yield the lines of a value; it is `wanted` if a value that it is part of is selected."""
        if place in self._dropped:
            return
        wanted = wanted or place in self._selected
        if isinstance(value, dict) and value and len(place) < _DEEPEST:
            for key, child in sorted(value.items()) if self._by_name else value.items():
                yield from self._lines(child, f"{path}{_step_to(key)}", (*place, key), wanted=wanted)
        elif isinstance(value, list) and value and len(place) < _DEEPEST:
            for number, (label, child) in enumerate(zip(_labels(value), value, strict=True)):
                yield from self._lines(child, f"{path}[{label}]", (*place, number), wanted=wanted)
        elif wanted:
            yield f"{path}: {_shown(value)}"


def _step_to(key: str) -> str:
    if _NAME.fullmatch(key):
        return f".{key}"
    escaped = folded(key).replace("\\", "\\\\").replace("'", "\\'")
    return f"['{escaped}']"


def _labels(values: list[Any]) -> list[str]:
    """Return labels for the elements of an array: their identifiers, else their numbers, `*` for plain values."""
    if not any(isinstance(value, dict | list) for value in values):
        return ["*"] * len(values)
    if all(isinstance(value, dict) for value in values):
        for name in _IDENTIFIERS:
            labels = [_identity(value.get(name)) for value in values]
            if all(labels) and len(set(labels)) == len(labels):
                return [f"{name}={label}" for label in labels]
    return [str(number) for number in range(len(values))]


def _identity(value: Any) -> str:
    if isinstance(value, str | _Number):
        label = _shown(value)
        return label if len(label) <= _LONGEST_IDENTIFIER else ""
    return ""


def _shown(value: Any) -> str:
    if isinstance(value, str):
        # quotes distinguish a text from a number or constant that reads the same
        return json.dumps(value) if not value or _NO_TEXT.fullmatch(value) else folded(value) or '""'
    if isinstance(value, _Number):
        return value.written
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
