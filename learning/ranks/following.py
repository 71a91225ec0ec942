"""A learner that follows: it learns from its rows of every batch, in step with the leader."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.base import Agent
from learning.ranks.group import Order, Ranks
from learning.ranks.lost import RowsLost
from memory.replay.batch import Batch
from memory.replay.following import RowReader, Rows
from memory.replay.replay import REDRAWS
from memory.server.patience import Interrupted, Patience

CHECK_EVERY_S = 0.1
"""Seconds of waiting for a batch after which it is asked whether the thread has failed (our choice)."""


class Fetched(NamedTuple):
    """What came of the rows of one draw."""

    batch: Batch
    readable: NDArray[np.bool_]  # [B / N]; the others have the weight 0


class FetchedRows:
    """A thread that fetches what the leader has drawn for this learner, until the leader closes the draws."""

    def __init__(
        self,
        ranks: Ranks,
        reader: RowReader,
        patience: Patience,
        batch_size: int,
        stage: Callable[[Batch], Batch] | None = None,
    ) -> None:
        """`batch_size`: of all learners; `stage`: begins to bring a batch to the learner's device."""
        self._ranks, self._reader, self._patience = ranks, reader, patience
        self._batch_size, self._stage = batch_size, stage
        self._fetched = queue.SimpleQueue[Fetched]()  # no more than the leader has drawn ahead
        self._failure: BaseException | None = None
        self._last: Batch | None = None
        self._unread = 0  # batches in a row of which no row could be read
        self._thread = threading.Thread(target=self._run, name="rows", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise what ended the thread, if anything did."""
        if self._failure is not None:
            raise self._failure

    def next(self) -> Fetched:
        """Of the next draw. Raises what ended the thread."""
        while True:
            try:
                return self._fetched.get(timeout=CHECK_EVERY_S)
            except queue.Empty:
                self.check()

    def join(self) -> None:
        """Wait for the end of the draws."""
        self._thread.join()

    def _run(self) -> None:
        try:
            while (rows := self._ranks.rows(self._batch_size)) is not None:
                fetched = self._read(rows)
                batch = fetched.batch if self._stage is None else self._stage(fetched.batch)
                self._fetched.put(fetched._replace(batch=batch))
        except BaseException as failure:  # noqa: BLE001 - handed to the learner's thread, which raises it
            self._failure = failure

    def _read(self, rows: Rows) -> Fetched:
        """The batch of `rows`.

        If no row can be read, this learner learns from the last batch again with weights of 0, because all
        learners must take the step.
        """
        try:
            batch, readable = self._patience(self._reader.read, rows)
        except Interrupted:  # the leader ends the run, and has no need of these rows
            batch, readable = None, np.zeros(len(rows), bool)
        self._unread = 0 if batch is not None else self._unread + 1
        if batch is None and (self._last is None or self._unread >= REDRAWS):
            raise RowsLost(f"{self._unread} batches in a row held no chunk that Redis still has.")
        if batch is not None:
            self._last = batch
        assert self._last is not None
        return Fetched(batch or self._last._replace(weights=np.zeros(len(rows), np.float32)), readable)


def follow(ranks: Ranks, prepare: Callable[[], tuple[Agent, Callable[[], FetchedRows]]]) -> None:
    """Do what the leader says until the run is over.

    Args:
        prepare: Makes an agent that has joined, and what begins to fetch its rows. It is called once the
            leader has found nothing wrong with the run.

    Raises:
        RankLost: The leader is gone. Or what `FetchedRows.next` raises.
    """
    prepared = None
    while True:
        order, number = ranks.heard()
        if order is Order.OVER:
            return
        if order is Order.BEGIN:
            agent, fetch = prepared = prepared or prepare()
            ranks.take_state(number)
            _learn(ranks, agent, fetch())


def _learn(ranks: Ranks, agent: Agent, rows: FetchedRows) -> None:
    """From BEGIN to END."""
    while True:
        order, t_learner = ranks.heard()
        if order is Order.END:
            return rows.join()
        rows.check()
        if order is Order.LEARN:
            batch, readable = rows.next()
            losses = agent.update(batch, t_learner).losses.float().cpu().numpy()
            ranks.gather(np.where(readable, losses, np.float32(-1)))
