"""`lab web`: serve the simulated web."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 typer reads the annotations when it runs
from typing import Annotated

import typer

from driftline.cli.output import say


def web(
    pages: Annotated[int, typer.Option(help="How many pages there are.")] = 1_000,
    hosts: Annotated[int, typer.Option(help="How many hosts they are on, each with an address of its own.")] = 100,
    port: Annotated[int, typer.Option(help="The port that every host listens on; 0 takes a free one.")] = 8080,
    size: Annotated[int, typer.Option(help="Mean size of a page in bytes.")] = 67_000,
    latency: Annotated[float, typer.Option(help="Mean seconds before an answer.")] = 0.0,
    bandwidth: Annotated[int, typer.Option(help="Bytes a second that all connections share; 0 is no limit.")] = 0,
    change_rate: Annotated[float, typer.Option(help="Share of pages that change in a generation.")] = 0.05,
    noise: Annotated[str, typer.Option(metavar="off|hidden|visible", help="What differs at every request.")] = "off",
    etag: Annotated[bool, typer.Option("--etag", help="Send ETags and answer 304.")] = False,
    error_rate: Annotated[float, typer.Option(help="Share of pages that fail.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Another seed makes another web.")] = 1,
    urls: Annotated[Path | None, typer.Option(help="Write the addresses of all pages to this file.")] = None,
    ceiling: Annotated[bool, typer.Option("--ceiling", help="Measure how fast it can answer, then end.")] = False,
) -> None:
    """Serve a simulated web on this machine until Ctrl-C; POST /lab/generation?n=N on any host makes pages change."""
    from driftline.cli.progress import first_signal
    from driftline.lab.simweb import simweb_client
    from driftline.lab.simweb.world import World
    from driftline.pipeline.stop import Bell

    shape = "lognormal" if latency else "none"
    world = World.from_fields({
        "pages": pages, "hosts": hosts, "seed": seed, "size_mean": size, "latency": latency, "latency_shape": shape,
        "bandwidth": bandwidth, "change_rate": change_rate, "noise": noise, "etag": etag, "error_rate": error_rate,
    })  # fmt: skip
    with simweb_client.serve(world, port=port) as running:
        if ceiling:
            running.prepare()
            for in_flight in (64, 512, 2_048):
                if pages > in_flight:
                    speed = simweb_client.ceiling(running, in_flight=in_flight, pages=max(4 * in_flight, 20_000))
                    say(f"{speed:,.0f} pages a second with {in_flight:,} in flight")
            return
        if urls is not None:
            urls.write_text("".join(f"{url}\n" for url in running.urls()))
            say(f"The addresses of {pages:,} pages are in {urls}.")
        say(f"{pages:,} pages on {hosts:,} hosts, the first at {world.url(0, running.port)}; Ctrl-C ends it.")
        bell = Bell()
        ended = False

        def end() -> None:
            nonlocal ended
            ended = True
            bell.ring()

        with first_signal(end):
            while not ended:
                bell.wait(3_600)
