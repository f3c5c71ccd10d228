"""Waiting for another process that checks pages of the same store."""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, TypeVar

from driftline.errors import StoreBusy, StoreLocked, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from driftline.pipeline.stop import Stop
    from driftline.store.process_locks import Having

_LONGEST = 60.0  # seconds: commands that cron starts every few minutes must not pile up behind one that never ends

_Result = TypeVar("_Result")


def retry_while_busy(
    do: Callable[[], _Result], stop: Stop, be_next: Callable[[], Having], remark: Callable[[str], None],
    ticks: Callable[[], float] = time.monotonic, *, pause: float = 0.1,
) -> _Result:  # fmt: skip
    """Return what `do` returns, tried again for a minute while another process checks pages (StoreBusy).

    The first time it has to wait, `remark` gets a sentence that says why. While it waits it holds `be_next`, so that a
    watcher that always has something to check makes way. Raise StoreBusy if that is not enough after a minute, or once
    a stop is requested. There are `pause` seconds between two tries.
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
                    remark(f"Waiting for a minute at most: {error}")
                elif stop.requested or ticks() >= end:
                    raise
            if not is_next:
                with suppress(StoreBusy, StoreLocked, StoreUnavailable):  # then it waits without being the next
                    place.enter_context(be_next())
                    is_next = True
            bell.wait(pause)
