"""The global random generators. Nothing of ours draws from them, but environments of other packages may."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch


def global_generators() -> dict[str, Any]:
    """Their states: Python's, NumPy's, and torch's on the CPU."""
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(legacy=False),
        "torch": torch.get_rng_state(),
    }


def restore_global_generators(states: Mapping[str, Any]) -> None:
    """Go on from `global_generators()`."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
