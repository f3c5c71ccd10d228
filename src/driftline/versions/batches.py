"""Taking many values to the database, as many at a time as it takes."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_Value = TypeVar("_Value")

AT_ONCE = 500  # values that are named in a statement


def in_batches(values: Iterable[_Value], most: int = AT_ONCE) -> Iterator[list[_Value]]:
    """The values in their order, so many at a time."""
    left = iter(values)
    while some := list(islice(left, most)):
        yield some
