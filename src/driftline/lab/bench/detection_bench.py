"""`lab detection` and `lab noise`: how often the detector is right, on labelled real pages and on simulated noise.

A folder holds `pairs.jsonl` with the files of `pairs/`, two versions of a page a line, each judged on its own; or
`chains.jsonl` with the files of `chains/`, many versions of a page in order of time; or both.

For `lab noise`, every response of the simulated web has fresh nonces, clocks and counters, and some pages really
change. What a check reports is compared with the truth. An edit of the footer of all pages of a host is one event.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from driftline.detection.examine import Side, weigh
from driftline.detection.extract.document import Extraction
from driftline.detection.noise.edits import Experience
from driftline.detection.noise.learning import learn
from driftline.lab.bench.local_watch_lists import LabError, open_local
from driftline.lab.simweb.simweb_client import serve
from driftline.lab.simweb.world import World
from driftline.model.change import Importance, Region
from driftline.noise_memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from driftline.api.watch_list import Driftline
    from driftline.lab.simweb.simweb_client import RunningWeb

MEANINGFUL = "meaningful"
DETECTORS = ("driftline", "raw bytes", "visible text", "main content")
_OURS = DETECTORS[0]
_HTML = "text/html"
_CONTENT = (Region.MAIN, Region.BODY)


class Case(NamedTuple):
    """Two versions of a page, and whether people labelled the difference as one that matters.

    In a chain, `number` counts its versions, and cases without a label are only learned from.
    """

    kind: str
    name: str
    before: Path
    after: Path
    times: tuple[float, float]
    meaningful: bool | None
    number: int = 0
    late: bool = False


class Verdicts(NamedTuple):
    """The verdict of each detector on a case and how long it took, with the reason and the score of ours."""

    case: Case
    alarms: dict[str, bool]
    score: float
    reason: str
    ms: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionRow:
    """How a detector did on all cases of a kind; `ms` and `ms_99` are the median and the 99th percentile of what it
    took for those whose text differs.
    """

    cases: str
    detector: str
    precision: float
    recall: float
    f1: float
    false_alarm_rate: float
    ms: float
    ms_99: float


def cases(folder: Path) -> list[Case]:
    """Return the labelled cases of a folder: pairs first, then chains in order of time."""
    found = [*_pairs(folder), *_chains(folder)]
    if not found:
        raise LabError(f"'{folder}' has no labelled pages: give a folder with pairs.jsonl or chains.jsonl.")
    return found


def examine(some: Iterable[Case], progress: Callable[[str], None]) -> Iterator[Verdicts]:
    """Yield the verdict of every detector on every labelled case; ours learns along a chain."""
    memory = Memory()
    for number, case in enumerate(some, start=1):
        if number % 50 == 0:
            progress(f"{number} cases")
        if case.number <= 1:
            memory = Memory()
        found = _examine(case, memory)
        if case.meaningful is not None:
            yield found


def rows(found: list[Verdicts]) -> list[DetectionRow]:
    """Return the figures of each detector: on pairs, on chains, and on the second half of each chain."""
    groups = {kind: [one for one in found if one.case.kind == kind] for kind in ("pairs", "chains")}
    groups["second halves"] = [one for one in found if one.case.late]
    return [_row(name, detector, group) for name, group in groups.items() if group for detector in DETECTORS]


def worst(found: list[Verdicts], most: int) -> tuple[list[Verdicts], list[Verdicts]]:
    """Return the false alarms with the highest scores, and the missed changes with the lowest."""
    alarms = [one for one in found if one.alarms[_OURS] and not one.case.meaningful]
    misses = [one for one in found if not one.alarms[_OURS] and one.case.meaningful]
    return sorted(alarms, key=_score, reverse=True)[:most], sorted(misses, key=_score)[:most]


def _score(one: Verdicts) -> float:
    return one.score


def _pairs(folder: Path) -> Iterator[Case]:
    for row in _lines(folder / "pairs.jsonl"):
        files = folder / "pairs"
        times = _time(row["time_before"]), _time(row["time_after"])
        yield Case("pairs", row["id"], files / row["before"], files / row["after"], times, row["label"] == MEANINGFUL)


def _chains(folder: Path) -> Iterator[Case]:
    for row in _lines(folder / "chains.jsonl"):
        before = None
        for number, version in enumerate(row["versions"]):
            if before is not None:
                files = folder / "chains"
                times = _time(before["time"]), _time(version["time"])
                name = version["file"].removesuffix(".html")
                both = files / before["file"], files / version["file"]
                label = version["label"] == MEANINGFUL if version["label"] else None
                yield Case("chains", name, *both, times, label, number, 2 * number >= len(row["versions"]))
            before = version


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


def _examine(case: Case, memory: Memory) -> Verdicts:
    try:
        before, after = case.before.read_bytes(), case.after.read_bytes()
    except OSError as error:
        raise LabError(f"'{case.name}' cannot be read: {error.strerror}. Unpack the folder's archives first.") from None
    old = Extraction(before, _HTML)  # its text is in the version repository, and costs nothing
    old_letters, old_text, old_content = old.letters(), "\n".join(old.blocks().lines), _content(old)
    alarms: dict[str, bool] = {}
    ms: dict[str, float] = {}

    def timed(detector: str, differs: Callable[[], bool]) -> None:
        started = time.perf_counter()
        alarms[detector] = differs()
        ms[detector] = (time.perf_counter() - started) * 1000

    score, reason = 0.0, "What can be seen is the same."

    def ours() -> bool:
        nonlocal score, reason
        new = Extraction(after, _HTML)
        if new.letters() == old_letters:
            return False
        title, blocks = new.title(), new.blocks()
        text = "\n".join(blocks.lines)
        sides = Side(before, old_text, case.times[0]), Side(after, text, case.times[1], blocks)
        judgement = weigh(*sides, title, _HTML, Experience(page=memory, check=case.number, at=case.times[1]))
        learn(memory, judgement, case.number, case.times[1])
        score, reason = judgement.score, judgement.reason
        return judgement.importance is Importance.IMPORTANT

    timed(_OURS, ours)
    timed("raw bytes", lambda: before != after)
    timed("visible text", lambda: Extraction(after, _HTML).letters() != old_letters)
    timed("main content", lambda: _content(Extraction(after, _HTML)) != old_content)
    return Verdicts(case, alarms, score, reason, ms)


def _content(read: Extraction) -> list[str]:
    return [block.text for block in read.blocks() if block.region in _CONTENT and not block.linked]


def _row(kind: str, detector: str, found: list[Verdicts]) -> DetectionRow:
    right = sum(one.alarms[detector] for one in found if one.case.meaningful)
    wrong = sum(one.alarms[detector] for one in found if not one.case.meaningful)
    real = sum(one.case.meaningful is True for one in found)
    precision = right / max(right + wrong, 1)
    recall = right / max(real, 1)
    times = sorted(one.ms[detector] for one in found if one.alarms["visible text"])
    return DetectionRow(
        cases=kind, detector=detector, precision=precision, recall=recall,
        f1=2 * precision * recall / max(precision + recall, 1e-9), false_alarm_rate=wrong / max(len(found) - real, 1),
        ms=statistics.median(times) if times else 0.0, ms_99=times[len(times) * 99 // 100] if times else 0.0,
    )  # fmt: skip


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
