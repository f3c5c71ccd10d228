"""Passwords of URLs are hidden wherever a text is shown, and other text stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import BadSetting, BadURL, DriftlineError, UnknownPage
from driftline.settings import Settings
from driftline.urls import address_without_password, without_password
from driftline.urls.canonical import canonical

SECRET = "sekret9"
MALFORMED = [
    f"http://me:{SECRET}#x@127.0.0.1/lamp",
    f"http://me:{SECRET}/x@127.0.0.1/lamp",
    f"http://me:{SECRET}?x@127.0.0.1/lamp",
    f"http:///me:{SECRET}@host/",
    f"http:/me:{SECRET}@host/",
    f"https//me:{SECRET}@host/",
    f"//me:{SECRET}@host/",
    f"http:me:{SECRET}@host/",
    f"http://https//me:{SECRET}@host/",
]


BACKSLASHES = f"http:\\\\me:{SECRET}@host/"  # which browsers take for slashes


@pytest.mark.parametrize(
    "url", [*MALFORMED, f"http://me:{SECRET}@host/", f"ftp://:{SECRET}@host", f"me:{SECRET}@host", BACKSLASHES]
)
def test_a_password_is_hidden_however_the_address_is_written(url: str) -> None:
    for text in (url, f"'{url}' is no address.", f"see ({url}), and say={url}"):
        shown = without_password(text)
        assert SECRET not in shown
        assert ":***@" in shown
        assert without_password(shown) == shown
    assert SECRET not in address_without_password(url)


@pytest.mark.parametrize("url", [*MALFORMED, f"http://me:{SECRET} x@host/", f"http://me:{SECRET}\x01@host/"])
def test_an_address_that_is_refused_shows_no_password(url: str) -> None:
    with pytest.raises(BadURL) as refused:
        canonical(url)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "Price: 5 € at 10:30, write to me@example.com or mailto:me@example.com",
        "https://example.com:8080/react@18 and http://localhost:80?mail=a@b",
        "https://social.example/@me/1:2 and https://social.example/a:b@c",
        "http://[::1]:8080/@x and file:///C:/folder/a@b.txt",
        "a:b c@d",
        "https://shop.example/?password=open&user=me",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert without_password(text) == text


@pytest.mark.parametrize("url", ["https://a.example:80/r@18 x", "https://a.example/a:b@c d", "mailto:me@a.example"])
def test_an_address_without_a_password_stays_as_it_is(url: str) -> None:
    assert address_without_password(url) == url


def test_a_password_that_is_a_parameter_of_a_database_is_hidden() -> None:
    url = f"postgresql://127.0.0.1:1/db?user=u&password={SECRET}&sslmode=require"
    assert without_password(f"The store '{url}' is away.") == (
        "The store 'postgresql://127.0.0.1:1/db?user=u&password=***&sslmode=require' is away."
    )
    assert SECRET not in without_password(f"'postgresql://h/db?password={SECRET}': away")
    assert SECRET not in without_password(f"postgres+psycopg://h/db?sslpassword={SECRET}")


def test_no_error_and_no_settings_show_a_password() -> None:
    url = f"https://me:{SECRET}@example.com/"
    for error in (UnknownPage(url), DriftlineError(f"{url} is watched already."), BadURL(url)):
        assert SECRET not in f"{error} {error!r}"
    assert "me:***@example.com" in str(UnknownPage(url))
    settings = Settings(proxy=f"http://me:{SECRET}@proxy:3128", store=f"postgresql://u:{SECRET}@h/db")
    assert SECRET not in f"{settings} {settings!r}"
    assert settings.proxy == f"http://me:{SECRET}@proxy:3128"
    for proxy in (f"gopher://me:{SECRET}@proxy:3128", f"http://me:{SECRET} x@proxy"):
        with pytest.raises(BadSetting) as refused:
            Settings(proxy=proxy)
        assert SECRET not in str(refused.value)


@given(st.text(alphabet="a:@/?#='\" ("))
def test_what_is_hidden_once_stays_as_it_is(text: str) -> None:
    shown = without_password(text)
    assert without_password(shown) == shown


@pytest.mark.parametrize("part", ["=a", "//a:b", "a:b", "//", "=b:", "@", ":", "'a:", "a@/", "//a:b@"])
def test_a_long_text_is_not_read_in_quadratic_time(part: str) -> None:
    text = f"{part * 200_000} :@ {part * 200_000}"  # which would take longer than a test may
    assert without_password(text).count(" ") == 2
