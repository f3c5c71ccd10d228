"""International host names as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.urls import with_readable_hosts


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://xn--mnchen-3ya.example/a", "https://münchen.example/a"),
        ("https://xn--e1afmkfd.xn--p1ai/", "https://пример.рф/"),
        ("https://xn--r8jz45g.xn--zckzah/", "https://例え.テスト/"),
        ("http://xn--hxajbheg2az3al.xn--jxalpdlp/x", "http://παράδειγμα.δοκιμή/x"),
        (
            "Added https://a.example/ and https://xn--bcher-kva.example/",
            "Added https://a.example/ and https://bücher.example/",
        ),
        ("https://a.example/", "https://a.example/"),
    ],
)
def test_a_host_name_is_shown_as_people_type_it(text: str, shown: str) -> None:
    assert with_readable_hosts(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "https://xn--80ak6aa92e.com/",  # Cyrillic letters that all look like Latin ones: apple
        "https://xn--pypal-4ve.com/",  # one Cyrillic letter in a Latin name
        "https://xn--a-ecp.ru/",  # Latin and Cyrillic
        "https://xn--/",
        "https://xn--99999999999/",
        "https://xn--google-.com/",
        "https://fxn--mnchen-3ya.example/",
    ],
)
def test_a_host_name_that_may_pose_as_another_or_is_none_stays_as_it_is_sent(text: str) -> None:
    assert with_readable_hosts(text) == text


@given(label=st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789-", max_size=60))
def test_no_label_is_too_odd(label: str) -> None:
    assert with_readable_hosts(f"https://xn--{label}.example/").startswith("https://")
