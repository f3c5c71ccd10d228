"""Transfers over libcurl: many at a time in one thread, without following redirects or decoding bodies."""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING

import certifi
import pycurl

from driftline.errors import BadURL, FailureKind, RunStopped
from driftline.fetch.address_guard import ConnectionGuard, judge_for, name_of, refused_failure
from driftline.fetch.epoll import Sockets
from driftline.fetch.failures import (
    NOTHING,
    blocked_document,
    carries_page,
    status_failure,
    transfer_failure,
    unsafe_failure,
)
from driftline.fetch.redirects import (
    MOVED,
    NOT_ON_THE_WEB,
    document_of_page,
    failure_at_target,
    link_to_target,
    redirect_refusal,
    target_of,
    unfetched_document,
)
from driftline.http.credentials import CredentialScope, MissingSecret
from driftline.model.outcome import Document, Link
from driftline.model.page import REQUEST_FILTERS, Failure, FilterKind, accepts_status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from driftline.fetch.address_guard import AddressJudge
    from driftline.fetch.failures import Blocked
    from driftline.settings import Settings

_LOG = logging.getLogger(__name__)
_MANY = 4_096  # chunks


class Body:
    """The chunks of a body, joined at the end: a buffer would copy each of them.

    A server may send single bytes, and a list of these would take fifty times the memory of the body, so every few
    thousand chunks are joined.
    """

    __slots__ = ("_chunks", "_parts")

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._parts: list[bytes] = []

    def add(self, chunk: bytes) -> None:
        """Add a chunk."""
        chunks = self._chunks
        chunks.append(chunk)
        if len(chunks) == _MANY:
            self._parts.append(b"".join(chunks))
            chunks.clear()

    def take(self) -> bytes:
        """Return all chunks as one body, and clear them."""
        chunks = self._chunks
        body = chunks[0] if len(chunks) == 1 and not self._parts else b"".join((*self._parts, *chunks))
        chunks.clear()
        self._parts.clear()
        return body


_NO_ANSWER = (pycurl.E_GOT_NOTHING, pycurl.E_RECV_ERROR, pycurl.E_SEND_ERROR)


class Retries:
    """Repeats a request once if it got no response over a connection that was kept alive.

    `headers` are those received so far, and `timeout` the seconds that a page may take in all. `seconds` is the time
    that passed before the request was repeated, which libcurl does not count.
    """

    __slots__ = ("_curl", "_headers", "_spent", "_timeout", "seconds", "used")

    def __init__(self, curl: pycurl.Curl, headers: Sequence[bytes], timeout: float) -> None:
        self._curl = curl
        self._headers = headers
        self._timeout = timeout
        self.begin()
        # keeps libcurl from repeating requests by itself. There is no option for just that; this one is for another
        # protocol (RTSP) and has no other effect on HTTP
        curl.setopt(pycurl.OPT_RTSP_REQUEST, pycurl.RTSPREQ_RECEIVE)

    def __repr__(self) -> str:
        return f"<Retries used={self.used} seconds={self.seconds:.3f} timeout={self._timeout}>"

    def begin(self, spent: float = 0.0) -> None:
        """Prepare for the next transfer, of a page that has already taken this many seconds."""
        self.used = False
        self.seconds = 0.0
        self._spent = spent
        self._curl.setopt(pycurl.FRESH_CONNECT, 0)
        self._limit()

    def again(self, error: int) -> bool:
        """Return whether to repeat a transfer that ended in this error; if so, prepare the handle for that."""
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


def send_credentials(curl: pycurl.Curl, link: Link, settings: Settings, ours: Sequence[bytes]) -> str | None:
    """Set the handle to send the credentials of the page besides the headers `ours`, but never to another origin.

    Returns the proxy that is used, if any. Raises MissingSecret. Use the handle for this link only.
    """
    access = link.access
    assert access is not None
    home = link.way is None or CredentialScope(link.way.start.url).covers(link.url)
    headers = access.sent_headers(os.environ) if home else {}
    cookies = access.sent_cookies(os.environ) if home else {}
    proxy = access.proxy_or(settings.proxy, os.environ)
    given = {name.lower().encode() for name in headers}
    others = [line for line in ours if line.partition(b":")[0].lower() not in given]
    curl.setopt(pycurl.HTTPHEADER, [*others, *[_line(*header) for header in headers.items()]])
    if cookies:
        curl.setopt(pycurl.COOKIE, "; ".join("=".join(one) for one in cookies.items()))
    curl.setopt(pycurl.PROXY, proxy or "")
    return proxy


def missing_credentials(link: Link, error: MissingSecret, now: float) -> Document:
    """Return the document of a link that is not fetched because a credential is missing."""
    return unfetched_document(link, Failure(kind=FailureKind.ACCESS, sentence=str(error)), now)


def _line(name: str, value: str) -> bytes:
    """Return a header as libcurl reads it: one with a colon and no value would not be sent."""
    return f"{name}: {value}".encode() if value else f"{name};".encode()


_SYSTEM_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
_ACCEPT = [
    b"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    b"Accept-Encoding: gzip, deflate, br, zstd",
]
_JSON, _FORM = "application/json", "application/x-www-form-urlencoded"
_NOT_MODIFIED = 304
_BUFFER = 512 * 1024
_SLOWEST = 10  # bytes a second


class _Slot:
    """One reusable easy handle, with the headers and body that its transfer fills."""

    __slots__ = (
        "body",
        "conditional",
        "curl",
        "guard",
        "headers",
        "hosts",
        "is_for_one",
        "link",
        "retries",
    )  # fmt: skip

    def __init__(self, settings: Settings, judge: AddressJudge, hosts: Sequence[str]) -> None:
        self.body = Body()
        self.headers: list[bytes] = []
        self.conditional = False
        self.link: Link | None = None
        self.is_for_one = False
        self.guard = ConnectionGuard(judge)
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
        # variables such as http_proxy are ignored: through a proxy, only the proxy's own address can be checked
        curl.setopt(pycurl.PROXY, settings.proxy or "")
        curl.setopt(pycurl.NOPROXY, "")
        if settings.proxy is None:
            curl.setopt(pycurl.OPENSOCKETFUNCTION, self.guard.open)
        curl.setopt(pycurl.MAXFILESIZE_LARGE, settings.max_body)
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, int(settings.connect_timeout * 1000)))
        curl.setopt(pycurl.LOW_SPEED_LIMIT, _SLOWEST)
        curl.setopt(pycurl.LOW_SPEED_TIME, max(1, int(settings.stall_timeout)))
        curl.setopt(pycurl.BUFFERSIZE, _BUFFER)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.COOKIEFILE, "")  # enables cookies, so that they can be sent to the target of a redirect
        curl.setopt(pycurl.CAINFO, certificates(settings))
        curl.setopt(pycurl.PROXY_CAINFO, certificates(settings))

    def __repr__(self) -> str:
        host = None if self.link is None else name_of(self.link.url)
        return f"<_Slot host={host} conditional={self.conditional}>"

    def prepare(self, link: Link) -> None:
        """Set the handle up for a link, with its validators, or with the cookies and the time left after redirects."""
        self.link = link
        if self.guard.address:
            self.guard.forget()
        curl = self.curl
        curl.setopt(pycurl.URL, link.url)
        if self.hosts:
            curl.setopt(pycurl.RESOLVE, self.hosts)
        if link.way is not None:
            self.retries.begin(link.way.seconds)
            for cookie in link.way.cookies:
                curl.setopt(pycurl.COOKIELIST, cookie)
        validators = _validators(link)
        if (validators or self.conditional) and not self.is_for_one:
            curl.setopt(pycurl.HTTPHEADER, _ACCEPT + validators)
        self.conditional = bool(validators)

    def use_once(self, link: Link, settings: Settings) -> None:
        """Set the slot up with the credentials and the request of this link, for it only; raises MissingSecret."""
        self.is_for_one = True
        headers = [*_ACCEPT, *_validators(link), *_set_request(self.curl, link)]
        if link.access is None:
            self.curl.setopt(pycurl.HTTPHEADER, headers)
        elif send_credentials(self.curl, link, settings, headers) is None:
            self.curl.setopt(pycurl.OPENSOCKETFUNCTION, self.guard.open)
        else:
            self.curl.unsetopt(pycurl.OPENSOCKETFUNCTION)

    def take(self) -> tuple[bytes, bytes]:
        """Return the header block and the body, and clear the slot for the next link."""
        headers = b"".join(self.headers)
        body = self.body.take()
        self.headers.clear()
        link, self.link = self.link, None
        redirected = link is not None and link.way is not None
        if redirected or self.retries.used:
            self.retries.begin()
        if redirected or b"set-cookie:" in headers.lower():
            self.curl.setopt(pycurl.COOKIELIST, "ALL")
        return headers, body


class Transfers:
    """Starts transfers and returns their documents as they finish. Used by one thread; `wake` by any.

    `hosts` are names with fixed IP addresses, as libcurl writes them: 'name:port:address,address'. Blocked pages are
    not fetched: their documents have the reason as the failure. A redirect is not followed: its document has the link
    to its target.
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

    def __repr__(self) -> str:
        return f"<Transfers transferring={len(self._busy)} refused={len(self._refused)} idle_handles={len(self._free)}>"

    def keep_alive(self, connections: int) -> None:
        """Keep no more than so many connections open, idle ones included; libcurl would keep four times as many."""
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections)

    @property
    def active(self) -> int:
        """Return how many transfers are in flight."""
        return len(self._busy) + len(self._refused)

    def start(self, links: Iterable[Link]) -> None:
        """Start to fetch these links; `wait` returns their documents."""
        blocked = self._blocked
        any_blocked = blocked.any
        for link in links:
            if any_blocked and (reason := blocked.why(link.url)) is not None:
                self._refused.append(blocked_document(link, reason, self._clock()))
                continue
            slot = self._free.pop() if self._free else _Slot(self._settings, self._judge, self._hosts)
            if link.access is not None or (link.filters and _request_of(link)):
                try:
                    slot.use_once(link, self._settings)
                except MissingSecret as error:
                    self._refused.append(missing_credentials(link, error, self._clock()))
                    slot.curl.close()
                    continue
            slot.prepare(link)
            self._busy[slot.curl] = slot
            self._multi.add_handle(slot.curl)

    def wait(self, timeout: float) -> list[Document]:
        """Return the documents that are complete, as soon as there are any; none after `timeout` seconds or `wake`."""
        deadline = time.monotonic() + (0.0 if self._refused else timeout)
        while True:
            woken = self._tick(deadline)
            documents = self._finished()
            if documents or woken or time.monotonic() >= deadline:
                return documents

    def wake(self) -> None:
        """Make `wait` return soon; does nothing if the transfers are closed."""
        self._sockets.wake()

    def close(self) -> list[Link]:
        """Abort what is in flight and free everything. Returns the links that were aborted."""
        aborted = [slot.link for slot in self._busy.values() if slot.link is not None]
        aborted += [document.link for document in self._refused]
        for curl in self._busy:
            self._multi.remove_handle(curl)
            curl.close()
        for slot in self._free:
            slot.curl.close()
        self._busy.clear()
        self._free.clear()
        self._multi.close()
        self._sockets.close()
        return aborted

    def _tick(self, deadline: float) -> bool:
        """Let libcurl handle events of sockets and timers, until `deadline` at most. Returns whether it was woken."""
        # read once per tick: a timer callback would be called twice for every transfer
        due = self._multi.timeout()
        wait = deadline - time.monotonic()
        if 0 <= due < wait * 1000:
            wait = due / 1000
        events, woken = self._sockets.wait(wait)
        for descriptor, action in events:
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
        """Return whether a request that ended in this error was repeated, and is in flight again."""
        if not self._busy[curl].retries.again(error):
            return False
        self._multi.remove_handle(curl)
        self._multi.add_handle(curl)
        _LOG.debug("a connection that was kept alive had been closed: the request is repeated")
        return True

    def _document(self, curl: pycurl.Curl, now: float, error: tuple[int, str] | None = None) -> Document:
        slot = self._busy.pop(curl)
        link = slot.link
        assert link is not None
        self._multi.remove_handle(curl)
        status: int = curl.getinfo(pycurl.RESPONSE_CODE)
        seconds: float = curl.getinfo(pycurl.TOTAL_TIME) + slot.retries.seconds
        conditional, guard = slot.conditional, slot.guard
        moved = status in MOVED
        cookies: list[bytes] = curl.getinfo_raw(pycurl.INFO_COOKIELIST) if moved else []
        headers, body = slot.take()
        if slot.is_for_one:
            curl.close()  # no other link may use its credentials
        else:
            self._free.append(slot)
        redirects = 0 if link.way is None else link.way.redirects
        failure: Failure | None = None
        if moved and link.follow and (error is None or error[0] == pycurl.E_PARTIAL_FILE):
            led = self._redirected(link, status, headers, seconds, cookies)
            if isinstance(led, Link):
                return Document(
                    link, status, headers, body, len(body), link.url, redirects + 1, now, seconds, None, guard.address,
                    onward=led,
                )  # fmt: skip
            failure = led
        elif error is not None and error[0] == pycurl.E_COULDNT_CONNECT and guard.refused is not None:
            failure = refused_failure(guard.refused, link.url, redirected=link.way is not None)
            _LOG.debug("connection refused by the guard of private networks: %s", failure.sentence)
        elif error is not None:
            failure = transfer_failure(*error)
        elif not (
            carries_page(status)
            or (status == _NOT_MODIFIED and conditional)
            or (link.filters and accepts_status(link.filters, status))
        ):
            failure = failure_at_target(link, status_failure(status))
        return Document(
            link, status, headers, body, len(body), link.url, redirects, now, seconds, failure, guard.address
        )  # fmt: skip

    def _redirected(
        self, link: Link, status: int, headers: bytes, seconds: float, cookies: Sequence[bytes]
    ) -> Link | Failure:  # fmt: skip
        """Return the link to the target of a redirect, or why it is not followed."""
        try:
            target = target_of(link.url, headers)
        except BadURL:
            return NOT_ON_THE_WEB
        if target is None:
            return status_failure(status)
        refusal = redirect_refusal(link, seconds, self._settings)
        if refusal is not None:
            return refusal
        reason = self._blocked.why(target)
        if reason is not None:
            return unsafe_failure(reason, target)
        return link_to_target(link, target, status, headers, seconds, cookies)


def fetch_link(link: Link, transfers: Transfers, give_up: Callable[[], bool] = lambda: False) -> Document:
    """Fetch one link and return its document; raises RunStopped once `give_up` returns True."""
    transfers.start([link])
    while not give_up():
        documents = transfers.wait(0.2)
        if documents:
            return documents[0]
    raise RunStopped(f"The run was stopped before {link.url} answered.")


def fetch_following_redirects(link: Link, transfers: Transfers) -> Document:
    """Fetch a link that is no watched page, follow its redirects immediately, and return the last document."""
    document = fetch_link(link, transfers)
    while document.onward is not None:
        document = fetch_link(document.onward, transfers)
    return document_of_page(document)


def certificates(settings: Settings) -> str:
    """Return the file of trusted certificates: the one of the settings, the system's, or certifi's."""
    if settings.ca_file:
        return settings.ca_file
    return _SYSTEM_CERTIFICATES if os.path.exists(_SYSTEM_CERTIFICATES) else certifi.where()  # noqa: PTH110 once per handle


def _request_of(link: Link) -> dict[str, str]:
    """Return method, data and content type of a request, by the names of their filters; nothing for a plain GET."""
    request = {kind: value for kind, value in link.filters or () if kind in REQUEST_FILTERS}
    return {} if request == {FilterKind.METHOD: "GET"} else request


def _set_request(curl: pycurl.Curl, link: Link) -> list[bytes]:
    """Set method and data of a request, and return its header for them."""
    request = _request_of(link)
    data = request.get(FilterKind.DATA)
    method = request.get(FilterKind.METHOD, "GET" if data is None else "POST")
    if method == "GET":
        return []
    curl.setopt(pycurl.POSTFIELDS, (data or "").encode())
    curl.setopt(pycurl.CUSTOMREQUEST, method)
    kind = request.get(FilterKind.CONTENT_TYPE) or (_JSON if (data or "").lstrip()[:1] in ("{", "[") else _FORM)
    return [b"Content-Type: " + kind.encode()]


def _validators(link: Link) -> list[bytes]:
    known = link.known
    if known is None or not (known.etag or known.last_modified) or (link.filters and _request_of(link)):
        return []
    headers: list[bytes] = []
    if known.etag:
        headers.append(b"If-None-Match: " + known.etag.encode("latin-1"))
    if known.last_modified:
        headers.append(b"If-Modified-Since: " + known.last_modified.encode("latin-1"))
    return headers
