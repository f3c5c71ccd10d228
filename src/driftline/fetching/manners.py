"""How each host is treated: what is set for it, for a tag of its pages, or for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from driftline.settings import HostSettings, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """Requests at once, the seconds from an answer to the next request, and whether robots.txt is obeyed."""

    connections: int = 1
    delay: float = 1.0
    robots: bool = True


def manners_of(host: str, settings: Settings, tags: Mapping[str, Sequence[str]]) -> Manners:
    """How a host is treated, whose pages have these tags by host.

    Its own settings go before those of a tag, and of several tags those that the user wrote first.
    """
    chosen = [
        *_named(host, settings.hosts),
        *[one for tag, one in settings.tags.items() if tag in tags.get(host, ())],
    ]
    delay = next((one.delay for one in chosen if one.delay is not None), settings.host_delay)
    connections = next((one.connections for one in chosen if one.connections is not None), settings.host_connections)
    robots = next((one.robots for one in chosen if one.robots is not None), settings.robots)
    return Manners(connections=connections, delay=delay, robots=robots == "obey")


def _named(host: str, hosts: Mapping[str, HostSettings]) -> Iterator[HostSettings]:
    """What is set for this host, with its port, without, then for the domains that it is in, the closest first."""
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    parts = name.split(".")
    for key in (host, name, *["*." + ".".join(parts[start:]) for start in range(1, len(parts))]):
        if key in hosts:
            yield hosts[key]
