"""Hosts that look like others."""

from __future__ import annotations

import pytest
from ada_url import idna_to_ascii

from driftline.safety.warnings import look_alikes, skeleton


def ascii_of(host: str) -> str:
    return idna_to_ascii(host).decode()


@pytest.mark.parametrize(
    "fake",
    [
        "\u0440\u0430\u0443\u0440\u0430l.com",  # Cyrillic
        "p\u03b1ypal.com",  # Greek
        "www.\u0440aypal.com",
        "paypa\u04cf.com",
        "payp\u0251l.com",  # Latin, but not ours
    ],
)
def test_a_host_in_letters_that_look_like_those_of_another_is_reported(fake: str) -> None:
    assert look_alikes(["paypal.com", "example.org", ascii_of(fake)]) == {ascii_of(fake): "paypal.com"}


@pytest.mark.parametrize("honest", ["b\u00fccher.de", "\u043f\u0440\u0438\u043c\u0435\u0440.com", "\u4f8b\u3048.jp"])
def test_an_honest_name_of_another_script_is_not(honest: str) -> None:
    assert look_alikes(["bucher.de", "paypal.com", "example.com", ascii_of(honest)]) == {}


def test_a_host_looks_like_none_that_is_not_watched() -> None:
    assert look_alikes([ascii_of("\u0440aypal.com"), "example.com"]) == {}


def test_plain_hosts_are_their_own_skeletons_but_for_digits() -> None:
    assert skeleton("www.example.com") == "example.com"
    assert skeleton("g00gle.com") == skeleton("google.com")
