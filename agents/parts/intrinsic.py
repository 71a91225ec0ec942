"""Intrinsic rewards for agents that learn from a replay: RND (Burda et al. 2018, arXiv 1810.12894)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.base import Acting, ActingNoise, Agent, AgentError, Problem, ReplayAgent, Update
from agents.learning import GradientStep, copied_to_cpu, load_weights, seeded, uses_bfloat16
from agents.parts.rnd import Rnd
from memory.replay.batch import Batch

ADAM_EPS = 1e-8
"""TensorFlow's default, which Burda et al. use."""
RECENT_ERRORS = 20_000
"""Errors in the statistics of the bonus: about 200 updates of 32 transitions of 3 steps."""
INTRINSIC = ("none", "rnd")


@dataclass(frozen=True)
class RndBonusConfig:
    """Hyper-parameters of RND for a replay agent."""

    torso: str  # one of models.torso.TORSOS, of both random networks
    hidden_size: int  # units of their dense layers, and of their output
    precision: str  # of forward passes, one of agents.learning.PRECISIONS
    int_coeff: float  # weight of the bonus in the learned reward
    rnd_lr: float  # Adam's learning rate of the predictor
    rnd_update_proportion: float  # share of the sampled steps that the predictor learns from


class RndBonusAgent(ReplayAgent):
    """Another agent, whose rewards get a bonus for the frames that its steps led to.

    The n-step return becomes r_t + int_coeff * sum_{j<k} gamma^j b_j over the k <= n steps really taken, so
    the bonus ends with the episode, other than in PPO. b_j is the novelty of the frame after step j: its
    error, compared with the RECENT_ERRORS last ones (`Rnd.novelty`). Two usual scales do not fit a replay:
    its samples have no order in time, in which a sum could be discounted; and over the spread of *all* errors
    so far the bonus would fade everywhere as the predictor learns. First priorities are without the bonus.
    """

    config_type = RndBonusConfig

    def __init__(
        self,
        agent: ReplayAgent,
        problem: Problem,
        config: RndBonusConfig,
        device: torch.device,
        seed: int,
        learning: bool,
    ) -> None:
        self.agent, self.config, self.device = agent, config, device
        self._learning = learning
        words = np.random.SeedSequence(seed, spawn_key=(1,)).generate_state(2)  # independent of the agent's
        weights_seed, noise_seed = (int(word) for word in words)
        self._generator = torch.Generator().manual_seed(noise_seed)
        bfloat16, frame_shape = uses_bfloat16(config.precision, device), problem.observation_shape[1:]
        self.rnd = seeded(
            lambda: Rnd(frame_shape, config.torso, config.hidden_size, bfloat16, RECENT_ERRORS), weights_seed
        ).to(device)
        if learning:
            self._gradient_step = GradientStep(self.rnd.predictor, config.rnd_lr, ADAM_EPS, max_grad_norm=0.0)

    @property
    def acting_noise_period(self) -> int:
        """The agent's."""
        return self.agent.acting_noise_period

    def draw_acting_noise(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """The agent's."""
        return self.agent.draw_acting_noise(rows, generator)

    def next_acting_noise(
        self, noise: ActingNoise, first: NDArray[np.bool_], generator: torch.Generator
    ) -> ActingNoise:
        """The agent's."""
        return self.agent.next_acting_noise(noise, first, generator)

    def mean_acting_noise(self, rows: int) -> ActingNoise:
        """The agent's."""
        return self.agent.mean_acting_noise(rows)

    def act(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
        """The agent's actions."""
        return self.agent.act(s_t, noise)

    def act_independently(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
        """The agent's."""
        acting = self.agent.act_independently(s_t, noise)
        assert isinstance(acting, Acting)
        return acting

    def initial_losses(
        self, chosen_tm1: NDArray[Any], r_t: NDArray[Any], discount_t: NDArray[Any], greedy_t: NDArray[Any]
    ) -> NDArray[Any]:
        """The agent's, without the bonus."""
        return self.agent.initial_losses(chosen_tm1, r_t, discount_t, greedy_t)

    def intrinsic_rewards(self, frames: NDArray[Any]) -> NDArray[Any]:
        """[N] float32: how new frames [N, *frame] are, before `int_coeff`."""
        rewards: NDArray[Any] = self.rnd.novelty(self.rnd.raw_rewards(frames)).cpu().numpy()
        return rewards

    def update(self, experience: Batch, t_learner: int) -> Update:
        """The agent's update on rewards with the bonus, then a step of the predictor on the same frames."""
        self._require_learning()
        assert experience.next_frames is not None and experience.step_discounts is not None
        discounts = torch.from_numpy(experience.step_discounts).to(self.device)  # [B, n]
        taken = discounts > 0
        frames = torch.from_numpy(experience.next_frames).to(self.device)[taken]  # [M, *frame]
        self.rnd.observations.observe(frames)
        errors = self.rnd.errors(frames)
        self.rnd.rewards.observe(errors)
        bonus = self.rnd.novelty(errors.detach())
        assert bonus.shape == errors.shape == (int(taken.sum()),)
        returns = torch.zeros_like(discounts).masked_scatter_(taken, bonus).mul_(discounts).sum(1)
        r_t = experience.r_t + self.config.int_coeff * returns.cpu().numpy()
        update = self.agent.update(experience._replace(r_t=r_t), t_learner)
        loss = self._predictor_loss(errors)
        self._gradient_step.take(loss)
        own = {"intrinsic_reward": bonus.mean(), "intrinsic_raw": errors.detach().mean()}
        return update._replace(metrics={**update.metrics, **own, "predictor_loss": loss.detach()})

    def _predictor_loss(self, errors: Tensor) -> Tensor:
        """The mean error of a random share of the steps."""
        draws = torch.rand(len(errors), generator=self._generator).to(self.device)
        kept = (draws < self.config.rnd_update_proportion).float()
        return (errors * kept).sum() / kept.sum().clamp(min=1)

    def acting_weights(self) -> dict[str, Tensor]:
        """The agent's, and RND's with its statistics: a film can draw intrinsic rewards."""
        own: dict[str, Tensor] = copied_to_cpu(self.rnd.state_dict())
        agents = {f"agent.{name}": weight for name, weight in self.agent.acting_weights().items()}
        return {**agents, **{f"rnd.{name}": weight for name, weight in own.items()}}

    def load_acting_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Load both, statistics included."""
        self.agent.load_acting_weights(_with_prefix("agent.", weights))
        load_weights(self.rnd, _with_prefix("rnd.", weights))

    def state_dict(self) -> dict[str, object]:
        """The agent's, RND with its statistics, the predictor's Adam, the generator of its shares."""
        self._require_learning()
        parts = {
            "rnd": self.rnd.state_dict(),
            "optimiser": self._gradient_step.state_dict(),
            "generator": self._generator.get_state(),
        }
        return {"agent": self.agent.state_dict(), **copied_to_cpu(parts)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from there; AgentError if parts lack or differ."""
        self._require_learning()
        missing = {"agent", "rnd", "optimiser", "generator"} - state.keys()
        if missing:
            raise AgentError(f"This state of an agent lacks {', '.join(sorted(missing))}.")
        self.agent.load_state_dict(state["agent"])
        load_weights(self.rnd, state["rnd"])
        self._gradient_step.load_state_dict(state["optimiser"])
        self._generator.set_state(state["generator"])

    def _require_learning(self) -> None:
        if not self._learning:
            raise AgentError("This agent was built for acting only: it cannot learn or resume learning.")


def with_intrinsic(
    intrinsic: str,
    agent: Agent,
    problem: Problem,
    config: RndBonusConfig,
    device: torch.device,
    seed: int,
    learning: bool,
) -> Agent:
    """The agent with the intrinsic rewards of that name; AgentError listing the known names."""
    if intrinsic not in INTRINSIC:
        raise AgentError(f"There is no intrinsic reward '{intrinsic}': choose one of {', '.join(INTRINSIC)}.")
    if intrinsic == "none":
        return agent
    if not isinstance(agent, ReplayAgent):
        raise AgentError("--intrinsic is for agents that learn from a replay; ppo_rnd has RND of its own.")
    return RndBonusAgent(agent, problem, config, device, seed, learning)


def _with_prefix(prefix: str, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights whose names begin with `prefix`, under the rest of their names."""
    return {name.removeprefix(prefix): weight for name, weight in weights.items() if name.startswith(prefix)}
