"""Explain what is wrong with a setting or an option: what is allowed, and where the value is set."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic_core import ErrorDetails

_ALIKE = 0.7
_ADVICE = {
    "user_agent": "write at least one character, of letters, digits and signs of ASCII",
    "recrawl": "write never, or a time such as 12h, 1d or 2w",
    "budget": "write a text such as '10/s', '600/m' or '20000/d'",
    "host_budget": "write a text such as '10/s', '600/m' or '20000/d'",
    "proxy": "write a text such as 'http://host:port'",
}
_KINDS = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number of a size that is possible",
    "float_parsing": "a number",
    "float_type": "a number",
}
_BOUNDS = {
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "{ge:g} or more",
    "less_than": "less than {lt:g}",
    "less_than_equal": "{le:g} or less",
}
_OWN = ("rate", "parameter", "network", "proxy", "host", "tag")  # errors of our own, which say what is allowed


def path_of(error: ErrorDetails) -> list[str]:
    """Return the name of the setting that an error is about, and within a section the names below it."""
    return [part for part in error["loc"] if isinstance(part, str) and part != "[key]"]


def explain(error: ErrorDetails, schema: Mapping[str, Any], place: str) -> str:
    """Return what is wrong with a setting, given the JSON schema of all settings and the `place` where it is set."""
    section, *rest = path_of(error)
    name = ".".join([section, *rest])
    if error["type"] == "extra_forbidden":
        if not rest:
            return f"There is no setting '{name}' ({place} sets it): {_nearest_setting(name, schema['properties'])}."
        quoted = "" if section == "tags" else ', and a name with dots stands in quotes, as [hosts."a.example"]'
        return f"There is no setting '{name}' ({place} sets it): {section} have delay, connections and robots{quoted}."
    if error["type"] in ("dict_type", "model_type"):
        allowed = f"it is a section, as [{section}.name], with settings of its own"
    elif error["type"] in _OWN:
        allowed = error["msg"]
    else:
        allowed = _ADVICE.get(name) or f"write {_allowed(_schema_of([section, *rest], schema))}"
    return f"The setting '{name}' is not valid: {allowed} ({place} has {error['input']!r})."


def explain_option(error: ErrorDetails) -> str:
    """Return what is wrong with the value of an option that the command line checks by itself."""
    kind = error["type"]
    if kind in _BOUNDS:
        return f"{error['input']!r} is not {_BOUNDS[kind].format(**error['ctx'])}"
    return f"{error['input']!r} is not {_KINDS[kind]}" if kind in _KINDS else error["msg"]


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that a misspelled one is likely to mean; None if it is like none of them."""
    return next(iter(get_close_matches(name, list(names), 1, _ALIKE)), None)


def _nearest_setting(name: str, names: Iterable[str]) -> str:
    near = nearest(name, names)
    return f"perhaps '{near}' is meant" if near else "'driftline settings' lists those that there are"


def _schema_of(path: list[str], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = schema["properties"][path[0]]
    if len(path) > 1 and "additionalProperties" in found:
        section = found["additionalProperties"]["$ref"].rpartition("/")[2]
        found = schema["$defs"][section]["properties"][path[-1]]
    return next((one for one in found.get("anyOf", ()) if one["type"] != "null"), found)


def _allowed(schema: Mapping[str, Any]) -> str:
    """Return the values that a part of a JSON schema allows, in words."""
    if "enum" in schema:
        *others, last = schema["enum"]
        return f"{', '.join(others)} or {last}"
    if schema["type"] in ("integer", "number"):
        return _number(schema)
    return {"boolean": "true or false", "array": "a list of texts"}.get(schema["type"], "a text")


def _number(schema: Mapping[str, Any]) -> str:
    noun = "number"
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    if schema["type"] == "integer":
        noun = "whole number"
        low, above = (low if above is None else above + 1), None
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f"a {noun} from {low} to {high}"
    bounds = [f"{low} or more"] if low is not None else [f"more than {above}"] if above is not None else []
    bounds += [f"less than {below}"] if below is not None else []
    return f"a {noun}{' of ' if bounds else ''}{' and '.join(bounds)}"
