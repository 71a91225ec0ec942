"""What agents that learn from rollouts need: states cut from frames, masks, value heads' views, minibatches.

A flat index k = t * B + b names row t of stream b; that row's state after the step is the one of index k + B.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.parts.vtrace import Steps
from memory.rollouts.rollout import Rollout


def transitions_of(rollout: Rollout) -> NDArray[np.bool_]:
    """[T, B]: the rows to learn from, neither restarts nor played at random."""
    transitions: NDArray[np.bool_] = rollout.active & rollout.looked
    return transitions


class RolloutStates:
    """The rollout's frames once on the device, from which stacked states are cut as they are needed."""

    def __init__(self, rollout: Rollout, device: torch.device) -> None:
        self.length, self.streams = rollout.active.shape
        self.history = len(rollout.frames) - self.length
        self._frames = (
            torch.from_numpy(rollout.frames).to(device).flatten(0, 1)
        )  # [(H - 1 + T + 1) * B, *frame]
        self._ages = torch.from_numpy(rollout.ages).to(device).flatten()  # [(T + 1) * B]
        self._older = torch.arange(1 - self.history, 1, device=device)  # [H]

    @property
    def indices(self) -> Tensor:
        """[(T + 1) * B]: all states, those after the last step included."""
        return torch.arange(len(self._ages), device=self._ages.device)

    def stacks(self, indices: Tensor) -> Tensor:
        """[M, H, *frame] in the frames' own type; frames before an episode's first are zero."""
        rows = indices.unsqueeze(1) + (self.history - 1 + self._older) * self.streams  # [M, H]
        frames = self._frames.index_select(0, rows.flatten())  # many times faster than self._frames[rows]
        belongs = self._ages[indices].unsqueeze(1) + self._older >= 0
        frames *= belongs.view(-1, *(1,) * (frames.dim() - 1))
        return frames.view(*rows.shape, *frames.shape[1:])

    def newest(self, indices: Tensor) -> Tensor:
        """[M, *frame]: the newest frame of each state."""
        return self._frames.index_select(0, indices + (self.history - 1) * self.streams)


def episodic_steps(
    rollout: Rollout, rewards: Tensor, values: Tensor, discount: float, gae_lambda: float
) -> Steps:
    """For returns that end with the episode: rewards [T, B], values [T + 1, B].

    After a termination nothing follows. A truncation bootstraps from the value of the true last frame, which
    the next row acts from or which is the rollout's last; its trace ends there too.
    """
    terminated, truncated = torch.from_numpy(rollout.terminated), torch.from_numpy(rollout.truncated)
    return Steps(
        rewards,
        discount * (~terminated).to(values),
        gae_lambda * (~(terminated | truncated)).to(values),
        values[:-1],
        values[1:],
    )


def unbroken_steps(
    rollout: Rollout, rewards: Tensor, values: Tensor, discount: float, gae_lambda: float
) -> Steps:
    """For returns that no episode's end cuts: rewards [T, B], values [T + 1, B].

    A row that only restarts is looked through: no reward, discount 1, trace 1 and the value of the row after
    it, so that an episode's last step bootstraps into the next one's first frame. Where that frame is not in
    the rollout any more, the value of the episode's last frame stands for it.
    """
    active = torch.from_numpy(rollout.active)
    seen = torch.cat([torch.where(active, values[:-1], values[1:]), values[-1:]])
    ones = torch.ones_like(rewards)
    return Steps(
        torch.where(active, rewards, 0.0),
        torch.where(active, discount * ones, ones),
        torch.where(active, gae_lambda * ones, ones),
        seen[:-1],
        seen[1:],
    )


def minibatches(rows: Tensor, batch_size: int, epochs: int, generator: torch.Generator) -> Iterator[Tensor]:
    """`rows` [N] in a new order for each epoch, in parts of about `batch_size` that differ by one at most."""
    parts = max(round(len(rows) / batch_size), 1)
    for _ in range(epochs):
        yield from rows[torch.randperm(len(rows), generator=generator)].tensor_split(parts)
