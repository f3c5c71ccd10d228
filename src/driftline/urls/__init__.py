"""URLs: their parts are here; canonical form, tracking parameters and equivalence in modules of their own."""

from __future__ import annotations

import re

HIDDEN = "***"
# also without a scheme, as users may type it
_PASSWORD = re.compile(r"(?:(?<=://)|(?<![^\s'\"(=])(?!mailto:))([^\s:/?#@'\"]*):[^\s/?#]*@", re.IGNORECASE)


def without_password(text: str) -> str:
    """Return the text with `***` in place of the password of every URL in it."""
    return _PASSWORD.sub(rf"\1:{HIDDEN}@", text) if ":" in text and "@" in text else text


def as_sent(url: str) -> str:
    """Return the URL as it is sent: without a fragment, a user name and a password."""
    scheme, separator, rest = url.partition("#")[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def host_of(url: str) -> str:
    """Return the host of a canonical URL, with its port unless that is the default one."""
    return url.split("/", 3)[2].rpartition("@")[2]
