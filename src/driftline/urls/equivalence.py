"""URLs of the same page: without session ids, and with their parameters in any order.

The canonical form of a URL must never be wrong. A crawl may guess beyond that: a page that is missed because its URL
has a session id costs little, and a crawl of the same page under a thousand session ids would never end.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from blake3 import blake3

KEY_BYTES = 16
_OPAQUE = r"(?:[0-9a-f]{16,}|(?=[0-9a-z]*\d)(?=[0-9a-z]*[a-z])[0-9a-z]{20,})"
_SURE = r"phpsessid|jsessionid|aspsessionid[a-z]*|asp\.net_sessionid|cfid|cftoken|zenid|oscsid"
# these may also be the number of a story or a search term, so only opaque values count as a session id
_LIKELY = r"sid|sess|sessid|session|sessionid|session_id|sesskey|s"
_IN_QUERY = re.compile(rf"(?:(?:{_SURE})=[^&]*|(?:{_LIKELY})={_OPAQUE})", re.IGNORECASE)
_IN_SEGMENT = re.compile(rf";(?:(?:{_SURE})=[^/;?]*|(?:{_LIKELY})={_OPAQUE})", re.IGNORECASE)
_WHOLE_SEGMENT = re.compile(
    rf"/(?:\((?:[a-z]\([0-9a-z_-]+\))+\)|(?:{_SURE})[-_=:][^/]+|(?:{_LIKELY})[-_=:]{_OPAQUE})(?=/|$)", re.IGNORECASE
)


def without_session(url: str) -> str:
    """Return a canonical URL without its session ids."""
    before, mark, query = url.partition("?")
    start = before.find("/", 8)
    path = before[start:]
    if ";" in path:
        path = _IN_SEGMENT.sub("", path)
    if "(" in path or "=" in path or "-" in path or "_" in path or ":" in path:
        path = _WHOLE_SEGMENT.sub("", path) or "/"
    if query:
        parameters = query.split("&")
        kept = [one for one in parameters if not _IN_QUERY.fullmatch(one)]
        if len(kept) < len(parameters):
            query = "&".join(kept)
            mark = "?" if query else ""
    return f"{before[:start]}{path}{mark}{query}"


def as_user_of(page: str, url: str) -> str:
    """Return a URL found on a page, with the user name and password of the page's own URL if the origin is the same.

    Others that the URL names are removed: a page could name any number of users, and each would be another URL.
    """
    if "@" not in url and "@" not in page:
        return url
    own, theirs = urlsplit(page), urlsplit(url)
    user, at, host = own.netloc.rpartition("@")
    named = theirs.netloc.rpartition("@")[2]
    here = (own.scheme, host) == (theirs.scheme, named)
    return url.replace(f"//{theirs.netloc}", f"//{user}{at}{named}" if here else f"//{named}", 1)


def key_of(url: str) -> bytes:
    """Return a digest that is equal for URLs of the same page, whatever their scheme and order of parameters."""
    before, _, query = url.partition("://")[2].partition("?")
    if "&" in query:
        query = "&".join(sorted(query.split("&")))
    return blake3(f"{before}?{query}".encode("utf-8", "replace")).digest(KEY_BYTES)
