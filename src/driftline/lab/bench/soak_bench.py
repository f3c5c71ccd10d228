"""`lab soak`: many changes, generation after generation, each of which has to be recorded and reported once.

A farm of hosts adds a paragraph to every page in each generation. `check` runs once for each; `run` follows them all.
In the end no bounded resource may be in use. The memory of `run` is noted every minute.
"""

from __future__ import annotations

import json
import signal
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from driftline.lab.bench.local_watch_lists import LONGEST_COMMAND, CommandProcess, LabError, open_local
from driftline.lab.servers.host_farm import Farm, served
from driftline.model.event import EventKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.lab.servers.host_farm import RunningFarm

COMMANDS = ("check", "run")
_PAGES_OF_A_HOST = 50
_CONNECTIONS = 8  # to a host at once
_LOOK = 1.0  # seconds between looks at what is recorded
_MINUTE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakRow:
    """The results of a command: how many versions it recorded for its `changes`, and how many of these it reported.

    `resident_mb` is the memory of `run` at its start and at every minute, `resources` how often each bounded resource
    of the last `check` was acquired, and how much of it was in use at the end.
    """

    command: str
    pages: int
    changes: int
    recorded: int
    reported: int
    repeated: int
    stalls: int
    seconds: float
    resident_mb: list[float] = field(default_factory=list)
    resources: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Return whether every change was recorded and reported once, nothing stalled and no resource is in use."""
        idle = all(in_use == 0 for _, in_use in self.resources.values())
        return self.recorded == self.reported == self.changes and not self.repeated and not self.stalls and idle


class _Soak:
    """A command that follows the generations of a farm."""

    def __init__(self, farm: RunningFarm, store: str, folder: Path, progress: Callable[[str], None]) -> None:
        self._farm = farm
        self._store = store
        self._folder = folder
        self._progress = progress
        self._urls = [url for url in farm.urls() if "/private/" not in url]
        self._memory: list[float] = []
        self._resources: dict[str, tuple[int, int]] = {}
        self._reported: Counter[tuple[str, str]] = Counter()

    def go(self, command: str, generations: int) -> SoakRow:
        (self._folder / "urls").write_text("\n".join(self._urls))
        self._start(["import", str(self._folder / "urls")]).end()
        self._start(["check"]).end()
        started = time.monotonic()
        if command == "check":
            self._check(generations)
        else:
            self._run(generations)
        seconds = time.monotonic() - started
        return self._judge(command, generations, seconds)

    def _check(self, generations: int) -> None:
        for generation in range(1, generations + 1):
            self._progress(f"check: generation {generation} of {generations}")
            self._farm.publish(generation)
            found = json.loads(self._start(["check", "--json"]).end())
            self._reported.update((change["url"], change["id"]) for change in found["changes"])
            self._resources = {one["name"]: (one["acquired"], one["in_use"]) for one in found["resources"]}

    def _run(self, generations: int) -> None:
        running = self._start(["run", "--every", "1s"])
        minute = time.monotonic()
        with open_local(self._store) as watch_list:
            for generation in range(1, generations + 1):
                self._farm.publish(generation)
                wanted = len(self._urls) * (generation + 1)
                end = time.monotonic() + LONGEST_COMMAND
                while (recorded := sum(page.versions for page in watch_list.pages())) < wanted:
                    if time.monotonic() > end:
                        running.kill()
                        raise LabError(f"Generation {generation}: {wanted - recorded} changes were never recorded.")
                    if time.monotonic() >= minute:
                        minute += _MINUTE
                        self._memory.append(running.resident_mb())
                    self._progress(f"run: generation {generation} of {generations}, {self._memory[-1]:.0f} MB")
                    if not running.is_running_after(_LOOK):
                        running.end()
                        raise LabError("The run ended.")
        self._memory.append(running.resident_mb())
        running.end(signal.SIGINT)

    def _start(self, words: Sequence[str]) -> CommandProcess:
        return CommandProcess(words, self._store, self._folder, host_delay=0.0, host_connections=_CONNECTIONS)

    def _judge(self, command: str, generations: int, seconds: float) -> SoakRow:
        with open_local(self._store) as watch_list:
            for event in watch_list.changes() if command == "run" else ():
                if event.event is EventKind.CHANGED:
                    self._reported.update(zip(event.urls, event.ids, strict=True))
            recorded = sum(page.versions - 1 for page in watch_list.pages())
            stalled = watch_list.maintenance.last_stall() is not None
        return SoakRow(
            command=command, pages=len(self._urls), changes=generations * len(self._urls), recorded=recorded,
            reported=len(self._reported), repeated=sum(many - 1 for many in self._reported.values()),
            stalls=int(stalled), seconds=seconds, resident_mb=self._memory, resources=self._resources,
        )  # fmt: skip


def measure(
    command: str, store: Callable[[Path], str], *, pages: int, size: int, generations: int,
    progress: Callable[[str], None],
) -> SoakRow:  # fmt: skip
    """Return how a command did with so many generations of changes to all pages."""
    hosts = max(1, pages // _PAGES_OF_A_HOST)
    farm = Farm(hosts=hosts, pages=pages // hosts, latency=0.0, size=size)
    with tempfile.TemporaryDirectory(prefix="driftline-soak-") as folder, served(farm) as running:
        return _Soak(running, store(Path(folder)), Path(folder), progress).go(command, generations)
