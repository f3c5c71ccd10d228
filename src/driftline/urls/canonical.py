"""The canonical form of a URL, so that one page has one URL. docs/urls.md lists what is normalised and what is not.

It is made in two steps: a URL is `written` by the WHATWG URL standard, as every browser does, then `reduced` by rules
of our own, which leave out tracking parameters. A watched page keeps the URL that it was added with, so pages are
looked up by both forms.
"""

from __future__ import annotations

import re
from string import ascii_letters, digits
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import unquote

from ada_url import normalize_url

from driftline.errors import BadURL
from driftline.urls import address_without_password, host_of, without_password
from driftline.urls.tracking import KNOWN

if TYPE_CHECKING:
    from driftline.urls.tracking import Tracking

_LONGEST_TEXT = 8_192
#: characters of a URL: PostgreSQL cannot index more than some 2,690
LONGEST = 2_500
_LONGEST_NAME, _LONGEST_LABEL = 253, 63  # characters of a host name and of each label, by RFC 1035
# zero-width characters that are copied along with a URL from a document or a chat
_UNSEEN = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*", re.IGNORECASE)
_TWO_SCHEMES = re.compile(r"https?://https?//")
# not after a '%' that begins no escape: decoding could make one
_ESCAPE = re.compile(r"(?<!%)(?<!%[0-9A-Fa-f])%[0-9A-Fa-f]{2}")
_UNRESERVED = frozenset(f"{ascii_letters}{digits}-._~")


def canonical(text: str, tracking: Tracking = KNOWN) -> str:
    """Return the canonical form of a URL, the same for all of its spellings; raises BadURL."""
    return acceptable(reduced(written(text), tracking))


def written(text: str) -> str:
    """Return the URL as the WHATWG URL standard writes it; raises BadURL.

    A text without a scheme is read as https, as in a browser's address bar. A fragment is kept only where it names a
    page.
    """
    text = text.strip().strip(_UNSEEN).strip()
    if not text:
        raise BadURL("The address is empty: give one such as https://example.com/.")
    if len(text) > _LONGEST_TEXT:
        raise BadURL(_too_long(address_without_password(text), len(text)))
    if not text.isprintable() and _CONTROL.search(text):
        raise BadURL(f"The address {address_without_password(text)[:100]!r} contains control characters.")
    if " " in text:
        shown = address_without_password(text)
        raise BadURL(f"The address '{shown}' contains a space: write it as %20, or give one address at a time.")
    try:
        address = normalize_url(_with_scheme(text))
    except ValueError:
        _refuse(text)
    page, _, fragment = address.partition("#")
    return address if _names_page(fragment) else page


def reduced(address: str, tracking: Tracking) -> str:
    """Return a `written` URL with the escapes of its path normalised, and without tracking parameters."""
    page, hash_mark, fragment = address.partition("#")
    before, mark, query = page.partition("?")
    if "%" in before:
        path = before.index("/", len("https://"))
        before = before[:path] + _ESCAPE.sub(_normal_escape, before[path:])
    if query:
        parameters = query.split("&")
        kept = [one for one in parameters if not tracking.drops(_name(one))]
        if len(kept) < len(parameters):
            query = "&".join(kept)
            mark = "?" if query else ""
    return f"{before}{mark}{query}{hash_mark}{fragment}"


def acceptable(address: str) -> str:
    """Return the URL; raises BadURL if it is well-formed and yet cannot be watched."""
    problem = problem_with(address)
    if problem is not None:
        raise BadURL(problem)
    return address


def problem_with(address: str) -> str | None:
    """Return why a well-formed URL cannot be added; None if it can. Pages that are watched already are not affected."""
    if len(address) > LONGEST:
        return _too_long(without_password(address), len(address))
    if _TWO_SCHEMES.match(address):
        return f"The address '{without_password(address)}' begins with two schemes: leave one of them out."
    return _problem_with_host(host_of(address))


def _too_long(shown: str, length: int) -> str:
    return f"The address {shown[:60]}… is {length:,} characters long; the most is {LONGEST:,}."


def _problem_with_host(host: str) -> str | None:
    if host.endswith(":0"):
        return f"The host {host[:60]} has port 0, at which there is no server: leave it out, or give another."
    if host.startswith("["):
        return None
    name = host.partition(":")[0].removesuffix(".")
    labels = name.split(".")
    longest = max(labels, key=len)
    if len(name) > _LONGEST_NAME:
        return f"The host {name[:60]}… is {len(name):,} characters long; the most that names have is {_LONGEST_NAME}."
    if "" in labels:
        return f"The host '{host}' has a dot too many: something is missing before or after it."
    if len(longest) > _LONGEST_LABEL:
        most = f"the most between two dots is {_LONGEST_LABEL}"
        return f"The part {longest[:20]}… of the host {name[:60]}… is {len(longest)} characters long; {most}."
    return None


def _with_scheme(text: str) -> str:
    if text.startswith(("https://", "http://")) and text.partition("://")[2][:1] not in ("/", "\\"):
        return text
    scheme, colon, rest = text.partition(":")
    if not (colon and _SCHEME.fullmatch(scheme)):
        scheme = ""
    if scheme.lower() in ("http", "https"):
        # the standard takes what follows any number of slashes as the host, but 'http:///x' hardly has one
        after = rest.lstrip("/\\")
        return text if len(rest) - len(after) == 2 or _names_host(after) else _refuse(text)
    # 'localhost:8080' and 'example.com:/x' have a host and a port, 'mailto:me@example.com' a scheme
    if scheme and (rest.startswith("//") or not (rest[:1].isdigit() or "." in scheme)):
        shown = address_without_password(text)
        raise BadURL(f"'{shown}' is not on the web: only http and https addresses can be watched.")
    return f"https://{text}" if _names_host(text) else _refuse(text)


def _names_host(text: str) -> bool:
    """Return whether a text without a scheme begins with a host: a name with a dot, or localhost."""
    host = re.split(r"[/\\?#]", text.removeprefix("//"), maxsplit=1)[0]
    return "@" not in host and ("." in host.strip(".") or host.startswith("[") or host.partition(":")[0] == "localhost")


def _names_page(fragment: str) -> bool:
    """Return whether a fragment names a page of a single-page application, such as '!/inbox' or '/inbox'."""
    return fragment.startswith(("!", "/")) and fragment.strip("!/") != ""


def _name(parameter: str) -> str:
    name = parameter.partition("=")[0]
    return (unquote(name) if "%" in name else name).lower()


def _normal_escape(found: re.Match[str]) -> str:
    """Return an escape as RFC 9110, section 4.2.3, writes it: in capital letters, and decoded where not needed."""
    escape = found[0]
    character = chr(int(escape[1:], 16))
    return character if character in _UNRESERVED else escape.upper()


def _refuse(text: str) -> NoReturn:
    shown = address_without_password(text)
    raise BadURL(f"'{shown}' is not the address of a web page: give one such as https://example.com/.") from None
