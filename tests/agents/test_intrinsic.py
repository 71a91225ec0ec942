"""RND as a bonus on the rewards that another agent learns from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from agents.base import AgentError
from agents.wrappers.intrinsic import RECENT_ERRORS, RndBonusAgent, RndBonusConfig, with_intrinsic
from memory.replay.batch import Batch
from tests.agents.conftest import PIXELS, PROBLEMS

CONFIG = RndBonusConfig(
    torso="auto",
    hidden_size=16,
    precision="float32",
    int_coeff=0.5,
    rnd_lr=1e-3,
    rnd_update_proportion=1.0,
)
CPU = torch.device("cpu")
MakeAgent = Callable[..., Any]
MakeBatch = Callable[..., Batch]
MakeBonus = Callable[..., RndBonusAgent]


@pytest.fixture
def make_bonus(name: str, make_agent: MakeAgent) -> MakeBonus:
    """The agent `name` with a bonus."""

    def make(seed: int = 0, learning: bool = True, **settings: Any) -> RndBonusAgent:
        config = RndBonusConfig(**{**vars(CONFIG), **settings})
        agent = make_agent(name, seed=seed, learning=learning)
        bonus = with_intrinsic("rnd", agent, PROBLEMS[name], config, CPU, seed, learning)
        assert isinstance(bonus, RndBonusAgent)
        return bonus

    return make


def test_it_acts_and_is_evaluated_as_its_agent(
    name: str, make_agent: MakeAgent, make_bonus: MakeBonus
) -> None:
    """DQN's evaluation is greedy with a bonus as well."""
    agent, bonus = make_agent(name), make_bonus()
    assert (bonus.eval_noise, bonus.learns) == (agent.eval_noise, True)
    assert bonus.acting_noise_period == agent.acting_noise_period
    random: Any = SimpleNamespace(acting_noise_period=1, eval_noise=True, learns=False)
    bonus.act_by(random)
    assert not bonus.learns


@pytest.fixture
def draw(make_batch: MakeBatch) -> MakeBatch:
    """B transitions of up to 3 steps with the frames in between."""

    def make(rows: int = 8, seed: int = 0) -> Batch:
        rng = np.random.default_rng(seed)
        steps = rng.integers(1, 4, rows)
        discounts = np.where(np.arange(3) < steps[:, None], 0.9 ** np.arange(3), 0).astype(np.float32)
        frames = rng.integers(0, 256, (rows, 3, 10, 5), dtype=np.uint8)
        return make_batch(rows, seed)._replace(next_frames=frames, step_discounts=discounts)

    return make


def test_rewards_get_what_stands_out_of_the_steps_taken(
    name: str, make_bonus: MakeBonus, make_agent: MakeAgent, draw: MakeBatch
) -> None:
    bonus, plain, twin, batch = make_bonus(), make_agent(name), make_bonus(), draw()
    assert batch.next_frames is not None and batch.step_discounts is not None
    taken = batch.step_discounts > 0
    frames = torch.from_numpy(batch.next_frames[taken])
    twin.rnd.observations.observe(frames)
    with torch.no_grad():
        errors = twin.rnd.errors(frames).numpy()
    bonuses = np.zeros((8, 3), np.float32)
    bonuses[taken] = ((errors - errors.mean()) / errors.std()).clip(0, 4)  # Badia et al. 2020
    assert 0 < (bonuses[taken] == 0).mean() < 1
    r_t = batch.r_t + 0.5 * (batch.step_discounts * bonuses).sum(1)
    expected = plain.update(batch._replace(r_t=r_t.astype(np.float32)), 4)
    found = bonus.update(batch, 4)
    torch.testing.assert_close(found.losses, expected.losses)
    torch.testing.assert_close({name: found.metrics[name] for name in expected.metrics}, expected.metrics)
    assert float(found.metrics["intrinsic_reward"]) == pytest.approx(bonuses[taken].mean(), rel=1e-4)
    assert float(found.metrics["predictor_loss"]) == pytest.approx(errors.mean(), rel=1e-4)


def test_steps_that_were_not_taken_are_never_looked_at(make_bonus: MakeBonus, draw: MakeBatch) -> None:
    batch = draw()
    assert batch.next_frames is not None and batch.step_discounts is not None
    untaken = batch.step_discounts == 0
    assert untaken.any()
    frames = batch.next_frames.copy()
    frames[untaken] = 255
    agents = make_bonus(), make_bonus()
    for agent, each in zip(agents, (batch, batch._replace(next_frames=frames)), strict=True):
        agent.update(each, 4)
    left, right = (agent.acting_weights() for agent in agents)
    assert all(torch.equal(weight, right[key]) for key, weight in left.items())


def test_what_is_drawn_again_and_again_is_no_longer_new(make_bonus: MakeBonus, draw: MakeBatch) -> None:
    bonus, fresh = make_bonus(rnd_update_proportion=0.5), draw(seed=1).next_frames
    assert fresh is not None
    told = [bonus.update(draw(), 4 * step).metrics for step in range(100)]
    assert told[-1]["intrinsic_raw"] < told[0]["intrinsic_raw"] / 3
    assert bonus.intrinsic_rewards(fresh[:, 0]).mean() > 2 * told[-1]["intrinsic_reward"]


def test_it_acts_as_the_agent_does(name: str, make_bonus: MakeBonus, make_agent: MakeAgent) -> None:
    bonus, plain = make_bonus(), make_agent(name)
    s_t = np.random.default_rng(0).integers(0, 256, (6, *PIXELS.observation_shape), dtype=np.uint8)
    drawn = [each.draw_acting_noise(6, torch.Generator().manual_seed(1)) for each in (bonus, plain)]
    begins = np.ones(6, np.bool_)
    followed = [
        each.next_acting_noise(noise, begins, torch.Generator().manual_seed(1))
        for each, noise in zip((bonus, plain), drawn, strict=True)
    ]
    for noises in (drawn, followed, [bonus.mean_acting_noise(6), plain.mean_acting_noise(6)]):
        for left, right in zip(bonus.act(s_t, noises[0]), plain.act(s_t, noises[1]), strict=True):
            assert np.array_equal(left, right)
    assert bonus.acting_noise_period == plain.acting_noise_period
    estimates = bonus.act(s_t, drawn[0])
    columns = (estimates.chosen, np.ones(6, np.float32), np.full(6, 0.9, np.float32), estimates.greedy)
    assert np.array_equal(bonus.initial_losses(*columns), plain.initial_losses(*columns))


def test_its_estimates_are_those_of_the_agent(
    name: str, make_bonus: MakeBonus, make_agent: MakeAgent
) -> None:
    """The page of a film draws them, and so does whoever loads a policy in a notebook."""
    frames = np.random.default_rng(0).integers(0, 256, (6, *PIXELS.observation_shape), dtype=np.uint8)
    s_t = torch.from_numpy(frames)
    if name == "naf":
        with pytest.raises(AgentError, match="NafAgent has no estimate"):
            make_bonus().estimates(s_t)
        return
    with torch.no_grad():
        found, expected = (each.estimates(s_t) for each in (make_bonus(), make_agent(name)))
    assert found.shape[::2] == (6, PIXELS.num_actions) and found.std() > 0
    assert torch.equal(found, expected)


def test_a_saved_one_goes_on_bit_by_bit(make_bonus: MakeBonus, draw: MakeBatch, tmp_path: Path) -> None:
    bonus, resumed = make_bonus(rnd_update_proportion=0.5), make_bonus(seed=5, rnd_update_proportion=0.5)
    for step in range(2):
        bonus.update(draw(seed=step), 4 * step)
    torch.save(bonus.state_dict(), tmp_path / "agent.pth")
    resumed.load_state_dict(torch.load(tmp_path / "agent.pth", weights_only=True))
    for step in range(2, 4):
        left, right = (each.update(draw(seed=step), 4 * step) for each in (bonus, resumed))
        assert torch.equal(left.losses, right.losses)
        assert all(torch.equal(value, right.metrics[key]) for key, value in left.metrics.items())
    with pytest.raises(AgentError, match="lacks optimiser, rnd"):
        resumed.load_state_dict({key: bonus.state_dict()[key] for key in ("agent", "generator")})


def test_an_actor_equals_the_learner_after_loading(make_bonus: MakeBonus, draw: MakeBatch) -> None:
    learner, actor = make_bonus(), make_bonus(seed=5, learning=False)
    learner.update(draw(), 4)
    actor.load_acting_weights(learner.acting_weights())
    frames, s_t, noise = draw().next_frames, draw().s_tm1, learner.mean_acting_noise(8)
    assert frames is not None
    left, right = (each.intrinsic_rewards(frames[:, 0]) for each in (learner, actor))
    assert np.array_equal(left, right)
    assert np.array_equal(learner.act(s_t, noise).chosen, actor.act(s_t, noise).chosen)
    with pytest.raises(AgentError, match="acting only"):
        actor.update(draw(), 4)
    with pytest.raises(AgentError, match="another network"):
        actor.load_acting_weights(learner.agent.acting_weights())


def test_an_agent_without_intrinsic_rewards_stays_as_it_is(make_agent: MakeAgent) -> None:
    iqn = make_agent("iqn")
    assert with_intrinsic("none", iqn, PIXELS, CONFIG, CPU, 0, True) is iqn


def test_the_predictor_learns_the_mean_error_of_a_share(make_bonus: MakeBonus, draw: MakeBatch) -> None:
    """Divided by the steps kept, not by all: a smaller share must not mean a smaller step."""
    bonus, twin, batch = make_bonus(rnd_update_proportion=0.3), make_bonus(), draw()
    assert batch.next_frames is not None and batch.step_discounts is not None
    frames = torch.from_numpy(batch.next_frames[batch.step_discounts > 0])
    twin.rnd.observations.observe(frames)
    with torch.no_grad():
        errors = twin.rnd.errors(frames)
    kept = torch.rand(len(errors), generator=twin._generator) < 0.3
    assert 0 < int(kept.sum()) < len(kept)
    loss = bonus.update(batch, 4).metrics["predictor_loss"]
    torch.testing.assert_close(loss, errors[kept].mean())


@pytest.mark.parametrize("name", ["dqn"])
def test_the_predictor_learns_at_its_own_rate(make_bonus: MakeBonus, draw: MakeBatch) -> None:
    """Adam's first step is as long as the learning rate, where a gradient is far above epsilon."""
    for rnd_lr in (3e-4, 0.02):
        bonus = make_bonus(rnd_lr=rnd_lr)
        before = torch.nn.utils.parameters_to_vector(bonus.rnd.predictor.parameters()).detach()
        bonus.update(draw(), 4)
        after = torch.nn.utils.parameters_to_vector(bonus.rnd.predictor.parameters()).detach()
        assert float((after - before).abs().max()) == pytest.approx(rnd_lr, rel=0.01)


@pytest.mark.parametrize("name", ["dqn"])
def test_errors_of_long_ago_fade(make_bonus: MakeBonus) -> None:
    """What is new is new beside the recent errors, when the predictor has learned what it erred at first."""
    rnd = make_bonus().rnd
    rnd.rewards.observe(torch.full((3 * RECENT_ERRORS,), 100.0))
    rnd.rewards.observe(torch.tensor([0.0, 2.0]).repeat(3 * RECENT_ERRORS))
    assert float(rnd.rewards.mean) == pytest.approx(1.0, abs=0.5)
