"""Programs in the place of pages."""

from __future__ import annotations

import pytest

from driftline.detection.examine import examine
from driftline.detection.threats import why_executable
from driftline.errors import FailureKind
from support.making import failure_kind, job

WINDOWS = b"MZ" + b"\x90\0" * 29 + (64).to_bytes(4, "little") + b"PE\0\0" + b"\0" * 100


@pytest.mark.parametrize(
    ("body", "content_type", "disposition", "named"),
    [
        (WINDOWS, "text/html", "", "Windows"),
        (b"\x7fELF\x02\x01\x01" + b"\0" * 60, "application/octet-stream", "", "Linux"),
        (b"\xcf\xfa\xed\xfe" + b"\0" * 60, "", "", "macOS"),
        (b"dex\n035\0", "", "", "Android"),
        (b"anything", "application/x-msdownload; x=y", "", "x-msdownload"),
        (b"PK\x03\x04", "application/vnd.android.package-archive", "", "android"),
        (b"<p>x</p>", "text/html", 'attachment; filename="Invoice.PDF.exe"', "Invoice.PDF.exe"),
        (b"<p>x</p>", "text/html", "attachment; filename*=UTF-8''set%2Eup%2Emsi", "set%2Eup%2Emsi"),
    ],
)
def test_a_program_is_reported_by_its_bytes_its_type_or_its_name(
    body: bytes, content_type: str, disposition: str, named: str
) -> None:
    why = why_executable(body, content_type, disposition)
    assert why is not None
    assert named in why


@pytest.mark.parametrize(
    ("body", "content_type", "disposition"),
    [
        (b"<!doctype html><p>hello</p>", "text/html", ""),
        (b"#!/bin/sh\necho a script that people read\n", "text/plain", ""),
        (b"MZ is how this text begins, and it goes on for longer than a header would be long.", "text/plain", ""),
        (b"%PDF-1.7", "application/pdf", 'inline; filename="report.pdf"'),
        (b"a,b\n1,2\n", "text/csv", 'attachment; filename="executable.csv"'),
    ],
)
def test_what_people_read_is_no_program(body: bytes, content_type: str, disposition: str) -> None:
    assert why_executable(body, content_type, disposition) is None


def test_a_program_is_a_failed_check_and_makes_no_version() -> None:
    finding = examine(job(WINDOWS)._replace(disposition="attachment"))
    assert failure_kind(finding) is FailureKind.UNSAFE
    assert finding.blobs == ()
