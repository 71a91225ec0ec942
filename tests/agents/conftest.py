from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from agents.base import Agent, Problem
from agents.registry import agent_type
from memory.replay.batch import Batch

PIXELS = Problem((2, 10, 5), "uint8", num_actions=3, action_low=None, action_high=None)
TURNING_PIXELS = Problem(
    (2, 10, 5), "uint8", None, action_low=(-2.0, 0.0), action_high=(2.0, 1.0), mirrored_action=(-1.0, 1.0)
)
PROBLEMS = {"iqn": PIXELS, "rainbow": PIXELS, "dqn": PIXELS, "double_dqn": PIXELS, "naf": TURNING_PIXELS}
SETTINGS = {
    "hidden_size": 16,
    "torso": "auto",
    "lr": 1e-3,
    "lr_end": None,
    "t_max": 1000,
    "adam_eps": 1e-8,
    "max_grad_norm": 0.0,
    "precision": "float32",
    "compile": "none",
}
MUNCHAUSEN = {
    "munchausen": "none",
    "munchausen_alpha": 0.9,
    "munchausen_tau": 0.03,
    "munchausen_clip": -1.0,
}
DQN_SETTINGS = {
    **MUNCHAUSEN,
    "target_update": 100,
    "kappa": 1.0,
    "epsilon": 0.9,
    "epsilon_alpha": 7.0,
    "id_actor": 0,
    "nb_actor": 1,
    "envs_per_actor": 1,
}
VALUE_SETTINGS = {
    "noisy_std": 0.5,
    "target_update": 100,
    "replay_frequency": 4,
    "noisy_epsilon_steps": 0,
    "noisy_epsilon_until": 0.5,
    "reset_every": 0,
    "t_max": 1000,
}
OWN_SETTINGS: dict[str, dict[str, Any]] = {
    "iqn": {
        **VALUE_SETTINGS,
        **MUNCHAUSEN,
        "num_tau_samples": 8,
        "num_tau_prime_samples": 6,
        "num_quantile_samples": 5,
        "quantile_embedding_dim": 16,
        "kappa": 1.0,
    },
    "rainbow": {**VALUE_SETTINGS, "atoms": 11, "v_min": -5.0, "v_max": 5.0},
    "dqn": DQN_SETTINGS,
    "double_dqn": DQN_SETTINGS,
    "naf": {
        "head_sizes": "16,8",
        "layer_norm": False,
        "reward_scale": 1.0,
        "l2": 0.0,
        "polyak": 0.01,
        "mirror": False,
        "action_noise": "ou",
        "ou_theta": 0.15,
        "ou_sigma": 0.2,
        "parameter_noise_distance": 0.2,
    },
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=[*PROBLEMS])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make_agent() -> Callable[..., Agent]:
    """An agent on small pixels; keywords replace its hyper-parameters."""

    def make(
        name: str,
        *,
        problem: Problem | None = None,
        seed: int = 0,
        learning: bool = True,
        device: str = "cpu",
        **settings: Any,
    ) -> Agent:
        kind = agent_type(name)
        config = kind.config_type(**{**SETTINGS, **OWN_SETTINGS[name], **settings})
        return kind(problem or PROBLEMS[name], config, torch.device(device), seed, learning)

    return make


@pytest.fixture
def make_batch(name: str) -> Callable[..., Batch]:
    """B random transitions of the small pixels, with actions as the agent `name` takes them."""
    problem = PROBLEMS[name]

    def actions(rng: np.random.Generator, rows: int) -> NDArray[Any]:
        if problem.action_low is None or problem.action_high is None:
            return rng.integers(0, 3, rows)
        return rng.uniform(problem.action_low, problem.action_high, (rows, 2)).astype(np.float32)

    def make(rows: int = 8, seed: int = 0) -> Batch:
        rng = np.random.default_rng(seed)
        frames = (rows, *problem.observation_shape)
        return Batch(
            s_tm1=rng.integers(0, 256, frames, dtype=np.uint8),
            a_tm1=actions(rng, rows),
            r_t=rng.normal(size=rows).astype(np.float32),
            discount_t=np.where(rng.random(rows) < 0.3, 0, 0.97).astype(np.float32),
            s_t=rng.integers(0, 256, frames, dtype=np.uint8),
            weights=rng.uniform(0.2, 1, rows).astype(np.float32),
            leaf=np.arange(rows),
            chunk_id=np.ones(rows, np.int64),
        )

    return make
