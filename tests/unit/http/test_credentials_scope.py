"""The origins that the credentials of a page may be sent to."""

from __future__ import annotations

import pytest

from driftline.http.credentials import CredentialScope


@pytest.mark.parametrize(
    ("page", "url", "told"),
    [
        ("https://a.example/x", "https://a.example/y?z", True),
        ("https://a.example/", "https://a.example:443/", True),
        ("https://a.example/", "https://a.example:8443/", False),
        ("https://a.example/", "http://a.example/", False),
        ("https://a.example/", "https://www.a.example/", False),
        ("https://a.example/", "https://a.example.evil.example/", False),
        ("https://a.example/", "https://evil.example/?https://a.example/", False),
        ("https://a.example/", "https://a.example@evil.example/", False),
        ("https://me:word@a.example/", "https://a.example/", True),
        ("http://a.example/", "https://a.example/", True),
        ("http://a.example:8080/", "https://a.example/", False),
        ("http://a.example:8080/", "http://a.example/", False),
        ("http://[::1]:81/", "http://[::1]:81/x", True),
        ("https://a.example/", "wss://a.example/", False),
        ("https://a.example/", "about:blank", False),
        ("https://a.example/", "https://a.example:x/", False),
        ("https://a.example/", "", False),
    ],
)
def test_secrets_go_home_and_nowhere_else(page: str, url: str, told: bool) -> None:
    assert CredentialScope(page).covers(url) is told


def test_another_port_of_the_host_is_other_port() -> None:
    home = CredentialScope("http://a.example/")
    assert [home.is_other_port("a.example", port) for port in (80, 443, 8080)] == [False, False, True]
    assert not home.is_other_port("b.example", 8080)


def test_its_origins_are_written_as_browsers_write_them() -> None:
    assert CredentialScope("http://a.example/x").origins == ["http://a.example", "https://a.example"]
    assert CredentialScope("https://me@[::1]:8443/").origins == ["https://[::1]:8443"]
