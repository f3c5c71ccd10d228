"""Taking turns with another process that checks pages of the same store."""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, TypeVar

from driftline.cli.output import clean, say
from driftline.errors import StoreBusy, StoreLocked, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from driftline.pipeline.stop import Stop
    from driftline.store.process_locks import Having

_LONGEST = 60.0  # seconds: who is started every hour must not pile up behind others that have no end
_PAUSE = 0.1  # seconds between two tries

_Result = TypeVar("_Result")


def in_turn(
    do: Callable[[], _Result], stop: Stop, be_next: Callable[[], Having], ticks: Callable[[], float] = time.monotonic
) -> _Result:  # fmt: skip
    """What `do` returns, tried again for a minute while another process checks pages, which is said once.

    Meanwhile it tries to `be_next`, so that a run makes way that has always something to check. StoreBusy if there is
    no turn for it in that time, or a stop is requested.
    """
    end: float | None = None
    bell = stop.listen()
    with ExitStack() as place:
        is_next = False
        while True:
            try:
                return do()
            except StoreBusy as error:
                if end is None:
                    end = ticks() + _LONGEST
                    say(clean(f"Waiting for a minute at most: {error}"), to_stderr=True)
                elif stop.requested or ticks() >= end:
                    raise
            if not is_next:
                with suppress(StoreBusy, StoreLocked, StoreUnavailable):  # then it waits without being the next
                    place.enter_context(be_next())
                    is_next = True
            bell.wait(_PAUSE)
