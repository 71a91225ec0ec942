"""Values of states where the agent needs more of its environment than the shape of a frame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete
from safetensors.torch import save

from args import read_args
from live.page.panes import sight_pane
from live.sight import SeenChunk
from live.watch import KnownRun, Watch
from memory.runs.keys import Keys
from memory.runs.run import open_run
from memory.runs.weights import Weights, publish_weights
from memory.server.connection import Client, RedisConfig
from rainbow_iqn_apex import load_policy
from tests.processes import run
from wiring.setting import build_agent, setting_of

BOARD = (
    "--game pettingzoo:tictactoe_v3 --agent double_dqn --discount -1 --multi-step 1 --serial --threads 1"
    " --memory-capacity 2000 --learn-start 100 --T-max 410 --hidden-size 16 --batch-size 8 --chunk-length 16"
).split()
PAINTED = "test/Painted-v0"


class Painted(gymnasium.Env[Any, Any]):
    """A picture beside two numbers."""

    def __init__(self, **_: Any) -> None:
        self.observation_space = Dict(picture=Box(0, 255, (16, 16, 3), np.uint8), place=Box(-1, 1, (2,)))
        self.action_space = Discrete(3)


@pytest.fixture
def painted() -> Iterator[str]:
    gymnasium.register(PAINTED, entry_point=Painted, disable_env_checker=True)
    yield PAINTED
    gymnasium.registry.pop(PAINTED)


def known_run(socket: str) -> tuple[Watch, KnownRun]:
    watch = Watch(RedisConfig(socket, 0), None)
    watch.look()
    (known,) = watch.runs
    return watch, known


def test_forbidden_actions_have_no_value(redis_socket: str, client: Client, tmp_path: Path) -> None:
    where = ["--host-redis", redis_socket, "--path-to-results", tmp_path]
    run("launch_learner.py", *BOARD, *where, log=tmp_path / "log")
    watch, known = known_run(redis_socket)
    seen = watch.seen(known, None)
    assert seen is not None and seen.states.shape[1:] == (1, 27)
    legal = seen.states[:, 0, 18:] > 0  # [M, A]
    values = watch.quantiles(known, seen)[:, 0]  # [M, A]
    assert 0 < legal.mean() < 1 and np.array_equal(~np.isnan(values), legal)
    _, _, bars, course = sight_pane(watch, known, None)
    assert [name.endswith(": forbidden") for name in bars.figure.data[-1].y] == (~legal[-1]).tolist()
    best = np.where(legal, values, -np.inf).max(1)
    np.testing.assert_array_equal(course.figure.data[0].y, best)
    (model,) = tmp_path.glob("last_model_*")
    look = load_policy(model).look(seen.states[-1, 0])
    assert np.array_equal(np.isnan(look.values), ~legal[-1]) and look.action == np.nanargmax(look.values)


def test_pictures_in_a_vector_have_their_convolutions(
    painted: str, redis_socket: str, client: Client
) -> None:
    setting = setting_of(read_args(["--game", painted, "--agent", "dqn", "--disable-cuda", "--seed", "7"]))
    agent, keys = build_agent(setting.args, setting.problem, learning=False), Keys(painted)
    opened = open_run(client, keys, setting.args.shared(), False, 0, {}, "token")
    publish_weights(client, keys, Weights(opened.epoch, 1, 4, save(agent.acting_weights())))
    states = np.random.default_rng(0).random((5, *setting.problem.observation_shape), np.float32)
    seen = SeenChunk(0, painted, 1, states, np.zeros(5, np.int64), np.zeros(5, np.float32))
    watch, known = known_run(redis_socket)
    with torch.inference_mode():
        expected = agent.estimates(torch.from_numpy(states)).numpy()
    np.testing.assert_allclose(watch.quantiles(known, seen), expected, rtol=1e-4, atol=1e-5)
