"""Checking what a program passes to the library, with errors that say how to write it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from driftline.errors import UsageError
from driftline.model.change import Importance
from driftline.model.page import Render

if TYPE_CHECKING:
    from driftline.model.page import Filter

_PAIR = '("select", "main")'
_MOST = 2**63 - 1  # the largest number that a database takes
_LONGEST_SHOWN = 80  # characters of a wrong value


def check_urls(method: str, urls: Iterable[object]) -> None:
    """Raise UsageError unless every address is a string; a list of them has to be unpacked."""
    for url in urls:
        if isinstance(url, Iterable) and not isinstance(url, str | bytes):
            raise UsageError(f"{method} takes addresses one by one: write {method}(*urls) for a list of them.")
        if not isinstance(url, str):
            raise UsageError(f"{method} takes addresses as strings, not {_shown(url)}.")


def check_lists(**given: object) -> None:
    """Raise UsageError unless each is a list of strings: a plain string would be taken for a list of its letters."""
    for name, values in given.items():
        if isinstance(values, str):
            raise UsageError(f"{name} takes a list: write {name}=[{_shown(values)}].")
        if not isinstance(values, Collection) or not all(isinstance(value, str) for value in values):
            raise UsageError(f"{name} takes a list of strings, not {_shown(values)}.")
        for value in values:
            check_texts(**{name: value})


def check_number(name: str, value: object, least: int = 0) -> None:
    """Raise UsageError unless this is None or a whole number of at least `least`."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        raise UsageError(f"{name} takes a whole number, {least} or more, not {_shown(value)}.")


def capped(number: int) -> int:
    """Return a number that a database takes: this one, or the largest, which is more than it has of anything."""
    return min(number, _MOST)


def check_texts(*, optional: bool = False, **given: object) -> None:
    """Raise UsageError unless each is a text that can be stored; with `optional`, None is fine too."""
    for name, value in given.items():
        if value is None and optional:
            continue
        if not isinstance(value, str):
            raise UsageError(f"{name} takes a text, not {_shown(value)}.")
        if "\0" in value or not _is_encodable(value):
            raise UsageError(f"{name} takes a text without NUL and without bytes that are not UTF-8: {_shown(value)}.")


def check_flags(*, optional: bool = False, **given: object) -> None:
    """Raise UsageError unless each is True or False; with `optional`, None is fine too."""
    for name, value in given.items():
        if not isinstance(value, bool) and not (value is None and optional):
            raise UsageError(f"{name} takes True or False, not {_shown(value)}.")


def least_importance(given: object, usual: str) -> Importance:
    """Return how important what is reported must be, the `usual` for None; UsageError unless important or minor."""
    chosen = usual if given is None else given
    found = [one for one in (Importance.IMPORTANT, Importance.MINOR) if one == chosen]
    if not found:
        raise UsageError(f"min_importance takes 'important' or 'minor', not {_shown(given)}.")
    return found[0]


def check_progress(progress: object) -> None:
    """Raise UsageError unless this is None or can be called."""
    if progress is not None and not isinstance(progress, Callable):  # type: ignore[arg-type]
        raise UsageError(f"progress takes a function of two numbers, done and total, not {_shown(progress)}.")


def check_run(*, plan: object = None, stop: object = None, progress: object = None) -> None:
    """Raise UsageError unless these are what a run takes: a `Plan`, a `Stop`, a function; None is fine for each."""
    from driftline.pipeline.plan import Plan
    from driftline.pipeline.stop import Stop

    for name, value, kind in (("plan", plan, Plan), ("stop", stop, Stop)):
        if value is not None and not isinstance(value, kind):
            raise UsageError(f"{name} takes a driftline.{kind.__name__}, not {_shown(value)}.")
    check_progress(progress)


def path_text(name: str, path: object) -> str:
    """Return a path as a text; UsageError if it is none, or cannot be one."""
    text = os.fsdecode(path) if isinstance(path, str | os.PathLike) else ""
    if not text or "\0" in text:
        raise UsageError(f"{name} takes the path of a file, not {_shown(path)}.")
    return text


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
            raise UsageError(f"A filter is a pair of a kind and a value, both strings, as {_PAIR}, not {_shown(pair)}.")
    return check_filters(pairs)


def check_render(render: object) -> None:
    """Raise UsageError if this is no `Render`, or BadSetting if something in it is wrong; None is fine."""
    if render is None:
        return
    from driftline.fetch.browser.steps import check_selector, check_steps

    if not isinstance(render, Render):
        raise UsageError(f"render takes a driftline.Render, such as Render(wait_for='main'), not {_shown(render)}.")
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
    raise UsageError(f"A store is named by a path or a postgresql:// URL, not by {_shown(store)}.")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(value: object) -> str:
    """Return a wrong value as it is written in Python, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python does not write numbers of thousands of digits
        text = "a number of thousands of digits"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
