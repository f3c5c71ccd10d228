from __future__ import annotations

import pycurl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import FailureKind
from driftline.fetch.failures import status_failure, transfer_failure
from driftline.model.page import Failure
from support.properties import searched


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (pycurl.E_COULDNT_RESOLVE_HOST, FailureKind.DNS),
        (pycurl.E_COULDNT_RESOLVE_PROXY, FailureKind.DNS),
        (pycurl.E_COULDNT_CONNECT, FailureKind.REFUSED),
        (pycurl.E_OPERATION_TIMEDOUT, FailureKind.TIMED_OUT),
        (pycurl.E_SSL_CONNECT_ERROR, FailureKind.TLS),
        (pycurl.E_SSL_CACERT, FailureKind.CERTIFICATE),
        (pycurl.E_PEER_FAILED_VERIFICATION, FailureKind.CERTIFICATE),
        (pycurl.E_SSL_CACERT_BADFILE, FailureKind.TLS),
        (pycurl.E_FILESIZE_EXCEEDED, FailureKind.TOO_LARGE),
        (pycurl.E_PARTIAL_FILE, FailureKind.BODY),
        (pycurl.E_BAD_CONTENT_ENCODING, FailureKind.BODY),
        (pycurl.E_GOT_NOTHING, FailureKind.CONNECTION),
        (pycurl.E_RECV_ERROR, FailureKind.CONNECTION),
        (pycurl.E_SEND_ERROR, FailureKind.CONNECTION),
        (pycurl.E_HTTP2, FailureKind.CONNECTION),
        (pycurl.E_UNSUPPORTED_PROTOCOL, FailureKind.PROTOCOL),
        (99_999, FailureKind.CONNECTION),
    ],
)
def test_a_number_of_libcurl_becomes_the_failure_that_it_means(number: int, kind: FailureKind) -> None:
    assert transfer_failure(number, "").kind is kind


@searched
@given(st.integers(1, 120), st.text(alphabet="abc .", max_size=30))
def test_every_failure_is_one_sentence(number: int, detail: str) -> None:
    sentence = transfer_failure(number, detail).sentence
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert not sentence.endswith("..")


@pytest.mark.parametrize(
    ("number", "detail", "kind", "sentence"),
    [
        (
            56,
            "Too large response headers: 307223 > 307200",
            FailureKind.TOO_LARGE,
            "The headers of the",
        ),
        (100, "", FailureKind.TOO_LARGE, "The headers of the answer are larger than the limit."),
        (56, "chunk hex-length char not a hex digit: 0x7a", FailureKind.BODY, "The body is broken"),
        (
            60,
            "certificate has expired",
            FailureKind.CERTIFICATE,
            "The certificate of the server has exp",
        ),
        (
            60,
            "self-signed certificate (18)",
            FailureKind.CERTIFICATE,
            "The certificate of the server is self",
        ),
        (
            60,
            "no alternative certificate subject name",
            FailureKind.CERTIFICATE,
            "The certificate of the server is f",
        ),
    ],
)
def test_the_message_of_libcurl_may_be_more_specific_than_its_error_number(
    number: int, detail: str, kind: FailureKind, sentence: str
) -> None:
    failure = transfer_failure(number, detail)
    assert failure.kind is kind
    assert failure.sentence.startswith(sentence)


def test_the_words_of_libcurl_follow_in_brackets() -> None:
    sentence = transfer_failure(pycurl.E_COULDNT_CONNECT, "Failed to connect to a.example port 80. ").sentence
    assert sentence.endswith("(Failed to connect to a.example port 80).")


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (404, "The server answered 404 Not Found."),
        (503, "The server answered 503 Service Unavailable."),
        (999, "The server answered 999."),
    ],
)
def test_a_status_is_named_where_it_has_a_name(status: int, sentence: str) -> None:
    assert status_failure(status) == Failure(kind=FailureKind.STATUS, sentence=sentence)


@pytest.mark.parametrize("kind", list(FailureKind))
def test_only_what_happens_on_the_connection_points_to_overload(kind: FailureKind) -> None:
    expected = kind in (FailureKind.TIMED_OUT, FailureKind.REFUSED, FailureKind.CONNECTION)
    assert Failure(kind=kind, sentence="It failed.").points_to_overload is expected


def test_no_password_is_shown_of_libcurls_messages() -> None:
    failure = transfer_failure(pycurl.E_COULDNT_RESOLVE_PROXY, "Unsupported proxy syntax in 'http://me:secret@p:x'")
    assert failure.sentence.endswith("(Unsupported proxy syntax in 'http://me:***@p:x').")
