"""The leader's source of batches, which has the other learners take part in each."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from learning.ranks.group import Order, Ranks
from learning.sampler import Sampler, SamplerConfig
from memory.replay.batch import Batch
from memory.replay.leading import LeadingShards
from memory.replay.priorities import Draw
from memory.replay.replay import Replay


class LeadingSampler(Sampler):
    """Hands out the leader's share of each batch, and takes the losses of all."""

    def __init__(self, ranks: Ranks, config: SamplerConfig, replay: Replay, *others: Any) -> None:
        """`ranks`: its agent has joined; `replay`: LeadingShards; the others are as of `Sampler`."""
        super().__init__(config, replay, *others)
        assert isinstance(replay, LeadingShards)
        self._ranks, self._leading = ranks, replay
        self._wholes: deque[Draw] = deque()  # drawn, and their losses not returned yet
        self._owes_losses = False  # the followers', of the batch that was handed out

    def scalars(self) -> dict[str, float]:
        """As `Sampler.scalars`, and how many seconds updates have taken to bring the learners together."""
        return super().scalars() | {"learner/together_s": self._ranks.spent_s}

    def start(self) -> None:
        """As `Source.start`; all learners begin with the leader's state."""
        self._ranks.begin()
        super().start()

    def draw(self) -> Batch:
        """As `Sampler.draw`, the leader's share; the others hear of theirs."""
        batch = super().draw()
        self._wholes.append(self._leading.whole)
        self._ranks.send_rows(self._leading.rows())
        return batch

    def next_batch(self, timeout_s: float) -> Batch | None:
        """As `Source.next_batch`. All learners begin the update, or hear that there is none yet."""
        batch = super().next_batch(timeout_s)
        if batch is None:
            self._ranks.announce(Order.IDLE)
        else:
            self._ranks.announce(Order.LEARN, self.t_learner(self._updates_before + self._learned))
            self._owes_losses = True
        return batch

    def return_losses(self, batch: Batch, losses: NDArray[Any]) -> None:
        """As `Sampler.return_losses`, of all learners. A loss below 0 is of a row that could not be read."""
        self._owes_losses = False
        of_all, whole = self._ranks.gather(losses), self._wholes.popleft()
        read = of_all >= 0
        own = batch._replace(leaf=whole.leaf[read], chunk_id=whole.chunk_id[read])
        super().return_losses(own, of_all[read])

    def stop(self) -> None:
        """As `Source.stop`; the others await the next start. Where an update has failed, they end instead."""
        super().stop()
        if self._ranks.updating:
            return
        self._ranks.close_rows(self._config.batch_size)
        if self._owes_losses:  # an error came after the update
            self._ranks.gather(np.zeros(self._config.batch_size // self._ranks.share.ranks, np.float32))
        self._ranks.announce(Order.END)
