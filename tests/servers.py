"""A small real web site on the loopback interface, for tests of the whole."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType


class Site:
    """Serves what `pages` holds at the moment; a path that is not there is a 404.

    While `open_gate` is clear, answers are held back; `asked` is set by the first request.
    """

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.asked = threading.Event()
        self.open_gate = threading.Event()
        self.open_gate.set()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.open_gate.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def url(self, path: str) -> str:
        """The address of a page of the site."""
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def put(self, path: str, text: str, title: str = "A page") -> str:
        """Serve a page with this text from now on; its address."""
        self.pages[path] = f"<!doctype html><title>{title}</title><p>{text}</p>".encode()
        return self.url(path)


class _Server(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True
    block_on_close = False


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            site.asked.set()
            site.open_gate.wait()
            body = site.pages.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body or b"")))
            try:
                self.end_headers()
                self.wfile.write(body or b"")
            except OSError:
                self.close_connection = True  # a run that was stopped does not wait for the answer

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 the signature of the base class
            pass

    return Handler
