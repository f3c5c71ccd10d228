"""Where the secrets of a page may go: to its own origin, or to the same host by TLS once `http://` has led there."""

from __future__ import annotations

from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


class Home:
    """The place of a page, as far as its secrets are concerned."""

    def __init__(self, url: str) -> None:
        place = _place(url)
        self._places = {place} if place is not None else set()
        if place is not None and (place[0], place[2]) == ("http", 80):
            self._places.add(("https", place[1], 443))

    def has(self, url: str) -> bool:
        """Whether what is asked of this address may come with the secrets of the page."""
        return _place(url) in self._places

    def is_next_door(self, host: str, port: int) -> bool:
        """Whether this is another port of the same host: it is not home, although cookies know no ports."""
        return any(host == one[1] for one in self._places) and all(port != one[2] for one in self._places)

    @property
    def origins(self) -> list[str]:
        """All that is home, as browsers write it."""
        return [_origin(*place) for place in sorted(self._places)]


def _place(url: str) -> tuple[str, str, int] | None:
    """The scheme, host and port of an address on the web; None if it is not on it."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    return (parts.scheme, parts.hostname, port) if parts.scheme in _PORTS and parts.hostname and port else None


def _origin(scheme: str, host: str, port: int) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"{scheme}://{name}" + ("" if port == _PORTS[scheme] else f":{port}")
