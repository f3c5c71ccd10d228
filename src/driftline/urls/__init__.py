"""URLs: their parts are here; canonical form, tracking parameters and equivalence in modules of their own."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

HIDDEN = "***"
_AS_HIDDEN = rf"\1:{HIDDEN}@"
# up to the last '@' before a path. It is searched for in whole words only, so that a long text takes no longer
_USER_INFO = re.compile(r"(?<![^\s/?#])[^\s/?#]*@")
_AFTER_SLASHES = re.compile(r"^([^:@'\"]*):.*@", re.DOTALL)
# also without a scheme, as users may type it
_IN_WORD = re.compile(r"((?:^|(?<=['\"(=]))(?!mailto:)[^:@'\"(=]*):.*@", re.DOTALL | re.IGNORECASE)
_IN_PARAMETER = re.compile(r"((?<=['\"(=])(?!mailto:)[^:@'\"(=]*):.*@", re.DOTALL | re.IGNORECASE)
# with a '/', '?' or '#' in the password, where a port should be; such an address is no URL, but is shown in errors
_NO_PORT = re.compile(r"(?:(?<=//)|(?<=:/))(?!\[)([^\s:/?#@'\"]*):(?!\d{0,5}(?:[/?#)\]}>,;'\"\s]|$))[^\s\"@]{0,300}@")
_ONE_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*:?[/\\]+|[/\\]*)(?!mailto:)([^:/?#@\[]*):(?!\d{0,5}[/?#])", re.IGNORECASE)
# PostgreSQL takes a password as a parameter too; a "'" may end a quoted URL
_DATABASE_URL = re.compile(r"postgres(?:ql)?(?:\+\w+)?://(?:[^\s'\"]|'(?=[^\s.,:;)]))+", re.IGNORECASE)
_HOST = re.compile(r"(?<=//)[^\s/?#'\"]{1,300}")
_ENCODED = re.compile(r"(?<![\w-])xn--[a-z0-9-]{1,59}")
_WRITTEN_TOGETHER = ({"CJK", "HIRAGANA", "KATAKANA", "LATIN"}, {"CJK", "HANGUL", "LATIN"}, {"CJK", "BOPOMOFO", "LATIN"})
_LOOK_LIKE_LATIN = frozenset("асԁеһіјӏорԛѕԝхуъьгвкмнтьЅІЈαικνορτυχωεηγβցհլոոսօզЬɡıɑɩʟꜱᴦ")
_PASSWORD_PARAMETER = re.compile(r"([?&](?:ssl)?password=)[^&]*", re.IGNORECASE)


def without_password(text: str) -> str:
    """Return the text with `***` in place of the password of every URL in it."""
    if "password=" in text and "postgres" in text:
        text = _DATABASE_URL.sub(lambda url: _PASSWORD_PARAMETER.sub(rf"\1{HIDDEN}", url[0]), text)
    if ":" not in text or "@" not in text:
        return text
    if "//" in text or ":/" in text:
        text = _NO_PORT.sub(_AS_HIDDEN, text)
    return _USER_INFO.sub(_without_user_password, text)


def address_without_password(text: str) -> str:
    """Return a text that was given as one address, however malformed, without what may be its password."""
    before, at, after = text.rpartition("@")
    found = _ONE_ADDRESS.match(before)
    return without_password(f"{found[0]}{HIDDEN}@{after}" if at and found else text)


def _without_user_password(found: re.Match[str]) -> str:
    """Return a part of a URL that ends with '@', with its password hidden where it is a user name and a password."""
    text, start, part = found.string, found.start(), found[0]
    if text.endswith(("//", ":/"), 0, start):
        return _AFTER_SLASHES.sub(_AS_HIDDEN, part)
    in_path = start > 0 and not text[start - 1].isspace()
    return (_IN_PARAMETER if in_path else _IN_WORD).sub(_AS_HIDDEN, part, 1)


def as_sent(url: str) -> str:
    """Return the URL as it is sent: without a fragment, a user name and a password."""
    scheme, separator, rest = url.partition("#")[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def with_readable_hosts(text: str) -> str:
    """Return the text with international host names as people type them: `münchen.de` for `xn--mnchen-3ya.de`.

    A name stays as it is sent if it mixes scripts, or has only letters that look like others: it may pose as another.
    """
    return _HOST.sub(_with_readable_labels, text) if "xn--" in text else text


@lru_cache(4_096)
def _readable(label: str) -> str:
    try:
        name = label[4:].encode("ascii").decode("punycode")
    except (UnicodeError, OverflowError):
        return label
    if name.isascii() or name != unicodedata.normalize("NFKC", name).lower():
        return label
    letters = [letter for letter in name if letter.isalpha() or unicodedata.category(letter).startswith("M")]
    scripts = {unicodedata.name(letter, "?").partition(" ")[0] for letter in letters}
    together = next((some for some in _WRITTEN_TOGETHER if scripts <= some), None)
    odd = any(not one.isalnum() and one != "-" and not unicodedata.category(one).startswith("M") for one in name)
    if odd or not letters or (len(scripts) > 1 and together is None):
        return label
    return label if all(letter.isascii() or letter in _LOOK_LIKE_LATIN for letter in letters) else name


def _with_readable_labels(host: re.Match[str]) -> str:
    return _ENCODED.sub(lambda label: _readable(label[0]), host[0])


def host_of(url: str) -> str:
    """Return the host of a canonical URL, with its port unless that is the default one."""
    return url.split("/", 3)[2].rpartition("@")[2]
