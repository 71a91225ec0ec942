"""One iteration by hand, and what may and may not change it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from agents.base import AgentError
from agents.on_policy.losses import approximate_kl, clipped_surrogate, explained_variance, vtrace
from agents.on_policy.rollouts import RolloutStates, episodic_steps, unbroken_steps
from agents.parts.devices import ROWS
from agents.parts.weights import has_bfloat16_units
from agents.ppo_rnd import PpoRndAgent
from memory.rollouts.rollout import Rollout
from tests.agents.rollouts.test_policy_gradient import played_by

MakePpo = Callable[..., PpoRndAgent]
MakeRollout = Callable[..., Rollout]
ONE_STEP = {"epochs": 1, "batch_size": 10**6, "rnd_update_proportion": 1.0}


def same(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) for key in left)


def gradients(agent: PpoRndAgent) -> dict[str, Tensor]:
    named = agent.online.named_parameters()
    return {name: parameter.grad.clone() for name, parameter in named if parameter.grad is not None}


def _explained(values: Tensor, advantages: Tensor) -> Tensor:
    """1 - Var(target - value) / Var(target) of targets that are value + advantage."""
    return 1 - advantages.var(correction=0) / (values + advantages).var(correction=0)


def test_the_first_step_is_the_formula(make_ppo: MakePpo, make_rollout: MakeRollout) -> None:
    """With one step all of it can be rebuilt; the surrogate's ratio is to the policy that acted."""
    agent, twin, rollout = make_ppo(**ONE_STEP), make_ppo(**ONE_STEP), make_rollout()
    rows = torch.from_numpy(rollout.active)
    states = RolloutStates(rollout, torch.device("cpu"))
    logits, values = twin.online.policy(states.stacks(states.indices))
    raw = twin.rnd.errors(states.newest(states.indices[4:])).view(12, 4) * rows
    sums = twin._filter.update(rollout, raw.detach().numpy(), rollout.active)
    intrinsic = raw.detach() / sums[rollout.active].std()
    values = values.detach().view(13, 4, 2)
    log_pi = logits.log_softmax(1).view(13, 4, 3)[:-1]
    taken = log_pi.gather(2, torch.from_numpy(rollout.a_t)[..., None])[..., 0]
    ratios = torch.where(rows, (taken - torch.from_numpy(rollout.log_prob)).exp(), 1.0)
    extrinsic = torch.from_numpy(rollout.rewards).clamp(-1, 1)
    apart = [
        vtrace(episodic_steps(rollout, extrinsic, values[..., 0], 0.999, 0.95), ratios),
        vtrace(unbroken_steps(rollout, intrinsic.float(), values[..., 1], 0.99, 0.95), ratios),
    ]
    of_episodes = torch.tensor(twin._episodes.update(rollout, intrinsic.numpy())).mean()
    twin.update(make_rollout(looked=np.zeros(4, np.bool_)), 0)  # whitens by the same frames
    predictor = twin.rnd.errors(states.newest(states.indices[4:])).view(12, 4)
    entropy = -(log_pi.exp() * log_pi).sum(2)
    expected = {
        "policy_loss": clipped_surrogate(ratios.log(), 2.0 * apart[0] + apart[1], 0.1)[rows].mean(),
        "value_loss_extrinsic": apart[0][rows].square().mean() / 2,
        "value_loss_intrinsic": apart[1][rows].square().mean() / 2,
        "entropy": entropy[rows].mean(),
        "predictor_loss": predictor[rows].mean(),
        "intrinsic_raw": raw[rows].mean(),
        "intrinsic_reward": intrinsic[rows].mean(),
        "episode_intrinsic_return": of_episodes,
        "extrinsic_reward": extrinsic[rows].mean(),
        "explained_variance_extrinsic": _explained(values[:-1, :, 0][rows], apart[0][rows]),
        "explained_variance_intrinsic": _explained(values[:-1, :, 1][rows], apart[1][rows]),
        "rho_mean": ratios.clamp(max=1)[rows].mean(),
        "rho_min": ratios[rows].min(),
        "approximate_kl": approximate_kl(ratios.log())[rows].mean(),
        "clip_share": ((ratios - 1).abs() > 0.1)[rows].float().mean(),
    }
    names = ("policy_loss", "value_loss_extrinsic", "value_loss_intrinsic", "predictor_loss")
    expected["loss"] = sum((expected[name] for name in names), -0.001 * expected["entropy"])
    update = agent.update(rollout, 0)
    found = {name: update.metrics[name] for name in expected}
    wanted = {name: value.detach().float() for name, value in expected.items()}
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(update.losses, update.metrics["loss"].view(1))


def test_the_step_is_adams_and_leaves_the_target_alone(make_ppo: MakePpo, make_rollout: MakeRollout) -> None:
    agent = make_ppo(**ONE_STEP, adam_eps=1e-5)
    before = agent.acting_weights()
    update = agent.update(make_rollout(), 0)
    after, found = agent.acting_weights(), gradients(agent)
    norm = torch.cat([gradient.flatten() for gradient in found.values()]).norm()
    torch.testing.assert_close(update.metrics["grad_norm"], norm)
    for name, _ in agent.online.named_parameters():
        if name.startswith("rnd.target"):
            assert torch.equal(after[name], before[name])
            continue
        gradient = found[name]
        assert gradient.abs().sum() > 0, name
        expected = before[name] - 1e-3 * gradient / (gradient.abs() + 1e-5)
        torch.testing.assert_close(after[name], expected, atol=1e-7, rtol=1e-5)


def test_gradient_is_clipped_to_its_norm(make_ppo: MakePpo, make_rollout: MakeRollout) -> None:
    free, clipped = make_ppo(**ONE_STEP), make_ppo(**ONE_STEP, max_grad_norm=0.01)
    norms = [agent.update(make_rollout(), 0).metrics["grad_norm"] for agent in (free, clipped)]
    torch.testing.assert_close(norms[0], norms[1])
    total = torch.cat([gradient.flatten() for gradient in gradients(clipped).values()]).norm()
    assert float(total) == pytest.approx(0.01, rel=1e-3)


def test_slices_add_up_to_the_whole(
    make_ppo: MakePpo, make_rollout: MakeRollout, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, sliced = make_ppo(**ONE_STEP), make_ppo(**ONE_STEP)
    whole.update(make_rollout(), 0)
    monkeypatch.setitem(ROWS, "cpu", 5)
    sliced.update(make_rollout(), 0)
    left, right = gradients(whole), gradients(sliced)
    for name, gradient in left.items():
        torch.testing.assert_close(gradient, right[name], rtol=1e-3, atol=1e-6)


def test_rows_that_only_restart_change_nothing(make_ppo: MakePpo, make_rollout: MakeRollout) -> None:
    rollout, rng = make_rollout(), np.random.default_rng(9)
    restarts = ~rollout.active
    assert restarts.any()
    odd = rollout._replace(
        a_t=np.where(restarts, 2 - rollout.a_t, rollout.a_t),
        log_prob=np.where(restarts, np.nan, rollout.log_prob).astype(np.float32),
        rewards=np.where(restarts, rng.normal(size=restarts.shape), rollout.rewards).astype(np.float32),
    )
    agents = make_ppo(), make_ppo()
    updates = [agent.update(each, 0) for agent, each in zip(agents, (rollout, odd), strict=True)]
    assert torch.equal(updates[0].losses, updates[1].losses)
    assert same(agents[0].acting_weights(), agents[1].acting_weights())


def test_columns_played_at_random_only_feed_the_statistics(
    make_ppo: MakePpo, make_rollout: MakeRollout
) -> None:
    rollout = make_rollout(looked=np.array([True, False, True, False]), updates=np.array([0, 7, 0, 7]))
    odd = rollout._replace(rewards=np.where(rollout.looked, rollout.rewards, np.float32(0.5)))
    agents = make_ppo(), make_ppo()
    updates = [agent.update(each, 0) for agent, each in zip(agents, (rollout, odd), strict=True)]
    assert torch.equal(updates[0].losses, updates[1].losses)
    assert float(agents[0].rnd.observations.count) == 12 * 4
    assert float(agents[0].rnd.rewards.count) == rollout.active[:, rollout.looked].sum()


def test_warm_up_only_feeds_the_statistics_of_observations(
    make_ppo: MakePpo, make_rollout: MakeRollout
) -> None:
    agent, rollout = make_ppo(), make_rollout(looked=np.zeros(4, np.bool_))
    before = agent.acting_weights()
    update = agent.update(rollout, 0)
    after = agent.acting_weights()
    assert {name for name in before if not torch.equal(before[name], after[name])} == {
        f"rnd.observations.{name}" for name in ("count", "mean", "variance")
    }
    frames = rollout.frames[2:].reshape(-1, 10, 5).astype(np.float64)
    np.testing.assert_allclose(after["rnd.observations.mean"], frames.mean(0))
    np.testing.assert_allclose(after["rnd.observations.variance"], frames.var(0))
    assert update.losses.shape == (0,) and update.metrics["grad_norm"].isfinite()


@pytest.mark.parametrize(("v_trace", "counts"), [(True, 0.5), (False, 1.0)])
def test_lag_is_corrected(v_trace: bool, counts: float, make_ppo: MakePpo, make_rollout: MakeRollout) -> None:
    """Actions that have become half as likely move the values half as far by V-trace, and as far without it.

    PPO's ratio is to what acted in either case.
    """
    played = played_by(make_ppo(), make_rollout())
    halved = played._replace(log_prob=played.log_prob + np.log(2).astype(np.float32))
    now, later = (
        make_ppo(**ONE_STEP, gae_lambda=0.0, v_trace=v_trace).update(each, 0).metrics
        for each in (played, halved)
    )
    for head in ("extrinsic", "intrinsic"):  # the loss of values is the squared correction's half
        ratio = later[f"value_loss_{head}"] / now[f"value_loss_{head}"]
        assert float(ratio) == pytest.approx(counts**2, rel=1e-3), head
    assert (float(now["clip_share"]), float(later["clip_share"])) == (0.0, 1.0)


def test_extrinsic_rewards_are_clipped(make_ppo: MakePpo, make_rollout: MakeRollout) -> None:
    large = make_rollout(rewards=np.where(make_rollout().active, 7.0, 0).astype(np.float32))
    means = [
        float(make_ppo(reward_clip=clip).update(large, 0).metrics["extrinsic_reward"])
        for clip in (1.0, 0.0, 3.0)
    ]
    assert means == [1.0, 7.0, 3.0]


def test_the_predictor_learns_from_a_share(make_ppo: MakePpo, make_rollout: MakeRollout) -> None:
    seen: list[int] = []
    agent = make_ppo(rnd_update_proportion=0.25, batch_size=32, epochs=4)
    rollout = make_rollout(length=32, streams=8)
    agent.rnd.predictor.register_forward_hook(
        lambda _, inputs, output: seen.append(len(inputs[0]) if output.requires_grad else 0)
    )
    agent.update(rollout, 0)
    assert sum(seen) == pytest.approx(0.25 * 4 * rollout.steps, rel=0.15)


def test_coefficients_weigh_the_two_streams(make_ppo: MakePpo, make_rollout: MakeRollout) -> None:
    losses = {
        weights: float(
            make_ppo(**ONE_STEP, ext_coeff=weights[0], int_coeff=weights[1])
            .update(played_by(make_ppo(), make_rollout()), 0)
            .metrics["policy_loss"]
        )
        for weights in ((1.0, 0.0), (0.0, 1.0), (2.0, 3.0))
    }
    assert losses[2.0, 3.0] == pytest.approx(2 * losses[1.0, 0.0] + 3 * losses[0.0, 1.0], rel=1e-4)


def test_same_seed_and_rollouts_give_identical_weights(make_ppo: MakePpo, make_rollout: MakeRollout) -> None:
    ends = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        before = torch.get_rng_state()
        agent = make_ppo(seed=4)
        for step in range(2):
            agent.update(make_rollout(seed=step), 0)
        assert torch.equal(torch.get_rng_state(), before)
        ends.append(agent.acting_weights())
    assert same(*ends)
    assert not same(ends[0], make_ppo(seed=5).acting_weights())


@pytest.mark.skipif(
    not has_bfloat16_units(torch.device("cpu")), reason="this processor has no bfloat16 units"
)
def test_bfloat16_changes_the_losses_little(make_ppo: MakePpo, make_rollout: MakeRollout) -> None:
    rollout = make_rollout(length=32, streams=8)
    exact, quick = (make_ppo(**ONE_STEP, precision=word).update(rollout, 0) for word in ("float32", "auto"))
    assert not torch.equal(exact.losses, quick.losses)
    for name in ("policy_loss", "value_loss_extrinsic", "value_loss_intrinsic", "entropy", "predictor_loss"):
        assert float(quick.metrics[name]) == pytest.approx(float(exact.metrics[name]), rel=0.05), name


def test_an_actor_cannot_learn(make_ppo: MakePpo, make_rollout: MakeRollout) -> None:
    actor = make_ppo(learning=False)
    with pytest.raises(AgentError, match="acting only"):
        actor.update(make_rollout(), 4)
    with pytest.raises(AgentError, match="acting only"):
        actor.state_dict()


def test_surrogate_is_the_papers_minimum() -> None:
    rng = np.random.default_rng(0)
    ratio, advantages = rng.uniform(0.7, 1.3, 50), rng.normal(size=50)
    expected = [
        -min(r * a, min(max(r, 0.9), 1.1) * a)
        for r, a in zip(ratio.tolist(), advantages.tolist(), strict=True)
    ]
    found = clipped_surrogate(torch.tensor(ratio).log(), torch.tensor(advantages), 0.1)
    np.testing.assert_allclose(found, expected)


def test_approximate_kl_is_the_divergence_in_the_mean() -> None:
    old, new = torch.tensor([0.2, 0.3, 0.5]), torch.tensor([0.4, 0.4, 0.2])
    log_ratio = (new / old).log()
    assert (approximate_kl(log_ratio) >= 0).all()
    torch.testing.assert_close((old * approximate_kl(log_ratio)).sum(), -(old * log_ratio).sum())


def test_explained_variance() -> None:
    targets = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert float(explained_variance(targets + 5, targets)) == 1
    assert float(explained_variance(torch.full((4,), 2.0), targets)) == 0
    assert float(explained_variance(-targets, targets)) == -3
    assert float(explained_variance(targets, torch.ones(4))) == 0


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"head_sizes": "16,0"}, r"at least one unit, not \[16, 0\]"),
        ({"torso": "nature"}, "needs larger frames"),
    ],
)
def test_a_mistake_in_the_settings_is_one_sentence(
    settings: dict[str, Any], sentence: str, make_ppo: MakePpo
) -> None:
    with pytest.raises(AgentError, match=sentence):
        make_ppo(**settings)


def test_the_learning_rate_falls_to_its_end_over_the_run(
    make_ppo: MakePpo, make_rollout: MakeRollout
) -> None:
    """Adam's first step is as long as the learning rate, where a gradient is far above epsilon."""
    for t_learner, lr in ((0, 1e-3), (500, 7e-4), (1000, 4e-4), (5000, 4e-4)):
        agent = make_ppo(**ONE_STEP, lr=1e-3, lr_end=4e-4, t_max=1000, adam_eps=1e-12)
        before = nn.utils.parameters_to_vector(agent.online.policy.parameters()).detach()
        agent.update(make_rollout(), t_learner)
        after = nn.utils.parameters_to_vector(agent.online.policy.parameters()).detach()
        assert float((after - before).abs().max()) == pytest.approx(lr, rel=0.01)


def test_the_entropy_bonus_of_ppo_rnd_falls_too(make_ppo: MakePpo, make_rollout: MakeRollout) -> None:
    agent = make_ppo(**ONE_STEP, entropy_coeff=0.8, entropy_coeff_end=0.2, t_max=1000)
    for t_learner, weight in ((1, 0.7994), (500, 0.5), (5000, 0.2)):
        metrics = agent.update(make_rollout(), t_learner).metrics
        losses = [value for name, value in metrics.items() if name.startswith(("value_loss", "policy_loss"))]
        bonus = sum(losses) + metrics["predictor_loss"] - metrics["loss"]
        assert float(bonus / metrics["entropy"]) == pytest.approx(weight, rel=1e-4)
