"""A corridor of a few cells, stepped in rows, and how an agent plays rollouts in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from agents.base import Problem, RolloutAgent
from memory.rollouts.rollout import Rollout


class Corridor:
    """B corridors, autoreset in the step after an episode's end.

    Action 1 moves right, any other moves left. The last cell pays 1 and ends the episode, which is truncated
    after `patience` steps. A frame is the cell's one-hot vector.
    """

    def __init__(self, cells: int, streams: int, patience: int) -> None:
        self.problem = Problem((1, cells), "float32", num_actions=2, action_low=None, action_high=None)
        self.places, self._ages = np.zeros((2, streams), np.int64)
        self._cells, self._patience = cells, patience
        self._ended = np.zeros(streams, np.bool_)

    @property
    def frames(self) -> NDArray[np.float32]:
        return np.eye(self._cells, dtype=np.float32)[self.places]

    def step(self, a_t: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        active = ~self._ended
        moved = np.clip(self.places + np.where(a_t == 1, 1, -1), 0, self._cells - 1)
        self.places = np.where(active, moved, 0)
        self._ages = np.where(active, self._ages + 1, 0)
        terminated = active & (self.places == self._cells - 1)
        truncated = active & ~terminated & (self._ages >= self._patience)
        self._ended = terminated | truncated
        marks = {"active": active, "terminated": terminated, "truncated": truncated}
        return {**marks, "rewards": terminated.astype(np.float32)}

    def play(
        self, agent: RolloutAgent, length: int, generator: torch.Generator, updates: int, looks: bool = True
    ) -> Rollout:
        """The next `length` steps, after `updates` updates of the agent; at random unless it `looks`."""
        streams = len(self.places)
        frames, ages, rows = [self.frames], [self._ages], []
        for _ in range(length):
            acting = agent.act(self.frames[:, None], agent.draw_acting_noise(streams, generator))
            a_t = acting.a_t if looks else torch.randint(2, (streams,), generator=generator).numpy()
            row = {"a_t": a_t, "log_prob": acting.log_prob}
            rows.append({**row, **self.step(a_t)})
            frames.append(self.frames)
            ages.append(self._ages)
        columns = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
        return Rollout(
            frames=np.stack(frames),
            ages=np.stack(ages),
            looked=np.full(streams, looks),
            stream=np.arange(streams),
            continues=np.full(streams, updates > 0),
            updates=np.full(streams, updates),
            **columns,
        )
