"""A learning rate that falls over the run."""

from __future__ import annotations

import torch


def anneal(adam: torch.optim.Adam, lr: float, lr_end: float, share: float) -> None:
    """Set Adam's learning rate to that after this share of the run: from `lr` to `lr_end`, linearly.

    PPO's falls to 0 so in its Atari runs (Schulman et al. 2017, arXiv 1707.06347, table 5).
    """
    adam.param_groups[0]["lr"] = lr + min(share, 1.0) * (lr_end - lr)
