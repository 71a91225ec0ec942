"""Where a learner's batches come from: a thread of its process that keeps a few of them ready."""

from __future__ import annotations

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from numpy.typing import NDArray

from memory.runs.counters import Counters
from memory.server.connection import patiently

IDLE_S = 0.002
"""Pause when nothing is due: shorter than a batch of the fastest learner measured."""
INGEST_EVERY_S = 0.02
"""Longest time that new experience waits to be seen while batches are drawn without pause."""
WRITE_BACK_EVERY_S = 1.0
"""The newest priorities, of so many seconds, are lost with a learner that is killed."""

BatchT = TypeVar("BatchT")


class Source(ABC, Generic[BatchT]):
    """Draws batches when they are due, step by step (serial mode) or in a thread (`start`, `next_batch`)."""

    publishes_every_update: ClassVar[bool] = False
    """Whether actors must see the weights of every update."""
    fill: float = 0.0
    """Share of the store that is filled."""
    total_priority: float = 0.0
    """Sum of all priorities, where there are any."""

    def __init__(self, counters: Counters, queue_size: int, patience_s: float) -> None:
        self.counters = counters
        self.drawn = 0  # batches of this epoch
        self.consumed = 0
        self._patience_s = patience_s
        self._batches: queue.Queue[BatchT] = queue.Queue(queue_size)
        self._failure: BaseException | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="source", daemon=True)
        self._ingested_at = self._written_at = 0.0

    @abstractmethod
    def is_due(self, ahead: int = 0) -> bool:
        """Whether a batch is due by the counters last read, if `ahead` more were drawn already."""

    @abstractmethod
    def t_learner(self, updates: int) -> int:
        """T_learner, in agent steps, of an agent after so many updates."""

    @abstractmethod
    def ingest(self) -> None:
        """Read new experience and the run's counters."""

    @abstractmethod
    def draw(self) -> BatchT:
        """One batch, now; for a caller that has seen `is_due`."""

    def stage(self, batch: BatchT) -> BatchT:
        """Begin to bring `batch` to the learner's device; in this source's thread."""
        return batch

    @abstractmethod
    def return_losses(self, batch: BatchT, losses: NDArray[Any]) -> None:
        """`batch` was learned from with these losses [B]; in any thread, in the order of the draws."""

    @abstractmethod
    def apply_losses(self, write_back: bool) -> None:
        """Apply what was returned, and if asked write it to Redis."""

    @abstractmethod
    def scalars(self) -> dict[str, float]:
        """Figures of the store, by the names of their plots."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Where a resumed learner's source continues."""

    def save(self) -> None:  # noqa: B027 - most have nothing to save
        """Write to disk what must outlive Redis. Raises a redis error, or OSError."""

    @abstractmethod
    def size_sentence(self) -> str:
        """How much of Redis' memory the store takes, estimated from what it holds."""

    def start(self) -> None:
        """Begin to prepare batches in a thread."""
        self._thread.start()

    def next_batch(self, timeout_s: float) -> BatchT | None:
        """The next prepared batch, or None after `timeout_s`. Raises what ended the thread."""
        if self._failure is not None:
            raise self._failure
        try:
            return self._batches.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def stop(self) -> None:
        """End the thread after it has applied and written all losses that were returned."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                self._patiently(self._turn)
            self._patiently(lambda: self.apply_losses(write_back=True))
        except BaseException as failure:  # noqa: BLE001 - handed to the learner's thread, which raises it
            self._failure = failure

    def _patiently(self, action: Callable[[], None]) -> None:
        patiently(action, self._patience_s, "Redis", self._ended.is_set)

    def _turn(self) -> None:
        now = time.monotonic()
        write_back = now - self._written_at > WRITE_BACK_EVERY_S
        self.apply_losses(write_back)
        self._written_at = now if write_back else self._written_at
        if not self.is_due() or now - self._ingested_at > INGEST_EVERY_S:
            self.ingest()
            self._ingested_at = now
        if self.is_due() and not self._batches.full():
            self._batches.put(self.stage(self.draw()))
        else:
            time.sleep(IDLE_S)
