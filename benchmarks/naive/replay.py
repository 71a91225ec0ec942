"""The replay in the seed's manner: a Redis key per node of the sum tree, a hash per frame.

The tree is a heap of keys: 0 is the root, node i has children 2i + 1 and 2i + 2. It is walked by GETs, one
pipeline per level, and changed by adding differences to every node from a leaf to the root. A batch of 32 at
a capacity of 65,536 takes some 1,350 commands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.replay.batch import Batch
from memory.server.connection import Client


class Step(NamedTuple):
    """One step of one environment; `reward` is clipped."""

    timestep: int  # since the episode's first frame
    frame: NDArray[np.uint8]  # [*frame] acted from
    action: int
    reward: float
    terminal: bool  # whether it ended the episode


FIELDS = Step._fields
APPENDED = "naive:appended"


class NaiveReplay:
    """One actor's ring of steps, and the tree over them, both in Redis."""

    def __init__(
        self,
        client: Client,
        capacity: int,
        history_length: int,
        multi_step: int,
        discount: float,
        alpha: float,
        frame_shape: tuple[int, ...],
        fresh: bool = True,
    ) -> None:
        """`capacity`: a power of two, leaves of the tree; `fresh` False: of a tree that another made."""
        self._client, self._capacity = client, capacity
        self._history, self._n, self._discount, self._alpha = history_length, multi_step, discount, alpha
        self._depth = capacity.bit_length() - 1
        self._frame_shape = frame_shape
        if fresh:
            self._make_tree()

    def _make_tree(self) -> None:
        pipeline = self._client.pipeline()
        for node in range(2 * self._capacity - 1):
            pipeline.set(_node(node), 0.0)
        pipeline.set(APPENDED, 0)
        pipeline.execute()

    @property
    def fill(self) -> int:
        """Steps held."""
        return min(int(self._client.get(APPENDED)), self._capacity)

    def append(self, steps: Sequence[Step], priorities: NDArray[np.float32]) -> None:
        """Store an actor's buffer and its priorities in one transaction."""
        first = int(self._client.get(APPENDED))
        slots = [(first + i) % self._capacity for i in range(len(steps))]
        old = self._read([slot + self._capacity - 1 for slot in slots])
        pipeline = self._client.pipeline(transaction=True)
        for slot, step in zip(slots, steps, strict=True):
            values = (step.timestep, step.frame.tobytes(), step.action, step.reward, int(step.terminal))
            pipeline.hset(_step(slot), mapping=dict(zip(FIELDS, values, strict=True)))
        self._add(pipeline, slots, priorities - old)
        pipeline.incrby(APPENDED, len(steps))
        pipeline.execute()

    def sample(self, batch_size: int, beta: float, generator: np.random.Generator) -> Batch:
        """One leaf from each of `batch_size` equal parts of the total."""
        total = float(self._client.get(_node(0)))
        parts = (np.arange(batch_size) + generator.random(batch_size)) / batch_size
        nodes = self._walk(parts * total)
        priorities = self._read(nodes)
        slots = np.array(nodes) - (self._capacity - 1)
        weights = (self.fill * priorities / total) ** -beta
        return self._assembled(slots, (weights / weights.max()).astype(np.float32))

    def update(self, slots: NDArray[np.int64], losses: NDArray[Any]) -> None:
        """New priorities; a slot that is named several times takes the last."""
        named = dict(zip(slots.tolist(), losses.tolist(), strict=True))
        leaves = ((np.array(list(named.values())) + 1e-6) ** self._alpha).astype(np.float32)
        old = self._read([slot + self._capacity - 1 for slot in named])
        pipeline = self._client.pipeline(transaction=False)
        self._add(pipeline, list(named), leaves - old)
        pipeline.execute()

    def _walk(self, prefix_sums: NDArray[np.float64]) -> list[int]:
        """The leaf's node for each prefix sum: down the tree, all of them level by level."""
        nodes, rest = [0] * len(prefix_sums), prefix_sums.copy()
        for _ in range(self._depth):
            left = self._read([2 * node + 1 for node in nodes])
            for i, node in enumerate(nodes):
                goes_right = rest[i] >= left[i]
                rest[i] -= left[i] if goes_right else 0.0
                nodes[i] = 2 * node + (2 if goes_right else 1)
        return nodes

    def _read(self, nodes: Sequence[int]) -> NDArray[np.float64]:
        pipeline = self._client.pipeline(transaction=False)
        for node in nodes:
            pipeline.get(_node(node))
        return np.array([float(value) for value in pipeline.execute()])

    def _add(self, pipeline: Client, slots: Sequence[int], differences: NDArray[np.float64]) -> None:
        for slot, difference in zip(slots, differences.tolist(), strict=True):
            node = slot + self._capacity - 1
            pipeline.incrbyfloat(_node(node), difference)
            while node:
                node = (node - 1) // 2
                pipeline.incrbyfloat(_node(node), difference)

    def _assembled(self, slots: NDArray[np.int64], weights: NDArray[np.float32]) -> Batch:
        """H frames up to the step and n steps ahead of each slot, read as hashes, made into a batch."""
        pipeline = self._client.pipeline(transaction=False)
        for slot in slots.tolist():
            for offset in range(1 - self._history, self._n + 1):
                pipeline.hmget(_step((slot + offset) % self._capacity), FIELDS)
        read = [self._parsed(values) for values in pipeline.execute()]
        width = self._history + self._n
        rows = [self._transition(read[i : i + width]) for i in range(0, len(read), width)]
        s_tm1, actions, returns, discounts, s_t = zip(*rows, strict=True)
        return Batch(
            s_tm1=np.stack(s_tm1),
            a_tm1=np.array(actions),
            r_t=np.array(returns, np.float32),
            discount_t=np.array(discounts, np.float32),
            s_t=np.stack(s_t),
            weights=weights,
            leaf=slots,
            chunk_id=np.zeros(len(slots), np.int64),
        )

    def _parsed(self, values: list[bytes | None]) -> Step:
        """A step from its hash; a blank one where nothing was stored yet."""
        timestep, frame, action, reward, terminal = values
        if timestep is None or frame is None or action is None or reward is None or terminal is None:
            return Step(0, np.zeros(self._frame_shape, np.uint8), 0, 0.0, True)
        pixels = np.frombuffer(frame, np.uint8).reshape(self._frame_shape)
        return Step(int(timestep), pixels, int(action), float(reward), terminal == b"1")

    def _transition(self, steps: list[Step]) -> tuple[NDArray[Any], int, float, float, NDArray[Any]]:
        """(s_tm1, a_tm1, r_t, discount_t, s_t); frames of another episode are blank."""
        now = self._history - 1
        frames = [step.frame for step in steps]
        for i in range(now - 1, -1, -1):
            if steps[i + 1].timestep == 0 or steps[i].terminal:
                frames[: i + 1] = [np.zeros_like(frames[0])] * (i + 1)
                break
        discount, r_t, ended = 1.0, 0.0, False
        for i in range(now, now + self._n):
            r_t += 0.0 if ended else discount * steps[i].reward
            ended = ended or steps[i].terminal
            discount *= self._discount
            if ended:
                frames[i + 1] = np.zeros_like(frames[0])
        last = slice(self._n, self._n + self._history)
        return (
            np.stack(frames[: self._history]),
            steps[now].action,
            r_t,
            0.0 if ended else discount,
            np.stack(frames[last]),
        )


def _node(node: int) -> str:
    return f"naive:node:{node}"


def _step(slot: int) -> str:
    return f"naive:step:{slot}"
