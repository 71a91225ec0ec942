"""PPO finds the end of a corridor within seconds, also when it learns one update behind its actor."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from agents.ppo_rnd import PpoRndAgent
from tests.agents.rollouts.corridor import Corridor

MakePpo = Callable[..., PpoRndAgent]
SETTINGS = {"head_sizes": "32,32", "batch_size": 64, "epochs": 4, "ext_discount": 0.99, "int_coeff": 0.0}
LENGTH, STREAMS, CELLS = 32, 8, 6


@pytest.mark.parametrize("lag", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_corridor_is_learned(lag: int, make_ppo: MakePpo) -> None:
    corridor = Corridor(CELLS, STREAMS, patience=30)
    learner, actor = (
        make_ppo(problem=corridor.problem, **SETTINGS, learning=is_it) for is_it in (True, False)
    )
    generator = torch.Generator().manual_seed(0)
    learner.update(corridor.play(actor, LENGTH, generator, 0, looks=False), 0)
    published = [learner.acting_weights()] * (1 + lag)
    goals = []
    for updates in range(1, 13):
        actor.load_acting_weights(published.pop(0))
        rollout = corridor.play(actor, LENGTH, generator, max(updates - lag, 1))
        metrics = learner.update(rollout, 0).metrics
        published.append(learner.acting_weights())
        goals.append(int(rollout.terminated.sum()))
    best = STREAMS * LENGTH // CELLS  # 5 steps to the end, and one to restart
    assert goals[0] < best / 2 and goals[-1] > 0.7 * best
    assert (float(metrics["rho_min"]) < 0.99) == bool(lag)
