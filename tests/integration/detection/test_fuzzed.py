"""A thousand mutated and hostile documents: each is read, or refused with a reason, and no worker dies unnoticed."""

from __future__ import annotations

import random
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from driftline.detection.examine import examine
from driftline.detection.jobs import Job
from driftline.detection.worker_pool import WorkerPool
from driftline.errors import FailureKind
from driftline.lab.simweb.world import World
from support.making import failure_kind, job, settings

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MUTATED = 1_000
ORIGINALS = 40
REAL = Path(__file__).parents[4] / "shared" / "corpus" / "pairs.tar.zst"  # beside the project, where there is one
LARGEST = 60_000  # bytes
TYPES = (
    "text/html; charset=utf-8", "text/html", "", "text/html; charset=utf-16", "application/json", "application/rss+xml",
    "text/csv", "text/plain", "application/pdf", "image/png", "text/html; charset=klingon",
)  # fmt: skip
MOST_MEMORY = 400 * 1024 * 1024


def flip(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 200)):
        data[chance.randrange(len(data))] = chance.randrange(256)


def cut(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def stutter(data: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(data))
    data[start:start] = bytes(data[start : start + 50]) * chance.randint(1, 200)


def insert(*pieces: bytes) -> Callable[[bytearray, random.Random], None]:
    def mutation(data: bytearray, chance: random.Random) -> None:
        for _ in range(chance.randint(1, 5)):
            at = chance.randrange(len(data))
            data[at:at] = chance.choice(pieces)

    return mutation


MUTATIONS = (
    flip,
    cut,
    stutter,
    insert(b"\x00", b"\x00" * 1_000, b"\xff\xfe", b"\xed\xa0\x80", "\x80n\x82\x83\x84".encode()),
    insert(b"<div>" * 500, b"</div>" * 500, b"<table><tr><td>" * 200, b"<a>" * 300, b"<svg><math>" * 100),
    insert(b"<p class='" + b"nav " * 50_000 + b"'>", b"<x " + b"a=b " * 20_000 + b">", b"&" * 20_000, b"&#x110000;"),
    insert(b"<script>", b"<!--", b"<title>", b"<textarea>", b"<plaintext>", b"<noscript>", b"<![CDATA[", b"<?xml"),
    insert("\u202e\u200b\u0301".encode() * 2_000, "漢".encode() * 5_000, b"x" * 100_000, b"\n" * 20_000),
    insert(b"{" * 3_000, b"[" * 3_000, b'"' * 999, b"<rss><channel>", b"%PDF-1.7\n", b"<!DOCTYPE a [<!ENTITY b 'c'>]>"),
)


def mutated(base: bytes, chance: random.Random) -> bytes:
    data = bytearray(base)
    for _ in range(chance.randint(1, 3)):
        if data:
            chance.choice(MUTATIONS)(data, chance)
    return bytes(data)


def made_pages() -> list[bytes]:
    world = World(pages=ORIGINALS, size_mean=12_000, noise="visible")
    return [world.body(page, 0) for page in range(world.pages)]


def real_pages() -> list[bytes]:
    if not REAL.exists():
        pytest.skip(f"there are no real pages in {REAL.name}")
    found: list[bytes] = []
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 27}
    with zstd.open(REAL, options=options) as file, tarfile.open(fileobj=file, mode="r|") as archive:
        for member in archive:
            if member.isfile() and member.size < LARGEST and (content := archive.extractfile(member)) is not None:
                found.append(content.read())
            if len(found) == ORIGINALS:
                break
    return found


@pytest.mark.parametrize("pages", [made_pages, real_pages])
def test_a_thousand_mutated_pages_are_read_or_refused_in_words(pages: Callable[[], list[bytes]]) -> None:
    originals = [(body, examine(job(body))) for body in pages()]
    chance = random.Random(20)
    jobs: list[Job] = []
    for number in range(MUTATED):
        body, found = originals[number % len(originals)]
        jobs.append(job(mutated(body, chance), chance.choice(TYPES), limit=5_000_000, after=found))
    pool = WorkerPool(most=2, deadline=settings().worker_deadline, memory=MOST_MEMORY)
    try:
        findings = [finding for start in range(0, MUTATED, 50) for finding in pool.examine(jobs[start : start + 50])]
    finally:
        pool.close()
    assert len(findings) == MUTATED
    assert sum(not finding.failure for finding in findings) > MUTATED / 2
    for one, finding in zip(jobs, findings, strict=True):
        assert failure_kind(finding) is not FailureKind.INTERNAL, (finding.failure, one.content_type, one.wire[:200])
        assert finding.failure or finding.proof or finding.text
        assert finding.failure is None or finding.failure.sentence.endswith(".")
