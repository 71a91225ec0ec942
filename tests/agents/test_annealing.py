"""The learning rate falls from --lr to --lr-end over the run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from agents.base import ReplayAgent
from memory.replay.batch import Batch

MakeAgent = Callable[..., ReplayAgent]
MakeBatch = Callable[..., Batch]


@pytest.mark.parametrize("name", ["iqn", "rainbow", "dqn", "naf"])
@pytest.mark.parametrize(
    ("lr_end", "t_learner", "lr"),
    [(0.0, 0, 1e-3), (0.0, 500, 5e-4), (0.0, 1000, 0), (0.0, 5000, 0), (4e-4, 500, 7e-4), (None, 500, 1e-3)],
)
def test_a_step_is_as_long_as_the_time_wants(
    name: str, lr_end: float | None, t_learner: int, lr: float, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    """Adam's first step is as long as the learning rate, where a gradient is far above epsilon."""
    agent = make_agent(name, lr=1e-3, lr_end=lr_end, t_max=1000, adam_eps=1e-12)
    before = _weights(agent)
    agent.update(make_batch(), t_learner)
    assert float((_weights(agent) - before).abs().max()) == pytest.approx(lr, rel=0.01)


def _weights(agent: ReplayAgent) -> torch.Tensor:
    return torch.cat([weight.flatten() for weight in agent.acting_weights().values()])
