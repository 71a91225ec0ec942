"""Normalized Advantage Functions (Gu et al. 2016, arXiv 1603.00748): Q-learning for continuous actions.

n-step returns and prioritised replay, which the paper does not have, are the replay's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.base import Acting, ActingNoise, AgentError, Problem, TensorBatch
from agents.parts.distributions import ActionBox
from agents.parts.exploration import ExplorationConfig, exploration
from agents.parts.learning import GradientStep
from agents.parts.off_policy import OffPolicyAgent, OffPolicyConfig
from agents.parts.weights import NetworkT, Target, torso_and_head
from models.convolutions.spectral import settle
from models.naf import NafNetwork, Quadratic, advantage

WIDTH_AXIS = 3
"""Axis of the width in images [B, H, h, w] and [B, H, h, w, c]."""


@dataclass(frozen=True)
class NafConfig(OffPolicyConfig, ExplorationConfig):
    """Hyper-parameters of NAF."""

    head_sizes: str  # units of the hidden layers above the torso, as "100,50"
    layer_norm: bool  # between each of them and its ReLU
    reward_scale: float  # rewards, after clipping, are multiplied by this
    l2: float  # weight decay, added to the gradient as l2 * weight
    polyak: float  # share of the online network that the target takes over per update
    mirror: bool  # learn half of each batch as a mirror image


class PolyakTarget(Target[NetworkT]):
    """Takes over a share of the online network at every update (Lillicrap et al. 2016, arXiv 1509.02971).

    theta' <- share * theta + (1 - share) * theta', for all parameters.
    """

    def __init__(self, online: NetworkT, share: float) -> None:
        super().__init__(online)
        self._share = share

    @torch.no_grad()
    def follow(self, t_learner: int) -> None:
        """One step; the clock does not matter."""
        pairs = zip(self.network.parameters(), self._online.parameters(), strict=True)
        for parameter, online in pairs:
            parameter.lerp_(online, self._share)
        settle(self.network, 1)  # passes without gradient leave the singular vectors


class NafAgent(OffPolicyAgent[NafConfig, NafNetwork, Quadratic]):
    """Acting estimates are Q(s, a) of the action taken and V(s); priorities are |TD error|.

    The loss is the squared TD error, as in the paper. Inside, actions are normalised to [-1, 1], and values
    are in units of scaled rewards; what is shown (`advantages`, the metric "q") is in units of rewards.
    """

    config_type = NafConfig
    eval_noise = False  # evaluation is of mu itself
    priority_exponent = 0.6  # Schaul et al. 2016 (arXiv 1511.05952), table 3; github.com/matpalm/malmomo

    def __init__(
        self, problem: Problem, config: NafConfig, device: torch.device, seed: int, learning: bool
    ) -> None:
        self._box = ActionBox(problem, device)
        self._mirrored_action = _mirrored_action(problem).to(device) if config.mirror else None
        super().__init__(problem, config, device, seed, learning)
        self._exploration = exploration(config, self.online, device)

    def _build(self, problem: Problem) -> NafNetwork:
        config = self.config
        torso, head_sizes = torso_and_head(problem, config.torso, config.hidden_size, config.head_sizes)
        outputs, distance = self._box.num_components, config.parameter_noise_distance
        return NafNetwork(torso, head_sizes, outputs, distance, config.layer_norm)

    def _build_target(self) -> PolyakTarget[NafNetwork]:
        return PolyakTarget(self.online, self.config.polyak)

    def _build_gradient_step(self) -> GradientStep:
        config = self.config
        return GradientStep(self.online, config.lr, config.adam_eps, config.max_grad_norm, config.l2)

    def draw_acting_noise(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """The noise of an episode's first step."""
        return self._exploration.begin(rows, generator)

    def next_acting_noise(
        self, noise: ActingNoise, first: NDArray[np.bool_], generator: torch.Generator
    ) -> ActingNoise:
        """The next step's noise; rows of `first` begin an episode."""
        return self._exploration.next(noise, torch.from_numpy(first), generator)

    def mean_acting_noise(self, rows: int) -> ActingNoise:
        """The noise under which actions are exactly mu."""
        return self._exploration.mean(rows)

    @torch.inference_mode()
    def act(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
        """mu with exploration noise."""
        quadratic = self._quadratic(s_t)
        unit = self._exploration.actions(quadratic, noise)
        chosen, greedy = quadratic.q(unit).unsqueeze(1), quadratic.value.unsqueeze(1)  # [N, 1]
        return Acting(self._box.from_unit(unit).cpu().numpy(), chosen.cpu().numpy(), greedy.cpu().numpy())

    @torch.inference_mode()
    def greedy(self, s_t: NDArray[Any]) -> NDArray[Any]:
        """The best actions [N, A] float32 for s_t [N, H, *frame]."""
        actions: NDArray[Any] = self._box.from_unit(self._quadratic(s_t).mu).cpu().numpy()
        return actions

    @torch.inference_mode()
    def advantages(self, s_t: NDArray[Any], actions: NDArray[Any]) -> NDArray[Any]:
        """[N, M] float32, all <= 0: Q(s, a) - V(s) of actions [M, A] in states [N, H, *frame]."""
        quadratic = self._quadratic(s_t)
        unit = self._box.to_unit(torch.from_numpy(actions).to(self.device, torch.float32))  # [M, A]
        surface = advantage(quadratic.mu.unsqueeze(1), quadratic.factor.unsqueeze(1), unit)
        surface = surface / self.config.reward_scale
        advantages: NDArray[Any] = surface.cpu().numpy()
        return advantages

    def initial_losses(
        self, chosen_tm1: NDArray[Any], r_t: NDArray[Any], discount_t: NDArray[Any], greedy_t: NDArray[Any]
    ) -> NDArray[Any]:
        """|r_t + discount_t V(s_t) - Q(s_tm1, a_tm1)|, r_t times the reward scale."""
        scaled_r_t = r_t * np.float32(self.config.reward_scale)
        losses: NDArray[Any] = np.abs(scaled_r_t + discount_t * greedy_t[:, 0] - chosen_tm1[:, 0])
        return losses

    def _quadratic(self, s_t: NDArray[Any]) -> Quadratic:
        return self._forward(self.online, torch.from_numpy(s_t).to(self.device))

    def _losses(self, batch: TensorBatch) -> tuple[Tensor, Tensor]:
        """Squared TD errors; the size of parameter noise adapts to each batch."""
        if self._mirrored_action is not None:
            batch = self._half_mirrored(batch, self._mirrored_action)
        with torch.no_grad():
            value_t = self._forward(self.target.network, batch.s_t).value
            td_target = self.config.reward_scale * batch.r_t + batch.discount_t * value_t
        quadratic = self._forward(self.online, batch.s_tm1)
        self._exploration.adapt(quadratic, self._generator)
        q = quadratic.q(self._box.to_unit(batch.a_tm1))
        assert td_target.shape == q.shape == batch.r_t.shape
        return (td_target - q).square(), q / self.config.reward_scale

    def _priority_losses(self, losses: Tensor) -> Tensor:
        return losses.sqrt()

    def _half_mirrored(self, batch: TensorBatch, sign: Tensor) -> TensorBatch:
        """A random half of the rows mirrored: images flipped, actions times `sign` [A]."""
        shuffled = torch.randperm(len(batch.r_t), generator=self._generator).to(self.device)
        rows = shuffled[: len(shuffled) // 2]
        s_tm1, s_t = (s.index_copy(0, rows, s[rows].flip(WIDTH_AXIS)) for s in (batch.s_tm1, batch.s_t))
        mirrored = self._box.from_unit(sign * self._box.to_unit(batch.a_tm1[rows]))
        return batch._replace(s_tm1=s_tm1, s_t=s_t, a_tm1=batch.a_tm1.index_copy(0, rows, mirrored))


def _mirrored_action(problem: Problem) -> Tensor:
    """[A] signs; AgentError where a mirror image is not the same problem."""
    is_vector = len(problem.observation_shape) == 2  # [H, size]
    if problem.mirrored_action is None or is_vector:
        raise AgentError("--mirror needs an environment of images that says how actions look in a mirror.")
    return torch.tensor(problem.mirrored_action, dtype=torch.float32)
