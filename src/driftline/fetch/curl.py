"""Collecting a body as it comes."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import certifi
import pycurl

from driftline.errors import FailureKind, RunStopped
from driftline.fetch.address_guard import Gate, judge_for, refused_failure
from driftline.fetch.epoll import Sockets
from driftline.fetch.failures import (
    NOTHING,
    carries_page,
    status_failure,
    transfer_failure,
    turned_away,
    unsafe_failure,
)
from driftline.fetch.redirects import MOVED, arrived, behind, not_asked, onward, target_of, why_not
from driftline.http.credentials import Home, MissingSecret
from driftline.model import Document, Failure, Link

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from driftline.fetch.address_guard import Judge
    from driftline.fetch.failures import Blocked
    from driftline.model import Link
    from driftline.settings import Settings


_MANY = 4_096  # chunks


class Body:
    """The chunks of a body, put together once they are all there: a buffer would copy each of them.

    A server that sends them byte by byte would make a list of them take fifty times what the body takes, so that many
    of them are put together meanwhile.
    """

    __slots__ = ("_chunks", "_parts")

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._parts: list[bytes] = []

    def add(self, chunk: bytes) -> None:
        """One more chunk."""
        chunks = self._chunks
        chunks.append(chunk)
        if len(chunks) == _MANY:
            self._parts.append(b"".join(chunks))
            chunks.clear()

    def take(self) -> bytes:
        """All that came, leaving nothing."""
        chunks = self._chunks
        body = chunks[0] if len(chunks) == 1 and not self._parts else b"".join((*self._parts, *chunks))
        chunks.clear()
        self._parts.clear()
        return body


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


def show(curl: pycurl.Curl, link: Link, settings: Settings, ours: Sequence[bytes]) -> str | None:
    """Have the handle send what the server of the page wants to see, beside `ours`, unless redirects led elsewhere.

    The proxy that is used, if any; MissingSecret if something is not there. The handle is for this link alone.
    """
    access = link.access
    assert access is not None
    home = link.way is None or Home(link.way.start.url).has(link.url)
    headers = access.sent_headers(os.environ) if home else {}
    cookies = access.sent_cookies(os.environ) if home else {}
    proxy = access.proxy_or(settings.proxy, os.environ)
    given = {name.lower().encode() for name in headers}
    rest = [line for line in ours if line.partition(b":")[0].lower() not in given]
    curl.setopt(pycurl.HTTPHEADER, [*rest, *[_line(*header) for header in headers.items()]])
    if cookies:
        curl.setopt(pycurl.COOKIE, "; ".join("=".join(one) for one in cookies.items()))
    curl.setopt(pycurl.PROXY, proxy or "")
    return proxy


def not_let_in(link: Link, error: MissingSecret, now: float) -> Document:
    """The document of a link that cannot be fetched, for what would let us in is not there."""
    return not_asked(link, Failure(kind=FailureKind.ACCESS, sentence=str(error)), now)


def _line(name: str, value: str) -> bytes:
    """A header as libcurl is told of it: one without a value would be taken for one not to send."""
    return f"{name}: {value}".encode() if value else f"{name};".encode()


_SYSTEM_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
_ACCEPT = [
    b"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    b"Accept-Encoding: gzip, deflate, br, zstd",
]
_NOT_MODIFIED = 304
_BUFFER = 512 * 1024
_SLOWEST = 10  # bytes a second


class _Slot:
    """One reusable easy handle with what its transfer fills."""

    __slots__ = (
        "admitted", "body", "conditional", "curl", "gate", "headers", "hosts", "link", "retries",
    )  # fmt: skip

    def __init__(self, settings: Settings, judge: Judge, hosts: Sequence[str]) -> None:
        self.body = Body()
        self.headers: list[bytes] = []
        self.conditional = False
        self.link: Link | None = None
        self.admitted = False
        self.gate = Gate(judge)
        self.hosts = hosts
        self.curl = curl = pycurl.Curl()
        self.retries = Retries(curl, self.headers, settings.total_timeout)
        curl.setopt(pycurl.WRITEFUNCTION, self.body.add)
        curl.setopt(pycurl.HEADERFUNCTION, self.headers.append)
        curl.setopt(pycurl.HTTPHEADER, _ACCEPT)
        curl.setopt(pycurl.HTTP_CONTENT_DECODING, 0)
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
        curl.setopt(pycurl.USERAGENT, settings.user_agent)
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        # what the environment names counts for nothing: through a proxy, no address but the proxy's can be judged
        curl.setopt(pycurl.PROXY, settings.proxy or "")
        curl.setopt(pycurl.NOPROXY, "")
        if settings.proxy is None:
            curl.setopt(pycurl.OPENSOCKETFUNCTION, self.gate.open)
        curl.setopt(pycurl.MAXFILESIZE_LARGE, settings.max_body)
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, int(settings.connect_timeout * 1000)))
        curl.setopt(pycurl.LOW_SPEED_LIMIT, _SLOWEST)
        curl.setopt(pycurl.LOW_SPEED_TIME, max(1, int(settings.stall_timeout)))
        curl.setopt(pycurl.BUFFERSIZE, _BUFFER)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.COOKIEFILE, "")  # on, so that cookies can be read and taken along where a redirect leads
        curl.setopt(pycurl.CAINFO, certificates(settings))
        curl.setopt(pycurl.PROXY_CAINFO, certificates(settings))

    def aim(self, link: Link) -> None:
        """Point the handle at a link, with the validators of its last good check, or with what its way left over."""
        self.link = link
        if self.gate.address:
            self.gate.forget()
        curl = self.curl
        curl.setopt(pycurl.URL, link.url)
        if self.hosts:
            curl.setopt(pycurl.RESOLVE, self.hosts)
        if link.way is not None:
            self.retries.begin(link.way.seconds)
            for cookie in link.way.cookies:
                curl.setopt(pycurl.COOKIELIST, cookie)
        validators = _validators(link)
        if (validators or self.conditional) and not self.admitted:
            curl.setopt(pycurl.HTTPHEADER, _ACCEPT + validators)
        self.conditional = bool(validators)

    def admit(self, link: Link, settings: Settings) -> None:
        """Use the slot for this link alone, with what its server wants to see; MissingSecret if that is not there."""
        self.admitted = True
        if show(self.curl, link, settings, _ACCEPT + _validators(link)) is None:
            self.curl.setopt(pycurl.OPENSOCKETFUNCTION, self.gate.open)
        else:
            self.curl.unsetopt(pycurl.OPENSOCKETFUNCTION)

    def take(self) -> tuple[bytes, bytes]:
        """The header block and the body that came, leaving the slot empty for the next link."""
        headers = b"".join(self.headers)
        body = self.body.take()
        self.headers.clear()
        link, self.link = self.link, None
        went_on = link is not None and link.way is not None
        if went_on or self.retries.used:
            self.retries.begin()
        if went_on or b"set-cookie:" in headers.lower():
            self.curl.setopt(pycurl.COOKIELIST, "ALL")
        return headers, body


class Transfers:
    """Starts transfers and gives their documents back as they finish. Used by one thread; `wake` by any.

    `hosts` are addresses of names that nobody else is asked for, as libcurl writes them: 'name:port:address,address'.
    What is `blocked` is not asked for: its documents say why. A document that is a redirect says where that leads, and
    nobody has gone there.
    """

    def __init__(
        self, settings: Settings, clock: Callable[[], float] = time.time, hosts: Sequence[str] = (),
        blocked: Blocked = NOTHING,
    ) -> None:  # fmt: skip
        self._settings = settings
        self._clock = clock
        self._hosts = hosts
        self._judge = judge_for(settings.allow_networks)
        self._blocked = blocked
        self._free: list[_Slot] = []
        self._busy: dict[pycurl.Curl, _Slot] = {}
        self._refused: list[Document] = []
        self._sockets = Sockets()
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._sockets.watch)

    def keep_alive(self, connections: int) -> None:
        """Keep no more than so many connections open, idle ones included; libcurl would keep four times as many."""
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections)

    @property
    def active(self) -> int:
        """How many transfers are in flight."""
        return len(self._busy) + len(self._refused)

    def start(self, links: Iterable[Link]) -> None:
        """Put these links in flight; their documents come out of `wait`."""
        blocked = self._blocked
        watched = blocked.any
        for link in links:
            if watched and (reason := blocked.why(link.url)) is not None:
                self._refused.append(turned_away(link, reason, self._clock()))
                continue
            slot = self._free.pop() if self._free else _Slot(self._settings, self._judge, self._hosts)
            if link.access is not None:
                try:
                    slot.admit(link, self._settings)
                except MissingSecret as error:
                    self._refused.append(not_let_in(link, error, self._clock()))
                    slot.curl.close()
                    continue
            slot.aim(link)
            self._busy[slot.curl] = slot
            self._multi.add_handle(slot.curl)

    def wait(self, timeout: float) -> list[Document]:
        """The documents that finished, as soon as there are any; nothing after `timeout` seconds or when woken."""
        deadline = time.monotonic() + (0.0 if self._refused else timeout)
        while True:
            woken = self._turn(deadline)
            documents = self._finished()
            if documents or woken or time.monotonic() >= deadline:
                return documents

    def wake(self) -> None:
        """Make `wait` return soon; nothing if the transfers are closed."""
        self._sockets.wake()

    def close(self) -> list[Link]:
        """Give up what is in flight and free everything; the links that were given up."""
        given_up = [slot.link for slot in self._busy.values() if slot.link is not None]
        given_up += [document.link for document in self._refused]
        for curl in self._busy:
            self._multi.remove_handle(curl)
            curl.close()
        for slot in self._free:
            slot.curl.close()
        self._busy.clear()
        self._free.clear()
        self._multi.close()
        self._sockets.close()
        return given_up

    def _turn(self, deadline: float) -> bool:
        """Let libcurl react to what happened on its sockets and clocks, waiting until `deadline` at most."""
        # asked for once a turn: a timer callback would come twice for every transfer
        due = self._multi.timeout()
        wait = deadline - time.monotonic()
        if 0 <= due < wait * 1000:
            wait = due / 1000
        happened, woken = self._sockets.wait(wait)
        for descriptor, action in happened:
            self._multi.socket_action(descriptor, action)
        if due >= 0:
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        return woken

    def _finished(self) -> list[Document]:
        documents, self._refused = self._refused, []
        left = 1
        while left:
            left, good, bad = self._multi.info_read(1024)
            if not good and not bad:
                break
            now = self._clock()
            documents += [self._document(curl, now) for curl in good]
            documents += [self._document(one, now, (no, text)) for one, no, text in bad if not self._repeated(one, no)]
        return documents

    def _repeated(self, curl: pycurl.Curl, error: int) -> bool:
        """Whether a request that ended in this error is made once more, and is on its way."""
        if not self._busy[curl].retries.again(error):
            return False
        self._multi.remove_handle(curl)
        self._multi.add_handle(curl)
        return True

    def _document(self, curl: pycurl.Curl, now: float, error: tuple[int, str] | None = None) -> Document:
        slot = self._busy.pop(curl)
        link = slot.link
        assert link is not None
        self._multi.remove_handle(curl)
        status: int = curl.getinfo(pycurl.RESPONSE_CODE)
        seconds: float = curl.getinfo(pycurl.TOTAL_TIME) + slot.retries.seconds
        conditional, gate = slot.conditional, slot.gate
        cookies: list[bytes] = curl.getinfo_raw(pycurl.INFO_COOKIELIST) if status in MOVED else []
        headers, body = slot.take()
        if slot.admitted:
            curl.close()  # nobody else is to use what lets this page in
        else:
            self._free.append(slot)
        document = Document(
            link, status, headers, body, len(body), link.url, 0 if link.way is None else link.way.redirects, now,
            seconds, None, gate.address,
        )  # fmt: skip
        if status in MOVED and link.follow and (error is None or error[0] == pycurl.E_PARTIAL_FILE):
            self._lead_on(document, cookies)
        elif error is not None and error[0] == pycurl.E_COULDNT_CONNECT and gate.refused is not None:
            document.failure = refused_failure(gate.refused, link.url, redirected=link.way is not None)
        elif error is not None:
            document.failure = transfer_failure(*error)
        elif not (carries_page(status) or (status == _NOT_MODIFIED and conditional)):
            document.failure = behind(link, status_failure(status))
        return document

    def _lead_on(self, document: Document, cookies: Sequence[bytes]) -> None:
        """Say where a redirect leads, or why nobody will go there."""
        link, headers, seconds = document.link, document.headers, document.seconds
        target = target_of(link.url, headers)
        if target is None:
            document.failure = status_failure(document.status)
            return
        document.failure = why_not(link, target, seconds, self._settings)
        if document.failure is None and (reason := self._blocked.why(target)) is not None:
            document.failure = unsafe_failure(reason, target)
        if document.failure is None:
            document.onward = onward(link, target, headers, seconds, cookies)
            document.redirects += 1


def crawl(link: Link, transfers: Transfers, give_up: Callable[[], bool] = lambda: False) -> Document:
    """The document of one link, waited for: the first step of the way of a page. RunStopped once `give_up` says so."""
    transfers.start([link])
    while not give_up():
        documents = transfers.wait(0.2)
        if documents:
            return documents[0]
    raise RunStopped(f"The run was stopped before {link.url} answered.")


def crawl_through(link: Link, transfers: Transfers) -> Document:
    """The document of a link that is no page, each redirect followed at once: nobody asks for more meanwhile."""
    document = crawl(link, transfers)
    while document.onward is not None:
        document = crawl(document.onward, transfers)
    return arrived(document)


def certificates(settings: Settings) -> str:
    """The file of trusted certificates: the one that is set, the system's, or the one that comes with certifi."""
    if settings.ca_file:
        return settings.ca_file
    return _SYSTEM_CERTIFICATES if os.path.exists(_SYSTEM_CERTIFICATES) else certifi.where()  # noqa: PTH110 once per handle


def _validators(link: Link) -> list[bytes]:
    known = link.known
    if known is None or not (known.etag or known.last_modified):
        return []
    headers: list[bytes] = []
    if known.etag:
        headers.append(b"If-None-Match: " + known.etag.encode("latin-1"))
    if known.last_modified:
        headers.append(b"If-Modified-Since: " + known.last_modified.encode("latin-1"))
    return headers
