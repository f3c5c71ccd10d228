"""Private networks that pages were added from: what checks will say of them is said at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline.cli.output import clean, count, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from driftline.fetching.addresses import Refusal

_TOLD = 10  # networks


class PrivateNetworks:
    """Collects pages whose addresses show that checks will not fetch them as things are set: `networks` are allowed."""

    def __init__(self, networks: Sequence[str]) -> None:
        from driftline.fetching.addresses import judge_for

        self._judge = judge_for(networks)
        self._refused: dict[str, tuple[int, str, Refusal]] = {}  # how many of a network, and the first

    def look(self, urls: Iterable[str]) -> None:
        """Note the pages that will not be fetched."""
        from driftline.fetching.addresses import name_of

        for url in urls:
            name = name_of(url)
            if not name[-1:].isdigit() and ":" not in name:  # what a name stands for is seen when it is fetched
                continue
            try:
                refusal = self._judge(name)
            except ValueError:
                continue
            if refusal is not None:
                before, first, why = self._refused.get(refusal.network, (0, url, refusal))
                self._refused[refusal.network] = (before + 1, first, why)

    def warn(self) -> None:
        """Say which pages were noted, by network."""
        for network, (pages, url, refusal) in [*self._refused.items()][:_TOLD]:
            which = f"{url} is" if pages == 1 else f"{count(pages, 'page')}, {url} the first, are"
            what = f"{refusal.address} is {refusal.kind} address"
            say(clean(f"{which} fetched only with --allow-network {network}: {what}."), to_stderr=True)
        if len(self._refused) > _TOLD:
            say(f"So are pages in {count(len(self._refused) - _TOLD, 'more network')}.", to_stderr=True)
