"""`compact`, `doctor`, `settings`: keep the store small, see if everything is well, and how it is set."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.options import JsonOption, StoreOption, command_settings, opened
from driftline.cli.output import clean, clean_lines, count, fields, print_json, say, size
from driftline.cli.text_tables import Column, Styled, print_table

if TYPE_CHECKING:
    from driftline.cli.doctor import Diagnosis
    from driftline.pipeline.reread import Reread
    from driftline.settings import Settings
    from driftline.store.compaction import Compacted


def compact(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Make the store smaller: compress again, at a high level, what was kept since the last time. Checks may go on.

    Versions that were read through other filters, or by an older Driftline, are read anew before, and all are indexed
    for searching. A store that is damaged is left as it is: see 'driftline doctor'.
    """
    from driftline.cli.progress import counted

    with opened(store, make=False) as watch_list, counted() as told:
        read, done = watch_list.compact(told)
    if as_json:
        sizes = fields(done, "contents", "removed", "unreadable", "before", "after", "size")
        print_json({**sizes, "reread": fields(read, "versions", "changed", "unread", "skipped")})
    else:
        _print_compacted(read, done)
    if done.unreadable:
        raise typer.Exit(1)


def doctor(
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Do not read the whole store, which takes a minute or two for a million pages."),
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the store, the settings and what Driftline needs. Every version is read back and compared to the byte."""
    from driftline.cli.doctor import examine

    findings = examine(store, quick=quick)
    broken = [finding for finding in findings if not finding.well]
    if as_json:
        rows = [{"what": finding.what, "ok": finding.well, "detail": finding.detail} for finding in findings]
        print_json({"ok": not broken, "checks": rows})
    else:
        for finding in findings:
            _print_finding(finding)
    if broken:
        raise typer.Exit(1)


def settings(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Show every setting, its value and where it came from."""
    from driftline.settings import settings_file

    rows = _setting_rows(command_settings(store=store), store)
    if as_json:
        print_json(rows)
        return
    columns = (
        Column(name="setting"),
        Column(name="value", least=20, keep=1, middle=True),
        Column(name="from"),
        Column(name="meaning", least=20, optional=True, style="dim"),
    )
    print_table(columns, [_setting_row(row) for row in rows])
    say((clean(f"Settings file: {settings_file()}"), "dim"), to_stderr=True)


def _print_compacted(read: Reread, done: Compacted) -> None:
    if read.versions:
        unread = f"; {read.unread:,} could not be, and stay as they were" if read.unread else ""
        say(f"Read {count(read.versions, 'version')} anew, {read.changed:,} of them with another text now{unread}.")
    if read.skipped:
        say(f"{count(read.skipped, 'version')} took too long or too much memory to read: try again.", to_stderr=True)
    say(_compacted(done))
    if done.unreadable:
        say(f"{count(done.unreadable, 'content')} cannot be read: run 'driftline doctor'.", to_stderr=True)


def _compacted(done: Compacted) -> str:
    takes = f"the store takes {size(done.size)}."
    if not done.contents and not done.removed:
        return f"There was nothing to do: {takes}"
    removed = f" and removed {done.removed:,} that no version needs" if done.removed else ""
    sizes = f" from {size(done.before)} to {size(done.after)}" if done.contents else ""
    return f"Compacted {count(done.contents, 'content')}{sizes}{removed}: {takes}"


def _print_finding(finding: Diagnosis) -> None:
    mark = ("✓ ", "green") if finding.well else ("✗ ", "red")
    say(mark, clean_lines(f"{finding.what}: {finding.detail}"))


def _setting_rows(found: Settings, store: str | None) -> list[dict[str, Any]]:
    from driftline.settings import Settings, settings_file

    rows: list[dict[str, Any]] = []
    prefix = Settings.model_config.get("env_prefix", "")
    environment = {name.lower() for name in os.environ}
    values = found.model_dump(mode="json")
    for name, field in Settings.model_fields.items():
        value = values[name]
        variable = f"{prefix}{name}"
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


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)
