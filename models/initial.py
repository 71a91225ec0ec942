"""Initial weights of the policy-gradient networks."""

from __future__ import annotations

import math
from typing import TypeVar

from torch import nn

ModuleT = TypeVar("ModuleT", bound=nn.Module)
RELU_GAIN = math.sqrt(2)
"""Keeps the size of signals through layers that a ReLU follows (He et al. 2015, arXiv 1502.01852)."""


def orthogonal(module: ModuleT, gain: float = RELU_GAIN) -> ModuleT:
    """Orthogonal weights times `gain` and zero biases in all layers (Saxe et al. 2014, arXiv 1312.6120)."""
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.orthogonal_(layer.weight, gain)
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
    return module
