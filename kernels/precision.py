"""What network passes compute in."""

from __future__ import annotations

import torch
from torch import Tensor


def pass_dtype(tensor: Tensor) -> torch.dtype:
    """Autocast's precision where the tensor is, else float32."""
    kind = tensor.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32
