"""The steps of a crawl, in place of a comparison: it reads documents for what they link to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from driftline.crawl.survey import survey_of
from driftline.detection.compare import job_of, outcome_of
from driftline.detection.jobs import Question
from driftline.errors import RunStopped
from driftline.http.headers import header, last_response
from driftline.model.outcome import Failed, New, Pair
from driftline.model.page import AddressKind
from driftline.pipeline.consumer import internal_failure
from driftline.store.blobs import fingerprint
from driftline.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.crawl.survey import Survey
    from driftline.detection.compare import Examiner
    from driftline.detection.jobs import Finding, Job
    from driftline.model.outcome import Document
    from driftline.model.page import Failure


@dataclass(frozen=True, slots=True, eq=False)
class Surveyed:
    """What a crawl found in a document: what the page says to a crawl, and why it counts as failed all the same, if so.

    `first` is what the first check of the page would find, where the page is to be watched.
    """

    document: Document
    survey: Survey | None
    failure: Failure | None = None
    first: New | None = None

    def held_bytes(self) -> int:
        """Return how many bytes of content it holds in memory."""
        return self.document.held_bytes() if self.first is None else self.first.held_bytes()


#: what a crawl found at an address; `Failed` if it could not be fetched or read
CrawlOutcome: TypeAlias = Surveyed | Failed


class SurveySteps:
    """The consumer's steps of a crawl. For any thread.

    `obeys` returns whether the robots rules of a host are obeyed, by its name.
    """

    def __init__(
        self, examiner: Examiner, limit: int, *, kind: Callable[[int], AddressKind], obeys: Callable[[str], bool],
        tracking: tuple[str, ...], keywords: tuple[str, ...], kept: bool,
    ) -> None:  # fmt: skip
        self._examiner = examiner
        self._limit = limit
        self._kind = kind
        self._obeys = obeys
        self._tracking = tracking
        self._keywords = keywords
        self._kept = kept

    def prove_unchanged(self, documents: list[Document]) -> tuple[Sequence[CrawlOutcome], list[Document]]:
        """Return all documents as left to read: each may lead to others."""
        return [], documents

    def recall(self, documents: list[Document]) -> list[Pair]:
        """Return the documents without old versions: a crawl compares nothing."""
        return [
            Pair(document, fingerprint(document.body) if document.failure is None else b"") for document in documents
        ]

    def compare(self, pairs: list[Pair]) -> list[CrawlOutcome]:
        """Return what each says to a crawl; raise RunStopped if there is no time left to find out."""
        good = [pair for pair in pairs if pair.document.failure is None]
        try:
            findings = iter(self._examiner.examine([self._job(pair) for pair in good]) if good else ())
        except RunStopped:
            raise
        except Exception as error:  # noqa: BLE001 whatever a page makes a step raise must fail that page only
            if len(pairs) > 1:
                return [outcome for pair in pairs for outcome in self.compare([pair])]
            pairs[0].document.release_body()
            return [Failed(pairs[0].document, internal_failure(error))]
        outcomes: list[CrawlOutcome] = []
        for pair in pairs:
            document = pair.document
            if document.failure is None:
                outcomes.append(_surveyed(pair, next(findings)))
            else:
                document.release_body()
                outcomes.append(Failed(document, document.failure))
        return outcomes

    def _job(self, pair: Pair) -> Job:
        document = pair.document
        robots = header(last_response(document.headers), b"x-robots-tag") or ""
        kind = self._kind(document.link.page_id)
        question = Question(
            document.final_url, kind, robots, self._obeys(host_of(document.final_url)), self._tracking, self._keywords,
            self._kept and kind is AddressKind.PAGE,
        )  # fmt: skip
        return job_of(pair, self._limit)._replace(question=question)


def _surveyed(pair: Pair, finding: Finding) -> CrawlOutcome:
    found, survey = outcome_of(pair, finding), survey_of(finding)
    if isinstance(found, Failed):
        return found if survey is None else Surveyed(pair.document, survey, found.failure)
    return Surveyed(pair.document, survey, first=found if isinstance(found, New) and finding.text else None)
