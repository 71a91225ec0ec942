"""Intrinsic rewards for agents that learn from a replay: RND (Burda et al. 2018, arXiv 1810.12894)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.base import Agent, AgentError, Problem, ReplayAgent, Update
from agents.parts.learning import GradientStep, LearningAgent
from agents.parts.rnd import Rnd
from agents.parts.weights import ACTING_ONLY, Part, TorsoConfig
from agents.wrappers.acting_by import ActingBy
from memory.replay.batch import Batch

ADAM_EPS = 1e-8
"""Adam's epsilon: TensorFlow's default, which Burda et al. use."""
RECENT_ERRORS = 20_000
"""Errors that the statistics of the bonus reach back over (our choice): some 200 updates of 32 transitions
of 3 steps.
"""


@dataclass(frozen=True)
class RndBonusConfig(TorsoConfig):
    """Hyper-parameters of RND for a replay agent; both random networks have the agent's torso and sizes."""

    int_coeff: float  # weight of the bonus in the learned reward
    rnd_lr: float  # Adam's learning rate of the predictor
    rnd_update_proportion: float  # share of the sampled steps that the predictor learns from


class RndBonusAgent(LearningAgent[RndBonusConfig, Rnd], ActingBy):
    """Another agent, whose rewards get a bonus for the frames that its steps led to.

    The n-step return becomes r_t + int_coeff * sum_{j<k} gamma^j b_j over the k <= n steps really taken, so
    the bonus ends with the episode, unlike in PPO. b_j is the novelty of the frame after step j: its error,
    compared with the RECENT_ERRORS last ones (`Rnd.novelty`). Two usual scales do not fit a replay: a
    discounted running sum needs samples in order of time, and the spread of all past errors makes the bonus
    fade everywhere as the predictor learns. First priorities are without the bonus.
    """

    config_type = RndBonusConfig
    _seed_path = (1,)  # independent of the agent's

    def __init__(
        self,
        agent: ReplayAgent,
        problem: Problem,
        config: RndBonusConfig,
        device: torch.device,
        seed: int,
        learning: bool,
    ) -> None:
        self.act_by(agent)
        super().__init__(problem, config, device, seed, learning)
        if learning:
            self._gradient_step = GradientStep(self.rnd.predictor, config.rnd_lr, ADAM_EPS, max_grad_norm=0.0)

    def _build(self, problem: Problem) -> Rnd:
        config, frame_shape = self.config, problem.observation_shape[1:]
        return Rnd(frame_shape, config.torso, config.hidden_size, self._bfloat16, RECENT_ERRORS)

    @property
    def rnd(self) -> Rnd:
        """Its predictor's errors become the bonus."""
        return self.online

    def intrinsic_rewards(self, frames: NDArray[Any]) -> NDArray[Any]:
        """[N] float32: how new frames [N, *frame] are, before `int_coeff`."""
        rewards: NDArray[Any] = self.rnd.novelty(self.rnd.raw_rewards(frames)).cpu().numpy()
        return rewards

    def update(self, experience: Batch, t_learner: int) -> Update:
        """The agent's update on rewards with the bonus, then a step of the predictor on the same frames."""
        if not self._learning:
            raise AgentError(ACTING_ONLY)
        assert experience.next_frames is not None and experience.step_discounts is not None
        discounts = torch.from_numpy(experience.step_discounts).to(self.device)  # [B, n]
        taken = discounts != 0
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
        agents = {f"agent.{name}": weight for name, weight in self.agent.acting_weights().items()}
        return {**agents, **{f"rnd.{name}": weight for name, weight in super().acting_weights().items()}}

    def load_acting_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Load both, statistics included."""
        self.agent.load_acting_weights(_with_prefix("agent.", weights))
        super().load_acting_weights(_with_prefix("rnd.", weights))

    def _parts(self) -> dict[str, Part]:
        return {
            "agent": self.agent,
            "rnd": self.rnd,
            "optimiser": self._gradient_step.adam,
            "generator": self._generator,
        }


def with_intrinsic(
    intrinsic: str,
    agent: Agent,
    problem: Problem,
    config: RndBonusConfig,
    device: torch.device,
    seed: int,
    learning: bool,
) -> Agent:
    """The agent with intrinsic rewards ("none" | "rnd"); AgentError where it can have none."""
    if intrinsic == "none":
        return agent
    if not isinstance(agent, ReplayAgent):
        raise AgentError(
            "--intrinsic is for agents that learn from a replay; of the others ppo_rnd has RND built in."
        )
    return RndBonusAgent(agent, problem, config, device, seed, learning)


def _with_prefix(prefix: str, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights whose names begin with `prefix`, under the rest of their names."""
    return {name.removeprefix(prefix): weight for name, weight in weights.items() if name.startswith(prefix)}
