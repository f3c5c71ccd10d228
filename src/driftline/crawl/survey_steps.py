"""What a crawl does with documents in the place of a comparison: it reads them for what they lead to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftline.crawl.survey import Question, Survey, survey_of
from driftline.detection.compare import job_of, outcome_of
from driftline.errors import FailureKind, RunStopped
from driftline.http.headers import header, last_response
from driftline.model import Document, Failure, Outcome, Pair, Verdict
from driftline.store.blobs import fingerprint
from driftline.urls.parts import host_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from driftline.detection.compare import Examiner
    from driftline.detection.jobs import Job


@dataclass(slots=True, eq=False)
class Surveyed(Outcome):
    """What came of a document, and what it says to a crawl; nothing if it could not be read."""

    survey: Survey | None = None


class SurveySteps:
    """The consumer's steps of a crawl. For any thread.

    `obeys` says whether what a host asks of crawlers is done, by its name.
    """

    def __init__(
        self, examiner: Examiner, limit: int, *, kind: Callable[[int], str], obeys: Callable[[str], bool],
        tracking: tuple[str, ...], keywords: tuple[str, ...], kept: bool,
    ) -> None:  # fmt: skip
        self._examiner = examiner
        self._limit = limit
        self._kind = kind
        self._obeys = obeys
        self._tracking = tracking
        self._keywords = keywords
        self._kept = kept

    def settle(self, documents: list[Document]) -> tuple[list[Outcome], list[Document]]:
        """Every document is read: it may lead to others."""
        return [], documents

    def recall(self, documents: list[Document]) -> list[Pair]:
        """There is nothing to compare with."""
        return [
            Pair(document, fingerprint(document.body) if document.failure is None else b"") for document in documents
        ]

    def compare(self, pairs: list[Pair]) -> list[Outcome]:
        """What each says to a crawl; RunStopped if there is no time left to find out."""
        good = [pair for pair in pairs if pair.document.failure is None]
        try:
            findings = iter(self._examiner.examine([self._asked(pair) for pair in good]) if good else ())
        except RunStopped:
            raise
        except Exception as error:  # noqa: BLE001 whatever a page makes a step raise must fail that page only
            if len(pairs) > 1:
                return [outcome for pair in pairs for outcome in self.compare([pair])]
            sentence = f"Driftline itself failed on this page ({type(error).__name__}: {error})."
            failure = Failure(kind=FailureKind.INTERNAL, sentence=sentence)
            return [Outcome(pairs[0].document, Verdict.FAILED, failure=failure)]
        outcomes: list[Outcome] = []
        for pair in pairs:
            document = pair.document
            if document.failure is not None:
                outcomes.append(Outcome(document, Verdict.FAILED, failure=document.failure))
                continue
            finding = next(findings)
            found = outcome_of(pair, finding)
            outcomes.append(
                Surveyed(
                    document, found.verdict, None, pair.wire, found.body, found.version, failure=found.failure,
                    reading=found.reading, survey=survey_of(finding),
                )
            )  # fmt: skip
            document.body = b""
        return outcomes

    def confirm(self, found: list[tuple[Outcome, Document]]) -> list[Outcome]:
        """Nothing is ever changed here."""
        return [outcome for outcome, _ in found]

    def _asked(self, pair: Pair) -> Job:
        document = pair.document
        robots = header(last_response(document.headers), b"x-robots-tag") or ""
        kind = self._kind(document.link.page_id)
        question = Question(
            document.final_url, kind, robots, self._obeys(host_of(document.final_url)), self._tracking, self._keywords,
            self._kept and kind == "page",
        )  # fmt: skip
        return job_of(pair, self._limit)._replace(question=tuple(question))
