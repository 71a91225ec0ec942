"""Two learners in two processes, over gloo, take the steps that one would take on the whole batches."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import torch

from tests.learning.ranks.pair import AGENTS, BEFORE, UPDATES, make_agent, make_batch
from tests.processes import ONE_THREAD, ROOT

TOGETHER_S = 120


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What leader and follower wrote down, by agent."""
    folder = tmp_path_factory.mktemp("pair")
    command = [sys.executable, "-m", "tests.learning.ranks.pair"]
    env = {**os.environ, **ONE_THREAD, "GLOO_SOCKET_IFNAME": "lo"}
    learners = [subprocess.Popen([*command, str(rank), folder], cwd=ROOT, env=env) for rank in range(2)]
    try:
        assert [learner.wait(TOGETHER_S) for learner in learners] == [0, 0]
    finally:
        for learner in learners:
            learner.kill()
            learner.wait()
    return [torch.load(folder / f"{rank}.pth", weights_only=True) for rank in range(2)]


@pytest.mark.parametrize(
    "name", [AGENTS[0], *(pytest.param(name, marks=pytest.mark.slow) for name in AGENTS[1:])]
)
def test_two_learners_are_one(ends: list[dict[str, Any]], name: str) -> None:
    """Within rounding: losses row for row, and weights; between the two bit for bit.

    The leader, whose own losses are finite, sees by the gradient that the follower diverged: that norm ends
    the run (`Learner.learn`).
    """
    assert ends[0][name]["spoilt"].tolist() == [True, False]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    alone, losses = make_agent(name, seed=1), []
    for number in range(UPDATES):
        losses.append(alone.update(make_batch(number), 4 * number).losses)
    torch.set_num_threads(threads)
    leader, follower = (end[name] for end in ends)
    torch.testing.assert_close(leader["losses"], torch.stack(losses[BEFORE:]), rtol=1e-4, atol=1e-5)
    for key, weight in alone.acting_weights().items():
        torch.testing.assert_close(leader["weights"][key], weight, rtol=1e-4, atol=1e-5)
        assert torch.equal(leader["weights"][key], follower["weights"][key])
