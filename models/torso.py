"""Torsos: from a stack of frames to a feature vector."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from kernels.data_efficient import PATCH_SIZE, data_efficient_features
from kernels.pixels import scaled_pixels, strided_convolution
from kernels.tensors import compute_dtype

NATURE_LEAST = 34
"""Height and width from which on the nature torso has features."""
NATURE_MOST = 2 * 84 * 84
"""Pixels, twice those of an Atari frame, above which "auto" no longer means the nature torso: it would cost
too much.
"""


def _nature(channels: int) -> nn.Sequential:
    """Mnih et al. 2015, with the padding of 1 that Rainbow-IQN Ape-X adds: 84x84 -> 3136 features."""
    return nn.Sequential(
        *_convolution(channels, 32, kernel=8, stride=4, padding=1),
        *_convolution(32, 64, kernel=4, stride=2),
        *_convolution(64, 64, kernel=3, stride=1),
        nn.Flatten(),
    )


def _data_efficient(channels: int) -> nn.Sequential:
    """Data-efficient Rainbow (van Hasselt et al. 2019, arXiv 1906.05243): 84x84 -> 576 features."""
    return nn.Sequential(
        nn.Conv2d(channels, 32, PATCH_SIZE, stride=PATCH_SIZE),
        nn.ReLU(),
        StridedConvolution(32, 64, PATCH_SIZE, stride=PATCH_SIZE),
        nn.ReLU(),
        nn.Flatten(),
    )


class StridedConvolution(nn.Conv2d):
    """A convolution whose stride is its kernel's size."""

    def forward(self, x: Tensor) -> Tensor:
        """x [B, inputs, h * size, w * size] -> [B, outputs, h, w]."""
        return strided_convolution(x, self.weight, self.bias)


def _minatar(channels: int) -> nn.Sequential:
    """MinAtar (Young & Tian 2019, arXiv 1903.03176): 10x10 -> 1024 features."""
    return nn.Sequential(*_convolution(channels, 16, kernel=3, stride=1), nn.Flatten())


def _convolution(
    inputs: int, outputs: int, kernel: int, stride: int, padding: int = 0
) -> tuple[nn.Module, nn.Module]:
    return nn.Conv2d(inputs, outputs, kernel, stride, padding), nn.ReLU()


def _mlp(inputs: int, hidden_size: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, hidden_size), nn.ReLU(), nn.Linear(hidden_size, hidden_size), nn.ReLU()
    )


CONVOLUTIONAL: dict[str, Callable[[int], nn.Sequential]] = {
    "nature": _nature,
    "data_efficient": _data_efficient,
    "minatar": _minatar,
}
TORSOS = ("auto", *CONVOLUTIONAL, "mlp", "flat")


def resolve_torso(torso: str, observation_shape: tuple[int, ...], for_vectors: str = "mlp") -> str:
    """What "auto" stands for: `for_vectors`, or by an image's size minatar, nature, data_efficient.

    An update (batch 32, one thread) takes nature 60 ms at 120x160x3, data_efficient 12 ms.
    """
    if torso != "auto":
        return torso
    frame = observation_shape[1:]
    if len(frame) == 1:
        return for_vectors
    if min(frame[:2]) < NATURE_LEAST:
        return "minatar"
    return "nature" if math.prod(frame[:2]) <= NATURE_MOST else "data_efficient"


class Torso(nn.Module):
    """Observation [B, H, *frame] -> features [B, num_features].

    A frame is a vector [size], a grey image [h, w] or an image with channels [h, w, c]; bytes are divided by
    255. "mlp" flattens whatever it gets into two layers of `hidden_size`; "flat" only flattens it.
    Raises ValueError for an unknown torso, and for frames that the torso cannot take.
    """

    def __init__(
        self, torso: str, observation_shape: tuple[int, ...], observation_dtype: str, hidden_size: int
    ) -> None:
        super().__init__()
        kind = resolve_torso(torso, observation_shape)
        if kind not in TORSOS:
            raise ValueError(f"There is no torso '{torso}': choose one of {', '.join(TORSOS)}.")
        self._kind = kind
        history, *frame = observation_shape
        if kind == "flat":
            self.layers = nn.Sequential()
        elif kind == "mlp":
            self.layers = _mlp(math.prod(observation_shape), hidden_size)
        elif len(frame) in (2, 3):
            self.layers = CONVOLUTIONAL[kind](history * math.prod(frame[2:]))
        else:
            raise ValueError(f"The {kind} torso needs images, not frames of shape {tuple(frame)}.")
        self.num_features = self._count_features(kind, observation_shape, observation_dtype)

    def forward(self, observation: Tensor) -> Tensor:
        """observation [B, H, *frame] uint8 or float32 -> [B, num_features].

        Bytes are divided in what the layers compute in anyway, which saves a copy of them in float32.
        """
        is_bytes = observation.dtype == torch.uint8
        if self._kind == "data_efficient" and is_bytes:
            first, second = (layer for layer in self.layers if isinstance(layer, nn.Conv2d))
            return data_efficient_features(observation, first, second)
        dtype = compute_dtype(observation) if is_bytes else observation.dtype
        if self._kind in CONVOLUTIONAL:
            x = scaled_pixels(observation, dtype)
        else:
            x = observation.flatten(1).to(dtype)
            x = x.div_(255) if is_bytes else x
        features: Tensor = self.layers(x)
        return features

    def _count_features(self, kind: str, observation_shape: tuple[int, ...], observation_dtype: str) -> int:
        dtype = torch.uint8 if observation_dtype == "uint8" else torch.float32
        try:
            with torch.no_grad():
                return int(self(torch.zeros(1, *observation_shape, dtype=dtype)).shape[1])
        except RuntimeError as error:
            raise ValueError(f"The {kind} torso needs larger frames than {observation_shape[1:]}.") from error
