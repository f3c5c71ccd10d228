"""`lab speed`: how near Driftline comes to bare downloading, and to the work that no detector can avoid."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, get_args

from isal import igzip

from driftline.lab.bench.contenders import Heat, Pass, Time, enter
from driftline.lab.bench.local_watch_lists import LabError, open_local
from driftline.lab.servers.postgres_server import temporary_database, vacuum
from driftline.lab.simweb.simweb_client import RunningWeb, serve
from driftline.lab.simweb.world import ROBOTS_TXT, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

#: of nginx, which outruns every client here
_CONFIGURATION = """
{user}
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 10000000;
  keepalive_timeout 600;
  default_type text/html;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  open_file_cache max=50000 inactive=600s;
  open_file_cache_valid 600s;
  gzip_static always;
  server {{ listen 127.0.0.1:{plain} backlog=4096; root {root}; etag off; if_modified_since off;
            add_header Last-Modified ""; }}
  server {{ listen 127.0.0.1:{validating} backlog=4096; root {root}; }}
}}
"""
_ORIGINS = {"new": "empty", "not-modified": "validating"}
PASSES: tuple[Pass, ...] = get_args(Pass)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedRow:
    """One pass: the speed of the three contenders and the ratios of Driftline's to the other two.

    If PostgreSQL is measured too: the speed of Driftline on it, and the ratio of that to its speed on SQLite.
    """

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
    postgresql: float | None = None
    to_sqlite: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the row as it is printed, under the names that scripts rely on."""
        figures = asdict(self)
        return {
            "pass": figures.pop("kind"),
            "pages_per_s": self.check,
            "ratio": self.to_floor,
            "cpu_ms": self.cpu_us / 1000,
            "peak_mb": figures.pop("peak_mb"),
        } | figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What is measured, and how. With 0 `in_flight` or `consumers`, Driftline chooses the numbers.

    With the URL of a PostgreSQL `store`, Driftline is also measured on temporary databases of its server.
    """

    pages: int = 6_540
    size_mean: int = 67_000
    in_flight: int = 64
    consumers: int = 2
    repeats: int = 3
    auto: bool = False
    nginx: bool = False
    passes: tuple[Pass, ...] = PASSES
    store: str | None = None


def race(course: Course, progress: Callable[[str], None] = lambda _: None) -> Iterator[SpeedRow]:
    """Yield a row for each pass. The contenders alternate, `repeats` times each, and median times count."""
    world = World(pages=course.pages, hosts=1, size_mean=course.size_mean, change_rate=0.10)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="driftline-speed-")))
        site = stack.enter_context(_site(course, world, folder, progress))
        databases: dict[str, str] = {}
        for kind in course.passes:
            name = _ORIGINS.get(kind, "plain")
            if course.store is not None and name not in databases:
                databases[name] = stack.enter_context(temporary_database(course.store))
            origin, database = folder / f"{name}.db", databases.get(name)
            validating = kind == "not-modified"
            with site.showing("first", validating=validating) as base:
                urls = [base + world.path(page) for page in range(world.pages)]
                for store in (str(origin), *([database] if database else [])):
                    _prepare(store, urls, checked=kind != "new")
            if database is not None:
                vacuum(database)  # or each heat would clean up after the first check of all pages
            state = kind if kind in ("noisy", "changed") else "first"
            with site.showing(state, validating=validating):
                expected = len(world.truth(1)) if kind == "changed" else world.pages
                times = _heats(course, kind, origin, database, folder, expected, progress)
            yield _row(kind, course.pages, times)


class _Site(Protocol):
    """Pages at one address that can be shown in three states."""

    def showing(self, state: str, *, validating: bool) -> AbstractContextManager[str]:
        """Serve the pages as they were first, with other noise, or with a tenth of them changed; yield the address."""


@contextmanager
def _site(course: Course, world: World, folder: Path, progress: Callable[[str], None]) -> Iterator[_Site]:
    if course.nginx:
        progress("Writing the pages…")
        yield _Files(world, folder)
    else:
        with serve(world) as web:
            web.prepare()
            yield _Simulated(web)


class _Files:
    """The pages as files behind nginx, which is restarted for each state."""

    def __init__(self, world: World, folder: Path) -> None:
        self._folder = folder
        self._ports = {False: _free_port(), True: _free_port()}
        world = replace(world, noise="hidden")
        _write_pages(world, folder / "first")
        _write_pages(world, folder / "noisy", noise=1)
        shutil.copytree(folder / "first", folder / "changed")
        _write_pages(world, folder / "changed", generation=1, only=world.truth(1))

    @contextmanager
    def showing(self, state: str, *, validating: bool) -> Iterator[str]:
        """Serve one of the folders."""
        with _serve_files(self._folder / state, self._folder / "nginx", self._ports[False], self._ports[True]):
            yield f"http://127.0.0.1:{self._ports[validating]}"


class _Simulated:
    """The pages from the simulated web, one process for all states."""

    def __init__(self, web: RunningWeb) -> None:
        self._web = web

    @contextmanager
    def showing(self, state: str, *, validating: bool) -> Iterator[str]:
        """Alter the world to that state."""
        self._web.alter(noise="hidden" if state == "noisy" else "off", etag=validating)
        self._web.generation(1 if state == "changed" else 0)
        yield f"http://{self._web.world.address(0)}:{self._web.port}"


def _prepare(store: str, urls: list[str], *, checked: bool) -> None:
    """Make a store with these pages unless it exists, checked once if the pass needs that."""
    with open_local(store, robots="obey") as driftline:
        if not driftline.pages():
            driftline.add(*urls)
        if checked and not driftline.pages()[0].checks:
            driftline.check()


def _heats(
    course: Course, kind: Pass, origin: Path, database: str | None, folder: Path, expected: int,
    progress: Callable[[str], None],
) -> dict[str, list[Time]]:  # fmt: skip
    times: dict[str, list[Time]] = {"download": [], "floor": [], "check": []}
    if database is not None:
        times["postgresql"] = []
    heat = Heat(
        contender="download", kind=kind, store=str(origin), in_flight=course.in_flight, consumers=course.consumers,
        expected=expected,
    )  # fmt: skip
    check = replace(heat, contender="check")
    if course.auto:
        check = replace(check, in_flight=0, consumers=0)
    for number in range(course.repeats):
        for name, found in times.items():
            progress(f"{kind}: {name}, {number + 1} of {course.repeats}")
            if name == "postgresql" and database is not None and course.store is not None:
                with temporary_database(course.store, template=database) as copy:
                    os.sync()  # or the copy would be written out while the clock runs
                    found.append(enter(replace(check, store=copy)))
            elif name == "check":
                copied = folder / "heat.db"
                shutil.copyfile(origin, copied)
                os.sync()
                found.append(enter(replace(check, store=str(copied))))
                for path in folder.glob("heat.db*"):
                    path.unlink()
            else:
                found.append(enter(replace(heat, contender="floor" if name == "floor" else "download")))
    return times


def _row(kind: Pass, pages: int, times: dict[str, list[Time]]) -> SpeedRow:
    """Return the medians. A ratio is the median over the rounds: what slows the machine slows a whole round alike."""
    speed = {name: pages / statistics.median(time.seconds for time in some) for name, some in times.items()}
    cpu = {name: statistics.median(time.cpu for time in some) / pages * 1e6 for name, some in times.items()}

    def ratio(ours: str, theirs: str) -> float:
        rounds = zip(times[ours], times[theirs], strict=True)
        return statistics.median(their.seconds / our.seconds for our, their in rounds)

    raced_both = "postgresql" in times

    return SpeedRow(
        kind=kind, pages=pages, download=speed["download"], floor=speed["floor"], check=speed["check"],
        to_download=ratio("check", "download"), to_floor=ratio("check", "floor"), cpu_us=cpu["check"],
        download_cpu_us=cpu["download"], floor_cpu_us=cpu["floor"],
        peak_mb=max(time.peak_mb for time in times["check"]),
        postgresql=speed["postgresql"] if raced_both else None,
        to_sqlite=ratio("postgresql", "check") if raced_both else None,
    )  # fmt: skip


def nginx_installed() -> str | None:
    """Return the path of nginx, or None if it is not installed."""
    return shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")


def _write_pages(
    world: World, root: Path, *, generation: int = 0, noise: int = 0, only: Iterable[int] | None = None
) -> None:
    """Write the pages of a generation, or some of them, and a robots.txt, as gzip files that nginx sends unchanged."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "robots.txt.gz").write_bytes(igzip.compress(ROBOTS_TXT, 2, mtime=0))
    for page in range(world.pages) if only is None else only:
        path = root / (world.path(page).lstrip("/") + ".gz")
        path.parent.mkdir(parents=True, exist_ok=True)
        body = world.body(page, world.revision(page, generation), generation=noise)
        path.unlink(missing_ok=True)
        path.write_bytes(igzip.compress(body, 2, mtime=0))


@contextmanager
def _serve_files(root: Path, folder: Path, plain: int, validating: int) -> Iterator[None]:
    """Serve a folder of gzip files: on port `plain` without validators, on `validating` with ETag and Last-Modified."""
    program = nginx_installed()
    if program is None:
        raise LabError("nginx is not installed: apt-get install nginx-light, or leave out --server nginx.")
    folder.mkdir(parents=True, exist_ok=True)
    configuration = folder / "nginx.conf"
    # a worker started by root would become 'nobody', who may not read a folder that is ours alone
    user = "user root;" if os.geteuid() == 0 else ""
    text = _CONFIGURATION.format(user=user, folder=folder, root=root, plain=plain, validating=validating)
    configuration.write_text(text)
    command = [program, "-c", str(configuration), "-e", str(folder / "error.log")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_until_open(plain, process)
            yield
        finally:
            process.send_signal(signal.SIGQUIT)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def _free_port() -> int:
    """Return a free port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_open(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(500):
        if process.poll() is not None:
            raise LabError("nginx ended at once: see its error.log.")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    raise LabError("nginx did not start within 5 seconds.")
