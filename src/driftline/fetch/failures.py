"""Why a fetch failed, by libcurl's error numbers and HTTP status codes."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol

import pycurl

from driftline.errors import FailureKind
from driftline.fetch.redirects import unfetched_document
from driftline.model.page import Failure
from driftline.urls import without_password

if TYPE_CHECKING:
    from driftline.model.outcome import Document, Link


_TLS = FailureKind.TLS
_CERTIFICATE = FailureKind.CERTIFICATE
_CONNECTION = FailureKind.CONNECTION
_TOO_LARGE = 100  # CURLE_TOO_LARGE, for which pycurl has no name

_KINDS = {
    pycurl.E_COULDNT_RESOLVE_HOST: FailureKind.DNS,
    pycurl.E_COULDNT_RESOLVE_PROXY: FailureKind.DNS,
    pycurl.E_COULDNT_CONNECT: FailureKind.REFUSED,
    pycurl.E_OPERATION_TIMEDOUT: FailureKind.TIMED_OUT,
    pycurl.E_SSL_CONNECT_ERROR: _TLS,
    pycurl.E_PEER_FAILED_VERIFICATION: _CERTIFICATE,
    pycurl.E_SSL_CERTPROBLEM: _TLS,
    pycurl.E_SSL_CIPHER: _TLS,
    pycurl.E_SSL_CACERT_BADFILE: _TLS,
    pycurl.E_SSL_ISSUER_ERROR: _CERTIFICATE,
    pycurl.E_SSL_INVALIDCERTSTATUS: _CERTIFICATE,
    pycurl.E_SSL_PINNEDPUBKEYNOTMATCH: _CERTIFICATE,
    pycurl.E_FILESIZE_EXCEEDED: FailureKind.TOO_LARGE,
    pycurl.E_FTP_WEIRD_SERVER_REPLY: FailureKind.PROTOCOL,  # of HTTP too, despite its old name
    pycurl.E_UNSUPPORTED_PROTOCOL: FailureKind.PROTOCOL,
    _TOO_LARGE: FailureKind.TOO_LARGE,
    pycurl.E_PARTIAL_FILE: FailureKind.BODY,
    pycurl.E_BAD_CONTENT_ENCODING: FailureKind.BODY,
}

_SENTENCES = {
    FailureKind.DNS: "The name of the host could not be resolved.",
    FailureKind.REFUSED: "The host refused the connection or could not be reached.",
    FailureKind.TIMED_OUT: "The server took too long to answer.",
    FailureKind.TLS: "The secure connection could not be trusted or set up.",
    FailureKind.CERTIFICATE: "The certificate of the server is not trusted.",
    FailureKind.TOO_LARGE: "The body is larger than the limit.",
    FailureKind.PROTOCOL: "The answer is not HTTP as it should be.",
    FailureKind.BODY: "The body is broken or ended too early.",
    FailureKind.CONNECTION: "The connection broke before the page was complete.",
}

_NO_PAGE = (204, 205, 206)  # No Content, Reset Content, and a Partial Content that was not requested
_HEADERS = "The headers of the answer are larger than the limit."

#: where libcurl's message is more specific than its error number: a part of the message, and what it means
_BY_MESSAGE = {
    "response headers": (FailureKind.TOO_LARGE, _HEADERS),
    "chunk hex-length": (FailureKind.BODY, _SENTENCES[FailureKind.BODY]),
    "invalid chunk size": (FailureKind.BODY, _SENTENCES[FailureKind.BODY]),
    "certificate has expired": (_CERTIFICATE, "The certificate of the server has expired."),
    "certificate is not yet valid": (_CERTIFICATE, "The certificate of the server is not valid yet."),
    "self-signed certificate": (_CERTIFICATE, "The certificate of the server is self-signed."),
    "self signed certificate": (_CERTIFICATE, "The certificate of the server is self-signed."),
    "unable to get local issuer": (_CERTIFICATE, "The certificate of the server was issued by an unknown authority."),
    "subject name": (_CERTIFICATE, "The certificate of the server is for another name."),
}


def transfer_failure(number: int, detail: str) -> Failure:
    """Return the failure for libcurl's error `number`, with libcurl's message in brackets, which names ports etc."""
    kind = _KINDS.get(number, _CONNECTION)
    detail = detail.strip().rstrip(".")
    sentence = _HEADERS if number == _TOO_LARGE else _SENTENCES[kind]
    for part, meaning in _BY_MESSAGE.items():
        if part in detail:
            kind, sentence = meaning
            break
    return Failure(kind=kind, sentence=f"{sentence[:-1]} ({detail})." if detail else sentence)


def carries_page(status: int) -> bool:
    """Return whether a response with this status has a page as its body."""
    return 200 <= status < 300 and status not in _NO_PAGE


def status_failure(status: int) -> Failure:
    """Return the failure for a status that carries no page."""
    try:
        name = f" {HTTPStatus(status).phrase}"
    except ValueError:
        name = ""
    return Failure(kind=FailureKind.STATUS, sentence=f"The server answered {status}{name}.")


class Blocked(Protocol):
    """The pages that must not be fetched."""

    @property
    def any(self) -> bool:
        """Return whether anything is blocked at all."""

    @property
    def single(self) -> bool:
        """Return whether single URLs are blocked, and not only whole hosts."""

    def why(self, url: str) -> str | None:
        """Return why a page must not be fetched, as a sentence; None if it may be."""


class _Nothing:
    """Nothing is blocked."""

    any = single = False

    def why(self, _url: str) -> None:
        return None


NOTHING: Blocked = _Nothing()


def unsafe_failure(reason: str, target: str | None = None) -> Failure:
    """Return the failure of a page that is blocked, or that redirects to a blocked `target`."""
    sentence = f"The page is blocked: {reason}"
    if target is not None:
        sentence = f"The page redirects to {without_password(target)}, which is blocked: {reason}"
    return Failure(kind=FailureKind.UNSAFE, sentence=sentence)


def blocked_document(link: Link, reason: str, now: float) -> Document:
    """Return the document of a link that is not fetched because it is blocked."""
    return unfetched_document(link, unsafe_failure(reason, None if link.way is None else link.url), now)
