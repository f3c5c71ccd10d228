"""The simulated web as a server on the loopback range, in a process of its own.

One listening socket per host address, so that nothing is ever bound outside of 127.0.0.0/8. Answers are put
together from parts that are compressed already and then remembered; per request there is little more to do
than to find the page number in the request line. Started by `simweb_client.serve`;
`python -m driftline.lab.simweb.server` is its entry point.

Under `/lab/` on any host, the server reports and changes its own state: `generation`, `truth`, `stats`,
`world` and `prepared`.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import gc
import json
import os
import resource
import socket
import sys
import threading
from array import array
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from urllib.parse import parse_qs, urlsplit

from driftline.errors import BadSetting
from driftline.lab.simweb import pages_markup
from driftline.lab.simweb.responses import Answers, PageRequest, header, response
from driftline.lab.simweb.world import ROBOTS_TXT, World

if TYPE_CHECKING:
    from collections.abc import Callable

TICK = 0.005  # seconds between two releases of the shared line
_CHUNK = 16 * 1024
_CATCH_UP = 0.25
_LONGEST_REQUEST = 64 * 1024

Receiver = TypeVar("Receiver")


@dataclass(slots=True)
class Stats:
    """Counters since the start or the last reset, without requests under `/lab/`.

    A request is in flight until its answer was handed to the system: without latency and with bandwidth for
    all, that is at once, and only one is in flight at a time.
    """

    requests: int = 0
    bytes: int = 0
    not_modified: int = 0
    failures: int = 0
    misdirected: int = 0
    connections: int = 0
    connections_total: int = 0
    connections_max: int = 0
    in_flight: int = 0
    in_flight_max: int = 0
    in_flight_max_of_a_host: int = 0


class Pacer(Generic[Receiver]):
    """Shares a link of `rate` bytes a second between receivers, one after the other (round robin).

    Over any stretch of time in which something waits, no more than `rate` times its length is released, plus
    one tick's worth that an idle link may have saved up; a delayed call of `release` catches up. It never
    reads a clock.
    """

    def __init__(self, *, rate: float, now: float) -> None:
        self.rate = rate
        self._allowance = rate * TICK
        self._last = now
        self._waiting: deque[tuple[Receiver, memoryview]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def submit(self, receiver: Receiver, data: bytes, now: float) -> None:
        """Queue data. A receiver may submit again only after all of its data was released."""
        self._accrue(now)
        self._waiting.append((receiver, memoryview(data)))

    def release(self, now: float) -> list[tuple[Receiver, memoryview, bool]]:
        """Return what may be sent now: the receiver, the bytes, and whether they end what it submitted."""
        self._accrue(now)
        found = []
        while self._waiting and self._allowance >= 1:
            receiver, data = self._waiting.popleft()
            part = data[: min(_CHUNK, int(self._allowance))]
            self._allowance -= len(part)
            done = len(part) == len(data)
            if not done:
                self._waiting.append((receiver, data[len(part) :]))
            found.append((receiver, part, done))
        return found

    def forget(self, receiver: Receiver) -> None:
        self._waiting = deque(item for item in self._waiting if item[0] is not receiver)

    def _accrue(self, now: float) -> None:
        most = self.rate * (_CATCH_UP if self._waiting else TICK)
        self._allowance = min(most, self._allowance + self.rate * (now - self._last))
        self._last = now


class SharedLine:
    """The line that all connections share when bandwidth is capped: a pacer on the event loop's clock."""

    def __init__(self, loop: asyncio.AbstractEventLoop, rate: int) -> None:
        self._loop = loop
        self._pacer = Pacer[Connection](rate=rate, now=loop.time())
        self._awake = False
        self.forget = self._pacer.forget

    def send(self, connection: Connection, data: bytes) -> None:
        self._pacer.submit(connection, data, self._loop.time())
        if not self._awake:
            self._awake = True
            self._loop.call_soon(self._release)

    def _release(self) -> None:
        for connection, part, done in self._pacer.release(self._loop.time()):
            connection.sent(part, done)
        self._awake = len(self._pacer) > 0
        if self._awake:
            self._loop.call_later(TICK, self._release)


class Web:
    """The state that all connections share."""

    def __init__(self, world: World, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.generation = 0
        self.stats = Stats()
        self.in_flight = [0] * world.hosts
        self.attempts = array("L")
        self.alter(world)

    def alter(self, world: World) -> None:
        self.world = world
        self.answers = Answers(world)
        if len(self.attempts) != world.pages:
            self.attempts = array("L", bytes(world.pages * array("L").itemsize))
        # What waits in the link of the world before leaves at the rate of that world.
        self.link = SharedLine(self.loop, world.bandwidth) if world.bandwidth else None

    def begin(self, host: int) -> None:
        stats = self.stats
        stats.requests += 1
        stats.in_flight += 1
        self.in_flight[host] += 1
        stats.in_flight_max = max(stats.in_flight_max, stats.in_flight)
        stats.in_flight_max_of_a_host = max(stats.in_flight_max_of_a_host, self.in_flight[host])

    def end(self, host: int) -> None:
        self.stats.in_flight -= 1
        self.in_flight[host] -= 1

    def control(self, method: str, target: str, body: bytes) -> tuple[int, Any]:
        """Return the response to `/lab/...`: a status and a value for JSON."""
        split = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(split.query).items()}
        root, _, what = split.path.rpartition("/")
        if root != "/lab":
            return 404, {"error": f"there is no {split.path}"}
        try:
            if what == "truth":
                return 200, sorted(self.world.truth(int(query["generation"])))
            if method == "POST" and what == "prepared":
                return 200, self.answers.prepare_all(self.generation)
            if method == "POST":
                self._set_state(what, query, body)
        except (BadSetting, KeyError, TypeError, ValueError) as error:
            return 400, {"error": str(error)}
        if what == "generation":
            return 200, self.generation
        if what == "stats":
            return 200, {name: getattr(self.stats, name) for name in Stats.__slots__}
        if what == "world":
            return 200, self.world.fields()
        return 404, {"error": f"there is no {split.path}"}

    def _set_state(self, what: str, query: dict[str, str], body: bytes) -> None:
        if what == "generation":
            self.generation = max(0, int(query["n"]))
        elif what == "stats":
            now = self.stats
            self.stats = Stats(
                connections=now.connections,
                connections_max=now.connections,
                in_flight=now.in_flight,
                in_flight_max=now.in_flight,
            )
        elif what == "world":
            world = World.from_fields({**self.world.fields(), **json.loads(body)})
            if world.hosts != self.world.hosts:
                raise BadSetting("the number of hosts cannot change while the server runs")
            self.alter(world)


class Connection(asyncio.Protocol):
    """One client on one host: HTTP/1.1 with keep-alive, one request at a time, in order."""

    __slots__ = ("_busy", "_closing", "_counted", "_host", "_inbox", "_link", "_timer", "_transport", "_web")

    def __init__(self, web: Web, host: int) -> None:
        self._web = web
        self._host = host
        self._inbox = b""
        self._busy = False
        self._closing = False
        self._counted = False
        self._link: SharedLine | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._link is not None:
            self._link.forget(self)
        if self._busy:
            self._busy = False
            self._web.end(self._host)
        if self._counted:
            self._web.stats.connections -= 1

    def data_received(self, data: bytes) -> None:
        self._inbox = self._inbox + data if self._inbox else data
        if not self._busy:
            self._next()

    def _next(self) -> None:
        while self._inbox and not self._busy and not self._closing:
            head, found, remainder = self._inbox.partition(b"\r\n\r\n")
            if not found:
                if len(head) > _LONGEST_REQUEST:
                    self._transport.close()
                return
            lower = head.lower() + b"\r\n"
            length = 0
            if not lower.startswith((b"get ", b"head ")):
                value = header(lower, b"content-length") or b""
                length = int(value) if value.isdigit() else 0
                if len(remainder) < length:
                    return
            self._inbox = remainder[length:]
            self._closing = b"\r\nconnection: close" in lower or b" http/1.0\r\n" in lower
            target = lower[lower.find(b" ") + 1 : lower.find(b" http/1.")]
            if target.startswith(b"/p/") and target[3:].isdigit():
                self._page(int(target[3:]), lower)
            elif target == b"/robots.txt":
                self._transport.write(response(200, "Content-Type: text/plain\r\n", ROBOTS_TXT))
            else:
                self._control(head, target.decode("latin-1"), remainder[:length])

    def _control(self, head: bytes, target: str, body: bytes) -> None:
        status, answer = self._web.control(head.partition(b" ")[0].decode("latin-1"), target, body)
        data = json.dumps(answer).encode() + b"\n"
        self._transport.write(response(status, "Content-Type: application/json\r\n", data))
        if self._closing:
            self._transport.close()

    def _page(self, page: int, head: bytes) -> None:
        web = self._web
        world = web.world
        if not self._counted:
            self._counted = True
            stats = web.stats
            stats.connections += 1
            stats.connections_total += 1
            stats.connections_max = max(stats.connections_max, stats.connections)
        self._busy = True
        web.begin(self._host)
        if not head.startswith((b"get ", b"head ")):
            return self._send(response(405))
        if page >= world.pages:
            return self._send(response(404))
        if page % world.hosts != self._host:
            # A client that mixes up its connections must not go unnoticed.
            web.stats.misdirected += 1
            return self._send(response(421))
        attempt = web.attempts[page]
        web.attempts[page] = attempt + 1
        request = PageRequest(page, web.generation, attempt, head, b"gzip" in head)
        delay = world.delay(page, web.generation)
        if delay:
            self._timer = web.loop.call_later(delay, self._answer_late, request)
            return None
        return self._answer(request)

    def _answer_late(self, request: PageRequest) -> None:
        self._timer = None
        self._answer(request)
        self._next()

    def _answer(self, request: PageRequest) -> None:
        web = self._web
        failure = web.answers.failure(request)
        if failure is None:
            data = web.answers.answer(request)
            if data.startswith(b"HTTP/1.1 304"):
                web.stats.not_modified += 1
        else:
            web.stats.failures += 1
            data = web.answers.failed(failure, request)
            self._closing = self._closing or failure == "cut_short"
        self._send(data)

    def _send(self, data: bytes) -> None:
        self._link = self._web.link
        if self._link is None:
            self._web.stats.bytes += len(data)
            self._transport.write(data)
            self._finish()
        else:
            self._link.send(self, data)

    def sent(self, part: memoryview, done: bool) -> None:
        """Send what the shared line released for this connection."""
        self._web.stats.bytes += len(part)
        self._transport.write(part)
        if done:
            self._link = None
            self._finish()
            self._next()

    def _finish(self) -> None:
        self._busy = False
        self._web.end(self._host)
        if self._closing:
            self._transport.close()


def listeners(world: World, port: int) -> list[socket.socket]:
    """Return a bound socket for each host, all on one port; 0 picks a port that is free on all of them."""
    for _ in range(20):
        sockets: list[socket.socket] = []
        try:
            for host in range(world.hosts):
                bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                sockets.append(bound)
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                bound.bind((world.address(host), port or (sockets[0].getsockname()[1] if host else 0)))
        except OSError as error:
            for opened in sockets:
                opened.close()
            if port or error.errno != errno.EADDRINUSE:
                raise
        else:
            return sockets
    raise BadSetting("no port is free on all hosts: try again, or with fewer hosts")


async def run(world: World, port: int, ready: Callable[[int], None], stop: threading.Event) -> None:
    """Serve the world until `stop` is set."""
    loop = asyncio.get_running_loop()
    web = Web(world, loop)
    pages_markup.pool(world.seed)
    sockets = listeners(world, port)
    servers = [
        await loop.create_server(partial(Connection, web, host), sock=bound, backlog=1024)
        for host, bound in enumerate(sockets)
    ]
    # Nearly all that is allocated lives on (pool, remembered answers): collecting would only visit it again.
    gc.freeze()
    gc.set_threshold(200_000)
    ready(sockets[0].getsockname()[1])
    await asyncio.to_thread(stop.wait)
    for server in servers:
        server.close()


def main(arguments: list[str] | None = None) -> int:
    """Run the server's process: print the port on stdout, and end when stdin is closed."""
    parser = argparse.ArgumentParser(
        prog="python -m driftline.lab.simweb.server", description="Serves a simulated web."
    )
    parser.add_argument("--world", default="{}", help="fields of the world as JSON")
    parser.add_argument("--port", type=int, default=0, help="port on every host; 0 picks a free one")
    options = parser.parse_args(arguments)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        world = World.from_fields(json.loads(options.world))
    except (BadSetting, ValueError) as error:
        parser.error(str(error))
    stop = threading.Event()
    threading.Thread(target=wait_for_end_of_input, args=(stop,), daemon=True).start()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(run(world, options.port, print_ready, stop))
    return 0


def print_ready(port: int) -> None:
    """Print to the parent process that this server is ready."""
    sys.stdout.write(json.dumps({"port": port, "pid": os.getpid()}) + "\n")
    sys.stdout.flush()


def wait_for_end_of_input(stop: threading.Event) -> None:
    """Set `stop` when the parent process closes our standard input, or ends."""
    # Not through sys.stdin: its lock, held by a waiting thread, would upset the end of the interpreter.
    while os.read(0, 4096):
        pass
    stop.set()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


if __name__ == "__main__":
    sys.exit(main())
