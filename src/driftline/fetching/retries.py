"""How often a page is asked for when no answer comes.

A server may close a connection that is kept alive just when it is used again, and then asking once more is right.
libcurl would do so over each connection that it has kept, six times in all, and a page that makes its server break
would do so each time. So it is told not to, and what got no answer is asked for once more, over a new connection. A
callback before every request could count them too, but would cost every page for what hardly ever happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pycurl

if TYPE_CHECKING:
    from collections.abc import Sequence

_NO_ANSWER = (pycurl.E_GOT_NOTHING, pycurl.E_RECV_ERROR, pycurl.E_SEND_ERROR)


class Retries:
    """Asks once more for what a transfer got no answer to over a connection that was kept alive.

    `headers` are those that came so far, and `timeout` the seconds that a page may take in all. `seconds` are those
    that a transfer took before it was taken up again, which libcurl does not know of.
    """

    __slots__ = ("_curl", "_headers", "_spent", "_timeout", "seconds", "used")

    def __init__(self, curl: pycurl.Curl, headers: Sequence[bytes], timeout: float) -> None:
        self._curl = curl
        self._headers = headers
        self._timeout = timeout
        self.begin()
        # a request of another protocol, of which libcurl knows that it must not be repeated; it has no other word for
        # that, and over HTTP this one means nothing else
        curl.setopt(pycurl.OPT_RTSP_REQUEST, pycurl.RTSPREQ_RECEIVE)

    def begin(self, spent: float = 0.0) -> None:
        """Another transfer begins, for a page that has taken so many seconds; to be told after one that was not so."""
        self.used = False
        self.seconds = 0.0
        self._spent = spent
        self._curl.setopt(pycurl.FRESH_CONNECT, 0)
        self._limit()

    def again(self, error: int) -> bool:
        """Whether to ask once more, for which the handle is ready then, after a transfer that ended in this error."""
        kept = not self._curl.getinfo(pycurl.NUM_CONNECTS)
        if error not in _NO_ANSWER or not kept or self._headers or self.used:
            return False
        self.used = True
        self.seconds = self._curl.getinfo(pycurl.TOTAL_TIME)
        self._curl.setopt(pycurl.FRESH_CONNECT, 1)
        self._limit()
        return True

    def _limit(self) -> None:
        left = self._timeout - self._spent - self.seconds
        self._curl.setopt(pycurl.TIMEOUT_MS, max(1, int(left * 1000)))
