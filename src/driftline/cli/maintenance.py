"""`compact`, `settings`: the upkeep of a store, and its settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import typer

from driftline.cli.options import JsonOption, StoreOption, command_settings, opened
from driftline.cli.output import clean, fields, out, print_json, say, size
from driftline.cli.text_tables import Column, Styled, is_too_wide, print_table
from driftline.plurals import count

if TYPE_CHECKING:
    from driftline.pipeline.reread import RereadVersions
    from driftline.settings import Settings
    from driftline.store.compaction import CompactedStore


_SETTING_COLUMNS = (
    Column(name="setting"),
    Column(name="value", middle=True),
    Column(name="from"),
    Column(name="meaning", style="dim"),
)


def compact(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Make the store smaller.

    Compresses what was added since the last time more tightly, extracts old versions again if the filters of their page
    have changed, and indexes every version for 'driftline search'. Checks can go on meanwhile. A damaged store is not
    changed: see 'driftline doctor'.
    """
    from driftline.cli.progress import counted

    with opened(store, make=False) as watch_list, counted() as show_progress:
        read, done = watch_list.maintenance.compact(show_progress)
    if as_json:
        sizes = fields(done, "contents", "removed", "unreadable", "before", "after", "size")
        print_json({**sizes, "reread": fields(read, "versions", "changed", "unread", "skipped")})
    else:
        _print_compacted(read, done)
    if done.unreadable:
        raise typer.Exit(1)


def settings(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Show every setting, its value and where it is set."""
    from driftline.settings import settings_file

    rows = _setting_rows(command_settings(store=store), store)
    if as_json:
        print_json(rows)
        return
    cells = [_setting_row(row) for row in rows]
    if is_too_wide(_SETTING_COLUMNS, cells):
        _print_setting_blocks(rows)
    else:
        print_table(_SETTING_COLUMNS, cells)
    say((clean(f"Settings file: {settings_file()}"), "dim"), to_stderr=True)


def _print_compacted(read: RereadVersions, done: CompactedStore) -> None:
    if read.versions:
        unread = f"; {read.unread:,} could not be extracted and keep their old text" if read.unread else ""
        say(
            f"Extracted {count(read.versions, 'version')} again; the text of {read.changed:,} is different now{unread}."
        )
    if read.skipped:
        say(
            f"{count(read.skipped, 'version')} took too long or too much memory: run 'driftline compact' again.",
            to_stderr=True,
        )
    say(_compacted(done))
    if done.unreadable:
        say(
            f"{count(done.unreadable, 'body', 'bodies')} cannot be read: run 'driftline doctor'.",
            to_stderr=True,
        )


def _compacted(done: CompactedStore) -> str:
    takes = f"the store takes {size(done.size)}"
    if not done.contents and not done.removed:
        return f"Nothing to compact: {takes}."
    done_now = []
    if done.contents:
        sizes = f"from {size(done.before)} to {size(done.after)}"
        done_now.append(f"compacted {count(done.contents, 'stored text')} {sizes}")
    if done.removed:
        done_now.append(f"removed {count(done.removed, 'stored text')} that no version needs")
    sentence = " and ".join(done_now)
    return f"{sentence[0].upper()}{sentence[1:]}: {takes}."


def _setting_rows(found: Settings, store: str | None) -> list[dict[str, Any]]:
    from driftline.settings import ENVIRONMENT_PREFIX, Settings, settings_file

    rows: list[dict[str, Any]] = []
    environment = {name.lower() for name in os.environ}
    values = found.model_dump(mode="json")
    for name, field in Settings.model_fields.items():
        value = values[name]
        variable = f"{ENVIRONMENT_PREFIX}{name}"
        if name == "store" and store is not None:
            source, place = "option", "--store"
        elif variable.lower() in environment:
            source, place = "environment", variable.upper()
        elif name in found.model_fields_set:
            source, place = "file", str(settings_file())
        else:
            source, place = "default", None
        meaning = field.description or ""
        rows.append({"name": name, "value": value, "source": source, "place": place, "meaning": meaning})
    return rows


def _setting_row(row: dict[str, Any]) -> list[str | Styled]:
    source = Styled(row["source"], "dim" if row["source"] == "default" else "yellow")
    return [row["name"], _shown(row["value"]), source, row["meaning"]]


def _print_setting_blocks(rows: list[dict[str, Any]]) -> None:
    """Print each setting on lines of its own, where a terminal is too narrow for a table: nothing is cut."""
    from textwrap import fill

    for row in rows:
        style = "dim" if row["source"] == "default" else "yellow"
        value = clean(_shown(row["value"]))
        say((row["name"], "bold"), f" = {value}  " if value else " is not set  ", (f"({row['source']})", style))
        say((fill(row["meaning"], out().width, initial_indent="    ", subsequent_indent="    "), "dim"))


def _shown(value: object) -> str:
    if value is None or value == {}:
        return ""
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)
