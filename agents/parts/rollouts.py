"""Rollouts as the learner uses them: stacked states, returns of value heads, slices and minibatches.

A flat index k = t * B + b names row t of stream b; that row's state after the step is the one of index k + B.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from agents.learning import GradientStep
from agents.parts.policy_losses import Steps
from memory.rollouts.rollout import Rollout

ROWS = {"cpu": 256, "cuda": 4096}
"""Observations per forward pass. 256 fit a CPU's caches, which makes it a fifth faster
(docs/agents/ppo_rnd.md); 4096 is Burda's batch on a GPU.
"""


def transition_mask(rollout: Rollout) -> Tensor:
    """[T, B] bool: the rows to learn from, neither restarts nor played at random."""
    return torch.from_numpy(rollout.active & rollout.looked)


class RolloutStates:
    """The frames of a rollout, once on the device; stacked states are cut from them on demand."""

    def __init__(self, rollout: Rollout, device: torch.device) -> None:
        self.length, self.streams = rollout.active.shape
        self.history = len(rollout.frames) - self.length
        frames = torch.from_numpy(rollout.frames).to(device)
        self._frames = frames.flatten(0, 1)  # [(H - 1 + T + 1) * B, *frame]
        self._ages = torch.from_numpy(rollout.ages).to(device).flatten()  # [(T + 1) * B]
        self._offsets = torch.arange(1 - self.history, 1, device=device)  # [H] of a state's frames in time

    @property
    def indices(self) -> Tensor:
        """[(T + 1) * B]: all states, those after the last step included."""
        return torch.arange(len(self._ages), device=self._ages.device)

    def stacks(self, indices: Tensor) -> Tensor:
        """[M, H, *frame] in the frames' own type; frames before an episode's first are zero."""
        rows = indices.unsqueeze(1) + (self.history - 1 + self._offsets) * self.streams  # [M, H]
        frames = self._frames.index_select(0, rows.flatten())  # many times faster than self._frames[rows]
        in_episode = self._ages[indices].unsqueeze(1) + self._offsets >= 0
        frames *= in_episode.view(-1, *(1,) * (frames.dim() - 1))
        return frames.view(*rows.shape, *frames.shape[1:])

    def newest(self, indices: Tensor) -> Tensor:
        """[M, *frame]: the newest frame of each state."""
        return self._frames.index_select(0, indices + (self.history - 1) * self.streams)


def episodic_steps(
    rollout: Rollout, rewards: Tensor, values: Tensor, discount: float, gae_lambda: float
) -> Steps:
    """Steps whose returns end with the episode: rewards [T, B], values [T + 1, B].

    After a termination nothing follows. A truncation bootstraps from the value of the true last frame, which
    is the one of the next row, or the rollout's last; its trace ends there too.
    """
    assert values.shape == (len(rewards) + 1, rewards.shape[1])
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
    """Steps whose returns continue over the ends of episodes: rewards [T, B], values [T + 1, B].

    A row that only restarts changes nothing: reward 0, discount 1, trace 1 and the value of the row after it,
    so that an episode's last step bootstraps from the next one's first frame. Where that frame is in the next
    rollout, the value of the episode's last frame takes its place.
    """
    assert values.shape == (len(rewards) + 1, rewards.shape[1])
    active = torch.from_numpy(rollout.active)
    from_first = torch.cat([torch.where(active, values[:-1], values[1:]), values[-1:]])
    ones = torch.ones_like(rewards)
    return Steps(
        torch.where(active, rewards, 0.0),
        torch.where(active, discount * ones, ones),
        torch.where(active, gae_lambda * ones, ones),
        from_first[:-1],
        from_first[1:],
    )


def minibatches(rows: Tensor, batch_size: int, epochs: int, generator: torch.Generator) -> Iterator[Tensor]:
    """`rows` [N] in a new order for each epoch, in parts of about `batch_size` that differ by one at most."""
    parts = max(round(len(rows) / batch_size), 1)
    for _ in range(epochs):
        yield from rows[torch.randperm(len(rows), generator=generator)].tensor_split(parts)


def slices(rows: Tensor) -> tuple[Tensor, ...]:
    """`rows` [N, ...] cut along the first dimension for forward passes on their device; () where N is 0."""
    return torch.split(rows, ROWS[rows.device.type]) if len(rows) else ()


class SlicedStep(GradientStep):
    """Adam on a sum of losses, of which only one graph is in memory at a time."""

    def take_sum(self, losses: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
        """One step; returns the sum of the losses, and the gradient's norm before clipping.

        Adam gets a linear function of the parameters whose gradient is the sum of the losses' gradients.
        """
        learned = [parameter for parameter in self._parameters if parameter.requires_grad]
        total = torch.zeros((), device=learned[0].device)
        gradients = [torch.zeros_like(parameter) for parameter in learned]
        for loss in losses:
            parts = torch.autograd.grad(loss, learned, allow_unused=True)
            for gradient, part in zip(gradients, parts, strict=True):
                if part is not None:
                    gradient += part
            total += loss.detach()
        pairs = zip(learned, gradients, strict=True)
        linear = torch.stack([(parameter * gradient).sum() for parameter, gradient in pairs]).sum()
        return total, self.take(linear)
