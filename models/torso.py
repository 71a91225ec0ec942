"""Torsos: from a stack of frames to a feature vector."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from kernels.data_efficient import data_efficient_features
from kernels.tensors import compute_dtype, scaled_pixels
from models.layers import IMAGE_TORSOS, resolve_torso
from models.parts import build_torso_layers
from models.trunk import add_trunk, split_name


class Torso(nn.Module):
    """Observation [B, H, *frame] -> features [B, num_features].

    A frame is a vector [size], a grey image [h, w] or an image with channels [h, w, c]; bytes are divided by
    255. "mlp" flattens whatever it gets into two layers of `hidden_size`; "flat" only flattens it.
    "auto+128" has a trunk of 128 units behind (models/trunk.py), "auto@8x8x3,2" parts (models/parts.py).
    Raises ValueError for an unknown torso, and for frames that the torso cannot take.
    """

    def __init__(
        self, torso: str, observation_shape: tuple[int, ...], observation_dtype: str, hidden_size: int
    ) -> None:
        super().__init__()
        own, trunk_size = split_name(torso)
        kind = resolve_torso(own, observation_shape)
        self._takes_images, self._is_fused = kind in IMAGE_TORSOS, kind == "data_efficient" and not trunk_size
        self.layers = build_torso_layers(kind, observation_shape, hidden_size)
        self.num_features = self._count_features(kind, observation_shape, observation_dtype)
        if trunk_size:
            add_trunk(self.layers, self.num_features, trunk_size)
            self.num_features = trunk_size

    def forward(self, observation: Tensor) -> Tensor:
        """observation [B, H, *frame] uint8 or float32 -> [B, num_features].

        Bytes are divided in what the layers compute in anyway, which saves a copy of them in float32.
        """
        is_bytes = observation.dtype == torch.uint8
        if self._is_fused and is_bytes:
            first, second = (layer for layer in self.layers if isinstance(layer, nn.Conv2d))
            return data_efficient_features(observation, first, second)
        dtype = compute_dtype(observation) if is_bytes else observation.dtype
        if self._takes_images:
            x = scaled_pixels(observation, dtype)
        else:
            x = observation.flatten(1).to(dtype)
            x = x.div_(255) if is_bytes else x
        features: Tensor = self.layers(x)
        return features

    def _count_features(self, kind: str, shape: tuple[int, ...], dtype: str) -> int:
        try:
            with torch.no_grad():
                return int(self(torch.zeros(1, *shape, dtype=getattr(torch, dtype))).shape[1])
        except RuntimeError as error:
            raise ValueError(f"The {kind} torso needs larger frames than {shape[1:]}.") from error
