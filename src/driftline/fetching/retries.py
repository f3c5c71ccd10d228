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

    from driftline.settings import Settings

_NO_ANSWER = (pycurl.E_GOT_NOTHING, pycurl.E_RECV_ERROR, pycurl.E_SEND_ERROR)


class Retries:
    """Asks once more for what a transfer got no answer to over a connection that was kept alive.

    `headers` are those that came so far. `redirects` and `seconds` are those of the transfer before it was taken up
    again, which libcurl does not know of. It is told how far a transfer may go, and for how long.
    """

    __slots__ = ("_before", "_curl", "_headers", "_most", "_spent", "_timeout", "redirects", "seconds", "used")

    def __init__(self, curl: pycurl.Curl, headers: Sequence[bytes], settings: Settings) -> None:
        self._curl = curl
        self._headers = headers
        self._most = settings.max_redirects
        self._timeout = settings.total_timeout
        self._before = self.redirects = 0
        self._spent = self.seconds = 0.0
        self.used = False
        self._limit()
        # a request of another protocol, of which libcurl knows that it must not be repeated; it has no other word for
        # that, and over HTTP this one means nothing else
        curl.setopt(pycurl.OPT_RTSP_REQUEST, pycurl.RTSPREQ_RECEIVE)

    def again(self, error: int) -> bool:
        """Whether to ask once more, for which the handle is ready then, after a transfer that ended in this error."""
        curl = self._curl
        redirects = curl.getinfo(pycurl.REDIRECT_COUNT)
        kept = curl.getinfo(pycurl.NUM_CONNECTS) <= redirects  # for fewer were opened than there were requests
        if error not in _NO_ANSWER or not kept or self._answered(redirects):
            return False
        self.used = True
        self._before = len(self._headers)
        self.redirects += redirects
        self.seconds += curl.getinfo(pycurl.TOTAL_TIME)
        curl.setopt(pycurl.URL, curl.getinfo_raw(pycurl.EFFECTIVE_URL))
        curl.setopt(pycurl.FRESH_CONNECT, 1)
        self._limit()
        return True

    def begin(self, spent: float = 0.0) -> None:
        """Another transfer begins, for a page that has taken so many seconds; to be told after one was `used` again."""
        self.used = False
        self._before = len(self._headers)
        self.redirects = 0
        self.seconds = 0.0
        self._spent = spent
        self._curl.setopt(pycurl.FRESH_CONNECT, 0)
        self._limit()

    def _limit(self) -> None:
        left = self._timeout - self._spent - self.seconds
        self._curl.setopt(pycurl.MAXREDIRS, self._most - self.redirects)
        self._curl.setopt(pycurl.TIMEOUT_MS, max(1, int(left * 1000)))

    def _answered(self, redirects: int) -> bool:
        """Whether there is an answer beside those that redirected."""
        kinds = [line.partition(b" ")[2][:1] for line in self._headers[self._before :] if line.startswith(b"HTTP/")]
        return kinds != [b"3"] * redirects
