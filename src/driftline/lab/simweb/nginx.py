"""The pages of a world as files behind nginx, which outruns every client here."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from isal import igzip

from driftline.lab.bench.local_watch_lists import LabError
from driftline.lab.simweb.world import ROBOTS_TXT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from driftline.lab.simweb.world import World

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


def installed() -> str | None:
    """Return the path of nginx, or None if it is not installed."""
    return shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")


def write_pages(
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
def serve_files(root: Path, folder: Path, plain: int, validating: int) -> Iterator[None]:
    """Serve a folder of gzip files: on port `plain` without validators, on `validating` with ETag and Last-Modified."""
    program = installed()
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


def free_port() -> int:
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
