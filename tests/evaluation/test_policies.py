from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from agents.base import Acting, ActingNoise, Agent, Problem, RolloutActing
from agents.registry import agent_type
from envs.config import EnvDescription
from evaluation.policies import (
    PASS_ROWS,
    AgentPolicy,
    EpsilonPolicy,
    Policy,
    PolicyError,
    baseline_policy,
    is_baseline,
)
from scripts.compare_baselines import constant_actions

DISCRETE = EnvDescription((4,), "float32", 3, None, None, 1, None, 1)
CONTINUOUS = EnvDescription((4,), "float32", None, (-1.0, 0.0), (1.0, 5.0), 1, None, 1)


def rainbow() -> Agent:
    kind = agent_type("rainbow")
    config = kind.config_type(
        hidden_size=32, torso="auto", noisy_std=0.5, lr=1e-3, lr_end=None, adam_eps=1e-4, max_grad_norm=0.0,
        target_update=100, replay_frequency=4, precision="float32", compile="none",
        atoms=11, v_min=-1.0, v_max=1.0, noisy_epsilon_steps=0, noisy_epsilon_until=0.5, reset_every=0,
        t_max=1000,
    )  # fmt: skip
    return kind(
        Problem((2, 4), "float32", 3, None, None), config, torch.device("cpu"), seed=0, learning=False
    )


def actions_of(policy: Policy, row: int, rows: int, starts_at: int = 0, steps: int = 20) -> list[int]:
    """Actions of an episode that starts in `row` after `starts_at` steps of other episodes."""
    rng, others = np.random.default_rng(0), np.random.default_rng(1)
    policy.begin(rows)
    taken = []
    for step in range(starts_at + steps):
        s_t = others.normal(size=(rows, 2, 4)).astype(np.float32)
        if step == starts_at:
            policy.start(row, seed=7)
        if step >= starts_at:
            s_t[row] = rng.normal(size=(2, 4))
            taken.append(int(policy.act(s_t)[row]))
        else:
            policy.act(s_t)
    return taken


@pytest.mark.parametrize("name", ["random", "agent", "epsilon"])
def test_an_episode_depends_on_its_seed_alone(name: str) -> None:
    agent = AgentPolicy(rainbow(), 2, noisy=True)
    policies = {"random": baseline_policy("random", DISCRETE), "epsilon": EpsilonPolicy(agent, DISCRETE, 0.5)}
    policy: Policy = policies.get(name, agent)
    alone = actions_of(policy, row=0, rows=1)
    assert len(set(alone)) > 1
    assert alone == actions_of(policy, row=3, rows=5, starts_at=3)
    assert alone == actions_of(policy, row=PASS_ROWS + 2, rows=PASS_ROWS + 4, starts_at=1)


def test_a_share_of_random_actions() -> None:
    """Of a policy whose actions are all 2: all three actions are drawn, and half of the time none is."""
    always = baseline_policy("constant:2", DISCRETE)
    actions = np.array(actions_of(EpsilonPolicy(always, DISCRETE, 0.5), row=1, rows=2, steps=4000))
    others = [(actions == action).mean() for action in (0, 1)]
    assert others == pytest.approx([1 / 6, 1 / 6], abs=4 * np.sqrt(5 / 36 / 4000))  # four standard errors
    assert set(actions_of(EpsilonPolicy(always, DISCRETE, 0.0), row=1, rows=2)) == {2}


def test_rows_are_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, rows = rainbow(), list[int]()

    def recorded(s_t: NDArray[Any], noise: ActingNoise) -> Acting | RolloutActing:
        rows.append(len(s_t))
        return agent.act(s_t, noise)

    monkeypatch.setattr(agent, "act_independently", recorded)
    actions_of(AgentPolicy(agent, 2, noisy=True), row=0, rows=1, steps=2)
    assert rows == [PASS_ROWS, PASS_ROWS]


def test_noise_is_held_for_its_period() -> None:
    policy = AgentPolicy(rainbow(), 2, noisy=True)
    policy.begin(1)
    policy.start(0, seed=0)
    noise = []
    for _ in range(12):
        policy.act(np.zeros((1, 2, 4), np.float32))
        noise.append(torch.cat([values[0] for values in policy._noise.values()]).tolist())
    assert noise[0] == noise[3] != noise[4] == noise[7] != noise[8] == noise[11]


def test_without_noise_the_means_act() -> None:
    agent = rainbow()
    policy = AgentPolicy(agent, 2, noisy=False)
    policy.begin(2)
    policy.start(0, seed=0)
    s_t = np.random.default_rng(0).normal(size=(2, 2, 4)).astype(np.float32)
    expected = agent.act(s_t, agent.mean_acting_noise(2)).a_t
    for _ in range(5):
        np.testing.assert_array_equal(policy.act(s_t), expected)


def test_constant_actions_to_compare_with_grow_with_components_not_with_their_combinations() -> None:
    counts = {}
    for components in (1, 2, 6):
        bounds = (-1.0,) * components, (1.0,) * components
        description: Any = SimpleNamespace(num_actions=None, action_low=bounds[0], action_high=bounds[1])
        actions = constant_actions(description)
        counts[components] = len(actions), len(set(actions))
    assert counts == {1: (5, 5), 2: (25, 25), 6: (25, 25)}


def test_constant_actions() -> None:
    policy = baseline_policy("constant:2", DISCRETE)
    policy.begin(4)
    policy.start(0, seed=0)
    assert policy.act(np.zeros((4, 1, 4))).tolist() == [2, 2, 2, 2]


def test_constant_continuous_actions() -> None:
    policy = baseline_policy("constant:-0.5,4", CONTINUOUS)
    policy.begin(2)
    actions = policy.act(np.zeros((2, 1, 4)))
    assert actions.dtype == np.float32
    assert actions.tolist() == [[-0.5, 4.0]] * 2


def test_random_continuous_actions_fill_their_box() -> None:
    policy = baseline_policy("random", CONTINUOUS)
    policy.begin(500)
    actions = policy.act(np.zeros((500, 1, 4)))
    assert actions.shape == (500, 2)
    assert actions.dtype == np.float32
    np.testing.assert_allclose(actions.min(0), [-1.0, 0.0], atol=0.1)
    np.testing.assert_allclose(actions.max(0), [1.0, 5.0], atol=0.1)


@pytest.mark.parametrize(
    ("name", "description", "sentence"),
    [
        ("constant:3", DISCRETE, "This game has the actions 0 to 2, not 3."),
        ("constant:-1", DISCRETE, "This game has the actions 0 to 2, not -1."),
        ("constant:0", CONTINUOUS, "actions of 2 numbers from"),
        ("constant:0,-9", CONTINUOUS, "actions of 2 numbers from"),
        ("constant:left,right", CONTINUOUS, "actions of 2 numbers from"),
        ("constant:", DISCRETE, "'constant:' is no policy"),
    ],
)
def test_mistakes_are_told_in_a_sentence(name: str, description: EnvDescription, sentence: str) -> None:
    assert is_baseline(name)
    with pytest.raises(PolicyError, match=sentence):
        baseline_policy(name, description)


def test_agents_are_no_baselines() -> None:
    assert not is_baseline("iqn")
