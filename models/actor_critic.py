"""Actor and critic (Mnih et al. 2016, arXiv 1602.01783): a torso, and hidden layers of each one's own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from models.initial import orthogonal
from models.policy import OUTPUT_GAIN, PolicyValues
from models.torso import Torso


class ActorCriticNetwork(nn.Module):
    """Only the torso is shared, so that nothing is where observations are vectors (torso "flat").

    Raises ValueError where a hidden layer has no units.
    """

    def __init__(self, torso: Torso, head_sizes: Sequence[int], num_parameters: int, num_values: int) -> None:
        super().__init__()
        if min(head_sizes, default=0) < 1:
            raise ValueError(f"Each hidden layer needs at least one unit, not {list(head_sizes)}.")
        self.torso = orthogonal(torso)
        widths = [torso.num_features, *head_sizes]
        self.policy_hidden, self.values_hidden = _hidden(widths), _hidden(widths)
        self.policy = orthogonal(nn.Linear(widths[-1], num_parameters), OUTPUT_GAIN)
        self.values = orthogonal(nn.Linear(widths[-1], num_values), gain=1.0)

    def forward(self, observation: Tensor) -> PolicyValues:
        """observation [B, H, *frame]; the outputs stay in float32 under autocast: their differences count."""
        features = self.torso(observation)
        for_policy, for_values = self.policy_hidden(features), self.values_hidden(features)
        with torch.autocast(features.device.type, enabled=False):
            return PolicyValues(self.policy(for_policy.float()), self.values(for_values.float()))


def _hidden(widths: Sequence[int]) -> nn.Sequential:
    layers = (part for ends in pairwise(widths) for part in (nn.Linear(*ends), nn.ReLU()))
    return orthogonal(nn.Sequential(*layers))
