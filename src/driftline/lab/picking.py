"""`lab picking`: how long it takes to find what to check next, and how much memory the scheduler needs."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from statistics import median

import numpy as np

from driftline.scheduling.index import DAY, Index

_TURNS = 15
_AT_ONCE = 500
_PAGES_PER_HOST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A number of pages: milliseconds to pick 500 of them, to learn from their checks, and the memory of it all."""

    pages: int
    pick_ms: float
    learn_ms: float
    peak_mb: float


def measure(pages: int) -> Row:
    """Pick and learn in a process of its own, so that its memory is nobody else's."""
    command = [sys.executable, "-m", "driftline.lab.picking", str(pages)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    return Row(**json.loads(ran.stdout))


def _measured(pages: int) -> Row:
    random = np.random.default_rng(1)
    index = Index(pages)
    hosts = max(1, pages // _PAGES_PER_HOST)
    index.host[:] = random.integers(0, hosts, pages)
    index.weight[:] = random.pareto(1.1, pages) + 0.05
    index.a[:] = random.uniform(0.3, 20, pages)
    index.b[:] = index.a / random.lognormal(-3, 2, pages)
    index.checked[:] = random.uniform(0, 30 * DAY, pages)
    room = np.full(hosts, 3)
    picks, learns = [], []
    for turn in range(_TURNS):
        now = 31 * DAY + turn
        began = time.perf_counter()
        places = index.pick(now, _AT_ONCE, room=room)
        picked = time.perf_counter()
        index.learn(places, now, random.random(len(places)) < 0.3)
        picks.append(picked - began)
        learns.append(time.perf_counter() - picked)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Row(pages=pages, pick_ms=1000 * median(picks), learn_ms=1000 * median(learns), peak_mb=peak)


if __name__ == "__main__":
    print(json.dumps(asdict(_measured(int(sys.argv[1])))))
