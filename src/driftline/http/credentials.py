"""Credentials that are sent with the requests for a page: headers, cookies, a password, a token, and its proxy.

These are secrets. They are shown by name only, and are sent to the origin of the page and to no other. A value may be
`env:NAME`: then it is read from that environment variable when the page is fetched, and never stored.
"""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from driftline.errors import BadSetting, DriftlineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_COOKIE_VALUE = re.compile(r"[^\x00-\x20;,\x7f]*")
_VARIABLE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
_PROXY = re.compile(r"(?:https?|socks(?:4a?|5h?))://[^\s/]+/?")
_NO_PROXY = "none"
_AUTHORIZATION = "authorization"
_OURS = {
    "accept-encoding", "connection", "content-length", "host", "if-modified-since", "if-none-match", "range", "te",
    "transfer-encoding", "upgrade",
}  # fmt: skip


class MissingSecret(DriftlineError):
    """An environment variable with a credential of a page is not set, or has an unusable value."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Access:
    """The credentials of a page. `basic` is `user:password`; a `proxy` of `none` disables that of the settings."""

    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: Mapping[str, str] = field(default_factory=dict)
    basic: str = ""
    bearer: str = ""
    proxy: str = ""

    def __repr__(self) -> str:
        return f"Access({', '.join(self.shown())})"

    def __bool__(self) -> bool:
        return bool(self.headers or self.cookies or self.basic or self.bearer or self.proxy)

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> Self:
        """Return the credentials that `stored` returned as plain values."""
        return cls(**stored)

    def stored(self) -> dict[str, Any]:
        """Return all fields that are set, as plain values."""
        found = {
            "headers": dict(self.headers), "cookies": dict(self.cookies), "basic": self.basic, "bearer": self.bearer,
            "proxy": self.proxy,
        }  # fmt: skip
        return {name: value for name, value in found.items() if value}

    def shown(self) -> list[str]:
        """Return what is set, in words, without any secret."""
        found = [f"header {name}" for name in self.headers]
        found += [f"cookie {name}" for name in self.cookies]
        found += [f"password of {_user(self.basic)}"] if self.basic else []
        found += ["bearer token"] if self.bearer else []
        return found + ([f"proxy {_without_user(self.proxy)}"] if self.proxy else [])

    def before(self, other: Access) -> Access:
        """Return these credentials, with those of the other where these have none."""
        own = self.basic or self.bearer or any(name.lower() == _AUTHORIZATION for name in self.headers)
        return Access(
            headers=merged_headers(other.headers, self.headers), cookies={**other.cookies, **self.cookies},
            basic=self.basic if own else other.basic, bearer=self.bearer if own else other.bearer,
            proxy=self.proxy or other.proxy,
        )  # fmt: skip

    def without(self, names: Iterable[str]) -> Access:
        """Return this without the headers and cookies of these names, or `basic`, `bearer`, `proxy`.

        Raises BadSetting if there is none of such a name.
        """
        left = self
        for name in names:
            headers = {one: value for one, value in left.headers.items() if one.lower() != name.lower()}
            cookies = {one: value for one, value in left.cookies.items() if one != name}
            basic, bearer, proxy = (
                "" if name == one else value
                for one, value in (("basic", left.basic), ("bearer", left.bearer), ("proxy", left.proxy))
            )
            less = Access(headers=headers, cookies=cookies, basic=basic, bearer=bearer, proxy=proxy)
            if less == left:
                raise BadSetting(f"There is no '{name}' to remove.")
            left = less
        return left

    def only_proxy(self) -> Access:
        """Return the proxy alone, without anything that a server would see."""
        return Access(proxy=self.proxy)

    def sent_headers(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the headers to send, cookies aside; raises MissingSecret if a variable is not set."""
        found = {name: _resolved(value, variables) for name, value in self.headers.items()}
        if self.basic:
            login = f"Basic {b64encode(_resolved(self.basic, variables).encode()).decode()}"
        elif self.bearer:
            login = f"Bearer {_resolved(self.bearer, variables)}"
        else:
            return found
        return merged_headers(found, {"Authorization": login})

    def sent_cookies(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the cookies to send; raises MissingSecret if a variable is not set."""
        return {name: _resolved(value, variables) for name, value in self.cookies.items()}

    def proxy_or(self, usual: str | None, variables: Mapping[str, str]) -> str | None:
        """Return the proxy of the page or else the `usual` one; raises MissingSecret if a variable names none."""
        if not self.proxy:
            return usual
        proxy = _resolved(self.proxy, variables)
        if proxy == _NO_PROXY:
            return None
        if not is_proxy(proxy):
            raise MissingSecret(
                f"The environment variable {self.proxy.removeprefix('env:')} is not a proxy such as http://host:port."
            )
        return proxy


def read_access(
    *, headers: Sequence[str] = (), cookies: Sequence[str] = (), basic: str = "", bearer: str = "", proxy: str = ""
) -> Access:
    """Return the credentials that a user wrote: headers as `Name: value`, cookies as `name=value; …`.

    Raises BadSetting for what cannot be sent; its message does not contain the value.
    """
    if basic and bearer:
        raise BadSetting("A password and a bearer token cannot be sent together: give one of them.")
    if basic and ":" not in basic:
        raise BadSetting("A password is given with its user: write USER:PASSWORD, or env:NAME of a variable with both.")
    for what, value in (("password", basic), ("bearer token", bearer)):
        _check(_VALUE.fullmatch(value), f"The {what} has characters that cannot be sent.")
    _check(
        not proxy or proxy == _NO_PROXY or is_proxy(proxy) or _VARIABLE.fullmatch(proxy),
        "A proxy is named as http://host:port, or with https, socks4, socks4a, socks5 or socks5h, or is 'none'.",
    )
    given = dict(_header(one) for one in headers)
    if (basic or bearer) and any(name.lower() == _AUTHORIZATION for name in given):
        raise BadSetting("A header 'Authorization' and a password or token cannot be sent together: give one of them.")
    parts = [part for one in cookies for part in one.split(";") if part.strip()]
    return Access(headers=given, cookies=dict(map(_cookie, parts)), basic=basic, bearer=bearer, proxy=proxy)


def is_proxy(text: str) -> bool:
    """Return whether this is the URL of a proxy."""
    return _PROXY.fullmatch(text) is not None


def merged_headers(headers: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return these headers overridden by `own`; names are compared without regard to case."""
    names = {name.lower() for name in own}
    return {**{name: value for name, value in headers.items() if name.lower() not in names}, **own}


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    name, value = name.strip(), value.strip()
    _check(colon and _NAME.fullmatch(name), "A header is written as 'Name: value'.")
    _check(name.lower() not in _OURS, f"The header '{name}' is set by Driftline itself and cannot be given.")
    _check(name.lower() != "cookie", "Cookies are given by --cookie.")
    _check(_VALUE.fullmatch(value), f"The value of the header '{name}' has characters that cannot be sent.")
    return name, value


def _cookie(text: str) -> tuple[str, str]:
    name, sign, value = text.strip().partition("=")
    name, value = name.strip(), value.strip()
    _check(sign and _NAME.fullmatch(name), "A cookie is written as 'name=value'.")
    _check(_COOKIE_VALUE.fullmatch(value), f"The value of the cookie '{name}' has characters that cannot be sent.")
    return name, value


def _check(good: object, sentence: str) -> None:
    if not good:
        raise BadSetting(sentence)


def _resolved(value: str, variables: Mapping[str, str]) -> str:
    named = _VARIABLE.fullmatch(value)
    if named is None:
        return value
    found = variables.get(named[1])
    if found is None:
        raise MissingSecret(f"The environment variable {named[1]}, which has a credential of this page, is not set.")
    if not _VALUE.fullmatch(found):
        raise MissingSecret(f"The environment variable {named[1]} has characters that cannot be sent.")
    return found


def _user(basic: str) -> str:
    return basic if _VARIABLE.fullmatch(basic) else basic.partition(":")[0]


def _without_user(proxy: str) -> str:
    scheme, separator, host = proxy.partition("://")
    return f"{scheme}://{host.rpartition('@')[2]}" if separator else proxy


_PORTS = {"http": 80, "https": 443}


class CredentialScope:
    """The origins that the credentials of a page may be sent to: its own, and the https one if its own is http."""

    def __init__(self, url: str) -> None:
        place = _place(url)
        self._places = {place} if place is not None else set()
        if place is not None and (place[0], place[2]) == ("http", 80):
            self._places.add(("https", place[1], 443))

    def __repr__(self) -> str:
        return f"<CredentialScope {' '.join(self.origins)}>"

    def covers(self, url: str) -> bool:
        """Return whether a request for this URL may have the credentials of the page."""
        return _place(url) in self._places

    def is_other_port(self, host: str, port: int) -> bool:
        """Return whether this is another port of the host, to which a browser would send the cookies too."""
        return any(host == one[1] for one in self._places) and all(port != one[2] for one in self._places)

    @property
    def origins(self) -> list[str]:
        """Return the origins, as browsers write them."""
        return [_origin(*place) for place in sorted(self._places)]


def _place(url: str) -> tuple[str, str, int] | None:
    """Return the scheme, host and port of an http or https URL; None for others."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    return (parts.scheme, parts.hostname, port) if parts.scheme in _PORTS and parts.hostname and port else None


def _origin(scheme: str, host: str, port: int) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"{scheme}://{name}" + ("" if port == _PORTS[scheme] else f":{port}")
