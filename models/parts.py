"""Convolutions for pictures within a vector, which Dict observations become (envs/gym/parts.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from kernels.tensors import scaled_pixels
from models.layers import IMAGE_TORSOS, build_layers, resolve_torso

SEPARATOR = "@"
"""Separates a torso's name from the parts of the vector that it is for: "auto@8x8x3,2"."""


def of_parts(torso: str, parts: Sequence[tuple[int, ...]]) -> str:
    """The name of `torso` for pictures in a vector of `parts`; "mlp" and "flat" take it as numbers alone."""
    if not parts or torso not in ("auto", *IMAGE_TORSOS):
        return torso
    return f"{torso}{SEPARATOR}{','.join('x'.join(map(str, part)) for part in parts)}"


def build_torso_layers(kind: str, observation_shape: tuple[int, ...], hidden_size: int) -> nn.Sequential:
    """Layers of a torso, also of one `of_parts`; ValueError as of `build_layers`."""
    own, is_of_parts, names = kind.partition(SEPARATOR)
    if not is_of_parts:
        return build_layers(kind, observation_shape, hidden_size)
    parts = [tuple(map(int, name.split("x"))) for name in names.split(",")]
    return nn.Sequential(PartsFeatures(own, observation_shape[0], parts))


class PartsFeatures(nn.Module):
    """A vector of pictures and numbers [B, H * size] -> features [B, F].

    Each picture passes convolutions of its own; the numbers stand beside what these find, as in the
    combined extractor of Stable-Baselines3 (Raffin et al. 2021, JMLR 22).
    """

    def __init__(self, torso: str, history: int, parts: Sequence[tuple[int, ...]]) -> None:
        super().__init__()
        self._history, self._parts = history, parts
        self._sizes = [math.prod(part) for part in parts]
        self.pictures = nn.ModuleList()
        for part in parts:
            if len(part) > 1:
                shape = history, *part
                self.pictures.append(build_layers(resolve_torso(torso, shape), shape, hidden_size=0))

    def forward(self, frames: Tensor) -> Tensor:
        """frames [B, H * size], pictures as shares of 255 -> [B, F]."""
        pieces = torch.split(frames.view(len(frames), self._history, -1), self._sizes, dim=2)
        pictures = iter(self.pictures)
        features = []
        for part, piece in zip(self._parts, pieces, strict=True):
            if len(part) > 1:
                images = piece.reshape(*piece.shape[:2], *part)
                features.append(next(pictures)(scaled_pixels(images, images.dtype)))
            else:
                features.append(piece.flatten(1))
        return torch.cat(features, dim=1)
