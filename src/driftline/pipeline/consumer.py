"""Sections 2 and 3: threads that recall the old version and compare, together or apart."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from driftline.detection.compare import compare, confirm, prove_unchanged, recall
from driftline.detection.messages import own_failure
from driftline.errors import FailureKind, RunStopped, StoreError
from driftline.model.outcome import Failed, Pair
from driftline.model.page import Failure
from driftline.pipeline.stop import SupervisedThread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.detection.compare import Examiner, Versions
    from driftline.model.outcome import Changed, Document, Outcome
    from driftline.pipeline.queue import BoundedQueue

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_BATCH = 64
_HANDFUL = 8
_PATIENCE = 0.2  # seconds after which an idle thread looks whether it is still wanted


class ConsumerSteps(Protocol[T_co]):
    """What is done with documents once they are fetched: `Steps` for a check, and others for a crawl.

    The type of its outcomes is that of the pipeline; a page that could not be fetched or read is `Failed` in all.
    """

    def prove_unchanged(self, documents: list[Document]) -> tuple[Sequence[T_co | Failed], list[Document]]:
        """Return the outcomes of those documents that need no consumer, and the documents that do."""

    def recall(self, documents: list[Document]) -> list[Pair]:
        """Return each document with the old version of its page, if there is one."""

    def compare(self, pairs: list[Pair]) -> Sequence[T_co | Failed]:
        """Return the outcome of each pair; raise RunStopped if there is no time left to find out."""


class ConfirmingSteps(ConsumerSteps["Outcome"], Protocol):
    """The same for checks, whose changes can be confirmed by a second fetch."""

    def confirm(self, found: list[tuple[Changed, Document]]) -> list[Outcome]:
        """Return the outcomes of changes, given the same pages fetched once more."""


class Steps:
    """The consumer's steps with what they need. A step that raises fails only the page it was at. For any thread."""

    def __init__(self, versions: Versions, examiner: Examiner, limit: int, *, twice: bool = False) -> None:
        self._versions = versions
        self._examiner = examiner
        self._limit = limit
        self._twice = twice

    def prove_unchanged(self, documents: list[Document]) -> tuple[Sequence[Outcome], list[Document]]:
        """Return the outcomes of documents that their links prove unchanged, and the documents left to compare."""
        try:
            return prove_unchanged(documents)
        except Exception:  # noqa: BLE001 the page at fault will fail on its own when it is recalled
            return [], documents

    def recall(self, documents: list[Document]) -> list[Pair]:
        """Return each document with the old version that it must be compared with."""
        try:
            return recall(documents, self._versions)
        except StoreError:
            raise  # it is the store that fails, not the page: the run must end
        except Exception as error:  # noqa: BLE001 whatever a page makes a step raise must fail that page only
            if len(documents) > 1:
                return [pair for document in documents for pair in self.recall([document])]
            return [Pair(replace(documents[0], failure=internal_failure(error)), b"")]

    def compare(self, pairs: list[Pair]) -> list[Outcome]:
        """Return the outcome of each pair; raise RunStopped if there is no time left to find out."""
        try:
            return compare(pairs, self._examiner, self._versions, self._limit, twice=self._twice)
        except (RunStopped, StoreError):
            raise
        except Exception as error:  # noqa: BLE001 whatever a page makes a step raise must fail that page only
            if len(pairs) > 1:
                return [outcome for pair in pairs for outcome in self.compare([pair])]
            return [Failed(pairs[0].document, internal_failure(error))]

    def confirm(self, found: list[tuple[Changed, Document]]) -> list[Outcome]:
        """Return the outcomes of changes, given the same pages fetched once more; raise RunStopped as `compare`."""
        try:
            return confirm(found, self._examiner, self._limit)
        except RunStopped:
            raise
        except Exception:  # noqa: BLE001 a change that cannot be confirmed is one all the same
            return [replace(outcome, pair=None) for outcome, _ in found]


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
        self._wanted = True
        self.thread = SupervisedThread(name, self._work, ended)

    def __repr__(self) -> str:
        dismissed = "" if self._wanted else " dismissed"
        return f"<Consumer lane={self._lane} of {self._queue.name!r}{dismissed} {self.thread!r}>"

    def dismiss(self) -> None:
        """End after the current batch, and leave the rest of the queue to other threads."""
        self._wanted = False

    def _work(self) -> None:
        try:
            self._consume()
        except RunStopped:
            self._queue.refuse()  # so that no thread waits for room in it
        except Exception:
            self._queue.refuse()
            raise

    def _consume(self) -> None:
        while self._wanted:
            batch = self._queue.take(self._share(), self._lane, _PATIENCE)
            if batch is None:
                return
            if batch:
                self._do(batch)


def fair_share(depth: int, consumers: int) -> int:
    """Return how many of `depth` items one of so many consumers takes at once: half of its share, at least a handful.

    Half of it, so that all consumers are busy until the end. Much smaller batches would cost more than the work on
    them: each wakes a thread and a worker process, and reads from the store.
    """
    return max(_HANDFUL, min(_BATCH, -(-depth // max(1, 2 * consumers))))


def internal_failure(error: Exception) -> Failure:
    """Return the failure of a page that made a step raise an unexpected exception."""
    return Failure(kind=FailureKind.INTERNAL, sentence=own_failure(error))
