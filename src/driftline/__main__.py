"""Where the command begins: Ctrl-C is quiet from here on, also while all that it needs is being imported."""

from __future__ import annotations

import os
import signal
from typing import NoReturn

_INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command with the arguments of the process, and end the process."""
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # unless who started it wants it ignored
    if heard:
        # no exception yet: libraries take one that comes while they are imported for a fault of theirs
        signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    from driftline.cli.main import main as run

    try:
        if heard:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
