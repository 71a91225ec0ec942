"""Random network distillation (Burda et al. 2018, arXiv 1810.12894): how new a frame is.

A predictor learns the outputs of a fixed random network; it errs where frames are unlike those it learned.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from agents.parts.devices import slices
from models.moments import RunningMoments
from models.policy import rnd_predictor, rnd_target

MAX_NOVELTY = 4.0
"""Upper bound of the bonus: NGU clips its modulator to [1, 5] (L = 5), and the bonus is that less 1."""
WHITENED_CLIP = 5.0
"""Whitened pixels lie within +- this (Burda et al. 2018, section 2.4)."""


class Rnd(nn.Module):
    """Target and predictor, and the statistics that whiten frames and scale rewards.

    All of it is in `state_dict()`, so that actors and snapshots can compute rewards.
    Frames are [N, *frame] of any type, one frame each.
    """

    def __init__(
        self,
        frame_shape: tuple[int, ...],
        torso: str,
        hidden_size: int,
        bfloat16: bool,
        reward_horizon: float = math.inf,
    ) -> None:
        """`torso`: that of images, vectors get "mlp"; `bfloat16`: precision of all but the last layers;
        `reward_horizon`: of the statistics of rewards.
        """
        super().__init__()
        kind = "mlp" if len(frame_shape) == 1 else torso
        self.target = rnd_target(kind, frame_shape, hidden_size)
        self.predictor = rnd_predictor(kind, frame_shape, hidden_size)
        self.observations = RunningMoments(frame_shape)
        self.rewards = RunningMoments((), reward_horizon)
        self._bfloat16 = bfloat16

    def errors(self, frames: Tensor) -> Tensor:
        """[N] float32: mean squared error of the prediction, with the predictor's gradient."""
        whitened = self._whitened(frames)
        with torch.autocast(frames.device.type, torch.bfloat16, enabled=self._bfloat16):
            error: Tensor = self.predictor(whitened) - self.target(whitened)
        return error.square().mean(1)

    @torch.inference_mode()
    def raw_rewards(self, frames: NDArray[Any]) -> Tensor:
        """[N] float32: the errors at `frames`, in slices."""
        on_device = torch.from_numpy(frames).to(self.observations.mean.device)
        return torch.cat([self.errors(part) for part in slices(on_device)])

    def scaled(self, raw: Tensor) -> Tensor:
        """Raw rewards of any shape, divided by the standard deviation of what `rewards` has observed."""
        return raw / self.rewards.std.to(raw)

    def novelty(self, raw: Tensor) -> Tensor:
        """Raw rewards in standard deviations above the mean of `rewards`, within [0, MAX_NOVELTY].

        NGU's lifelong modulator less 1 (Badia et al. 2020, arXiv 2002.06038, section 2).
        """
        above = (raw - self.rewards.mean.to(raw)) / self.rewards.std.to(raw)
        return above.clamp(0.0, MAX_NOVELTY)

    def _whitened(self, frames: Tensor) -> Tensor:
        mean, std = self.observations.mean.float(), self.observations.std.float()
        return torch.sub(frames, mean).div_(std).clamp_(-WHITENED_CLIP, WHITENED_CLIP)
