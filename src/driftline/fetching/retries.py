"""How often a page is asked for when no answer comes."""

from __future__ import annotations

import pycurl

_MOST = 2  # requests in one transfer
#: what libcurl says by itself when a connection that was never used before brings no answer
NO_ANSWER = (pycurl.E_GOT_NOTHING, "Empty reply from server")


class Retries:
    """Lets libcurl ask once more, and not up to six times, when a connection was closed without an answer.

    A server may close a connection that is kept alive just when it is used again, and then asking once more is right.
    libcurl does so over each connection that it has kept, and a page that makes its server break would do so each time.
    """

    __slots__ = ("_requests", "spent")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Another transfer begins."""
        self._requests = 0
        self.spent = False

    def allow(self, *_addresses: object) -> int:
        """Whether a request may be sent; called by libcurl before each."""
        self._requests += 1
        self.spent = self._requests > _MOST
        return pycurl.PREREQFUNC_ABORT if self.spent else pycurl.PREREQFUNC_OK
