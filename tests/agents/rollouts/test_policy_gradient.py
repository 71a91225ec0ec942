"""REINFORCE and A2C: one update by slow loops, episodes over several rollouts, a corridor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from agents.base import Problem
from agents.on_policy.rollouts import RolloutStates, transition_mask
from agents.registry import agent_type
from memory.rollouts.rollout import Rollout
from models.convolutions.spectral import SpectralConvolution
from tests.agents.rollouts.conftest import PIXELS
from tests.agents.rollouts.corridor import Corridor

MakeRollout = Callable[..., Rollout]
TURNING_PIXELS = Problem((2, 10, 5), "uint8", None, action_low=(-2.0, 0.0), action_high=(2.0, 1.0))
SHARED: dict[str, Any] = {
    "torso": "auto",
    "head_sizes": "16",
    "hidden_size": 16,
    "lr": 1e-3,
    "lr_end": None,
    "t_max": 1000,
    "adam_eps": 1e-8,
    "max_grad_norm": 0.0,
    "precision": "float32",
    "reward_clip": 1.0,
    "entropy_coeff": 0.01,
    "entropy_coeff_end": None,
    "discount": 0.9,
    "reward_scale": 0.75,
    "v_trace": True,
    "standardise_advantages": False,
    "normalise_observations": False,
}
OWN: dict[str, dict[str, Any]] = {
    "reinforce": {"baseline": True},
    "a2c": {"gae_lambda": 0.8, "episodic": False},
    "ppo": {"gae_lambda": 0.8, "batch_size": 1000, "epochs": 1, "ppo_clip": 0.2},
}


def make(name: str, problem: Problem = PIXELS, seed: int = 0, learning: bool = True, **settings: Any) -> Any:
    kind = agent_type(name)
    config = kind.config_type(**{**SHARED, **OWN[name], **settings})
    return kind(problem, config, torch.device("cpu"), seed, learning)


def played_by(agent: Any, rollout: Rollout) -> Rollout:
    """The same rollout as if `agent` had chosen its actions: ratios are 1."""
    states = RolloutStates(rollout, torch.device("cpu"))
    ratios, _ = agent._evaluate(rollout, states, transition_mask(rollout))
    return rollout._replace(log_prob=rollout.log_prob + ratios.log().numpy())


def slow_advantage(rollout: Rollout, values: Tensor, t: int, b: int, trace: float) -> float:
    """sum_k (gamma lambda)^k delta_{t+k}, to the episode's or the rollout's end, in Python floats."""
    advantage, weight = 0.0, 1.0
    for k in range(t, len(rollout.rewards)):
        after = 0.0 if rollout.terminated[k, b] else float(values[k + 1, b])
        reward = min(max(0.75 * float(rollout.rewards[k, b]), -1.0), 1.0)
        advantage += weight * (reward + 0.9 * after - float(values[k, b]))
        weight *= 0.9 * trace
        if rollout.terminated[k, b] or rollout.truncated[k, b]:
            break
    return advantage


def ended(rollout: Rollout, t: int, b: int) -> bool:
    return bool((rollout.terminated | rollout.truncated)[t:, b].any())


@pytest.mark.parametrize(
    ("name", "settings", "trace", "whole"),
    [
        ("a2c", {}, 0.8, False),
        ("a2c", {"gae_lambda": 1.0}, 1.0, False),
        ("a2c", {"episodic": True}, 0.8, True),
        ("reinforce", {}, 1.0, True),
        ("reinforce", {"baseline": False}, 1.0, True),
    ],
)
def test_an_update_is_the_formula(
    name: str, settings: dict[str, Any], trace: float, whole: bool, make_rollout: MakeRollout
) -> None:
    agent = make(name, **settings)
    rollout = played_by(agent, make_rollout())
    states = RolloutStates(rollout, torch.device("cpu"))
    with torch.no_grad():
        policy, values = agent.online.policy(states.stacks(states.indices))
    log_pi, critic = policy.log_softmax(1).view(13, 4, 3), values.view(13, 4)
    baseline = critic if settings.get("baseline", True) else torch.zeros_like(critic)
    policy_loss, value_loss, entropy, rows = 0.0, 0.0, 0.0, 0
    of_rows: list[tuple[float, float, float]] = []  # reward, value of the critic, target
    for t, b in zip(*np.nonzero(rollout.active), strict=True):
        if whole and not ended(rollout, t, b):
            continue
        advantage = slow_advantage(rollout, baseline, t, b, trace)
        policy_loss -= advantage * float(log_pi[t, b, rollout.a_t[t, b]])
        value_loss += (float(critic[t, b]) - float(baseline[t, b]) - advantage) ** 2 / 2
        entropy -= float((log_pi[t, b].exp() * log_pi[t, b]).sum())
        rows += 1
        reward = min(max(0.75 * float(rollout.rewards[t, b]), -1.0), 1.0)
        of_rows.append((reward, float(critic[t, b]), float(baseline[t, b]) + advantage))
    update = agent.update(rollout, 0)
    expected = policy_loss - 0.01 * entropy + (value_loss if settings.get("baseline", True) else 0.0)
    assert 0 < rows < rollout.active.sum() if whole else rows == rollout.active.sum()
    assert float(update.metrics["loss"]) == pytest.approx(expected / rows, rel=1e-4)
    assert float(update.metrics["entropy"]) == pytest.approx(entropy / rows, rel=1e-4)
    assert float(update.metrics["rho_mean"]) == pytest.approx(1.0, abs=1e-5)
    rewards, critics, targets = np.array(of_rows).T
    bases = critics if settings.get("baseline", True) else 0 * critics
    shown = {
        "extrinsic_reward": rewards.mean(),
        "value_extrinsic": critics.mean(),
        "explained_variance_extrinsic": 1 - (targets - bases).var() / targets.var(),
    }
    found = {name: float(update.metrics[name]) for name in shown}
    assert found == pytest.approx(shown, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("name", ["reinforce", "a2c", "ppo"])
@pytest.mark.parametrize("problem", [PIXELS, TURNING_PIXELS], ids=["discrete", "continuous"])
def test_all_parameters_move_by_adams_formula(name: str, problem: Problem, make_rollout: MakeRollout) -> None:
    agent, rollout = make(name, problem, adam_eps=1e-5), make_rollout()
    if problem is TURNING_PIXELS:
        a_t = np.random.default_rng(0).uniform((-2, 0), (2, 1), (12, 4, 2)).astype(np.float32)
        rollout = rollout._replace(a_t=a_t)
    before = agent.acting_weights()
    agent.update(rollout, 0)
    for key, parameter in agent.online.named_parameters():
        gradient = parameter.grad
        assert gradient.abs().sum() > 0, key
        expected = before[key] - 1e-3 * gradient / (gradient.abs() + 1e-5)
        torch.testing.assert_close(parameter.detach(), expected, atol=1e-7, rtol=1e-5)


@pytest.mark.parametrize("name", ["reinforce", "a2c", "ppo"])
def test_the_entropy_bonus_falls_to_its_end_over_the_run(name: str, make_rollout: MakeRollout) -> None:
    agent = make(name, entropy_coeff=0.8, entropy_coeff_end=0.2, t_max=1000)
    for t_learner, weight in ((1, 0.7994), (500, 0.5), (1000, 0.2), (5000, 0.2)):
        metrics = agent.update(make_rollout(), t_learner).metrics
        bonus = metrics["policy_loss"] + metrics["value_loss_extrinsic"] - metrics["loss"]
        assert float(bonus / metrics["entropy"]) == pytest.approx(weight, rel=1e-4)


def test_ppo_says_how_far_its_policy_has_moved(make_rollout: MakeRollout) -> None:
    """From the one that acted: not at all before the first step, and beyond the clip after large ones."""
    moved = {}
    for lr in (0.0, 1.0):
        agent = make("ppo", lr=lr, epochs=2)
        metrics = agent.update(played_by(agent, make_rollout()), 0).metrics
        moved[lr] = [float(metrics[name]) for name in ("approximate_kl", "clip_share")]
    assert moved[0.0] == pytest.approx([0, 0], abs=1e-6)
    assert moved[1.0][0] > 0.1 and 0.2 < moved[1.0][1] <= 0.5


def test_without_a_baseline_the_critic_stays(make_rollout: MakeRollout) -> None:
    agent = make("reinforce", baseline=False)
    before = agent.acting_weights()
    agent.update(make_rollout(), 0)
    after = agent.acting_weights()
    moved = {name.split(".")[1] for name in before if not torch.equal(before[name], after[name])}
    assert moved == {"torso", "policy_hidden", "policy"}


def test_actions_of_an_older_policy_count_less(make_rollout: MakeRollout) -> None:
    """V-trace: rho = min(1, pi / mu) weighs the gradient; without it rollouts count as they are."""
    agent = make("a2c", gae_lambda=0.0)
    rollout = played_by(agent, make_rollout())
    doubled = rollout._replace(log_prob=rollout.log_prob + np.log(2).astype(np.float32))
    losses = {
        corrected: [
            float(make("a2c", gae_lambda=0.0, v_trace=corrected).update(each, 0).metrics["policy_loss"])
            for each in (rollout, doubled)
        ]
        for corrected in (True, False)
    }
    assert losses[True][1] == pytest.approx(losses[True][0] / 2, rel=1e-4)
    assert losses[False][0] == pytest.approx(losses[False][1], rel=1e-4)


def test_advantages_can_be_standardised(make_rollout: MakeRollout) -> None:
    """Over the transitions alone: only their mean and size change, so that neither scale nor offset of the
    rewards matters to the policy. The critic still learns the returns as they are.
    """
    rollout = make_rollout()
    assert not rollout.active.all(), "some rows are no transitions"
    plain, larger = rollout.rewards / 100, rollout.rewards / 10 + 5.0 * rollout.active
    settings: dict[str, Any] = {
        "gae_lambda": 0.0,
        "discount": 0.0,
        "reward_clip": 0.0,
        "reward_scale": 1.0,
        "standardise_advantages": True,
    }
    told = []
    for rewards in (plain.astype(np.float32), larger.astype(np.float32)):
        agent = make("a2c", **settings)
        torch.nn.init.zeros_(agent.online.policy.values.weight)  # so that V is 0 and advantages are rewards
        torch.nn.init.normal_(agent.online.policy.policy.bias, generator=torch.Generator().manual_seed(0))
        metrics = agent.update(played_by(agent, rollout._replace(rewards=rewards)), 0).metrics
        told.append(float(metrics["policy_loss"]))
        critic_loss = np.square(rewards[rollout.active]).mean() / 2
        assert float(metrics["value_loss_extrinsic"]) == pytest.approx(critic_loss, rel=1e-4)
    assert told[0] == pytest.approx(told[1], rel=1e-3) and told[0] != 0


@pytest.mark.parametrize("name", ["reinforce", "a2c", "ppo"])
def test_normalised_observations_are_those_of_the_policy_that_acted(
    name: str, make_rollout: MakeRollout
) -> None:
    """A rollout's observations, random play's too, count from the next one on: its ratios stay 1."""
    agent, rollout = make(name, normalise_observations=True), make_rollout()
    played, frames = played_by(agent, rollout), agent.online.policy.frames
    assert float(frames.count) == 0
    assert float(agent.update(played, 0).metrics["rho_mean"]) == pytest.approx(1)
    agent.update(make_rollout(seed=1, looked=np.zeros(4, np.bool_)), 0)
    seen = np.concatenate([each.frames[-12:].reshape(-1, 10, 5) for each in (rollout, make_rollout(seed=1))])
    np.testing.assert_allclose(frames.mean, seen.mean(0), rtol=1e-12)
    np.testing.assert_allclose(frames.std, seen.std(0), rtol=1e-12)
    acting = make(name, learning=False, normalise_observations=True)
    acting.load_acting_weights(agent.acting_weights())
    states = played.frames[:1, :].swapaxes(0, 1).repeat(2, axis=1)
    with torch.no_grad():
        found, expected = (each.online.policy(torch.from_numpy(states)) for each in (acting, agent))
    assert torch.equal(found.policy, expected.policy) and torch.equal(found.values, expected.values)


@pytest.mark.parametrize("name", ["reinforce", "a2c", "ppo"])
def test_random_play_is_not_learned_from(name: str, make_rollout: MakeRollout) -> None:
    agent = make(name)
    before = agent.acting_weights()
    update = agent.update(make_rollout(looked=np.zeros(4, np.bool_)), 0)
    assert len(update.losses) == 0
    assert all(torch.equal(value, agent.acting_weights()[key]) for key, value in before.items())


@pytest.mark.parametrize("normalised", [False, True])
def test_a_saved_agent_goes_on_bit_by_bit(
    normalised: bool, make_rollout: MakeRollout, tmp_path: Path
) -> None:
    agent = make("a2c", normalise_observations=normalised)
    agent.update(make_rollout(seed=0), 0)
    torch.save(agent.state_dict(), tmp_path / "agent.pth")
    resumed = make("a2c", seed=5, normalise_observations=normalised)
    resumed.load_state_dict(torch.load(tmp_path / "agent.pth", weights_only=True))
    left, right = (each.update(make_rollout(seed=1), 0) for each in (agent, resumed))
    assert all(torch.equal(value, right.metrics[name]) for name, value in left.metrics.items())


LEARNING: dict[str, dict[str, Any]] = {
    "a2c": {"gae_lambda": 0.95},
    "a2c episodic": {"gae_lambda": 0.95, "episodic": True},
    "reinforce": {},
}


@pytest.mark.parametrize("case", LEARNING)
def test_a_corridor_is_learned(case: str) -> None:
    corridor = Corridor(cells=6, streams=8, patience=30)
    settings = {"head_sizes": "32", "lr": 1e-2, "discount": 0.99, **LEARNING[case]}
    agent = make(case.split()[0], corridor.problem, **settings)
    generator = torch.Generator().manual_seed(0)
    goals = []
    for updates in range(40):
        rollout = corridor.play(agent, 16, generator, updates)
        agent.update(rollout, 0)
        goals.append(int(rollout.terminated.sum()))
    best = 8 * 16 // 6  # 5 steps to the end, and one to restart
    assert sum(goals[:3]) < best and np.mean(goals[-5:]) > 0.7 * best


BEST = np.array([1.0, 0.2], np.float32)


def bandit(agent: Any, generator: torch.Generator) -> Rollout:
    """64 episodes of one step; an action pays less the farther it is from BEST, in half ranges."""
    frames = np.ones((2, 64, 3), np.float32)
    acting = agent.act(frames[0][:, None], agent.draw_acting_noise(64, generator))
    lost = np.square((acting.a_t - BEST) / [2.0, 0.5]).sum(1)
    per_stream = np.ones(64, np.bool_)
    return Rollout(
        frames=frames,
        ages=np.stack([np.zeros(64, np.int64), np.ones(64, np.int64)]),
        a_t=acting.a_t[None],
        log_prob=acting.log_prob[None],
        rewards=-lost[None].astype(np.float32),
        terminated=per_stream[None],
        truncated=np.zeros((1, 64), np.bool_),
        active=per_stream[None],
        looked=per_stream,
        stream=np.arange(64),
        continues=per_stream,
        updates=np.zeros(64, np.int64),
    )


@pytest.mark.parametrize(
    "name", ["ppo", *(pytest.param(name, marks=pytest.mark.slow) for name in ("reinforce", "a2c"))]
)
def test_the_best_continuous_action_is_found(name: str) -> None:
    """The first one lies inside the bounds; so does the second, nearer to its lower one."""
    problem = Problem((1, 3), "float32", None, TURNING_PIXELS.action_low, TURNING_PIXELS.action_high)
    agent, generator = make(name, problem, lr=1e-2, reward_clip=0.0), torch.Generator().manual_seed(0)
    for _ in range(150):
        agent.update(bandit(agent, generator), 0)
    acting = agent.act(np.ones((1, 1, 3), np.float32), agent.mean_acting_noise(1))
    np.testing.assert_allclose(acting.a_t[0], BEST, atol=0.15)


@pytest.mark.parametrize("name", OWN)
def test_normalised_torsos_begin_with_a_norm_of_one(name: str) -> None:
    """Orthogonal weights are drawn after the vectors that estimate their norm."""
    agent = make(name, torso="impala_small_spectral")
    normalised = [module for module in agent.online.modules() if isinstance(module, SpectralConvolution)]
    assert normalised
    for module in normalised:
        norm = torch.linalg.matrix_norm(module.effective_weight().flatten(1), 2)
        torch.testing.assert_close(norm, torch.ones(()), rtol=1e-3, atol=0)
