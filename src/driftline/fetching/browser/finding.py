"""Finding what rendering needs: playwright, and a Chromium of the system."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

from driftline.errors import DriftlineError, MissingExtra

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


class NoBrowser(DriftlineError):
    """There is no Chromium that could render the page."""


def find_browser(named: str | None) -> str:
    """The path of Chromium: the one that is named in the settings, or the system's.

    MissingExtra or NoBrowser says what to install.
    """
    if find_spec("playwright") is None:
        raise MissingExtra("Rendering pages", "browser")
    if named is not None:
        found = shutil.which(os.path.expanduser(named))  # noqa: PTH111 a name without a folder is looked for, too
        if found is None:
            raise NoBrowser(f"There is no browser '{named}': DRIFTLINE_BROWSER or the setting 'browser' must name one.")
        return found
    for name in _NAMES:
        if found := shutil.which(name):
            return found
    raise NoBrowser(
        "Rendering pages needs Chromium: install it (Debian: sudo apt-get install chromium), or name it in "
        "DRIFTLINE_BROWSER."
    )
