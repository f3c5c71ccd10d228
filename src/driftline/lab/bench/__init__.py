"""Benchmarks, one module for each, and watch lists for them: all of their pages are served by this machine."""

from __future__ import annotations

from typing import Any

from driftline.api.watch_list import Driftline
from driftline.api.watch_list import open as open_store
from driftline.settings import load_settings

#: the servers are our own, and many pages of one address are what is measured: no delays, but everything is counted
_HERE = {
    "allow_networks": ("127.0.0.0/8", "::1/128"),
    "proxy": None,
    "host_delay": 0.0,
    "host_connections": 10_000,
    "address_connections": 10_000,
    "robots": "ignore",
}


def open_local(store: str, **options: Any) -> Driftline:
    """Open a watch list that may fetch from the loopback interface, without delays unless the options set them."""
    ours = {name: value for name, value in _HERE.items() if name not in options}
    return open_store(settings=load_settings(store=store, **options).model_copy(update=ours))
