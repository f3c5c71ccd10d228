"""`lab hostile`: the outcome of a check of each hostile server, and the time and memory it takes."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driftline.api import workspace_of
from driftline.crawl.crawl_options import Options
from driftline.crawl.survey_steps import Surveyed
from driftline.lab.bench.contenders import workers_of
from driftline.lab.bench.local_watch_lists import LabError, open_local
from driftline.lab.servers.hostile_responses import NOT_THERE
from driftline.lab.servers.hostile_servers import HOSTILE_SERVERS, ORDINARY, PAGE, ROBOTS, SITEMAP, HostileServer
from driftline.model.outcome import Failed, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from driftline.api.watch_list import Driftline
    from driftline.crawl.survey_steps import CrawlOutcome
    from driftline.lab.servers.hostile_responses import Act
    from driftline.model.outcome import Outcome

#: shorter than the defaults, so that the table is soon complete; the other limits are the defaults
TIMES = {"connect_timeout": 3.0, "stall_timeout": 3.0, "total_timeout": 3.0}


_UNHURRIED = 60.0  # seconds for reading a page of which only the next check is to take too long


class _Ended(OSError):
    """The server is shutting down, and answers no more."""


class Stage:
    """A server on the loopback interface that acts as a hostile server does, for the time of a `with` block."""

    def __init__(self, hostile: HostileServer, certificates: Certificates) -> None:
        self._hostile = hostile
        self._tls = certificates.context(hostile.certificate)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._requests = 0
        self.requests: list[bytes] = []
        secure = "s" if hostile.certificate else ""
        self.url = f"http{secure}://127.0.0.1:{self._listener.getsockname()[1]}/"

    def __enter__(self) -> Stage:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def request_count(self) -> int:
        """Return the number of requests for the path that misbehaves; of all requests, if that is the page."""
        at = self._hostile.at
        return len([one for one in self.requests if at == PAGE or _path(one) == at])

    def _act(self, request: bytes) -> Act:
        path = _path(request)
        if self._hostile.at in (PAGE, path):
            return self._hostile.act
        return ORDINARY.act if path == PAGE else NOT_THERE

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):  # a client that hangs up is what is hoped for
            if self._hostile.certificate == "garbage":
                connection.recv(4_096)
                connection.sendall(bytes(range(256)) * 64)
                return
            stream = connection if self._tls is None else self._tls.wrap_socket(connection, server_side=True)
            with stream:
                request = b""
                while b"\r\n\r\n" not in request:
                    request += stream.recv(65_536) or b"\r\n\r\n"
                self.requests.append(request)
                with self._lock:
                    earlier, self._requests = self._requests, self._requests + 1
                self._act(request)(_Scene(earlier, stream, self._ended))
                stream.shutdown(socket.SHUT_WR)
                while stream.recv(65_536):  # closing with something unread would break the connection off
                    pass


def _path(request: bytes) -> str:
    return (request.split(b" ", 2)[1:2] or [b""])[0].decode("latin-1")


@dataclass(slots=True)
class _Scene:
    earlier_requests: int
    stream: socket.socket
    _ended: threading.Event

    def wait(self, seconds: float) -> None:
        if self._ended.wait(seconds):
            raise _Ended


class Certificates:
    """An authority of our own and certificates by it, good and bad, made by the command openssl."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._openssl = shutil.which("openssl")
        self.authority: str | None = None
        if self._openssl is not None:
            self._new("authority", "-x509", "-days", "2", "-subj", "/CN=Laboratory")
            self.authority = str(folder / "authority.pem")

    def context(self, name: str | None) -> ssl.SSLContext | None:
        """Return the TLS context of a server with this certificate, or None for plain HTTP."""
        if name is None or name == "garbage":
            return None
        if self.authority is None:
            raise LabError("There is no command openssl to make certificates with.")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pem = self._folder / f"{name}.pem"
        if not pem.exists():
            self._issue(name)
        context.load_cert_chain(pem, self._folder / f"{name}.key")
        return context

    def _issue(self, name: str) -> None:
        if name == "own":
            self._new(name, "-x509", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
            return
        self._new(name, "-subj", "/CN=127.0.0.1")
        target = "DNS:other.example" if name == "other" else "IP:127.0.0.1"
        extensions = self._folder / f"{name}.cnf"
        extensions.write_text(f"subjectAltName={target}\n")
        self._run(
            "x509", "-req", "-in", self._path(name, "pem"), "-CA", self._path("authority", "pem"),
            "-CAkey", self._path("authority", "key"), "-CAcreateserial", "-days", "-1" if name == "expired" else "2",
            "-extfile", str(extensions), "-out", self._path(name, "pem"),
        )  # fmt: skip

    def _new(self, name: str, *how: str) -> None:
        """Make a key with a certificate, or with a certificate signing request."""
        self._run(
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", *how,
            "-keyout", self._path(name, "key"), "-out", self._path(name, "pem"),
        )  # fmt: skip

    def _path(self, name: str, ending: str) -> str:
        return str(self._folder / f"{name}.{ending}")

    def _run(self, *words: str) -> None:
        assert self._openssl is not None
        subprocess.run([self._openssl, *words], check=True, capture_output=True)


@contextmanager
def certificates() -> Iterator[Certificates]:
    """Make certificates in a temporary folder, for the time of a `with` block."""
    with tempfile.TemporaryDirectory() as folder:
        yield Certificates(Path(folder))


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileRow:
    """The outcome of the check of a hostile page, with its cost and limits."""

    row: str
    outcome: str
    reason: str
    seconds: float
    most_seconds: float
    peak_mb: float
    most_mb: float
    as_expected: bool

    @property
    def holds(self) -> bool:
        """Return whether the outcome is the expected one, within its limits of time and memory."""
        return self.as_expected and self.seconds <= self.most_seconds and self.peak_mb <= self.most_mb


def measure(
    hostiles: Sequence[HostileServer] = HOSTILE_SERVERS, progress: Callable[[str], None] = lambda _: None
) -> Iterator[HostileRow]:
    """Check each page in a process of its own, and yield a row for each; the first is an ordinary page.

    The servers run in this process, so that what they send is not part of the memory that is measured.
    """
    with certificates() as made:
        ordinary = _measured(ORDINARY, made, 0.0)
        yield ordinary
        for number, hostile in enumerate(hostiles, start=1):
            progress(f"{number} of {len(hostiles)}: {hostile.name}")
            yield _measured(hostile, made, ordinary.peak_mb)


def _measured(hostile: HostileServer, made: Certificates, ordinary_mb: float) -> HostileRow:
    with Stage(hostile, made) as stage, tempfile.TemporaryDirectory() as folder:
        options = {"store": f"{folder}/pages.db", "ca_file": made.authority, **TIMES, **settings_for(hostile)}
        job = {
            "url": stage.url, "at": hostile.at, "options": options,
            "deadlines": [*[_UNHURRIED] * (hostile.checks - 1), hostile.patience],
        }  # fmt: skip
        command = [sys.executable, "-P", "-m", "driftline.lab.bench.hostile_bench"]
        ran = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, check=False)
    if ran.returncode:
        raise LabError(f"The check of '{hostile.name}' failed: {ran.stderr.strip()[-200:]}")
    found = json.loads(ran.stdout)
    return HostileRow(
        row=hostile.name, outcome=found["outcome"], reason=found["reason"],
        seconds=found["seconds"], most_seconds=hostile.seconds, peak_mb=found["peak_mb"],
        most_mb=(ordinary_mb or found["peak_mb"]) + hostile.mb,
        as_expected=found["outcome"] == hostile.ends and hostile.message in found["reason"],
    )  # fmt: skip


def outcome_of(outcome: Outcome | CrawlOutcome) -> tuple[str, str]:
    """Return the outcome of a check or of a crawl: the kind and text of its failure, or its verdict."""
    failure = outcome.failure if isinstance(outcome, Failed | Surveyed) else None
    if failure is not None:
        return failure.kind.value, failure.sentence
    return Verdict.NEW.value if isinstance(outcome, Surveyed) else outcome.verdict.value, ""


def settings_for(hostile: HostileServer) -> dict[str, str]:
    """Return the settings with which a check reaches the path where a hostile server misbehaves."""
    return {"robots": "obey"} if hostile.at == ROBOTS else {}


def visit(
    watch_list: Driftline, url: str, at: str, report: Callable[[Sequence[Outcome | CrawlOutcome]], None]
) -> float:
    """Check a hostile page, or crawl its site if only a crawl reaches it, and return the seconds it took."""
    workspace = workspace_of(watch_list)
    if at == SITEMAP:
        return workspace.runs.crawl([url], Options(), recorded=lambda outcomes, _: report(outcomes)).seconds
    return workspace.runs.check([workspace.catalog.find(url).id], recorded=report).seconds


def _check(url: str, at: str, deadlines: list[float], options: dict[str, Any]) -> dict[str, Any]:
    """Check a page in this process, once with each deadline, and return the outcome and the peak memory.

    That is the memory of this process and its worker.
    """
    found: list[Outcome | CrawlOutcome] = []
    workers: list[float] = []

    def keep_outcomes(outcomes: Sequence[Outcome | CrawlOutcome]) -> None:
        found.extend(one for one in outcomes if at != SITEMAP or one.document.link.url.endswith(at))
        at_work = workers_of(os.getpid())  # they end with the run
        workers.extend([peak_mb(worker) for worker in at_work] or [0.0])

    seconds = 0.0
    for deadline in deadlines:
        with open_local(**options, worker_deadline=deadline) as watch_list:
            watch_list.add(url)
            seconds += visit(watch_list, url, at, keep_outcomes)
    outcome, reason = outcome_of(found[-1])
    largest = max(workers) if all(workers) else _largest_ended_mb()
    return {"outcome": outcome, "reason": reason, "seconds": seconds, "peak_mb": peak_mb("self") + largest}


def peak_mb(process: int | str) -> float:
    """Return the peak resident memory of a process in MB; 0 if it was killed."""
    status = Path(f"/proc/{process}/status").read_text()
    peak = re.search(r"VmHWM:\s*(\d+) kB", status)
    return 0.0 if peak is None else int(peak[1]) * 1024 / 1e6


def _largest_ended_mb() -> float:
    """Return the peak resident memory in MB of any process that ended: a killed worker, or the fork server.

    The number of the system includes the memory of the process that started it, so it is used only where there is no
    other.
    """
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6


if __name__ == "__main__":
    print(json.dumps(_check(**json.loads(sys.stdin.read()))))
