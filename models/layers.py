"""The layers of each torso, and which torso suits which observation."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor, nn

from kernels.data_efficient import strided_convolution
from kernels.loops.patches import PATCH_SIZE
from models.convolutions.impala import IMPALA, LEAST_SIZE, impala_layers
from models.convolutions.same_padding import SameConvolution

NATURE_MOST = 2 * 84 * 84
"""Pixels, twice an Atari frame's, above which the nature torso would cost too much for "auto"."""
SAME = -1
"""Stands in place of a padding, and means Flax's SAME."""
CONVOLUTIONS = {
    "nature": ((32, 8, 4, 1), (64, 4, 2, 0), (64, 3, 1, 0)),
    "nature_same": ((32, 8, 4, SAME), (64, 4, 2, SAME), (64, 3, 1, SAME)),
    "data_efficient": ((32, PATCH_SIZE, PATCH_SIZE, 0), (64, PATCH_SIZE, PATCH_SIZE, 0)),
    "minatar": ((16, 3, 1, 0),),
    "lines": ((64, 4, 1, 0),),
}
"""Outputs, kernel, stride and padding of each layer of a torso. nature: Mnih et al. 2015, with the padding of
1 that Rainbow-IQN Ape-X adds, 84x84 -> 3136 features. nature_same: the same with Dopamine's padding (Castro
et al. 2018, arXiv 1812.06110), -> 7744. data_efficient: van Hasselt et al. 2019 (arXiv 1906.05243), 84x84 ->
576. minatar: Young & Tian 2019 (arXiv 1903.03176), 10x10 -> 1024. lines (ours): every line of four lies whole
within some place of a 4x4 kernel, so that one layer sees it; a board of 6x7 -> 768.
"""
IMAGE_TORSOS = (*CONVOLUTIONS, *IMPALA)
TORSOS = ("auto", *IMAGE_TORSOS, "mlp", "flat")


@dataclass(frozen=True)
class DuelingConfig:
    """Sizes of a torso and a noisy dueling head."""

    observation_shape: tuple[int, ...]  # [H, *frame]
    observation_dtype: str  # "uint8" | "float32"
    num_actions: int
    hidden_size: int  # units of each stream of the head
    torso: str  # one of TORSOS
    noisy_std: float  # sigma_0 of the noisy layers


class StridedConvolution(nn.Conv2d):
    """A convolution whose stride is its kernel's size."""

    def forward(self, x: Tensor) -> Tensor:
        """x [B, inputs, h * size, w * size] -> [B, outputs, h, w]."""
        return strided_convolution(x, self.weight, self.bias)


def _convolutions(kind: str, channels: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for outputs, kernel, stride, padding in CONVOLUTIONS[kind]:
        if padding == SAME:
            layers.append(SameConvolution(channels, outputs, kernel, stride))
        else:
            is_strided = stride == kernel and len(layers) > 0  # with few channels it is no quicker
            convolution = StridedConvolution if is_strided else nn.Conv2d
            layers.append(convolution(channels, outputs, kernel, stride, padding))
        layers.append(nn.ReLU())
        channels = outputs
    return nn.Sequential(*layers, nn.Flatten())


def resolve_torso(torso: str, observation_shape: tuple[int, ...], for_vectors: str = "mlp") -> str:
    """What "auto" stands for: `for_vectors`, or by an image's size minatar, nature, data_efficient.

    An update (batch 32, one thread) takes nature 60 ms at 120x160x3, data_efficient 12 ms.
    """
    if torso != "auto":
        return torso
    frame = observation_shape[1:]
    if len(frame) == 1:
        return for_vectors
    if min(frame[:2]) < LEAST_SIZE:
        return "minatar"
    return "nature" if math.prod(frame[:2]) <= NATURE_MOST else "data_efficient"


def build_layers(kind: str, observation_shape: tuple[int, ...], hidden_size: int) -> nn.Sequential:
    """Layers of one of TORSOS but "auto"; ValueError for others, and for frames that these cannot take."""
    history, *frame = observation_shape
    if kind not in TORSOS:
        raise ValueError(f"There is no torso '{kind}': choose one of {', '.join(TORSOS)}.")
    if kind == "flat":
        return nn.Sequential()
    if kind == "mlp":
        first = nn.Linear(math.prod(observation_shape), hidden_size)
        return nn.Sequential(first, nn.ReLU(), nn.Linear(hidden_size, hidden_size), nn.ReLU())
    if len(frame) not in (2, 3):
        raise ValueError(f"The {kind} torso needs images, not frames of shape {tuple(frame)}.")
    channels = history * math.prod(frame[2:])
    return impala_layers(kind, channels, *frame[:2]) if kind in IMPALA else _convolutions(kind, channels)
