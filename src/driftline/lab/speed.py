"""`lab speed`: how near Driftline comes to bare downloading, and to the work that no detector can avoid."""

from __future__ import annotations

import shutil
import statistics
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from driftline.lab import nginx
from driftline.lab.contenders import Heat, Pass, Time, enter
from driftline.lab.world import World
from driftline.library import open as open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ORIGINS = {"new": "empty", "not-modified": "validating"}
PASSES: tuple[Pass, ...] = get_args(Pass)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One pass: the speed of the three contenders and the ratios of Driftline's to the other two."""

    kind: Pass
    pages: int
    download: float
    floor: float
    check: float
    to_download: float
    to_floor: float
    cpu_us: float
    download_cpu_us: float
    floor_cpu_us: float
    peak_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What is raced over, and how. 0 in flight or consumers leaves Driftline to find its own numbers."""

    pages: int = 6_540
    size_mean: int = 67_000
    in_flight: int = 64
    consumers: int = 2
    repeats: int = 3
    auto: bool = False
    passes: tuple[Pass, ...] = PASSES


def race(course: Course, told: Callable[[str], None] = lambda _: None) -> Iterator[Row]:
    """Every pass of the course; each contender runs `repeats` times in turn, and its median time counts."""
    world = World(pages=course.pages, hosts=1, size_mean=course.size_mean, change_rate=0.10, noise="hidden")
    with tempfile.TemporaryDirectory(prefix="driftline-speed-") as name:
        folder = Path(name)
        ports = nginx.free_port(), nginx.free_port()
        told("Writing the pages…")
        roots = _write(world, folder)
        for kind in course.passes:
            port = ports[1] if kind == "not-modified" else ports[0]
            urls = [f"http://127.0.0.1:{port}{world.path(page)}" for page in range(world.pages)]
            origin = folder / f"{_ORIGINS.get(kind, 'plain')}.db"
            with _served(roots["first"], folder, ports):
                _prepare(origin, urls, checked=kind != "new")
            root = {"noisy": roots["noisy"], "changed": roots["changed"]}.get(kind, roots["first"])
            with _served(root, folder, ports):
                times = _heats(course, kind, origin, folder, told)
            yield _row(kind, course.pages, times)


@contextmanager
def _served(root: Path, folder: Path, ports: tuple[int, int]) -> Iterator[None]:
    with nginx.serve_files(root, folder / "nginx", *ports):
        yield


def _write(world: World, folder: Path) -> dict[str, Path]:
    roots = {name: folder / name for name in ("first", "noisy", "changed")}
    nginx.write_pages(world, roots["first"])
    nginx.write_pages(world, roots["noisy"], noise=1)
    shutil.copytree(roots["first"], roots["changed"])
    nginx.write_pages(world, roots["changed"], generation=1, only=world.truth(1))
    return roots


def _prepare(path: Path, urls: list[str], *, checked: bool) -> None:
    """A store with these pages, checked once if the pass needs that; made only if it is not there yet."""
    with open_store(str(path)) as driftline:
        if not driftline.pages():
            driftline.add(*urls)
        if checked and not driftline.pages()[0].checks:
            driftline.check()


def _heats(
    course: Course, kind: Pass, origin: Path, folder: Path, told: Callable[[str], None]
) -> dict[str, list[Time]]:
    times: dict[str, list[Time]] = {"download": [], "floor": [], "check": []}
    for turn in range(course.repeats):
        for contender in ("download", "floor", "check"):
            told(f"{kind}: {contender}, {turn + 1} of {course.repeats}")
            store = folder / "heat.db"
            shutil.copyfile(origin, store)
            auto = course.auto and contender == "check"
            heat = Heat(
                contender=contender, kind=kind, store=str(store), in_flight=0 if auto else course.in_flight,
                consumers=0 if auto else course.consumers,
            )  # fmt: skip
            times[contender].append(enter(heat))
            for path in folder.glob("heat.db*"):
                path.unlink()
    return times


def _row(kind: Pass, pages: int, times: dict[str, list[Time]]) -> Row:
    speed = {name: pages / statistics.median(time.seconds for time in some) for name, some in times.items()}
    cpu = {name: statistics.median(time.cpu for time in some) / pages * 1e6 for name, some in times.items()}
    return Row(
        kind=kind, pages=pages, download=speed["download"], floor=speed["floor"], check=speed["check"],
        to_download=speed["check"] / speed["download"], to_floor=speed["check"] / speed["floor"],
        cpu_us=cpu["check"], download_cpu_us=cpu["download"], floor_cpu_us=cpu["floor"],
        peak_mb=max(time.peak_mb for time in times["check"]),
    )  # fmt: skip
