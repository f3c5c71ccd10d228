"""Parts of addresses: the host, the address as it is sent, and the address with its password hidden."""

from __future__ import annotations

import re

HIDDEN = "***"
# also without a scheme, as somebody may have typed it
_PASSWORD = re.compile(r"(?:(?<=://)|(?<![^\s'\"(=])(?!mailto:))([^\s:/?#@'\"]*):[^\s/?#]*@", re.IGNORECASE)


def without_password(text: str) -> str:
    """The text with `***` in the place of every password of an address in it, to be shown to people and programs."""
    return _PASSWORD.sub(rf"\1:{HIDDEN}@", text) if ":" in text and "@" in text else text


def as_sent(url: str) -> str:
    """The address without what is not sent along: a fragment, and a user's name and password."""
    scheme, separator, rest = url.partition("#")[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def host_of(url: str) -> str:
    """The host of an address in canonical form, with its port where that is not the usual one."""
    return url.split("/", 3)[2].rpartition("@")[2]
