"""What the learners of a run tell each other, by torch.distributed (gloo between CPUs, NCCL between GPUs).

The leader's orders and states, all gradients, and losses go through one group, by the main threads; rows of
draws through another, by the threads that draw and fetch. Everybody calls the same operations in the same
order, or they would wait for each other for ever: a learner that fails ends without a word, and the others
notice that its connections are closed.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import IntEnum

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import nn

from agents.base import Agent, Share
from agents.parts.off_policy import OffPolicyAgent
from learning.ranks.lost import RankLost
from memory.replay.following import Rows
from memory.replay.leading import COLUMNS
from memory.server.patience import FULL_PATIENCE_S

LEADER = 0
TIMEOUT = timedelta(seconds=FULL_PATIENCE_S + 600)
"""Longest wait of a learner for the others: the leader may wait so long for room in Redis or on its disk."""
LARGE_BYTES = 1 << 20
"""Bytes of a gradient from which on it is averaged alone: a copy would cost more than an operation's 0.2 ms
between processes of one machine.
"""
LOST = "Another learner of this run has ended, and there is no batch without it"


class Order(IntEnum):
    """What the leader tells the followers to do next."""

    BEGIN = 0  # with the state that follows
    LEARN = 1  # from the next rows
    IDLE = 2
    END = 3  # of these batches: another BEGIN may come
    OVER = 4


class Ranks:
    """This learner among all of its run."""

    def __init__(self) -> None:
        """In torch's process group, which is there. Waits for the others."""
        self.share = Share(dist.get_rank(), dist.get_world_size())
        self.updating = False
        """Whether an update has begun whose gradients are not all averaged yet."""
        self.spent_s = 0.0
        """In all operations but those of draws, the wait for the other learners included."""
        self._is_lost = False
        with self._noticing():
            self._draws = dist.new_group(backend="gloo", timeout=TIMEOUT)

    def join(self, agent: Agent) -> None:
        """From here on `agent`, an OffPolicyAgent, learns from its share of each batch, by the mean of all
        learners' gradients.
        """
        assert isinstance(agent, OffPolicyAgent)
        self._agent = agent
        agent.join_learners(self.share, self._average)

    def begin(self) -> None:
        """Leader: give all its agent's state."""
        buffer = io.BytesIO()
        torch.save(self._agent.state_dict(), buffer)
        self.announce(Order.BEGIN, buffer.tell())
        with self._timed():
            dist.broadcast(torch.frombuffer(buffer.getbuffer(), dtype=torch.uint8), LEADER)

    def take_state(self, size: int) -> None:
        """Follower, at BEGIN: continue from the leader's state of `size` bytes."""
        data = torch.empty(size, dtype=torch.uint8)
        with self._timed():
            dist.broadcast(data, LEADER)
        self._agent.load_state_dict(torch.load(io.BytesIO(data.numpy().tobytes()), weights_only=True))

    def announce(self, order: Order, number: int = 0) -> None:
        """Leader: the next order; `number`: bytes of the state with BEGIN, T_learner with LEARN."""
        with self._timed():
            dist.broadcast(torch.tensor([order, number]), LEADER)
        self.updating = order is Order.LEARN

    def heard(self) -> tuple[Order, int]:
        """Follower: the next order and its number."""
        message = torch.empty(2, dtype=torch.int64)
        with self._timed():
            dist.broadcast(message, LEADER)
        order, number = message.tolist()
        return Order(order), number

    def send_rows(self, rows: Rows) -> None:
        """Leader: what the next batch is drawn from."""
        with self._noticing():
            dist.broadcast(torch.from_numpy(rows), LEADER, self._draws)

    def close_rows(self, batch_size: int) -> None:
        """Leader: no more rows come in this session."""
        self.send_rows(np.full((batch_size, COLUMNS), -1.0))

    def rows(self, batch_size: int) -> Rows | None:
        """Follower: its own rows of the next batch of `batch_size`; None where no more come."""
        whole = torch.empty(batch_size, COLUMNS, dtype=torch.float64)
        with self._noticing():
            dist.broadcast(whole, LEADER, self._draws)
        rows = whole.numpy()
        return None if rows[0, 0] < 0 else rows[self.share.rank :: self.share.ranks]

    def gather(self, losses: NDArray[np.float32]) -> NDArray[np.float32]:
        """Losses of the whole batch at the leader, from everybody's own; elsewhere the own ones."""
        own = torch.from_numpy(losses)
        parts = (
            [torch.empty_like(own) for _ in range(self.share.ranks)] if self.share.rank == LEADER else None
        )
        with self._timed():
            dist.gather(own, parts, LEADER)
        whole = own if parts is None else torch.stack(parts, 1).flatten()  # rows r, r + count … are rank r's
        return np.asarray(whole.numpy())

    def over(self) -> None:
        """Leader: let the others end well, unless they wait for an update that will not come."""
        if not (self._is_lost or self.updating):
            self.announce(Order.OVER)

    def leave(self) -> None:
        """End the groups and their threads: one that is alive while Python ends aborts the process."""
        del self._draws  # the last reference to it
        dist.destroy_process_group()

    def _average(self, parameters: list[nn.Parameter]) -> None:
        """Make each gradient the mean of all learners'. Small ones go together."""
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        large = [each for each in gradients if each.nbytes >= LARGE_BYTES and each.is_contiguous()]
        small = [each for each in gradients if each.nbytes < LARGE_BYTES or not each.is_contiguous()]
        together = torch.cat([each.flatten() for each in small]) if small else torch.empty(0)
        with self._timed():
            for work in [dist.all_reduce(each, async_op=True) for each in (*large, together)]:
                work.wait()
        for each in (*large, together):
            each.div_(self.share.ranks)
        for each, mean in zip(small, torch.split(together, [each.numel() for each in small]), strict=True):
            each.copy_(mean.view_as(each))
        self.updating = False

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.perf_counter()
        with self._noticing():
            yield
        self.spent_s += time.perf_counter() - began

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        """Nothing is tried any more once somebody is lost."""
        if self._is_lost:
            raise RankLost(f"{LOST}.")
        try:
            yield
        except RuntimeError as error:  # gloo's and NCCL's
            self._is_lost = True
            raise RankLost(f"{LOST} ({reason(error)}).") from error


def reason(error: RuntimeError) -> str:
    """The first sentence of an error of gloo's or NCCL's, without its place in the library."""
    return str(error).splitlines()[0].rpartition("] ")[2].partition(". ")[0].rstrip(".")
