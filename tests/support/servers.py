"""Real web servers on the loopback interface.

`Server` answers exactly the bytes that a test wrote down. `Site` is one that serves pages from a dictionary.
"""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a client asked for. `connection` numbers the connections of the server from 1."""

    path: str
    headers: Mapping[str, str]
    connection: int
    method: str = "GET"
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The bytes to send; then `hold` keeps silent until the server is released, and `close` hangs up."""

    data: bytes
    hold: bool = False
    close: bool = False


Script: TypeAlias = Callable[[Request], Answer]


def answer(
    body: bytes = b"", status: str = "200 OK", *headers: str, length: int | None = None, hold: bool = False,
    close: bool = False,
) -> Answer:  # fmt: skip
    """An answer with a Content-Length, that of the body unless another is given."""
    size = len(body) if length is None else length
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {size}", *headers, "", ""]
    return Answer(data="\r\n".join(lines).encode("latin-1") + body, hold=hold, close=close)


def html(text: str, *headers: str) -> Answer:
    """A page with this text."""
    page = f"<!doctype html><title>A page</title><body><p>{text}</p></body>"
    return answer(page.encode(), "200 OK", "Content-Type: text/html; charset=utf-8", *headers)


def redirect(to: str, *headers: str, status: str = "302 Found") -> Answer:
    """An answer that sends the client elsewhere."""
    return answer(b"gone", status, f"Location: {to}", *headers)


class Server:
    """Answers each request as `script` says, each connection in a thread of its own, until the `with` block ends."""

    def __init__(
        self, script: Script, tls: ssl.SSLContext | None = None, address: str = "127.0.0.1", port: int = 0
    ) -> None:
        self._script = script
        self._tls = tls
        self._host = f"[{address}]" if ":" in address else address
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listener = socket.create_server((address, port), family=family, backlog=512)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._ended = False
        self.connections = 0
        self.requests: list[Request] = []
        self.asked = threading.Event()
        self.released = threading.Event()
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        with self._lock:
            self._ended = True
            for connection in self._open:
                _shut(connection)
        _shut(self._listener)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def url(self, path: str = "/") -> str:
        """The address of a path of this server."""
        return f"http{'' if self._tls is None else 's'}://{self._host}:{self.port}{path}"

    def asked_for(self, path: str) -> list[Request]:
        """The requests for one path, in order."""
        return [request for request in list(self.requests) if request.path == path]

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._ended:
                    connection.close()
                    return
                self.connections += 1
                self._open.add(connection)
                number = self.connections
            self._start(self._serve, connection, number)

    def _serve(self, connection: socket.socket, number: int) -> None:
        stream: socket.socket = connection
        try:
            if self._tls is not None:
                stream = self._tls.wrap_socket(connection, server_side=True)
                with self._lock:
                    self._open.discard(connection)
                    self._open.add(stream)
            self._converse(stream, number)
        except OSError:
            pass  # the client hung up, or did not trust us
        finally:
            with self._lock:
                self._open -= {connection, stream}
            stream.close()
            connection.close()

    def _converse(self, stream: socket.socket, number: int) -> None:
        with stream.makefile("rb") as source:
            while (request := _read(source, number)) is not None:
                self.requests.append(request)
                self.asked.set()
                reply = self._script(request)
                stream.sendall(reply.data)
                if reply.hold:
                    self.released.wait()
                if reply.close:
                    _shut(stream)
                    return


class Site:
    """Serves what `pages` holds at the moment; a path that is not in it is a 404.

    While `open_gate` is clear, answers are held back. `asked` is set by the first request.
    """

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.open_gate = threading.Event()
        self.open_gate.set()
        self._server = Server(self._answer)
        self.asked = self._server.asked

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.open_gate.set()
        self._server.__exit__(kind, error, trace)

    def url(self, path: str) -> str:
        """Return the address of a page of the site."""
        return self._server.url(path)

    def put(self, path: str, text: str, title: str = "A page") -> str:
        """Serve a page with this text from now on, and return its address."""
        self.pages[path] = f"<!doctype html><title>{title}</title><p>{text}</p>".encode()
        return self.url(path)

    def _answer(self, request: Request) -> Answer:
        self.open_gate.wait()
        body = self.pages.get(request.path)
        status = "404 Not Found" if body is None else "200 OK"
        return answer(body or b"", status, "Content-Type: text/html; charset=utf-8")


class Silent:
    """A port that takes connections and never says a word."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()


def closed_port() -> int:
    """A port of the loopback interface that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def self_signed(folder: Path) -> Path | None:
    """A certificate for 127.0.0.1 with its key in one file, made on the spot; None where there is no openssl."""
    openssl = shutil.which("openssl")
    if openssl is None:
        return None
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = [
        openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
        "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key),
        "-out", str(certificate),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_bytes(certificate.read_bytes() + key.read_bytes())
    return both


def _read(source: BinaryIO, connection: int) -> Request | None:
    line = source.readline
    first = line().decode("latin-1").split()
    if len(first) < 2:
        return None
    headers: dict[str, str] = {}
    while text := line().decode("latin-1").strip():
        name, _, value = text.partition(":")
        headers[name.strip().lower()] = value.strip()
    body = source.read(int(headers.get("content-length", "0")))
    return Request(path=first[1], headers=headers, connection=connection, method=first[0], body=body)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it was shut before
