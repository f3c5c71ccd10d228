"""Sections 2 and 3: threads that recall the old version and compare, together or apart."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from driftline.detection.compare import compare, confirm, recall, settle
from driftline.errors import FailureKind, RunStopped, StoreError
from driftline.model import Document, Failure, Outcome, Pair, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from driftline.detection.compare import Examiner, Versions
    from driftline.pipeline.queue import BoundedQueue

T = TypeVar("T")

_BATCH = 64
_HANDFUL = 32
_PATIENCE = 0.2  # seconds after which an idle thread looks whether it is still wanted


class ConsumerSteps(Protocol):
    """What is done with documents once they are fetched: `Steps` for a check, and others for a crawl."""

    def settle(self, documents: list[Document]) -> tuple[list[Outcome], list[Document]]:
        """The outcomes of those that need no consumer, and the documents that do."""

    def recall(self, documents: list[Document]) -> list[Pair]:
        """Each document with what is known of its page."""

    def compare(self, pairs: list[Pair]) -> list[Outcome]:
        """What each pair shows; RunStopped if there is no time left to find out."""

    def confirm(self, found: list[tuple[Outcome, Document]]) -> list[Outcome]:
        """What changes amount to, given the same pages fetched once more."""


class Steps:
    """The consumer's steps with what they need. A step that raises fails only the page it was at. For any thread."""

    def __init__(self, versions: Versions, examiner: Examiner, limit: int, *, twice: bool = False) -> None:
        self._versions = versions
        self._examiner = examiner
        self._limit = limit
        self._twice = twice

    def settle(self, documents: list[Document]) -> tuple[list[Outcome], list[Document]]:
        """The outcomes of those that their links prove unchanged, and the documents left to recall and compare."""
        try:
            return settle(documents)
        except Exception:  # noqa: BLE001 the page at fault will fail on its own when it is recalled
            return [], documents

    def recall(self, documents: list[Document]) -> list[Pair]:
        """Each document with the old version that it must be compared with."""
        try:
            return recall(documents, self._versions)
        except StoreError:
            raise  # it is the store that fails, not the page: the run must end
        except Exception as error:  # noqa: BLE001 whatever a page makes a step raise must fail that page only
            if len(documents) > 1:
                return [pair for document in documents for pair in self.recall([document])]
            documents[0].failure = _internal(error)
            return [Pair(documents[0], b"")]

    def compare(self, pairs: list[Pair]) -> list[Outcome]:
        """What each pair shows; RunStopped if there is no time left to find out."""
        try:
            outcomes = compare(pairs, self._examiner, self._limit, twice=self._twice)
        except RunStopped:
            raise
        except Exception as error:  # noqa: BLE001 whatever a page makes a step raise must fail that page only
            if len(pairs) > 1:
                return [outcome for pair in pairs for outcome in self.compare([pair])]
            return [Outcome(pairs[0].document, Verdict.FAILED, failure=_internal(error))]
        for pair, outcome in zip(pairs, outcomes, strict=True):
            if pair.old is not None:
                outcome.recalled = pair.old.kept_text
        return outcomes

    def confirm(self, found: list[tuple[Outcome, Document]]) -> list[Outcome]:
        """What changes amount to, given the same pages fetched once more; RunStopped if there is no time left."""
        try:
            return confirm(found, self._examiner, self._limit)
        except RunStopped:
            raise
        except Exception:  # noqa: BLE001 a change that cannot be confirmed is one all the same
            return [outcome for outcome, _ in found]


class Consumer(Generic[T]):
    """One thread that takes items from a queue in batches and works on them, until there are no more.

    `work` is recall and compare for a consumer, or one of the two for the sections of the three-section pipeline.
    """

    def __init__(
        self, *, name: str, queue: BoundedQueue[T], lane: int, share: Callable[[], int],
        work: Callable[[list[T]], None], ended: Callable[[], None],
    ) -> None:  # fmt: skip
        self._queue = queue
        self._lane = lane
        self._share = share
        self._do = work
        self._ended = ended
        self._done = False
        self.error: Exception | None = None
        self._wanted = True
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    @property
    def at_work(self) -> bool:
        """Whether there may still come something of it."""
        return not self._done

    def dismiss(self) -> None:
        """End after the batch at hand, leaving the rest of the queue to others."""
        self._wanted = False

    def join(self, timeout: float | None = None) -> None:
        """Wait for the thread to end."""
        self._thread.join(timeout)

    def _work(self) -> None:
        try:
            self._consume()
        except RunStopped:
            self._queue.refuse()  # those who fill it must not wait for room that nobody makes
        except Exception as error:  # noqa: BLE001 kept for the thread that tends this one: nobody else can hear it
            self.error = error
            self._queue.refuse()
        finally:
            self._done = True  # before the bell, or who hears it would find the thread alive and wait for the next
            self._ended()

    def _consume(self) -> None:
        while self._wanted:
            batch = self._queue.take(self._share(), self._lane, _PATIENCE)
            if batch is None:
                return
            if batch:
                self._do(batch)


def fair_share(depth: int, consumers: int) -> int:
    """How many of `depth` items one of so many consumers takes at once: its share, or a handful if that is more.

    A share alone would have several threads wake up for a few pages each, and for pages that are unchanged the waking
    costs more than the work.
    """
    return max(_HANDFUL, min(_BATCH, -(-depth // max(1, consumers))))


def _internal(error: Exception) -> Failure:
    sentence = f"Driftline itself failed on this page ({type(error).__name__}: {error})."
    return Failure(kind=FailureKind.INTERNAL, sentence=sentence)
