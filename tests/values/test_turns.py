"""Games by turns: what a move is worth is what it costs the other player, and the rules are obeyed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from agents.parts.legal import DRAW_RANGE, LegalActions
from agents.registry import has_replay
from args import read_args
from launch_learner import run_learner
from reporting.model_files import last_models
from supervision.process import Stop
from tests.values.pebbles import DISCOUNT, HEAP, OPTIMAL, seen
from tests.values.test_values import AGENTS, ALL, RELATIVE, values_of
from wiring.code import canonical
from wiring.setting import restore_agent

GAME = f"{Path(__file__).parent / 'pebbles.py'}:Pebbles"
STATES = np.stack([seen(pebbles)[None] for pebbles in OPTIMAL])
SLOW = ("a2c", "double_dqn", "iqn", "ppo", "rainbow")


@pytest.mark.parametrize("agent", ["dqn", *(pytest.param(agent, marks=pytest.mark.slow) for agent in SLOW)])
def test_values_change_sides_with_every_move(agent: str, redis_socket: str, tmp_path: Path) -> None:
    """Within 2 % of a win; a policy gradient still explores, and so may lose a little: 10 %."""
    words = f"{ALL} {AGENTS[agent]} --multi-step 1 --agent {agent} --discount {DISCOUNT} --game {GAME}"
    where = ["--host-redis", redis_socket, "--run", tmp_path.name, "--path-to-results", str(tmp_path)]
    args = canonical(read_args([*words.split(), *where]))
    run_learner(args, Stop())
    (model,) = last_models(tmp_path, args.file_name)
    learned = restore_agent(model, args).agent
    off = np.abs(values_of(learned, STATES) - list(OPTIMAL.values()))
    assert (off < (RELATIVE if has_replay(agent) else 0.1)).all(), off
    acting = learned.act(STATES, learned.mean_acting_noise(len(STATES)))
    assert acting.a_t.tolist()[:2] == [0, 1], "two pebbles cannot be taken of one; taking both of two wins"
    assert acting.a_t[HEAP - 1] == 0, "leaves three"


def test_every_random_move_is_legal() -> None:
    """Those that exploration draws."""
    numbers = torch.randint(DRAW_RANGE, (1000,), generator=torch.Generator().manual_seed(1))
    legal = LegalActions(2)
    one, two = (torch.from_numpy(seen(pebbles))[None, None].expand(1000, 1, 7) for pebbles in (1, 2))
    assert legal.drawn(one, numbers).tolist() == [0] * 1000
    assert 400 < int(legal.drawn(two, numbers).sum()) < 600
    second_and_fourth = torch.tensor([7.0, 0, 1, 0, 1]).expand(1000, 1, 5)
    drawn = LegalActions(4).drawn(second_and_fourth, numbers)
    assert set(drawn.tolist()) == {1, 3} and 400 < int((drawn == 1).sum()) < 600
