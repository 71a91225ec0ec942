"""Policy network with value heads (Burda et al. 2018, arXiv 1810.12894, and the code they published)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.initial import orthogonal
from models.torso import Torso

EXTRA_GAIN = 0.1
"""Of the initial weights of the extra layers: at first they add little to what they skip."""
OUTPUT_GAIN = 0.01
"""Of the initial weights of the outputs: the first policy is nearly uniform, the first values are near 0."""


class PolicyValues(NamedTuple):
    """What the network says of B observations, float32."""

    policy: Tensor  # [B, P] of each policy's distribution; [B, A] logits for discrete actions
    values: Tensor  # [B, V], one per value head


class PolicyNetwork(nn.Module):
    """Torso, hidden layers, then one extra layer for the policy and one for the values, each with a skip.

    Raises ValueError where a hidden layer has no units.
    """

    def __init__(self, torso: Torso, head_sizes: Sequence[int], num_actions: int, num_values: int) -> None:
        super().__init__()
        if min(head_sizes, default=0) < 1:
            raise ValueError(f"Each hidden layer needs at least one unit, not {list(head_sizes)}.")
        self.torso = orthogonal(torso)
        widths = [torso.num_features, *head_sizes]
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
