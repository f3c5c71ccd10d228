"""`check`: one run over the watched pages."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.api import workspace_of
from driftline.cli.help_panels import PIPELINE
from driftline.cli.options import (
    HostConnectionsOption,
    HostDelayOption,
    JsonOption,
    MinOption,
    NetworksOption,
    RobotsOption,
    StallOption,
    StoreOption,
    TagOption,
    opened,
    pages_with,
)
from driftline.cli.output import (
    EVENT_STYLES,
    NOTHING_YET,
    clean,
    event_lines,
    fields,
    local_time,
    print_json,
    remark,
    say,
    size,
    suggest_commands,
)
from driftline.errors import DriftlineError, UsageError
from driftline.model.event import EventKind
from driftline.plurals import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.api.watch_list import Driftline
    from driftline.cli.progress import Progress
    from driftline.pipeline.check_run import Report
    from driftline.pipeline.plan import Plan

_NAMED = 10  # pages listed of each kind
_PIPELINES = "two-section|three-section|sequential"
_REPORTED = (
    "pages", "new", "changed", "minor", "unchanged", "noisy", "failed", "left", "seconds", "effective_ms", "bytes",
    "pipeline", "producers", "slots", "consumers", "comparers", "continued", "quiet",
)  # fmt: skip

_EVENT_FIELDS = ("event", "at", "host", "urls", "ids", "kind", "importance", "score", "headline", "reason")
_NO_ID = " " * 8  # in the column of the ids of changes


def check(
    urls: Annotated[
        list[str] | None,
        typer.Argument(metavar="URL", help="Check only these pages. [default: all]", show_default=False),
    ] = None,
    tag: TagOption = None,
    every_one: Annotated[
        bool, typer.Option("--all", help="List every page that changed or failed, not only the first ten.")
    ] = False,
    min_importance: MinOption = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Check all pages again instead of continuing an interrupted check.")
    ] = False,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept", help="Record what the server sends even if it looks like an error page or a login form."
        ),
    ] = False,
    host_delay: HostDelayOption = None,
    host_connections: HostConnectionsOption = None,
    robots: RobotsOption = None,
    allow_network: NetworksOption = None,
    pipeline: Annotated[
        str, typer.Option(metavar=_PIPELINES, help="How threads share the work.", rich_help_panel=PIPELINE)
    ] = "two-section",
    producers: Annotated[
        str, typer.Option(metavar="N|auto", help="Threads that fetch.", rich_help_panel=PIPELINE)
    ] = "auto",
    slots: Annotated[
        str, typer.Option(metavar="S|auto", help="Transfers in flight per producer.", rich_help_panel=PIPELINE)
    ] = "auto",
    consumers: Annotated[
        str, typer.Option(metavar="M|auto", help="Threads that take documents to compare.", rich_help_panel=PIPELINE)
    ] = "auto",
    comparers: Annotated[
        str,
        typer.Option(
            metavar="K|auto", help="Threads that only compare (three-section pipeline).", rich_help_panel=PIPELINE
        ),
    ] = "auto",
    queues: Annotated[
        int, typer.Option(metavar="Q", help="Document queues (two-section pipeline).", rich_help_panel=PIPELINE)
    ] = 1,
    capacity: Annotated[
        int | None,
        typer.Option(
            metavar="C", help="Documents that the queue holds. [default: 500]", show_default=False,
            rich_help_panel=PIPELINE,
        ),
    ] = None,
    stall_after: StallOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Check pages once and show what changed.

    A change has an id, such as 12-5: give it to 'driftline diff', 'show' or 'feedback'.

    If another 'driftline run' or 'check' is using the same store, wait for it for up to a minute.
    """
    from driftline.pipeline.plan import PipelineName, Plan, parse_count

    name: PipelineName = pipeline  # type: ignore[assignment]  # Plan says what the choices are
    plan = Plan(
        pipeline=name, producers=parse_count("producers", producers), slots=parse_count("slots", slots),
        consumers=parse_count("consumers", consumers), comparers=parse_count("comparers", comparers),
        queues=queues, capacity=500 if capacity is None else capacity,
    )  # fmt: skip
    if urls and tag is not None:
        raise UsageError("Give either URLs or --tag, not both.")
    if accept and not urls:
        raise UsageError("Which pages? Give their URLs together with --accept.")
    polite: dict[str, Any] = {"host_delay": host_delay, "host_connections": host_connections, "robots": robots}
    polite |= {"stall_after": stall_after, "min_importance": min_importance}
    with opened(store, allow_networks=allow_network, make=False, patient=True, **polite) as watch_list:
        if capacity is None:
            plan = replace(plan, capacity=watch_list.settings.capacity)
        chosen = _chosen(watch_list, urls, tag)
        if accept and chosen:
            new = [page.url for page in workspace_of(watch_list).catalog.find_all(urls or ()) if not page.checks]
            if new:
                raise UsageError(f"{new[0]} was never checked: check it without --accept first, to see what it says.")
            workspace_of(watch_list).catalog.accept(chosen)
        report, progress = run_check(watch_list, chosen, plan, fresh=fresh)
    if as_json:
        print_json(_as_json(report, plan))
    else:
        _summarise(report, None if every_one else _NAMED)
        suggest_commands(report.events)
    if report.quiet:
        _print_postponed(report)
    if report.left and (progress.stopped or not report.quiet):
        say(f"Stopped: {count(report.left, 'page')} left. Run the same command to continue.", to_stderr=True)
        raise typer.Exit(1)


def _chosen(watch_list: Driftline, urls: Sequence[str] | None, tag: str | None) -> list[int] | None:
    if urls:
        return [page.id for page in workspace_of(watch_list).catalog.find_all(urls)]
    return None if tag is None else [page.id for page in pages_with(watch_list, tag)]


def run_check(
    watch_list: Driftline, page_ids: list[int] | None, plan: Plan | None = None, *, fresh: bool = False,
    patience: float = 60.0,
) -> tuple[Report, Progress]:  # fmt: skip
    """Check pages once, or all if None, with a progress bar. Another process that checks is waited for so many seconds.

    The first Ctrl-C stops the check gently. Raise StoreBusy if another process still checks.
    """
    from driftline.cli.progress import Progress, TerminalBar, print_slow_host, stopped_by_signal
    from driftline.pipeline.stop import Stop
    from driftline.watch.service import retry_while_busy

    workspace = workspace_of(watch_list)
    stop = Stop()
    with stopped_by_signal(workspace, stop), TerminalBar() as bar:
        progress = Progress(bar)
        check = partial(
            workspace.runs.check, page_ids, plan=plan, fresh=fresh, stop=stop, recorded=progress.recorded,
            started=progress.begun, slow=print_slow_host,
        )  # fmt: skip
        report = retry_while_busy(check, stop, workspace.runs.be_next, remark, patience=patience)
    progress.stopped = stop.requested
    if not progress.total and not report.blocked and not stop.requested:
        raise DriftlineError(NOTHING_YET)
    return report, progress


def _summarise(report: Report, most: int | None) -> None:
    """Print what was found, and at most so many pages of each kind; None means all of them."""
    for kind, style in EVENT_STYLES.items():
        events = [event for event in report.events if event.event is kind]
        for event in events[:most]:
            for line in event_lines(event, most=most):
                say(*line)
        _print_more(len(events), kind, style, most)
    reported = {url for event in report.events if event.event is EventKind.FAILING for url in event.urls}
    failures = [(one.url, one.failure) for one in report.failures if one.url not in reported]
    for url, failure in failures[:most]:
        say((f"{'failed':<10}", "red"), _NO_ID, clean(url), "  ", (clean(failure.sentence), "dim"))
    _print_more(len(failures), "failed", "red", most)
    for page in report.blocked[:most]:
        say((f"{'blocked':<10}", "red"), _NO_ID, clean(page.url), "  ", (clean(page.reason), "dim"))
    _print_more(len(report.blocked), "blocked", "red", most)
    found = [(report.new, "new", "cyan"), (report.changed, "changed", "yellow")]
    found += [(report.unchanged, "unchanged", "green"), (report.failed, "failed", "red")]
    parts: list[str | tuple[str, str]] = []
    for number, word, style in found:
        parts += [", " if parts else "", (f"{number:,} {word}", style if number else "")]
        if word == "changed" and report.minor:
            parts.append(f" ({report.minor:,} minor)")
    if report.blocked:
        parts.append(f"; {len(report.blocked):,} blocked, not fetched")
    if report.noisy:
        parts.append(f"; noise on {report.noisy:,} of the unchanged")
    say(
        f"{count(report.pages, 'page')} in {_seconds(report.seconds)}: ", *parts, " ",
        (f"({_three_digits(report.effective_ms)} ms a page, {size(report.bytes)})", "dim"),
    )  # fmt: skip


def _print_postponed(report: Report) -> None:
    """Print which hosts sent Retry-After, so that their other pages were not fetched."""
    for host, until in report.quiet.items():
        say(clean(f"{host} asked us to slow down (Retry-After) until {local_time(until)}."), to_stderr=True)
    say(f"{count(report.left, 'page')} postponed: run 'driftline check' again after that.", to_stderr=True)


def _print_more(found: int, word: str, style: str, most: int | None) -> None:
    if most is not None and found > most:
        say((f"{word:<10}", style), _NO_ID, f"… and {found - most:,} more: list them with --all")


def _three_digits(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _seconds(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds} s"


def _as_json(report: Report, plan: Plan) -> dict[str, Any]:
    from driftline.store.events import event_document

    changed = ("id", "url", "kind", "importance", "score", "reason", "from_version", "to_version", "headline")
    events = [event_document(event) for event in report.events]
    return {
        **fields(report, *_REPORTED),
        "queues": plan.queues,
        "queue_statistics": [asdict(statistics) for statistics in report.queues],
        "resources": [asdict(use) for use in report.resources],
        "changes": [fields(change, *changed) for change in report.changes],
        "events": [{name: event[name] for name in _EVENT_FIELDS} for event in events],
        "blocked": [page._asdict() for page in report.blocked],
        "failures": [
            {"url": one.url, "kind": one.failure.kind, "reason": one.failure.sentence} for one in report.failures
        ],
    }
