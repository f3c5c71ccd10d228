"""The canonical form of an address, so that one page has one name. What is done, and what is left, is in docs/urls.md.

It is made in two steps: an address is `written` as the WHATWG URL standard says, which every browser does too, then
`reduced` by rules of our own. A watched page keeps the name that it was added under, so it is looked for by both.
"""

from __future__ import annotations

import re
from string import ascii_letters, digits
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import unquote

from ada_url import normalize_url

from driftline.errors import BadURL
from driftline.urls.parts import host_of
from driftline.urls.tracking import KNOWN

if TYPE_CHECKING:
    from driftline.urls.tracking import Tracking

_LONGEST_TEXT = 8_192
#: the most characters that an address has: PostgreSQL cannot index more than some 2,690
LONGEST = 2_500
_LONGEST_NAME, _LONGEST_LABEL = 253, 63  # of a host and each of its parts, as RFC 1035 has it
# what comes along when an address is copied from a document or a chat, and has no width
_UNSEEN = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*", re.IGNORECASE)
_TWO_SCHEMES = re.compile(r"https?://https?//")
# after a '%' that begins no escape, decoding could make one
_ESCAPE = re.compile(r"(?<!%)(?<!%[0-9A-Fa-f])%[0-9A-Fa-f]{2}")
_UNRESERVED = frozenset(f"{ascii_letters}{digits}-._~")


def canonical(text: str, tracking: Tracking = KNOWN) -> str:
    """The one form of an address for all of its spellings; BadURL says what is wrong with it."""
    return acceptable(reduced(written(text), tracking))


def written(text: str) -> str:
    """The address as the WHATWG URL standard writes it; BadURL says what is wrong with it.

    A text without a scheme is taken as https, as a browser's address bar does. A fragment stays only where it names
    a page.
    """
    text = text.strip().strip(_UNSEEN).strip()
    if not text:
        raise BadURL("The address is empty: give one such as https://example.com/.")
    if len(text) > _LONGEST_TEXT:
        raise BadURL(f"The address {text[:60]}… is {len(text):,} characters long; the most is {LONGEST:,}.")
    if not text.isprintable() and _CONTROL.search(text):
        raise BadURL(f"The address {text[:100]!r} contains control characters.")
    if " " in text:
        raise BadURL(f"The address '{text}' contains a space: write it as %20, or give one address at a time.")
    try:
        address = normalize_url(_with_scheme(text))
    except ValueError:
        _refuse(text)
    page, _, fragment = address.partition("#")
    return address if _names_page(fragment) else page


def reduced(address: str, tracking: Tracking) -> str:
    """An address that is `written`, with the escapes of its path in their normal form and without tracking."""
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
    """The address; BadURL if it is well written, and yet no page can be added under it."""
    problem = problem_with(address)
    if problem is not None:
        raise BadURL(problem)
    return address


def problem_with(address: str) -> str | None:
    """Why no page can be added under an address that is well written. One that is watched already stays."""
    if len(address) > LONGEST:
        return f"The address {address[:60]}… is {len(address):,} characters long; the most is {LONGEST:,}."
    if _TWO_SCHEMES.match(address):
        return f"The address '{address}' begins with two schemes: leave one of them out."
    return _problem_with_host(host_of(address))


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
        # the standard takes what follows any number of slashes for the host: 'http:///x' is more likely without one
        after = rest.lstrip("/\\")
        return text if len(rest) - len(after) == 2 or _names_host(after) else _refuse(text)
    # 'localhost:8080' and 'example.com:/x' have a host and a port, 'mailto:me@example.com' a scheme
    if scheme and (rest.startswith("//") or not (rest[:1].isdigit() or "." in scheme)):
        raise BadURL(f"'{text}' is not on the web: only http and https addresses can be watched.")
    return f"https://{text}" if _names_host(text) else _refuse(text)


def _names_host(text: str) -> bool:
    """Whether a text without a scheme begins with what can only be meant as a host: a name with a dot, or localhost."""
    host = re.split(r"[/\\?#]", text.removeprefix("//"), maxsplit=1)[0]
    return "@" not in host and ("." in host.strip(".") or host.startswith("[") or host.partition(":")[0] == "localhost")


def _names_page(fragment: str) -> bool:
    """Whether a fragment is a page of an application that runs in the browser, such as '!/inbox' or '/inbox'."""
    return fragment.startswith(("!", "/")) and fragment.strip("!/") != ""


def _name(parameter: str) -> str:
    name = parameter.partition("=")[0]
    return (unquote(name) if "%" in name else name).lower()


def _normal_escape(found: re.Match[str]) -> str:
    """An escape as RFC 9110, section 4.2.3, wants it: capital letters, and none where none is needed."""
    escape = found[0]
    character = chr(int(escape[1:], 16))
    return character if character in _UNRESERVED else escape.upper()


def _refuse(text: str) -> NoReturn:
    raise BadURL(f"'{text}' is not the address of a web page: give one such as https://example.com/.") from None
