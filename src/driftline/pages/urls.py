"""The canonical form of an address, so that one page has one name."""

from __future__ import annotations

import re

from ada_url import URL

from driftline.errors import BadURL

_LONGEST = 8_192


def canonical(text: str) -> str:
    """The address as the WHATWG URL standard writes it, without its fragment; BadURL says what is wrong with it.

    A text without a scheme is taken as https, as a browser's address bar does.
    """
    text = text.strip()
    if not text:
        raise BadURL("The address is empty: give one such as https://example.com/.")
    if len(text) > _LONGEST:
        raise BadURL(f"The address {text[:60]}… is {len(text)} characters long; the most is {_LONGEST}.")
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in text):
        raise BadURL(f"The address {text!r} contains control characters.")
    if " " in text:
        raise BadURL(f"The address '{text}' contains a space: write it as %20, or give one address at a time.")
    candidate = text if "://" in text or _names_other_scheme(text) else f"https://{text}"
    try:
        url = URL(candidate)
    except ValueError:
        raise BadURL(f"'{text}' is not the address of a web page: give one such as https://example.com/.") from None
    if url.protocol not in ("http:", "https:"):
        raise BadURL(f"'{text}' is not on the web: only http and https addresses can be watched.")
    if "://" not in text and not _names_host(text):
        raise BadURL(f"'{text}' is not the address of a web page: give one such as https://example.com/.")
    url.hash = ""
    address = str(url.href)
    if len(address) > _LONGEST:
        raise BadURL(f"The address {text[:60]}… is too long: the most is {_LONGEST} characters.")
    return address


def _names_host(text: str) -> bool:
    """Whether a text without a scheme begins with what can only be meant as a host: a name with a dot, or localhost."""
    host = re.split(r"[/?#]", text.removeprefix("//"), maxsplit=1)[0]
    return "@" not in host and ("." in host or host.startswith("[") or host.partition(":")[0] == "localhost")


def _names_other_scheme(text: str) -> bool:
    """Whether the text begins as 'mailto:a@b' does, and not as 'localhost:8080' or 'example.com:80/x' do."""
    scheme, colon, rest = text.partition(":")
    return bool(colon) and scheme.isalpha() and not rest[:1].isdigit()
