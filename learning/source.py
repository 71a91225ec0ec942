"""Where a learner's experience comes from: a thread of its process that keeps a few batches ready."""

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
"""How much learning of priorities a killed learner may lose."""

BatchT = TypeVar("BatchT")


class Source(ABC, Generic[BatchT]):
    """Draws due batches; usable step by step (serial mode) or as a thread (`start`, `next_batch`)."""

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

    @property
    @abstractmethod
    def owes(self) -> bool:
        """Whether a batch is due by what was last seen."""

    @abstractmethod
    def clock(self, updates: int) -> int:
        """T_learner, in agent steps, of an agent with `updates` behind it."""

    @abstractmethod
    def ingest(self) -> None:
        """Look for new experience, and how far the actors are."""

    @abstractmethod
    def draw(self) -> BatchT:
        """One batch, now; for a caller that has seen `owes`."""

    def prepared(self, batch: BatchT) -> BatchT:
        """`batch` as the learner's thread should find it: what can be done for it beforehand, is."""
        return batch

    @abstractmethod
    def take_back(self, batch: BatchT, losses: NDArray[Any]) -> None:
        """`batch` was learned from with these losses; any thread."""

    @abstractmethod
    def settle(self, write_back: bool) -> None:
        """Draw the consequences of what came back, and if asked write them to Redis."""

    @abstractmethod
    def scalars(self) -> dict[str, float]:
        """What a plot should tell of the store."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """What a resumed learner's source goes on from."""

    def save(self) -> None:  # noqa: B027 - most have nothing to save
        """Write to disk what is to outlive Redis. Raises a redis error, or OSError."""

    @abstractmethod
    def size_sentence(self) -> str:
        """What the store takes in Redis, judging by what it holds."""

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
        """End the thread after it has settled all that came back."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                self._patiently(self._turn)
            self._patiently(lambda: self.settle(write_back=True))
        except BaseException as failure:  # noqa: BLE001 - handed to the learner's thread, which raises it
            self._failure = failure

    def _patiently(self, action: Callable[[], None]) -> None:
        patiently(action, self._patience_s, "Redis", self._ended.is_set)

    def _turn(self) -> None:
        now = time.monotonic()
        write_back = now - self._written_at > WRITE_BACK_EVERY_S
        self.settle(write_back)
        self._written_at = now if write_back else self._written_at
        if not self.owes or now - self._ingested_at > INGEST_EVERY_S:
            self.ingest()
            self._ingested_at = now
        if self.owes and not self._batches.full():
            self._batches.put(self.prepared(self.draw()))
        else:
            time.sleep(IDLE_S)
