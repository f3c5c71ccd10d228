"""Reading a page for a crawl: its links, entries of sitemaps, meta tags, and a fingerprint to find near-duplicates.

It runs in a worker process, as all reading of pages does (see `detection.worker`): this module is its program, run as
`python -m driftline.crawl.survey MEMORY`. Questions and answers travel inside the jobs and findings of checks.
"""

from __future__ import annotations

import marshal
import sys
from typing import NamedTuple

from driftline.crawl.links import Extracted, Found, extract
from driftline.crawl.scope import Focus
from driftline.crawl.simhash import simhash
from driftline.crawl.sitemaps import Listed, Lists, read_lists, sitemaps_of
from driftline.detection import examine
from driftline.detection.error_pages.detect import is_error_text, why_broken
from driftline.detection.extract.charset import decode_text
from driftline.detection.extract.document import Extraction
from driftline.detection.jobs import Finding, Job, Question
from driftline.detection.worker import run
from driftline.errors import UnreadableBody
from driftline.http.codings import decode_body
from driftline.model.page import AddressKind
from driftline.store.blobs import digest
from driftline.urls.tracking import Tracking

_FEWEST_LETTERS = 20  # pages with less are not distinguished by their text
_LISTS = (AddressKind.SITEMAP, AddressKind.FEED)


class Survey(NamedTuple):
    """What a page says to a crawl.

    `digest` is of its letters, `mark` its simhash, both empty for what is too short; `error` if it says that there is
    no such page. `lists` is for a sitemap or a feed, and then all else is empty.
    """

    title: str = ""
    digest: bytes = b""
    mark: int = 0
    score: float = 0.0
    error: bool = False
    extracted: Extracted | None = None
    lists: Lists | None = None


def survey_page(job: Job) -> Finding:
    """Return what a worker finds: a survey for a job with a `question`, else what a check wants to know."""
    question = job.question
    if question is None:
        return examine.examine(job)
    return examine.guarded(lambda: _survey(job, question))


def survey_of(finding: Finding) -> Survey | None:
    """Return the survey in a finding; None if it has none."""
    if not finding.survey:
        return None
    title, mark, letters, score, error, extracted, lists = marshal.loads(finding.survey)  # noqa: S302 from our own child
    if extracted is not None:
        links, *rest = extracted
        extracted = Extracted([Found(*one) for one in links], *rest)
    if lists is not None:
        lists = Lists([Listed(*one) for one in lists[0]], [Listed(*one) for one in lists[1]])
    return Survey(title, letters, mark, score, error, extracted, lists)


def _survey(job: Job, question: Question) -> Finding:
    body = decode_body(job.wire, job.codings, job.limit)
    lists = _lists(body, job, question)
    if question.kind is AddressKind.ROBOTS:
        lists = Lists([], [Listed(url, "") for url in sitemaps_of(decode_text(body, job.content_type)[0])])
    if lists is not None or question.kind in _LISTS:
        return Finding(survey=_packed(Survey(lists=lists)))
    reading = Extraction(body, job.content_type)
    letters, title = reading.letters(), reading.title()
    extracted = None
    if reading.is_whole_page:
        extracted = extract(
            body,
            question.url,
            Tracking(question.tracking),
            robots=question.robots,
            obeys=question.obeys,
            anchors=bool(question.keywords),
        )
    text = reading.text()
    enough = len(letters) >= _FEWEST_LETTERS
    survey = Survey(
        title=title, digest=digest(letters)[:16] if enough else b"", mark=simhash(text) if enough else 0,
        score=Focus(question.keywords).text(f"{title}\n{text}"), error=is_error_text(title, text), extracted=extracted,
    )  # fmt: skip
    if question.kept and not survey.error:
        return examine.examine(job)._replace(survey=_packed(survey))
    broken = why_broken(title, text, body) if reading.is_whole_page else None
    failed = Finding() if broken is None else examine.broken_page(broken)
    return failed._replace(survey=_packed(survey))


def _lists(body: bytes, job: Job, question: Question) -> Lists | None:
    """Return what a sitemap or feed lists, also where a page turns out to be one."""
    kind = job.content_type.partition(";")[0].strip().lower()
    if question.kind not in _LISTS and not kind.endswith("xml"):
        return None
    if question.kind not in _LISTS and kind == "application/xhtml+xml":
        return None
    try:
        return read_lists(body, job.content_type, job.limit)
    except UnreadableBody:
        if question.kind in _LISTS:
            raise
        return None


def _packed(survey: Survey) -> bytes:
    extracted = None if survey.extracted is None else (
        [tuple(one) for one in survey.extracted.links], *survey.extracted[1:]
    )  # fmt: skip
    lists = (
        None
        if survey.lists is None
        else ([tuple(one) for one in survey.lists.pages], [tuple(one) for one in survey.lists.sitemaps])
    )
    return marshal.dumps((survey.title, survey.mark, survey.digest, survey.score, survey.error, extracted, lists))


if __name__ == "__main__":
    run(int(sys.argv[1]), survey_page)
