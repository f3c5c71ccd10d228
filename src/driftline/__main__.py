"""Start the command: Ctrl-C ends it without a traceback from here on, also while modules are imported."""

from __future__ import annotations

import os
import signal
from typing import NoReturn

_INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command with the arguments of the process, and end the process."""
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # nohup, for one, ignores the signal
    if interruptible:
        # no exception yet: a library whose import is interrupted by one reports it as a fault of its own
        signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    from driftline.cli.main import main as run

    try:
        if interruptible:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
