"""The slow twins of appending and sampling: a replay as in Toromanoff et al. 2019, all of it in Redis.

A Redis key for each node of the sum tree, a hash for each frame. Written plainly by us and never tuned: the
same commands and as many round trips as the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acting.player import VectorStep
from memory.replay.batch import Batch
from memory.server.connection import Client
from wiring.setting import Setting
from wiring.sources import sizes_of

APPENDED = "naive:appended"


class Step(NamedTuple):
    """One step of one environment; `reward` is clipped."""

    timestep: int  # since the episode's first frame
    frame: NDArray[np.uint8]  # [*frame] acted from
    action: int
    reward: float
    terminal: bool  # whether it ended the episode


class OriginalReplay:
    """One actor's ring of steps, and the sum tree over them, both in Redis.

    The tree is a heap of keys: 0 is the root, node i has children 2i + 1 and 2i + 2. It is walked by GETs,
    one pipeline per level, and changed by adding differences to every node from a leaf to the root. A batch
    of 32 at a capacity of 65,536 takes some 1,350 commands.
    """

    def __init__(self, client: Client, setting: Setting, fresh: bool = True) -> None:
        """`fresh` False: of a tree that another process made. The capacity is a power of two."""
        args, self._client = setting.args, client
        self._capacity, self._history, self._n = args.memory_capacity, args.history_length, args.multi_step
        self._discount, self._alpha = args.discount, sizes_of(args).rule.priority_exponent
        self._frame_shape = setting.description.frame_shape
        if fresh:
            pipeline = client.pipeline()
            for node in range(2 * self._capacity - 1):
                pipeline.set(_node(node), 0.0)
            pipeline.set(APPENDED, 0)
            pipeline.execute()

    @property
    def fill(self) -> int:
        """Steps held."""
        return min(int(self._client.get(APPENDED)), self._capacity)

    def append(self, steps: Sequence[Step], priorities: NDArray[np.float32]) -> None:
        """Stores an actor's buffer and its priorities in one transaction."""
        first = int(self._client.get(APPENDED))
        slots = [(first + i) % self._capacity for i in range(len(steps))]
        old = self._read([slot + self._capacity - 1 for slot in slots])
        pipeline = self._client.pipeline(transaction=True)
        for slot, step in zip(slots, steps, strict=True):
            values = (step.timestep, step.frame.tobytes(), step.action, step.reward, int(step.terminal))
            pipeline.hset(_step(slot), mapping=dict(zip(Step._fields, values, strict=True)))
        self._add(pipeline, slots, priorities - old)
        pipeline.incrby(APPENDED, len(steps))
        pipeline.execute()

    def sample(self, batch_size: int, beta: float, generator: np.random.Generator) -> Batch:
        """Draws one leaf from each of `batch_size` equal parts of the total."""
        total = float(self._client.get(_node(0)))
        parts = (np.arange(batch_size) + generator.random(batch_size)) / batch_size
        nodes = self._walk(parts * total)
        priorities = self._read(nodes)
        slots = np.array(nodes) - (self._capacity - 1)
        weights = (self.fill * priorities / total) ** -beta
        return self._assembled(slots, (weights / weights.max()).astype(np.float32))

    def update(self, slots: NDArray[np.int64], losses: NDArray[Any]) -> None:
        """Sets new priorities; a slot that is named several times takes the last."""
        named = dict(zip(slots.tolist(), losses.tolist(), strict=True))
        leaves = ((np.array(list(named.values())) + 1e-6) ** self._alpha).astype(np.float32)
        old = self._read([slot + self._capacity - 1 for slot in named])
        pipeline = self._client.pipeline(transaction=False)
        self._add(pipeline, list(named), leaves - old)
        pipeline.execute()

    def _walk(self, prefix_sums: NDArray[np.float64]) -> list[int]:
        """The leaf's node for each prefix sum: down the tree, all of them level by level."""
        nodes, rest = [0] * len(prefix_sums), prefix_sums.copy()
        for _ in range(self._capacity.bit_length() - 1):
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
                pipeline.hmget(_step((slot + offset) % self._capacity), Step._fields)
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
        s_tm1, s_t = np.stack(frames[: self._history]), np.stack(frames[self._n : self._n + self._history])
        return s_tm1, steps[now].action, r_t, 0.0 if ended else discount, s_t


def _node(node: int) -> str:
    return f"naive:node:{node}"


def _step(slot: int) -> str:
    return f"naive:step:{slot}"


def steps_of(play: list[VectorStep]) -> list[Step]:
    """Returns recorded play as an actor of the original would see it: one environment after the other."""
    steps: list[Step] = []
    for row in range(len(play[0].active)):
        timestep = 0
        for at in play:
            if not at.active[row]:
                timestep = 0
                continue
            ended = bool(at.terminated[row] or at.truncated[row]) or at is play[-1]
            reward = float(np.clip(at.rewards[row], -1, 1))
            steps.append(Step(timestep, at.frames[row], int(at.a_t[row]), reward, ended))
            timestep += 1
    return steps
