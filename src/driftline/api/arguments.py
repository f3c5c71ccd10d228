"""Checking what a program passes to the library, with errors that say how to write it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from driftline.errors import UsageError
from driftline.model.page import Render

if TYPE_CHECKING:
    from driftline.model.page import Filter

_PAIR = '("select", "main")'


def check_urls(method: str, urls: Iterable[object]) -> None:
    """Raise UsageError unless every address is a string; a list of them has to be unpacked."""
    for url in urls:
        if isinstance(url, Iterable) and not isinstance(url, str | bytes):
            raise UsageError(f"{method} takes addresses one by one: write {method}(*urls) for a list of them.")
        if not isinstance(url, str):
            raise UsageError(f"{method} takes addresses as strings, not {url!r}.")


def check_lists(**given: object) -> None:
    """Raise UsageError unless each is a list of strings: a plain string would be taken for a list of its letters."""
    for name, values in given.items():
        if isinstance(values, str):
            raise UsageError(f"{name} takes a list: write {name}=[{values!r}].")
        if not isinstance(values, Collection) or not all(isinstance(value, str) for value in values):
            raise UsageError(f"{name} takes a list of strings, not {values!r}.")


def check_number(name: str, value: object, least: int = 0) -> None:
    """Raise UsageError unless this is None or a whole number of at least `least`."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        raise UsageError(f"{name} takes a whole number, {least} or more, not {value!r}.")


def read_filters(filters: object) -> list[Filter]:
    """Return filters as they are stored; UsageError unless they are a list of pairs of a kind and a value."""
    from driftline.detection.extract.filters import check_filters

    if isinstance(filters, str) or not isinstance(filters, Iterable):
        raise UsageError(f"filters takes a list of pairs: write filters=[{_PAIR}].")
    pairs = list(filters)
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Iterable):
            raise UsageError(f"A filter is a pair of a kind and a value: write filters=[{_PAIR}].")
        kind_and_value = list(pair)
        if len(kind_and_value) != 2 or not all(isinstance(part, str) for part in kind_and_value):
            raise UsageError(f"A filter is a pair of a kind and a value, both strings, as {_PAIR}, not {pair!r}.")
    return check_filters(pairs)


def check_render(render: object) -> None:
    """Raise UsageError if this is no `Render`, or BadSetting if something in it is wrong; None is fine."""
    if render is None:
        return
    from driftline.fetch.browser.steps import check_selector, check_steps

    if not isinstance(render, Render):
        raise UsageError(f"render takes a driftline.Render, such as Render(wait_for='main'), not {render!r}.")
    check_lists(steps=render.steps)
    check_steps(render.steps)
    check_selector(render.wait_for or "")


def store_name(store: object) -> str | None:
    """Return the path or URL of a store as a string; UsageError if it is neither."""
    if store is None or isinstance(store, str):
        return store
    if isinstance(store, os.PathLike):
        path = os.fspath(store)
        return os.fsdecode(path)
    raise UsageError(f"A store is named by a path or a postgresql:// URL, not by {store!r}.")
