from __future__ import annotations

import base64

import pytest

from driftline.errors import BadSetting
from driftline.http.credentials import Access, MissingSecret, read_access


def test_what_is_written_is_what_is_sent() -> None:
    access = read_access(headers=["X-Key: abc: d", "Accept-Language:de"], cookies=["a=1; b=2", "c=x=y"])
    assert access.sent_headers({}) == {"X-Key": "abc: d", "Accept-Language": "de"}
    assert access.sent_cookies({}) == {"a": "1", "b": "2", "c": "x=y"}


def test_a_password_and_a_token_become_an_authorization() -> None:
    sent = read_access(basic="me:pass:word").sent_headers({})["Authorization"]
    assert base64.b64decode(sent.removeprefix("Basic ")) == b"me:pass:word"
    assert read_access(bearer="abc").sent_headers({}) == {"Authorization": "Bearer abc"}


def test_a_value_may_be_a_variable_of_the_environment() -> None:
    access = read_access(headers=["X-Key: env:KEY"], cookies=["s=env:SESSION"], bearer="env:TOKEN", proxy="env:PROXY")
    variables = {"KEY": "k", "SESSION": "s", "TOKEN": "t", "PROXY": "http://p:1"}
    assert access.sent_headers(variables) == {"X-Key": "k", "Authorization": "Bearer t"}
    assert access.sent_cookies(variables) == {"s": "s"}
    assert access.proxy_or(None, variables) == "http://p:1"
    with pytest.raises(MissingSecret, match="The environment variable KEY"):
        access.sent_headers({})
    with pytest.raises(MissingSecret, match="characters that cannot be sent"):
        access.sent_headers({"KEY": "a\r\nX-Other: b"})


@pytest.mark.parametrize("value", ["", "secret:1", "ftp://secret:1"])
def test_a_variable_that_names_no_proxy_is_not_taken_for_none(value: str) -> None:
    """Without it, the page would be requested directly, from this machine."""
    with pytest.raises(MissingSecret) as refused:
        read_access(proxy="env:PROXY").proxy_or(None, {"PROXY": value})
    assert str(refused.value) == "The environment variable PROXY is not a proxy such as http://host:port."


@pytest.mark.parametrize(
    "given",
    [
        {"headers": ["no colon"]},
        {"headers": ["bad name: x"]},
        {"headers": [": x"]},
        {"headers": ["X: secret\r\nEvil: 1"]},
        {"headers": ["X: secret\x00"]},
        {"headers": ["Host: other"]},
        {"headers": ["Cookie: a=secret"]},
        {"cookies": ["secret"]},
        {"cookies": ["a=se cret"]},
        {"cookies": ["a b=secret"]},
        {"basic": "secret"},
        {"basic": "me:secret\n"},
        {"bearer": "secret\n"},
        {"basic": "me:secret", "bearer": "secret"},
        {"basic": "me:secret", "headers": ["authorization: x"]},
        {"proxy": "secret"},
        {"proxy": "ftp://me:secret@host"},
    ],
)
def test_what_cannot_be_sent_is_refused_and_not_shown(given: dict[str, list[str]]) -> None:
    with pytest.raises(BadSetting) as refused:
        read_access(**given)  # type: ignore[arg-type]
    assert "secret" not in str(refused.value)


def test_no_secret_is_ever_shown() -> None:
    access = read_access(
        headers=["X-Key: secret"], cookies=["session=secret"], basic="me:secret", proxy="http://me:secret@proxy:3128"
    )
    assert access.shown() == ["header X-Key", "cookie session", "password of me", "proxy http://proxy:3128"]
    assert "secret" not in repr(access)
    assert "secret" not in repr(read_access(bearer="secret"))


def test_what_is_stored_is_all_of_it() -> None:
    access = read_access(headers=["X-Key: k"], cookies=["s=1"], bearer="t", proxy="none")
    assert Access.from_stored(access.stored()) == access
    assert Access().stored() == {}


def test_the_page_comes_before_its_tag() -> None:
    page = read_access(headers=["x-key: own"], bearer="own")
    tag = read_access(headers=["X-Key: all", "X-Other: all"], cookies=["s=1"], basic="me:all", proxy="http://p:1")
    both = page.before(tag)
    assert both.headers == {"X-Other": "all", "x-key": "own"}
    assert (both.basic, both.bearer, both.cookies, both.proxy) == ("", "own", {"s": "1"}, "http://p:1")


def test_one_authorization_is_sent_and_that_of_the_page_takes_precedence() -> None:
    by_header, by_password = read_access(headers=["authorization: own"]), read_access(basic="me:word")
    assert by_header.before(by_password).sent_headers({}) == {"authorization": "own"}
    assert list(by_password.before(by_header).sent_headers({})) == ["Authorization"]


def test_what_is_taken_away_must_be_there() -> None:
    access = read_access(headers=["X-Key: k"], cookies=["s=1"], bearer="t")
    assert access.without(["x-key", "s", "bearer"]) == Access()
    with pytest.raises(BadSetting, match="no 'basic'"):
        access.without(["basic"])


@pytest.mark.parametrize(
    ("proxy", "used"), [("", "http://usual:1"), ("none", None), ("socks5h://own:1", "socks5h://own:1")]
)
def test_a_page_may_have_a_proxy_of_its_own_or_none(proxy: str, used: str | None) -> None:
    assert read_access(proxy=proxy).proxy_or("http://usual:1", {}) == used
