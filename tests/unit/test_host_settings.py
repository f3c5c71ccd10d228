"""How a host is treated: by what is set for it, for a tag of its pages, or for all."""

from __future__ import annotations

from typing import Any

import pytest

from driftline.settings import HostPolicy, host_policy
from support.making import settings

ALL = {"host_delay": 2.0, "host_connections": 1, "robots": "obey"}
HOSTS = {
    "intranet.example": {"delay": 0},
    "*.example": {"delay": 9, "connections": 4},
    "port.example:8080": {"connections": 2},
    "[::1]": {"robots": "ignore"},
}
TAGS = {"own": {"robots": "ignore", "delay": 0.5}, "few": {"delay": 7, "connections": 3}}


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("elsewhere.org", {}),
        ("intranet.example", {"delay": 0.0, "connections": 4}),
        ("intranet.example:81", {"delay": 0.0, "connections": 4}),
        ("a.b.example", {"delay": 9.0, "connections": 4}),
        ("port.example:8080", {"delay": 9.0, "connections": 2}),
        ("[::1]", {"robots": False}),
        ("[::1]:8080", {"robots": False}),
        ("tagged.org", {"robots": False, "delay": 0.5}),
        ("twice.org", {"robots": False, "delay": 0.5, "connections": 3}),
    ],
)
def test_what_is_said_of_a_host_goes_before_what_is_said_of_more(host: str, expected: dict[str, Any]) -> None:
    given = settings(**ALL, hosts=HOSTS, tags=TAGS)
    found = host_policy(host, given, {"tagged.org": ["other", "own"], "twice.org": ["few", "own"]})
    assert found == HostPolicy(**{"delay": 2.0, "connections": 1, "robots": True} | expected)
