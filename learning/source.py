"""Where a learner's batches come from: a thread of its process that keeps a few of them ready."""

from __future__ import annotations

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from numpy.typing import NDArray

from learning.value_bounds import ValueBounds
from memory.runs.counters import Counters
from memory.server.patience import Patience

IDLE_S = 0.002
"""Pause (seconds) when nothing is due: shorter than a batch of the fastest learner measured."""
INGEST_EVERY_S = 0.02
"""Longest time (seconds) that new experience waits to be seen while batches are drawn without pause."""
WRITE_BACK_EVERY_S = 1.0
"""Seconds between two writes of priorities to Redis; a learner that is killed loses the newest priorities of
so many seconds.
"""

BatchT = TypeVar("BatchT")


class Source(ABC, Generic[BatchT]):
    """Draws batches when they are due, step by step (serial mode) or in a thread (`start`, `next_batch`)."""

    publishes_every_update: ClassVar[bool] = False
    """Whether actors must see the weights of every update."""
    total_priority: float = 0.0
    """Sum of all priorities, where there are any."""

    def __init__(
        self,
        counters: Counters,
        queue_size: int,
        patience_s: float,
        stage: Callable[[BatchT], BatchT] | None = None,
    ) -> None:
        """`stage`: begins to bring a batch to the learner's device, in the thread that draws it."""
        self.counters = counters
        self.drawn = self.consumed = 0  # batches of this epoch
        self.metrics: dict[str, float] = {}  # of the batch that was learned from last, beside the agent's
        self.value_bounds = ValueBounds()
        self._stage = stage
        self._batches: queue.Queue[BatchT] = queue.Queue(queue_size)
        self._failure: BaseException | None = None
        self._ended = threading.Event()
        self._patiently = Patience(patience_s, self._ended.is_set)
        self._thread = threading.Thread(target=self._run, name="source", daemon=True)
        self._ingested_at = self._written_at = 0.0

    @property
    def fill(self) -> float | None:
        """Share of the replay that is filled; None where there is no replay."""
        return None

    @abstractmethod
    def is_due(self) -> bool:
        """Whether a batch is due by the counters last read."""

    @abstractmethod
    def t_learner(self, updates: int) -> int:
        """T_learner, in agent steps, of an agent after so many updates."""

    @abstractmethod
    def has_learned(self, t_max: int, updates: int) -> bool:
        """Whether an agent of so many updates has made all that are due by T_learner = `t_max`."""

    @abstractmethod
    def samples_per_insert(self) -> float:
        """Mean number of times that a transition was learned from; from when on, each source says."""

    @abstractmethod
    def ingest(self) -> None:
        """Read new experience and the run's counters."""

    @abstractmethod
    def draw(self) -> BatchT:
        """One batch, now; for a caller that has seen `is_due`."""

    @abstractmethod
    def return_losses(self, batch: BatchT, losses: NDArray[Any]) -> None:
        """`batch` was learned from with these losses [B]; in any thread, in the order of the draws."""

    @abstractmethod
    def apply_losses(self, write_back: bool) -> None:
        """Apply what was returned, and if asked write it to Redis."""

    @abstractmethod
    def scalars(self) -> dict[str, float]:
        """Figures of the store, by the names of their plots in TensorBoard."""

    @abstractmethod
    def state_dict(self, counters: Counters) -> dict[str, Any]:
        """Where a resumed learner's source continues.

        Args:
            counters: Those of the snapshot; the source's thread may have read newer ones by now.
        """

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
            self._patiently(self.apply_losses, True)
        except BaseException as failure:  # noqa: BLE001 - handed to the learner's thread, which raises it
            self._failure = failure

    def _turn(self) -> None:
        now = time.monotonic()
        write_back = now - self._written_at > WRITE_BACK_EVERY_S
        self.apply_losses(write_back)
        self._written_at = now if write_back else self._written_at
        if not self.is_due() or now - self._ingested_at > INGEST_EVERY_S:
            self.ingest()
            self._ingested_at = now
        if self.is_due() and not self._batches.full():
            batch = self.draw()
            self._batches.put(batch if self._stage is None else self._stage(batch))
        else:
            time.sleep(IDLE_S)
