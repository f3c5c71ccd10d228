"""Taking turns with another process that checks pages of the same store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from driftline.cli.output import clean, say
from driftline.errors import StoreBusy

if TYPE_CHECKING:
    from collections.abc import Callable

    from driftline.pipeline.stopping import Stop

_LONGEST = 60.0  # seconds: who is started every hour must not pile up behind a run without a pause
_PAUSE = 0.1  # seconds between two tries: a run that has little to do has its pauses between them

_Result = TypeVar("_Result")


def in_turn(do: Callable[[], _Result], stop: Stop, ticks: Callable[[], float] = time.monotonic) -> _Result:
    """What `do` returns, tried again for a minute while another process checks pages, which is said once.

    StoreBusy if it has no pause in that time, or a stop is requested.
    """
    end: float | None = None
    bell = stop.listen()
    while True:
        try:
            return do()
        except StoreBusy as error:
            if end is None:
                end = ticks() + _LONGEST
                say(clean(f"Waiting for a minute at most: {error}"), to_stderr=True)
            elif stop.requested or ticks() >= end:
                raise
        bell.wait(_PAUSE)
