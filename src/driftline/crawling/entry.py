"""Which requests of a crawl are let in by what is set for the tag that its pages are watched under."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline.home import Home

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.access import Access
    from driftline.versions.crawled import Address


class Entry:
    """The access of a tag in a crawl from these seeds.

    Pages lead a crawl to wherever they like, and a tag has no origin of its own. So secrets go to the origins that
    somebody named: those of the seeds. All else takes the same way, by the proxy, and is shown nothing.
    """

    def __init__(self, access: Access | None, seeds: Sequence[str]) -> None:
        self._access = access or None
        self._only_proxy = access.only_proxy() or None if access else None
        self._homes = [Home(seed) for seed in seeds] if access else []

    def of(self, address: Address) -> Access | None:
        """What is sent along for this address; for a robots.txt no more than the other requests for it send."""
        at_home = address.kind != "robots" and any(home.has(address.url) for home in self._homes)
        return self._access if at_home else self._only_proxy
