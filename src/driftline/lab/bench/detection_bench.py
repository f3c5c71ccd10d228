"""`lab detection` and `lab noise`: how often the detector is right, on labelled real pages and on simulated noise.

A folder holds `pairs.jsonl` with the files of `pairs/`, two versions of a page a line, each judged on its own. Or it
holds `chains.jsonl` with the files of `chains/`, or `streams.jsonl` with those of `streams/`: many versions of a page
in order of time, and what type of page it is. These are replayed as `run` would check them (`storage_bench.Replay`).

For `lab noise`, every response of the simulated web has fresh nonces, clocks and counters, and some pages really
change. What a check reports is compared with the truth. An edit of the footer of all pages of a host is one event.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from driftline.detection.examine import Side, weigh
from driftline.detection.extract.document import Extraction
from driftline.detection.noise.edits import Experience
from driftline.lab.bench.local_watch_lists import LabError, open_local
from driftline.lab.bench.storage_bench import HTML, Replay, change_of, read_body
from driftline.lab.simweb.simweb_client import serve
from driftline.lab.simweb.world import World
from driftline.model.change import Importance, Region
from driftline.model.outcome import Failed
from driftline.store.engine import Store
from driftline.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from driftline.api.watch_list import Driftline
    from driftline.lab.simweb.simweb_client import RunningWeb

MEANINGFUL = "meaningful"
DETECTORS = ("driftline", "raw bytes", "visible text", "main content")
LEVELS = tuple(Importance)  # the first one is reported
REPLAYED = ("chains", "streams")
_OURS = DETECTORS[0]
_CONTENT = (Region.MAIN, Region.BODY)
_SECOND_FETCH = 300.0  # seconds within which the next version of a page may stand for a second fetch
_THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 20))  # of the score
_FEW_ALARMS = (0.002, 0.003)  # false alarm rates


class Case(NamedTuple):
    """Two versions of a page, and whether people labelled the difference as one that matters.

    Cases without a label are only learned from. `again` is a version that stands for a second fetch of `after`.
    """

    kind: str
    name: str
    page: str
    before: Path
    after: Path
    times: tuple[float, float]
    meaningful: bool | None
    type: str = ""
    url: str = ""
    late: bool = False
    again: Path | None = None


class Verdicts(NamedTuple):
    """The verdict of each detector on a case and how long it took, with what ours says.

    `level` is None where ours sees no difference, or takes the version for an error page: then it `failed`.
    """

    case: Case
    alarms: dict[str, bool]
    level: Importance | None
    score: float
    reason: str
    headline: str
    failed: bool
    ms: dict[str, float]


class _Said(NamedTuple):
    """What Driftline says of a case."""

    level: Importance | None = None
    score: float = 0.0
    reason: str = "What can be seen is the same."
    headline: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """What is found and how many false alarms there are if all changes of at least this score are reported."""

    threshold: float
    precision: float | None
    recall: float | None
    false_alarm_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionRow:
    """How a detector did on all cases of a kind and type; `ms` and `ms_99` are the median and the 99th percentile of
    what it took for those whose text differs.

    `most_false_alarms` is how many the worst page has. `failed` counts versions taken for error pages, `same` those in
    which nothing shows. For Driftline, `levels` has how many cases of each label got each level, and `curve` what other
    thresholds of the score would give; `best` has, for a few false alarm rates, the point with the best recall.
    """

    cases: str
    type: str
    detector: str
    pages: int
    meaningful: int
    noise: int
    found: int
    false_alarms: int
    most_false_alarms: int
    failed: int
    same: int
    precision: float | None
    recall: float | None
    f1: float | None
    false_alarm_rate: float
    ms: float
    ms_99: float
    levels: dict[str, dict[str, int]]
    curve: list[CurvePoint]
    best: dict[str, CurvePoint | None]


def cases(folder: Path) -> list[Case]:
    """Return the labelled cases of a folder: pairs first, then chains and streams, each page in order of time."""
    found = [*_pairs(folder), *(case for kind in REPLAYED for case in _versions(folder, kind))]
    if not found:
        raise LabError(
            f"'{folder}' has no labelled pages: give a folder with pairs.jsonl, chains.jsonl or streams.jsonl."
        )
    return found


def judge(some: Sequence[Case], progress: Callable[[str], None]) -> Iterator[Verdicts]:
    """Yield the verdict of every detector on every labelled case; ours learns along chains and streams."""
    for judged, found in enumerate(_all_verdicts(some), start=1):
        if judged % 50 == 0:
            progress(f"{judged:,} of {len(some):,} cases")
        if found.case.meaningful is not None:
            yield found


def _all_verdicts(some: Sequence[Case]) -> Iterator[Verdicts]:
    for case in some:
        if case.kind not in REPLAYED:
            yield _judge_pair(case)
    for kind in REPLAYED:
        if checked := [case for case in some if case.kind == kind]:
            yield from _replay(checked)


def rows(found: Sequence[Verdicts]) -> list[DetectionRow]:
    """Return the figures of each detector, on the second half of each chain too, and ours by type of page."""
    pairs, chains, streams = ([one for one in found if one.case.kind == kind] for kind in ("pairs", *REPLAYED))
    halves = [one for one in chains if one.case.late]
    made: list[DetectionRow] = []
    for name, group in zip(
        ("pairs", "chains", "second halves", "streams"), (pairs, chains, halves, streams), strict=True
    ):
        made += [_row(name, "", detector, group) for detector in DETECTORS if group]
        types = dict.fromkeys(one.case.type for one in group)
        for kind in types if len(types) > 1 else ():
            made.append(_row(name, kind, _OURS, [one for one in group if one.case.type == kind]))
    return made


def worst(found: Sequence[Verdicts], most: int) -> tuple[list[Verdicts], list[Verdicts]]:
    """Return the false alarms with the highest scores, and the missed changes with the lowest."""
    alarms = [one for one in found if one.alarms[_OURS] and not one.case.meaningful]
    misses = [one for one in found if not one.alarms[_OURS] and one.case.meaningful]
    return sorted(alarms, key=_score, reverse=True)[:most], sorted(misses, key=_score)[:most]


def _score(one: Verdicts) -> float:
    return one.score


def _pairs(folder: Path) -> Iterator[Case]:
    for row in _lines(folder / "pairs.jsonl"):
        both = folder / "pairs" / row["before"], folder / "pairs" / row["after"]
        times = _time(row["time_before"]), _time(row["time_after"])
        yield Case("pairs", row["id"], row.get("page", row["id"]), *both, times, row["label"] == MEANINGFUL)


def _versions(folder: Path, kind: str) -> Iterator[Case]:
    for row in _lines(folder / f"{kind}.jsonl"):
        versions = row["versions"]
        # without an address nobody knows which pages share a host: then each has its own
        host = host_of(row["url"]) if row.get("url") else f"{row['chain'].lower()}.example"
        for number, (before, version) in enumerate(pairwise(versions), start=1):
            both = folder / kind / before["file"], folder / kind / version["file"]
            following = versions[number + 1] if number + 1 < len(versions) else None
            yield Case(
                kind, version["file"].removesuffix(".html"), row["chain"], *both,
                (_time(before["time"]), _time(version["time"])),
                version["label"] == MEANINGFUL if version["label"] else None,
                type=row.get("type") or "", url=f"https://{host}/{row['chain']}", late=2 * number >= len(versions),
                again=folder / kind / following["file"] if following and _is_second(version, following) else None,
            )  # fmt: skip


def _is_second(version: dict[str, Any], following: dict[str, Any]) -> bool:
    """Return whether the next version can stand for a second fetch: it came soon, and is not an edit of the page."""
    soon = _time(following["time"]) - _time(version["time"]) <= _SECOND_FETCH
    return soon and following["label"] != MEANINGFUL


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield json.loads(line)
                except ValueError:
                    raise LabError(f"Line {number} of '{path}' is not JSON.") from None
    except FileNotFoundError:
        return


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _judge_pair(case: Case) -> Verdicts:
    before, after = read_body(case.before), read_body(case.after)
    old = Extraction(before, HTML)  # its text is in the version repository, and costs nothing
    old_letters, old_text = old.letters(), "\n".join(old.blocks().lines)
    started = time.perf_counter()
    new = Extraction(after, HTML)
    said = _Said()
    if new.letters() != old_letters:
        title, blocks = new.title(), new.blocks()
        sides = Side(before, old_text, case.times[0]), Side(after, "\n".join(blocks.lines), case.times[1], blocks)
        found = weigh(*sides, title, HTML, Experience(at=case.times[1]))
        said = _Said(found.importance, found.score, found.reason, found.headline)
    return _beside_others(case, before, after, said, (time.perf_counter() - started) * 1000)


def _replay(some: Sequence[Case]) -> Iterator[Verdicts]:
    """Check all pages in order of time, as `run` would, and yield what each check but the first of a page says."""
    firsts = {case.url: case for case in reversed(some)}
    in_time = sorted(some, key=lambda case: case.times[1])
    new = sorted(firsts.values(), key=lambda case: case.times[0])
    with tempfile.TemporaryDirectory(prefix="driftline-detection-") as folder:
        store = Store.open(f"{folder}/pages.db")
        try:
            replay = Replay(store, firsts)
            for case in new:
                replay.check(case.url, read_body(case.before), case.times[0])
            for case in in_time:
                yield _check(case, replay)
        finally:
            store.close()


def _check(case: Case, replay: Replay) -> Verdicts:
    before, after, second = read_body(case.before), read_body(case.after), case.again
    outcome = replay.check(
        case.url, after, case.times[1], again=None if second is None else lambda: read_body(second)
    )  # fmt: skip
    change = change_of(outcome)
    said = _Said()
    if isinstance(outcome, Failed):
        said = _Said(reason=outcome.failure.sentence, failed=True)
    elif change is not None:
        said = _Said(change.importance, change.score, change.reason, change.headline)
    return _beside_others(case, before, after, said, replay.ms)


def _beside_others(case: Case, before: bytes, after: bytes, said: _Said, ms: float) -> Verdicts:
    """Return what Driftline said together with the verdicts of the naive detectors."""
    alarms, times = dict.fromkeys(DETECTORS, False), dict.fromkeys(DETECTORS, 0.0)
    alarms[_OURS], times[_OURS] = said.level is LEVELS[0], ms
    if before != after:
        old = Extraction(before, HTML)
        letters, content = old.letters(), _content(old)
        differs: dict[str, Callable[[], bool]] = {
            "raw bytes": lambda: before != after,
            "visible text": lambda: Extraction(after, HTML).letters() != letters,
            "main content": lambda: _content(Extraction(after, HTML)) != content,
        }
        for detector, is_alarm in differs.items():
            started = time.perf_counter()
            alarms[detector] = is_alarm()
            times[detector] = (time.perf_counter() - started) * 1000
    return Verdicts(case, alarms, *said, times)


def _content(read: Extraction) -> list[str]:
    return [block.text for block in read.blocks() if block.region in _CONTENT and not block.linked]


def _row(kind: str, type_: str, detector: str, found: Sequence[Verdicts]) -> DetectionRow:
    ours = detector == _OURS
    real = sum(one.case.meaningful is True for one in found)
    right = sum(one.alarms[detector] for one in found if one.case.meaningful)
    false = Counter(one.case.page for one in found if one.alarms[detector] and not one.case.meaningful)
    precision, recall, rate = _shares(right, false.total(), real, len(found) - real)
    f1 = None if precision is None or recall is None else 2 * precision * recall / max(precision + recall, 1e-9)
    times = sorted(one.ms[detector] for one in found if one.alarms["visible text"])
    return DetectionRow(
        cases=kind, type=type_, detector=detector, pages=len({one.case.page for one in found}), meaningful=real,
        noise=len(found) - real, found=right, false_alarms=false.total(),
        most_false_alarms=max(false.values(), default=0), failed=sum(one.failed for one in found) if ours else 0,
        same=sum(one.level is None and not one.failed for one in found) if ours else 0,
        precision=precision, recall=recall, f1=f1, false_alarm_rate=rate,
        ms=statistics.median(times) if times else 0.0, ms_99=times[len(times) * 99 // 100] if times else 0.0,
        levels=_levels(found) if ours else {}, curve=[_point(found, score) for score in _THRESHOLDS] if ours else [],
        best={f"{most:g}": _best(found, most) for most in _FEW_ALARMS} if ours else {},
    )  # fmt: skip


def _shares(right: int, wrong: int, real: int, others: int) -> tuple[float | None, float | None, float]:
    """Return precision, recall and false alarm rate; None for a share of nothing."""
    precision = right / (right + wrong) if right + wrong else 0.0 if real else None
    return precision, right / real if real else None, wrong / max(others, 1)


def _levels(found: Sequence[Verdicts]) -> dict[str, dict[str, int]]:
    counts = {level.value: Counter(_label(one) for one in found if one.level is level) for level in LEVELS}
    return {level: {label: count[label] for label in (MEANINGFUL, "noise")} for level, count in counts.items()}


def _label(one: Verdicts) -> str:
    return MEANINGFUL if one.case.meaningful else "noise"


def _point(found: Sequence[Verdicts], threshold: float) -> CurvePoint:
    alarms = [one for one in found if one.score >= threshold]
    right = sum(one.case.meaningful is True for one in alarms)
    real = sum(one.case.meaningful is True for one in found)
    precision, recall, rate = _shares(right, len(alarms) - right, real, len(found) - real)
    return CurvePoint(threshold=threshold, precision=precision, recall=recall, false_alarm_rate=rate)


def _best(found: Sequence[Verdicts], most: float) -> CurvePoint | None:
    """Return the point of the curve with the best recall at no more than this rate of false alarms."""
    scores = sorted({one.score for one in found if one.score > 0}, reverse=True)
    points = [point for point in (_point(found, score) for score in scores) if point.false_alarm_rate <= most]
    return max(points, key=lambda point: point.recall or 0.0, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseRow:
    """A generation: how many pages really changed, were reported falsely, were missed, and were noisy."""

    generation: int
    real: int
    false: int
    missed: int
    noisy: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteWide:
    """What is reported when all pages of a host get the same sentence in their footer."""

    pages: int
    events: int
    pages_of_events: int


def edit_footers(pages: int, seed: int = 1) -> SiteWide:
    """Watch one host for three checks, then edit the footer of all its pages and check once more."""
    world = World(pages=pages, seed=seed, size_mean=20_000, change_rate=0.0, noise="visible")
    with _watched(world) as (web, driftline, _):
        for generation in range(3):
            web.generation(generation)
            driftline.check()
        web.alter(notice="We have moved to a new address.")
        events = driftline.check().events
    return SiteWide(pages=pages, events=len(events), pages_of_events=sum(len(event.urls) for event in events))


def watch(pages: int, generations: int, seed: int = 1) -> Iterator[NoiseRow]:
    """Check all pages once in each generation."""
    world = World(pages=pages, hosts=max(1, pages // 20), seed=seed, size_mean=20_000, noise="visible")
    with _watched(world) as (web, driftline, numbers):
        driftline.check()
        for generation in range(1, generations + 1):
            web.generation(generation)
            report = driftline.check()
            reported = {numbers[change.url] for change in report.changes}
            true = web.truth(generation)
            yield NoiseRow(
                generation=generation, real=len(true), false=len(reported - true), missed=len(true - reported),
                noisy=report.noisy,
            )  # fmt: skip


@contextmanager
def _watched(world: World) -> Iterator[tuple[RunningWeb, Driftline, dict[str, int]]]:
    """Serve the world, watch all of its pages, and yield the server, the watch list and the page number of each URL."""
    with (
        serve(world) as web,
        tempfile.TemporaryDirectory(prefix="driftline-noise-") as folder,
        open_local(f"{folder}/pages.db") as driftline,
    ):
        numbers = {url: number for number, url in enumerate(web.urls())}
        driftline.add(*numbers)
        yield web, driftline, numbers
