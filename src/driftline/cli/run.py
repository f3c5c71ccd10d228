"""`run`: keep checking pages, the most urgent first, and report what changed."""

from __future__ import annotations

import typer

from driftline.cli.options import (
    BudgetOption,
    ExecOption,
    HostConnectionsOption,
    HostDelayOption,
    MinOption,
    NetworksOption,
    OnceOption,
    PolicyOption,
    RobotsOption,
    StallOption,
    StoreOption,
    UsualOption,
    VerboseOption,
    opened,
)


def run(
    every: UsualOption = "1h",
    budget: BudgetOption = None,
    policy: PolicyOption = None,
    command: ExecOption = None,
    min_importance: MinOption = None,
    once: OnceOption = False,
    verbose: VerboseOption = False,
    host_delay: HostDelayOption = None,
    host_connections: HostConnectionsOption = None,
    robots: RobotsOption = None,
    stall_after: StallOption = None,
    allow_network: NetworksOption = None,
    store: StoreOption = None,
) -> None:
    """Keep checking pages on a schedule and report changes.

    Watched sites are crawled again once a day, or as 'driftline crawl --every' says.

    Ctrl-C ends it. The exit status is 1 if pages that were due are left, or events that --exec did not get yet.
    """
    from driftline.cli.watching import watch
    from driftline.model.change import Importance
    from driftline.watch.service import WatchOptions

    with opened(
        store, allow_networks=allow_network, make=not once, patient=True, host_delay=host_delay,
        host_connections=host_connections, robots=robots, stall_after=stall_after, min_importance=min_importance,
    ) as watch_list:  # fmt: skip
        chosen = Importance(watch_list.settings.min_importance)
        options = WatchOptions(every=every, budget=budget, policy=policy, once=once, least=chosen)
        complete = watch(watch_list, options, command, verbose=verbose)
    if not complete:
        raise typer.Exit(1)
