"""Networks of policies with values: actor and critic, and that of random network distillation.

Actor and critic: Mnih et al. 2016, arXiv 1602.01783. RND: Burda et al. 2018, arXiv 1810.12894, and its code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.torso import Torso

ModuleT = TypeVar("ModuleT", bound=nn.Module)
RELU_GAIN = math.sqrt(2)
"""Gain that keeps the size of signals through layers that a ReLU follows (He et al. 2015, arXiv 1502.01852).
"""
EXTRA_GAIN = 0.1
"""Initial gain of the extra layers (Burda et al.'s code): at first they add little to what they skip."""
NEGATIVE_SLOPE = 0.2
"""Slope below 0 of the leaky ReLUs between RND's convolutions: TensorFlow's default, which Burda et al. use.
"""
OUTPUT_GAIN = 0.01
"""Initial gain of the outputs: the first policy is nearly uniform, the first values are near 0 (Burda et al.;
Andrychowicz et al. 2021, arXiv 2006.05990, advise a small one for the policy).
"""


def orthogonal(module: ModuleT, gain: float = RELU_GAIN) -> ModuleT:
    """Orthogonal weights times `gain` and zero biases in all layers (Saxe et al. 2014, arXiv 1312.6120)."""
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.orthogonal_(layer.weight, gain)
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
    return module


def widths_above(torso: Torso, head_sizes: Sequence[int]) -> list[int]:
    """Of the torso's features and the hidden layers above; ValueError where one of these has no units."""
    if min(head_sizes, default=0) < 1:
        raise ValueError(f"Each hidden layer needs at least one unit, not {list(head_sizes)}.")
    return [torso.num_features, *head_sizes]


class PolicyValues(NamedTuple):
    """Policy and values of B observations, float32."""

    policy: Tensor  # [B, P] of each policy's distribution; [B, A] logits for discrete actions
    values: Tensor  # [B, V], one per value head


class PolicyNetwork(nn.Module):
    """Torso, hidden layers, then one extra layer for the policy and one for the values, each with a skip."""

    def __init__(self, torso: Torso, head_sizes: Sequence[int], num_actions: int, num_values: int) -> None:
        super().__init__()
        widths = widths_above(torso, head_sizes)
        self.torso = orthogonal(torso)
        self.hidden = orthogonal(nn.ModuleList(nn.Linear(*ends) for ends in pairwise(widths)))
        last = widths[-1]
        self.extra_policy = orthogonal(nn.Linear(last, last), EXTRA_GAIN)
        self.extra_values = orthogonal(nn.Linear(last, last), EXTRA_GAIN)
        self.logits = orthogonal(nn.Linear(last, num_actions), OUTPUT_GAIN)
        self.values = orthogonal(nn.Linear(last, num_values), OUTPUT_GAIN)

    def forward(self, observation: Tensor) -> PolicyValues:
        """observation [B, H, *frame]; the outputs stay in float32 under autocast: their differences count."""
        x = self.torso(observation)
        for layer in self.hidden:
            x = functional.relu(layer(x))
        for_policy = x + functional.relu(self.extra_policy(x))
        for_values = x + functional.relu(self.extra_values(x))
        with torch.autocast(x.device.type, enabled=False):
            return PolicyValues(self.logits(for_policy.float()), self.values(for_values.float()))


class ActorCriticNetwork(nn.Module):
    """Policy and values share the torso alone; a "flat" one, for vector observations, has no weights."""

    def __init__(self, torso: Torso, head_sizes: Sequence[int], num_parameters: int, num_values: int) -> None:
        super().__init__()
        widths = widths_above(torso, head_sizes)
        self.torso = orthogonal(torso)
        self.policy_hidden, self.values_hidden = (orthogonal(_dense(widths)) for _ in range(2))
        self.policy = orthogonal(nn.Linear(widths[-1], num_parameters), OUTPUT_GAIN)
        self.values = orthogonal(nn.Linear(widths[-1], num_values), gain=1.0)  # as OpenAI's baselines

    def forward(self, observation: Tensor) -> PolicyValues:
        """observation [B, H, *frame]; the outputs stay in float32 under autocast: their differences count."""
        features = self.torso(observation)
        for_policy, for_values = self.policy_hidden(features), self.values_hidden(features)
        with torch.autocast(features.device.type, enabled=False):
            return PolicyValues(self.policy(for_policy.float()), self.values(for_values.float()))


def _dense(widths: Sequence[int]) -> nn.Sequential:
    return nn.Sequential(*(part for ends in pairwise(widths) for part in (nn.Linear(*ends), nn.ReLU())))


class FrameEmbedding(nn.Module):
    """A whitened frame -> a vector, through a torso with leaky ReLUs and dense layers with ReLUs between."""

    def __init__(
        self, torso: str, frame_shape: tuple[int, ...], hidden_size: int, dense: Sequence[int]
    ) -> None:
        """`dense`: widths of the dense layers, the last of them the vector's."""
        super().__init__()
        self.torso = Torso(torso, (1, *frame_shape), "float32", hidden_size)
        for part in list(self.torso.modules()):
            for name, layer in part.named_children():
                if isinstance(layer, nn.ReLU):
                    setattr(part, name, nn.LeakyReLU(NEGATIVE_SLOPE))
        widths = [self.torso.num_features, *dense]
        self.hidden = _dense(widths[:-1])
        self.output = nn.Linear(widths[-2], widths[-1])
        orthogonal(self)

    def forward(self, frames: Tensor) -> Tensor:
        """frames [N, *frame] -> [N, dense[-1]] float32; the last layer stays in float32 under autocast."""
        hidden: Tensor = self.hidden(self.torso(frames.unsqueeze(1)))
        with torch.autocast(hidden.device.type, enabled=False):
            embedding: Tensor = self.output(hidden.float())
        return embedding


def rnd_target(torso: str, frame_shape: tuple[int, ...], hidden_size: int) -> FrameEmbedding:
    """The fixed random network: one dense layer of `hidden_size` above the torso."""
    return FrameEmbedding(torso, frame_shape, hidden_size, [hidden_size]).requires_grad_(False)


def rnd_predictor(torso: str, frame_shape: tuple[int, ...], hidden_size: int) -> FrameEmbedding:
    """The network that learns the target's outputs: two dense layers more."""
    return FrameEmbedding(torso, frame_shape, hidden_size, [hidden_size] * 3)
