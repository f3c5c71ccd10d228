"""`doctor`: examine the installation, the settings and the store, and say what to do about what is wrong."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.api import workspace_of
from driftline.cli.options import JsonOption, StoreOption, command_settings, is_named, no_store
from driftline.cli.output import clean_lines, local_time, print_json, say, size
from driftline.errors import BrokenVersion, DamagedStore, DriftlineError, StoreUnavailable
from driftline.plurals import count

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from driftline.detection.worker_pool import WorkerPool
    from driftline.settings import Settings
    from driftline.store.ledger import StallRecord

_OLDEST = (3, 11)
_FILES_WANTED = 4_096
_PROBLEMS_SHOWN = 5
_UNREAD = "; its versions were not verified: run 'driftline doctor' without --quick."
_PROXIES = ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One finding: what was examined, whether it is well, and if not, what to do."""

    what: str
    well: bool
    detail: str


def doctor(
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Skip reading every version back, which takes minutes in a large store."),
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the installation, the settings and the store.

    Every stored version is read back and verified, unless --quick.
    """
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


def _print_finding(finding: Diagnosis) -> None:
    mark = ("✓ ", "green") if finding.well else ("✗ ", "red")
    say(mark, clean_lines(f"{finding.what}: {finding.detail}"))


def examine(store: str | None, *, quick: bool = False) -> list[Diagnosis]:
    """Examine everything; a broken part does not keep the others from being examined.

    With `quick`, only a few pages of the store are read.
    """
    return list(_findings(store, quick=quick))


def _findings(store: str | None, *, quick: bool) -> Iterator[Diagnosis]:
    from driftline.settings import misspelled_variables

    yield _python()
    yield _curl()
    yield _open_files()
    try:
        settings = command_settings(store=store)
    except DriftlineError as error:
        yield Diagnosis(
            what="Settings", well=False, detail=f"{error} Correct it first: nothing else could be examined."
        )
        return
    unknown = ", ".join(misspelled_variables())
    ignored = f" Ignored in the environment, because there is no such setting: {unknown}." if unknown else ""
    yield Diagnosis(what="Settings", well=True, detail=f"all valid.{ignored}")
    yield _network(settings)
    yield _worker(settings)
    rendered = yield from _store(settings, quick=quick)
    yield _browser(settings, wanted=rendered or settings.browser is not None)
    yield _nginx()


def _python() -> Diagnosis:
    found = platform.python_version()
    wanted = ".".join(str(part) for part in _OLDEST)
    well = sys.version_info >= _OLDEST
    detail = f"{found}." if well else f"{found} is too old: use {wanted} or later."
    return Diagnosis(what="Python", well=well, detail=detail)


def _curl() -> Diagnosis:
    try:
        import pycurl
    except ImportError as error:
        return Diagnosis(what="libcurl", well=False, detail=f"pycurl cannot be loaded ({error}): reinstall pycurl.")
    facts = pycurl.version_info()
    name, features, protocols = facts[1], facts[4], facts[8]
    missing = [protocol for protocol in ("http", "https") if protocol not in protocols]
    if missing:
        detail = f"{name} was built without {' and '.join(missing)}: install pycurl from its wheel."
        return Diagnosis(what="libcurl", well=False, detail=detail)
    http2 = "with" if features & pycurl.VERSION_HTTP2 else "without"
    return Diagnosis(what="libcurl", well=True, detail=f"{name}, {facts[5] or 'no TLS'}, {http2} HTTP/2.")


def _open_files() -> Diagnosis:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    well = soft == resource.RLIM_INFINITY or soft >= _FILES_WANTED
    detail = "no limit." if soft == resource.RLIM_INFINITY else f"{soft:,} at once."
    if not well and (hard == resource.RLIM_INFINITY or hard > soft):
        detail = f"only {soft:,} at once, which limits the transfers in flight: run 'ulimit -n {_FILES_WANTED}' first."
        # a low limit slows a run down and breaks nothing
        well = soft >= 256
    return Diagnosis(what="Open files", well=well, detail=detail)


def _network(settings: Settings) -> Diagnosis:
    if settings.proxy is not None:
        detail = f"pages are fetched through the proxy {settings.proxy}, which has to protect private networks itself."
        return Diagnosis(what="Network", well=True, detail=detail)
    besides = f" and {', '.join(settings.allow_networks)}" if settings.allow_networks else ""
    ignored = next(
        (
            f" The variable {name} is ignored: set DRIFTLINE_PROXY to use a proxy."
            for name in _PROXIES
            if name in os.environ
        ),
        "",
    )
    return Diagnosis(what="Network", well=True, detail=f"pages are fetched from public addresses{besides}.{ignored}")


def _worker(settings: Settings) -> Diagnosis:
    from driftline.detection.worker_pool import WorkerPool

    what = "Worker process"
    workers = WorkerPool(most=1, deadline=settings.worker_deadline, memory=settings.worker_memory)
    try:
        problem = _first_page(workers)
    finally:
        workers.close()
    if problem:
        return Diagnosis(what=what, well=False, detail=f"cannot extract a page ({problem}): reinstall Driftline.")
    return Diagnosis(what=what, well=True, detail="starts and extracts a page.")


def _first_page(workers: WorkerPool) -> str:
    """Return what goes wrong when a worker extracts a small page; an empty text if nothing does."""
    from driftline.detection.compare import job_of, outcome_of
    from driftline.model.outcome import Document, Failed, Link, New, Pair

    headers = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    body = b"<!doctype html><title>well</title><p>All is well."
    document = Document(
        link=Link(0, "http://localhost/", 1, None), status=200, headers=headers, body=body,
        size=len(body), final_url="http://localhost/", redirects=0, fetched_at=0.0, seconds=0.0,
    )  # fmt: skip
    try:
        pair = Pair(document, b"")
        (finding,) = workers.examine([job_of(pair, len(body))])
        outcome = outcome_of(pair, finding)
    except (DriftlineError, OSError) as error:
        return str(error).rstrip(".")
    if isinstance(outcome, Failed):
        return outcome.failure.sentence.rstrip(".")
    return "" if isinstance(outcome, New) and outcome.version.title == "well" else "its title is wrong"


def _store(settings: Settings, *, quick: bool) -> Generator[Diagnosis, None, bool]:
    """Yield findings about the store; return whether any of its pages is rendered in a browser."""
    from driftline.api.watch_list import open as open_store
    from driftline.store.drivers import is_there

    if not is_there(settings.store):
        named = is_named(settings)
        there_will_be = f"none yet: 'driftline add URL' creates {settings.store}."
        yield Diagnosis(what="Store", well=not named, detail=no_store(settings.store) if named else there_will_be)
        return False
    advice = "restore a backup, or move the file away to start over"
    try:
        with open_store(settings=settings) as watch_list:
            workspace = workspace_of(watch_list)
            where = workspace.store.where
            pages, rendered = workspace.catalog.counts()
            yield _stall(watch_list.maintenance.last_stall())
            if quick:
                yield Diagnosis(
                    what="Store", well=True, detail=f"{where} opens and has {count(pages, 'page')}{_UNREAD}"
                )
                return rendered
            problems = watch_list.maintenance.doctor()
            versions, _raw, stored = workspace.repository.sizes()
            behind = workspace.left_to_read()
            old_names = list(workspace.catalog.old_names())
            let_in = workspace.catalog.unused_tags(workspace.accesses.all()[1])
            treated = workspace.catalog.unused_tags(settings.tags)
    except DriftlineError as error:
        problem = str(error).rstrip(".")
        if isinstance(error, StoreUnavailable):
            on_server = "://" in settings.store
            advice = "start the database server, or see why it does not answer" if on_server else "free disk space"
        said = not isinstance(error, DamagedStore | BrokenVersion | StoreUnavailable)  # what to do
        yield Diagnosis(what="Store", well=False, detail=f"{problem}." if said else f"{problem}: {advice}.")
        return False
    if problems:
        shown = "; ".join(problem.rstrip(".") for problem in problems[:_PROBLEMS_SHOWN])
        more = len(problems) - _PROBLEMS_SHOWN
        yield Diagnosis(
            what="Store", well=False, detail=f"{shown}{f' and {more:,} more' if more > 0 else ''}: {advice}."
        )
        return False
    held = f"{count(pages, 'page')}, {count(versions, 'version')} in {size(stored)}"
    yield Diagnosis(what="Store", well=True, detail=f"{where} has {held}, all readable.")
    yield _addresses(old_names)
    yield _tags(let_in, treated)
    yield _readings(*behind)
    return rendered


def _stall(last: StallRecord | None) -> Diagnosis:
    """Return when a run last stalled, and why."""
    if last is None:
        return Diagnosis(what="Runs", well=True, detail="no stall was recorded.")
    return Diagnosis(what="Runs", well=True, detail=f"the last stall was at {local_time(last.at)}. {last.report}")


def _addresses(old_names: Sequence[str]) -> Diagnosis:
    detail = "every page has its canonical URL."
    if old_names:
        would = f"{count(len(old_names), 'page')} would get another URL if added today"
        detail = f"{would}, such as {old_names[0]}: move one with 'driftline edit URL --url NEW'."
    return Diagnosis(what="Addresses", well=True, detail=detail)


def _tags(let_in: Sequence[str], treated: Sequence[str]) -> Diagnosis:
    found = [f"'{tag}' (set by 'driftline access')" for tag in let_in]
    found += [f"'{tag}' (in the settings file)" for tag in treated]
    detail = "every tag with settings is in use."
    if found:
        detail = f"no page has the tag {', nor '.join(found)}: its settings have no effect."
    return Diagnosis(
        what="Tags", well=True, detail=detail
    )  # pages may get them yet, or those of another store have them


def _readings(stale: int, unread: int) -> Diagnosis:
    detail = "the text of every version is up to date."
    if stale:
        detail = (
            f"{count(stale, 'version')} to extract again: 'driftline run' does it when idle, 'driftline compact' now."
        )
    if unread:
        without = count(unread, "version has", "versions have")
        detail += f" {without} nothing that today's filters select, so the old text stays."
    return Diagnosis(what="Texts", well=True, detail=detail)


def _browser(settings: Settings, *, wanted: bool) -> Diagnosis:
    """Return whether pages can be rendered; the browser is started only if one is needed."""
    from driftline.fetch.browser.chromium_process import find_browser

    try:
        path = find_browser(settings.browser)
    except DriftlineError as error:
        return Diagnosis(
            what="Browser", well=not wanted, detail=f"none found; only pages with --render need one. {error}"
        )
    if not wanted:
        return Diagnosis(what="Browser", well=True, detail=f"{path} (no page uses --render yet).")
    from driftline.fetch.browser.chromium_process import try_browser

    try:
        try_browser(path, settings)
    except DriftlineError as error:
        return Diagnosis(what="Browser", well=False, detail=str(error))
    return Diagnosis(what="Browser", well=True, detail=f"{path} starts and renders a page.")


def _nginx() -> Diagnosis:
    found = shutil.which("nginx")
    detail = f"{found}." if found else "not needed, unless for 'driftline lab'; it is not installed."
    return Diagnosis(what="nginx", well=True, detail=detail)
