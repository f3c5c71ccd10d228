"""How the threads of a run are arranged: which pipeline, and how many of everything."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from typing import Literal, get_args

from driftline.errors import BadSetting

PipelineName = Literal["sequential", "three-section", "two-section"]
PIPELINES: tuple[PipelineName, ...] = get_args(PipelineName)
_MOST_IN_FLIGHT = 2_048
_OTHER_FILES = 256  # descriptors that are not transfers: the store, the workers, what every producer needs
_LIMITS = {
    "producers": 512,
    "slots": 4_096,
    "consumers": 128,
    "comparers": 128,
    "queues": 64,
    "capacity": 1_000_000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The requested arrangement; None stands for `auto`, a number that is found while running."""

    pipeline: PipelineName = "two-section"
    producers: int | None = None
    slots: int | None = None
    consumers: int | None = None
    comparers: int | None = None
    queues: int = 1
    capacity: int = 500

    def __post_init__(self) -> None:
        if self.pipeline not in PIPELINES:
            raise BadSetting(f"'{self.pipeline}' is not a pipeline: choose one of {', '.join(PIPELINES)}.")
        for name, most in _LIMITS.items():
            value: object = getattr(self, name)
            if value is None and name not in ("queues", "capacity"):
                continue
            if not isinstance(value, int) or isinstance(value, bool):
                raise BadSetting(f"--{name} must be a whole number between 1 and {most:,}, not {value!r}.")
            if not 1 <= value <= most:
                raise BadSetting(f"--{name} must be between 1 and {most:,}, not {value:,}.")
        if self.queues > 1 and self.pipeline != "two-section":
            raise BadSetting("--queues goes with the two-section pipeline only.")
        if self.comparers is not None and self.pipeline != "three-section":
            raise BadSetting("--comparers goes with the three-section pipeline only.")


def most_in_flight() -> int:
    """Return how many transfers may be in flight: 2,048, or fewer where the system allows fewer open files.

    The system's soft limit, often 1,024, is raised to its hard limit first.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard and soft < _MOST_IN_FLIGHT + _OTHER_FILES:
        soft = hard if hard != resource.RLIM_INFINITY else _MOST_IN_FLIGHT + _OTHER_FILES
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return _MOST_IN_FLIGHT if soft == resource.RLIM_INFINITY else max(16, min(_MOST_IN_FLIGHT, soft - _OTHER_FILES))


def parse_count(name: str, text: str) -> int | None:
    """Return a number, or None for 'auto'; raise BadSetting for any other text."""
    if text == "auto":
        return None
    try:
        return int(text)
    except ValueError:
        raise BadSetting(f"--{name} must be a number or 'auto', not '{text}'.") from None
