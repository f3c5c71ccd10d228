"""Sections 2 and 3: threads that recall the old version and compare, together or apart."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from driftline.detection.comparison import compare, recall
from driftline.detection.workers import Worker
from driftline.model import Document, Failure, FailureKind, Outcome, Pair, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from driftline.detection.comparison import Versions
    from driftline.pipeline.queues import BoundedQueue
    from driftline.settings import Settings

T = TypeVar("T")

_BATCH = 32
_PATIENCE = 0.2  # seconds after which an idle thread looks whether it is still wanted


class Steps:
    """The consumer's steps with what they need, for one thread. A step that raises fails only the page it was at."""

    def __init__(self, versions: Versions, settings: Settings) -> None:
        self._versions = versions
        self._limit = settings.max_body
        self._worker = Worker(deadline=settings.worker_deadline, memory=settings.worker_memory)

    def recall(self, documents: list[Document]) -> list[Pair]:
        """Each document with the old version that it must be compared with."""
        try:
            return recall(documents, self._versions)
        except Exception as error:  # noqa: BLE001 whatever a page makes a step raise must fail that page only
            if len(documents) > 1:
                return [pair for document in documents for pair in self.recall([document])]
            documents[0].failure = _internal(error)
            return [Pair(documents[0], b"")]

    def compare(self, pairs: list[Pair]) -> list[Outcome]:
        """What each pair shows."""
        try:
            return compare(pairs, self._worker, self._limit)
        except Exception as error:  # noqa: BLE001 whatever a page makes a step raise must fail that page only
            if len(pairs) > 1:
                return [outcome for pair in pairs for outcome in self.compare([pair])]
            return [Outcome(pairs[0].document, Verdict.FAILED, failure=_internal(error))]

    def kill(self) -> None:
        """End the worker process at once."""
        self._worker.kill()

    def close(self) -> None:
        """Let the worker process end."""
        self._worker.close()


class Consumer(Generic[T]):
    """One thread that takes items from a queue in batches and works on them, until there are no more.

    `work` is recall and compare for a consumer, or one of the two for the sections of the three-section pipeline.
    """

    def __init__(
        self, *, name: str, queue: BoundedQueue[T], lane: int, share: Callable[[], int], steps: Steps,
        work: Callable[[Steps, list[T]], None], ended: Callable[[], None],
    ) -> None:  # fmt: skip
        self._queue = queue
        self._lane = lane
        self._share = share
        self._steps = steps
        self._do = work
        self._ended = ended
        self.error: Exception | None = None
        self._wanted = True
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the thread is still at work."""
        return self._thread.is_alive()

    def dismiss(self) -> None:
        """End after the batch at hand, leaving the rest of the queue to others."""
        self._wanted = False

    def kill(self) -> None:
        """Give up the page at hand by ending its worker process."""
        self._steps.kill()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the thread to end."""
        self._thread.join(timeout)

    def _work(self) -> None:
        try:
            self._consume()
        except Exception as error:  # noqa: BLE001 kept for the thread that tends this one: nobody else can hear it
            self.error = error
        finally:
            self._steps.close()
            self._ended()

    def _consume(self) -> None:
        while self._wanted:
            batch = self._queue.take(self._share(), self._lane, _PATIENCE)
            if batch is None:
                return
            if batch:
                self._do(self._steps, batch)


def fair_share(depth: int, consumers: int) -> int:
    """How many of `depth` items one of so many consumers takes at once, so as not to sit on what others wait for."""
    return max(1, min(_BATCH, -(-depth // max(1, consumers))))


def _internal(error: Exception) -> Failure:
    sentence = f"Driftline itself failed on this page ({type(error).__name__}: {error})."
    return Failure(kind=FailureKind.INTERNAL, sentence=sentence)
