"""Private networks that pages were added from: what checks will say of them is said at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline.cli.output import clean, count, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.fetching.addresses import Refusal

_TOLD = 10  # networks


def warn_of_networks(urls: Sequence[str], networks: Sequence[str]) -> None:
    """Say of the pages whose addresses show it that checks will not fetch them as things are set."""
    from driftline.fetching.addresses import judge_for, name_of

    judge = judge_for(networks)
    refused: dict[str, list[tuple[str, Refusal]]] = {}
    for url in urls:
        name = name_of(url)
        if not name[-1:].isdigit() and ":" not in name:  # what a name stands for is seen when it is fetched
            continue
        try:
            refusal = judge(name)
        except ValueError:
            continue
        if refusal is not None:
            refused.setdefault(refusal.network, []).append((url, refusal))
    for network, pages in [*refused.items()][:_TOLD]:
        url, refusal = pages[0]
        which = f"{url} is" if len(pages) == 1 else f"{count(len(pages), 'page')}, {url} the first, are"
        what = f"{refusal.address} is {refusal.kind} address"
        say(clean(f"{which} fetched only with --allow-network {network}: {what}."), to_stderr=True)
    if len(refused) > _TOLD:
        say(f"So are pages in {count(len(refused) - _TOLD, 'more network')}.", to_stderr=True)
