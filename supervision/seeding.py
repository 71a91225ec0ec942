"""Seeds for the generators of one process, none of them neighbours of another's."""

from __future__ import annotations

import numpy as np


def derived_seed(seed: int, *path: int) -> int:
    """A 63-bit seed for the generator named by `path` (process, life, purpose) under the run's `seed`."""
    return int(np.random.SeedSequence(seed, spawn_key=path).generate_state(1, np.uint64)[0] >> np.uint64(1))
