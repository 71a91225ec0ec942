from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from agents.base import Problem
from agents.ppo_rnd import PpoRndAgent, PpoRndConfig
from memory.rollouts.rollout import Rollout

PIXELS = Problem((2, 10, 5), "uint8", num_actions=3, action_low=None, action_high=None)
CONFIG = PpoRndConfig(
    torso="auto",
    head_sizes="16,12",
    hidden_size=16,
    lr=1e-3,
    lr_end=None,
    t_max=1000,
    adam_eps=1e-8,
    max_grad_norm=0.0,
    precision="float32",
    reward_clip=1.0,
    entropy_coeff=0.001,
    entropy_coeff_end=None,
    gae_lambda=0.95,
    batch_size=16,
    epochs=2,
    ppo_clip=0.1,
    ext_discount=0.999,
    int_discount=0.99,
    ext_coeff=2.0,
    int_coeff=1.0,
    rnd_update_proportion=0.25,
    v_trace=True,
)


@pytest.fixture
def make_ppo() -> Callable[..., PpoRndAgent]:
    """PPO with RND on small pixels; keywords replace its hyper-parameters."""

    def make(
        *, problem: Problem = PIXELS, seed: int = 0, learning: bool = True, **settings: Any
    ) -> PpoRndAgent:
        config = PpoRndConfig(**{**vars(CONFIG), **settings})
        return PpoRndAgent(problem, config, torch.device("cpu"), seed, learning)

    return make


@pytest.fixture
def make_rollout() -> Callable[..., Rollout]:
    """T steps of B environments whose episodes end at random, of random small pixels."""

    def make(
        length: int = 12, streams: int = 4, seed: int = 0, end: float = 0.2, history: int = 2, **fields: Any
    ) -> Rollout:
        rng = np.random.default_rng(seed)
        shape = (length, streams)
        terminated, truncated, active, ages = _episodes(rng, length, streams, end)
        rollout = Rollout(
            frames=rng.integers(0, 256, (history + length, streams, 10, 5), dtype=np.uint8),
            ages=ages,
            a_t=rng.integers(0, 3, shape),
            log_prob=np.log(rng.uniform(0.1, 0.9, shape)).astype(np.float32),
            rewards=np.where(active, rng.normal(size=shape) * 2, 0).astype(np.float32),
            terminated=terminated,
            truncated=truncated,
            active=active,
            looked=np.ones(streams, np.bool_),
            stream=np.arange(streams),
            continues=np.ones(streams, np.bool_),
            updates=np.zeros(streams, np.int64),
        )
        return rollout._replace(**fields)

    return make


def _episodes(rng: np.random.Generator, length: int, streams: int, end: float) -> tuple[np.ndarray, ...]:
    """terminated, truncated, active [T, B] and ages [T + 1, B], as NEXT_STEP autoreset makes them."""
    terminated, truncated, active = (np.zeros((length, streams), np.bool_) for _ in range(3))
    ages = np.zeros((length + 1, streams), np.int64)
    ages[0] = rng.integers(0, 4, streams)
    restarts = rng.random(streams) < end
    for t in range(length):
        active[t] = ~restarts
        kind = rng.random(streams)
        terminated[t] = active[t] & (kind < end / 2)
        truncated[t] = active[t] & (end / 2 <= kind) & (kind < end)
        ages[t + 1] = np.where(restarts, 0, ages[t] + 1)
        restarts = terminated[t] | truncated[t]
    return terminated, truncated, active, ages
