"""The library: `import driftline` offers what is public of it.

`Driftline` (`watch_list`) is a thin layer of methods for programs. It works with a `Workspace`, which the commands
and benchmarks use too, for what is not public.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from driftline.api.watch_list import Driftline
    from driftline.api.workspace import Workspace


def workspace_of(watch_list: Driftline) -> Workspace:
    """Return the parts that a watch list works with. Internal: they change without notice."""
    return watch_list._workspace
