"""`lab faults`: commands during every fault of a database, judged by the store, the reports and the servers' logs.

A farm of small hosts publishes edition after edition, in each of which every page changes. `check`, `run` and `crawl`
follow it as processes of their own while their database is restarted, frozen, full, locked or out of connections, or
they are killed. Every change has to be recorded once and reported, and no host may get a request too early, or two at
once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from driftline.lab.bench.local_watch_lists import LONGEST_COMMAND, CommandProcess, LabError, open_local
from driftline.lab.bench.server_log_bench import most_at_once
from driftline.lab.servers.host_farm import Farm, served
from driftline.lab.servers.postgres_server import served as postgres_served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from driftline.lab.servers.host_farm import Log, Request, RunningFarm
    from driftline.lab.servers.postgres_server import PostgresServer

    #: does something to the database, and returns once it is over
    Fault: TypeAlias = Callable[[random.Random], None]

COMMANDS = ("check", "run", "crawl")
LONGEST_RECOVERY = 10.0  # seconds after the database is back
_FARM = Farm(hosts=8, pages=4, latency=0.02)
_DELAY = 0.25  # seconds from an answer to the next request at a host
_CLOCKS = 0.005  # seconds that the moment of a request may be seen late by a server
_LOOK = 0.05
_CONNECTIONS = 30  # of the server
_DISK = 48  # megabytes of the disk that gets full
_HELD = {"connections": 6.0, "full": 5.0, "locked": 13.0}  # seconds; SQLite itself waits 10 for a lock


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """The results of a command under one kind of fault.

    `lost` counts changes that were not recorded, `duplicated` checks or versions that were recorded twice, `unreported`
    changes that no report named and `repeated` those that were reported again. `recovery` is the longest time from
    when the database was back to the next request or the end of the command. `at_once` is the most requests that a
    host had at once, `shortest` the shortest time from an answer to the next request there.
    """

    store: str
    fault: str
    command: str
    times: int
    changes: int
    lost: int
    duplicated: int
    unreported: int
    repeated: int
    recovery: float | None
    at_once: int
    shortest: float
    delay: float

    @property
    def holds(self) -> bool:
        """Return whether the row is as required. Only a killed process may report something twice."""
        again = self.repeated if self.fault != "kill -9" else 0
        recovered = self.recovery is None or self.recovery <= LONGEST_RECOVERY
        polite = self.at_once == 1 and self.shortest >= self.delay - _CLOCKS
        return not (self.lost or self.duplicated or self.unreported or again) and recovered and polite


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A fault to be injected so many times in the runs of a command. Without an `inject` the process is killed."""

    store: str
    fault: str
    command: str
    times: int
    inject: Fault | None


class _Laboratory:
    """One trial: a farm, a store of its own, and what was reported of each edition."""

    def __init__(self, trial: Trial, farm: RunningFarm, store: str, folder: Path, seed: int) -> None:
        self.trial = trial
        self.editions = self.faults = 0
        self.backs: list[tuple[float, float]] = []  # when the database was back, and when the command had ended
        self.reported: Counter[tuple[str, int]] = Counter()  # by address and edition
        self._chance = random.Random(f"{seed}{trial}")
        self._farm = farm
        self._folder = folder
        self._store = store
        self._events = folder / "events"
        self._pages = [url for url in farm.urls() if "/private/" not in url]

    @property
    def changes(self) -> int:
        return self.editions * len(self._pages)

    def go(self) -> None:
        """Inject every fault, then let the command finish."""
        self._prepare()
        if self.trial.command == "run":
            self._follow()
            return
        words = ["check", "--json"] if self.trial.command == "check" else self._crawling()
        while self.faults < self.trial.times:
            self._publish()
            process = self._start(words)
            for _ in range(3):
                if self.faults < self.trial.times and process.is_running_after(self._chance.uniform(0.2, 2.0)):
                    process = self._inject(process, words)
            found = json.loads(process.end())
            self._note_end()
            changed = found["changed"] if self.trial.command == "crawl" else [one["url"] for one in found["changes"]]
            self.reported.update((url, self.editions) for url in changed)

    def _crawling(self) -> list[str]:
        return ["crawl", *self._farm.fronts(), "--watch", "--json"]

    def _prepare(self) -> None:
        if self.trial.command == "crawl":
            self._start(self._crawling()).end()
            return
        (self._folder / "urls").write_text("\n".join(self._pages))
        self._start(["import", str(self._folder / "urls")]).end()
        self._start(["check"]).end()

    def _follow(self) -> None:
        """Publish one edition after the other to a `run`, each with a fault, and wait until all of it is reported."""
        hook = f"sh -c 'cat >> {self._events}; echo >> {self._events}'"
        words = ["run", "--every", "1s", "--exec", hook]
        process = self._start(words)
        process.is_running_after(3.0)
        while self.faults < self.trial.times:
            self._publish()
            process.is_running_after(self._chance.uniform(0.0, 3.0))
            process = self._inject(process, words)
            end = time.monotonic() + LONGEST_COMMAND
            while len(self._read_events()) < len(self._pages) and time.monotonic() < end:
                if not process.is_running_after(_LOOK):
                    process.end()
                    raise LabError("The run ended.")
            self._note_end()
        process.is_running_after(3.0)
        process.end(signal.SIGINT)
        self._read_events()

    def _read_events(self) -> set[str]:
        """Count the reports about this edition so far, and return the URLs they are about."""
        lines = self._events.read_text().splitlines() if self._events.exists() else []
        events = [json.loads(line) for line in lines if line.strip()]
        urls = Counter(url for event in events if event["event"] == "changed" for url in event["urls"])
        before = Counter(url for (url, edition), many in self.reported.items() for _ in range(many)
                         if edition < self.editions)  # fmt: skip
        for url, many in urls.items():
            self.reported[url, self.editions] = many - before[url]
        return {url for url in urls if self.reported[url, self.editions]}

    def _publish(self) -> None:
        self.editions += 1
        self._farm.publish(self.editions)

    def _start(self, words: Sequence[str]) -> CommandProcess:
        return CommandProcess(words, self._store, self._folder, host_delay=_DELAY, host_connections=1)

    def _inject(self, process: CommandProcess, words: Sequence[str]) -> CommandProcess:
        """Inject the fault, and return the process that continues after it."""
        self.faults += 1
        if self.trial.inject is None:
            process.kill()
            return self._start(words)
        self.trial.inject(self._chance)
        self.backs.append((time.monotonic(), 0.0))
        return process

    def _note_end(self) -> None:
        now = time.monotonic()
        self.backs = [(back, ended or now) for back, ended in self.backs]

    def judge(self, log: Log) -> FaultRow:
        """Return the row that follows from the store, the reports and the servers' log at the end."""
        with open_local(self._store) as watch_list:
            problems = watch_list.maintenance.doctor()
            pages = {page.url: page for page in watch_list.pages()}
        expected = self.editions + 1
        found = [pages[url] for url in self._pages if url in pages]
        lost = sum(max(0, expected - page.versions) for page in found) + expected * (len(self._pages) - len(found))
        once = self.trial.command != "run"  # which checks the same edition many times
        extra = sum(max(0, page.versions - expected) + once * max(0, page.checks - expected) for page in found)
        reports = [self.reported[url, edition] for url in self._pages for edition in range(1, expected)]
        at_hosts: dict[int, list[Request]] = defaultdict(list)
        for request in sorted(log.requests, key=lambda one: one.began):
            at_hosts[request.host].append(request)
        moments = [request.began for request in log.requests]
        waits = [min([ended, *(at for at in moments if at >= back)]) - back for back, ended in self.backs]
        return FaultRow(
            store=self.trial.store, fault=self.trial.fault, command=self.trial.command, times=self.faults,
            changes=self.changes, lost=lost, duplicated=extra + len(problems), unreported=reports.count(0),
            repeated=sum(many - 1 for many in reports if many > 1), recovery=max(waits, default=None),
            at_once=max(map(most_at_once, at_hosts.values())),
            shortest=min(two.began - one.ended for some in at_hosts.values() for one, two in pairwise(some)),
            delay=_DELAY,
        )  # fmt: skip


def measure(
    *, restarts: int, freeze: float, kills: int, seed: int, only: Callable[[str, str, str], bool],
    progress: Callable[[str], None],
) -> Iterator[FaultRow]:  # fmt: skip
    """Yield a row for each selected store, fault and command."""
    with ExitStack() as stack:
        stores = [_sqlite_trials(stack, kills)]
        if any(only("postgresql", fault, command) for fault in _POSTGRES_FAULTS for command in COMMANDS):
            server = stack.enter_context(postgres_served({"max_connections": str(_CONNECTIONS)}))
            stores.insert(0, _postgres_trials(server, restarts, freeze, kills))
        for trials, place in stores:
            for trial in trials:
                if only(trial.store, trial.fault, trial.command):
                    progress(f"{trial.store}: {trial.fault} in {trial.command}")
                    yield _measured(trial, place, seed)


def _measured(trial: Trial, place: Callable[[], str], seed: int) -> FaultRow:
    with tempfile.TemporaryDirectory(prefix="driftline-faults-") as folder:
        with served(_FARM) as farm:
            laboratory = _Laboratory(trial, farm, place(), Path(folder), seed)
            laboratory.go()
        return laboratory.judge(farm.log)


_POSTGRES_FAULTS = ("restart", "freeze", "connection limit", "sessions ended", "kill -9")


def _postgres_trials(
    server: PostgresServer, restarts: int, freeze: float, kills: int
) -> tuple[list[Trial], Callable[[], str]]:  # fmt: skip
    import psycopg

    current = ""

    def place() -> str:
        nonlocal current
        current = f"faults_{time.monotonic_ns()}"
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {current}".encode())
        return server.url(current)

    def restart(chance: random.Random) -> None:
        server.stop(chance.choice(("fast", "immediate")))
        time.sleep(chance.choice((0.0, 0.0, 1.0, 3.0)))
        server.start()

    def stand_still(_chance: random.Random) -> None:
        server.freeze()
        time.sleep(freeze)
        server.thaw()

    def end_sessions(_chance: random.Random) -> None:
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            connection.execute(_END_SESSIONS, [current, []])

    def take_connections(_chance: random.Random) -> None:
        taken: list[psycopg.Connection[Any]] = []
        with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
            refused = False
            while not refused:
                try:
                    taken.append(psycopg.connect(server.url("postgres")))
                except psycopg.OperationalError:
                    left = admin.execute(_END_SESSIONS, [current, []]).rowcount
                    refused = not left
        time.sleep(_HELD["connections"])
        for one in taken:
            one.close()

    faults: dict[str, tuple[int, Fault | None]] = {
        "restart": (restarts, restart),
        "freeze": (1, stand_still),
        "connection limit": (2, take_connections),
        "sessions ended": (kills, end_sessions),
        "kill -9": (kills, None),
    }
    return _trials("postgresql", faults), place


_END_SESSIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND NOT pid = ANY(%s::int[])"


def _sqlite_trials(stack: ExitStack, kills: int) -> tuple[list[Trial], Callable[[], str]]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="driftline-faults-")))
    disk = stack.enter_context(small_disk(folder, _DISK))
    current = folder / "none"

    def place() -> str:
        nonlocal current
        for old in (disk or folder).glob("pages*"):
            old.unlink()
        current = (disk or folder) / f"pages{time.monotonic_ns()}.db"
        return str(current)

    def fill(_chance: random.Random) -> None:
        with filled(current.parent):
            time.sleep(_HELD["full"])

    def lock(_chance: random.Random) -> None:
        connection = sqlite3.connect(current, isolation_level=None, timeout=30)
        connection.execute("BEGIN EXCLUSIVE")
        time.sleep(_HELD["locked"])
        connection.execute("ROLLBACK")
        connection.close()

    faults: dict[str, tuple[int, Fault | None]] = {"disk full": (3, fill)} if disk else {}
    faults |= {"locked": (2, lock), "kill -9": (kills, None)}
    return _trials("sqlite", faults), place


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path | None]:
    """Mount a file system of this many megabytes for the `with` block; only root can."""
    disk = folder / "disk"
    disk.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(line, check=False, capture_output=True).returncode:
        yield None
        return
    try:
        yield disk
    finally:
        # lazily: the system may still be ending a process that was killed
        subprocess.run(["umount", "--lazy", str(disk)], check=True)  # noqa: S607 wherever the system has it


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """Fill a disk for the time of a `with` block."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"." * 4_096)
    try:
        yield
    finally:
        ballast.unlink()


def _trials(store: str, faults: dict[str, tuple[int, Fault | None]]) -> list[Trial]:
    return [
        Trial(store=store, fault=fault, command=command, times=times, inject=inject)
        for fault, (times, inject) in faults.items()
        for command in COMMANDS
        if times
    ]
