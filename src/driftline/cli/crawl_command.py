"""`crawl`: find the pages of a whole site."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.api import workspace_of
from driftline.cli.options import (
    HostConnectionsOption,
    HostDelayOption,
    JsonOption,
    NetworksOption,
    RobotsOption,
    StoreOption,
    opened,
)
from driftline.cli.output import clean, fields, local_time, print_json, say, size
from driftline.cli.text_tables import Column, print_table
from driftline.errors import DriftlineError, UsageError
from driftline.plurals import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.api.watch_list import Driftline
    from driftline.crawl.crawl_options import Options
    from driftline.crawl.report import CrawlReport

_NAMED = 5  # URLs listed of each kind
_COLUMNS = (
    Column(name=""),
    Column(name="count", right=True),
    Column(name="for example", least=30, optional=True, middle=True, style="dim"),
)


def crawl(
    seeds: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="URL", show_default=False,
            help="Where to start. [default: every site crawled with --watch before]",
        ),
    ] = None,
    scope: Annotated[
        str,
        typer.Option(
            metavar="host|domain|prefix",
            help="How far to go: the host of the start URL, its domain with subdomains, or its folder.",
        ),
    ] = "host",
    include: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Only URLs such as /blog/*; may be repeated.",
                     show_default=False),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="No URLs such as */print/*; may be repeated.",
                     show_default=False),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(metavar="N", help="Follow at most N links in a row. [default: no limit]", show_default=False),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(metavar="N", help="Fetch at most N pages; the same command continues. [default: 1,000,000]",
                     show_default=False),
    ] = None,
    keywords: Annotated[
        list[str] | None,
        typer.Option(metavar="WORDS", help="Fetch pages about these words first, separated by commas.",
                     show_default=False),
    ] = None,
    watch: Annotated[
        bool | None,
        typer.Option(
            "--watch/--no-watch",
            help="Watch the pages found; later crawls report which are new, gone or moved.",
            show_default=False,
        ),
    ] = None,
    tag: Annotated[
        str | None,
        typer.Option(metavar="TAG", help="Tag of the watched pages. [default: the host of the first URL]",
                     show_default=False),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(metavar="TIME", show_default=False,
                     help="How often 'driftline run' crawls a watched site again. [default: 1d]"),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over instead of continuing an interrupted crawl.")
    ] = False,
    every_one: Annotated[bool, typer.Option("--all", help="List every URL, not only the first few.")] = False,
    host_delay: HostDelayOption = None,
    host_connections: HostConnectionsOption = None,
    robots: RobotsOption = None,
    allow_network: NetworksOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Find the pages of a site by its links, sitemaps and feeds."""
    from driftline.api.watch_list import default_tag
    from driftline.crawl.crawl_options import Options
    from driftline.urls.canonical import canonical

    if tag is not None and not watch:
        raise UsageError("--tag needs --watch.")
    if every is not None and not watch:
        raise UsageError("--every needs --watch.")
    for seed in seeds or ():
        canonical(seed)  # refuse bad URLs before a store is created
    if watch and tag is None and seeds:
        tag = default_tag(seeds[0])
    given = Options(
        within=scope, include=tuple(include or ()), exclude=tuple(exclude or ()), depth=depth,
        keywords=tuple(keywords or ()), tag=tag, unwatched=watch is False, every=every, most=most,
    )  # fmt: skip
    polite: dict[str, Any] = {"host_delay": host_delay, "host_connections": host_connections, "robots": robots}
    with opened(store, allow_networks=allow_network, patient=True, **polite) as watch_list:
        wanted = [(seeds or [], given)] if seeds else _kept(watch_list)
        reports: list[CrawlReport] = []
        stopped = False
        for some, options in wanted:
            options = options if most is None else replace(options, most=most)
            report, stopped = _crawled(watch_list, some, options, fresh=fresh)
            reports.append(report)
            if not as_json:
                _summarise(report, None if every_one else _NAMED)
            if stopped:
                break
    if as_json:
        found = [_as_json(report) for report in reports]
        print_json(found[0] if seeds else found)
    _print_remarks(reports)
    if stopped:
        raise typer.Exit(1)


def _kept(watch_list: Driftline) -> list[tuple[list[str], Options]]:
    """Return the watched sites, each with its crawl options."""
    from driftline.crawl.crawl_options import Options

    kept = watch_list.schedule.sites()
    if not kept:
        raise UsageError("No site is watched yet: start with 'driftline crawl URL --watch'.")
    return [(site.seeds, Options.of_kept(site.options, site.tag)) for site in kept]


def _crawled(
    watch_list: Driftline, seeds: Sequence[str], options: Options, *, fresh: bool
) -> tuple[CrawlReport, bool]:  # fmt: skip
    from driftline.cli.progress import CrawlProgress, TerminalBar, stopped_by_signal
    from driftline.pipeline.stop import Stop

    workspace = workspace_of(watch_list)
    stop = Stop()
    with stopped_by_signal(workspace, stop), TerminalBar() as bar:
        progress = CrawlProgress(bar)
        report = workspace.runs.crawl(
            seeds, options, fresh=fresh, stop=stop, started=progress.begun, recorded=progress.recorded
        )
    return report, stop.requested


def _summarise(report: CrawlReport, most: int | None) -> None:
    """Print what was found as a table, then the differences from the last crawl."""
    from driftline.crawl.report import skipped_in_words

    rows = [
        ("found", report.found, report.new),
        ("fetched", report.fetched, []),
        ("pages", report.pages, []),
        ("not fetched, unmodified by sitemap", report.unmodified, []),
        ("redirects", report.redirects, []),
        ("same as another page", len(report.duplicates), [f"{one.url} = {one.like}" for one in report.duplicates]),
        ("nearly the same", len(report.near), [f"{one.url} ≈ {one.like}" for one in report.near]),
        ("error pages sent with status 200", len(report.soft), report.soft),
        ("failed", len(report.failed), [f"{url}  {why}" for url, why in report.failed]),
        ("gone, reported before", report.gone_before, []),
        ("unreadable sitemaps and feeds", len(report.unread_lists), []),
        ("added to the watch list", report.watched, []),
    ]
    rows += [(f"skipped, {why}", one.count, one.examples) for why, one in skipped_in_words(report).items()]
    shown = [(name, many, some) for name, many, some in rows if many or name in ("found", "fetched", "pages")]
    print_table(_COLUMNS, [(name, f"{many:,}", some[0] if some else "") for name, many, some in shown])
    if report.number > 1:
        reasons = {change.url: f"  {change.reason}" for change in report.changes}
        changed = [f"{url}{reasons.get(url, '')}" for url in report.changed]
        news = [("new", "cyan", report.new), ("gone", "red", report.gone), ("changed", "yellow", changed)]
        news.append(("moved", "magenta", [f"{one.url} → {one.to}" for one in report.moved]))
        for word, style, urls in news:
            _print_some(word, style, urls, most)
        if not any(urls for _, _, urls in news):
            say("Nothing is new, gone, moved or changed since the last crawl.")
    elif most is None:
        _print_some("found", "cyan", report.new, None)
    if report.best:
        best = [f"{url}  {score:.2f}" for url, score in report.best]
        _print_some("best", "green", best, _NAMED if most is not None else None)
    _print_some("unread", "red", [f"{url}  {why}" for url, why in report.unread_lists], most)
    lists = f"{count(report.sitemaps, 'sitemap')}, {count(report.feeds, 'feed')}"
    say(
        f"Fetched {count(report.fetched_now, 'page')} in {report.seconds:.1f} s ",
        (f"({report.pages_per_s:,.0f} per second, {size(report.bytes)}, {lists})", "dim"),
    )


def _print_some(word: str, style: str, urls: Sequence[str], most: int | None) -> None:
    for url in urls[:most]:
        say((f"{word:<8}", style), clean(url))
    if most is not None and len(urls) > most:
        say((f"{word:<8}", style), f"… and {len(urls) - most:,} more: list them with --all")


def _print_remarks(reports: Sequence[CrawlReport]) -> None:
    """Print what is left to crawl; raise DriftlineError with the reason if a crawl found nothing."""
    from driftline.model.page import SkipReason

    for report in reports:
        for host, until in report.quiet.items():
            text = f"{host} asked us to slow down (Retry-After): crawl it again after {local_time(until)}."
            say(clean(text), to_stderr=True)
    for report in reports:
        if SkipReason.QUEUE_FULL in report.skipped:
            many = count(report.skipped[SkipReason.QUEUE_FULL].count, "URL")
            say(f"{many} not followed because the queue is full: crawl again, or raise --most.", to_stderr=True)
    left = sum(report.left for report in reports)
    limit = max((report.limit for report in reports if report.limit is not None), default=None)
    if left:
        why = "" if limit is None else f" after the limit of {count(limit, 'page')} (--most)"
        say(f"{count(left, 'URL')} left{why}: run the same command to continue.", to_stderr=True)
    for report in reports:
        if not report.pages and not report.left:
            raise DriftlineError(_why_nothing(report))


def _why_nothing(report: CrawlReport) -> str:
    from driftline.model.page import SkipReason

    seed = report.seeds[0]
    if report.astray:
        return f"{seed} redirects to {report.astray}, which is outside the scope: crawl that instead."
    if report.failed:
        return f"No page found at {seed}: {report.failed[0][1]}"
    if report.gone or report.gone_before:
        return f"{seed} is gone: there is nothing to crawl."
    if SkipReason.ROBOTS in report.skipped:
        return f"robots.txt does not allow fetching {seed}: use --robots ignore if the site is yours."
    return f"No page found at {seed}: what it sends is not a page."


def _as_json(report: CrawlReport) -> dict[str, Any]:
    from driftline.crawl.report import skipped_in_words

    found = asdict(report)
    found["skipped"] = {why: asdict(one) for why, one in skipped_in_words(report).items()}
    found["changes"] = [fields(change, "id", "url", "kind", "score", "reason") for change in report.changes]
    found["failed"] = [{"url": url, "reason": why} for url, why in report.failed]
    found["unread_lists"] = [{"url": url, "reason": why} for url, why in report.unread_lists]
    found["best"] = [{"url": url, "score": score} for url, score in report.best]
    del found["astray"]
    return {**found, "pages_per_s": report.pages_per_s}
