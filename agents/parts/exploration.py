"""How training actors deviate from a deterministic policy; everything is in half ranges of the actions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from agents.base import ActingNoise, AgentError
from models.naf import NafNetwork, Quadratic

LONGEST_PERTURBATION = 500
"""Agent steps after which a perturbation is drawn anew within an episode (our choice)."""
ADAPTATION = 1.01
"""Factor by which the size of perturbations adapts (Plappert et al. 2018, arXiv 1706.01905, appendix C)."""


@dataclass(frozen=True)
class ExplorationConfig:
    """Named as the flags."""

    action_noise: str  # one of EXPLORATIONS
    ou_theta: float  # share of Ornstein-Uhlenbeck noise that each step takes away
    ou_sigma: float  # standard deviation of what it adds, half ranges
    parameter_noise_distance: float  # root mean square change of mu that is aimed at, half ranges


class Exploration:
    """No noise; what the kinds of noise override. A row of noise depends on its own past and draws alone."""

    def __init__(self, config: ExplorationConfig, network: NafNetwork, device: torch.device) -> None:
        self._config, self._network, self._device = config, network, device

    def mean(self, rows: int) -> ActingNoise:
        """The noise under which actions are mu."""
        return {}

    def follow(self, noise: ActingNoise, first: Tensor, generator: torch.Generator) -> ActingNoise:
        """The next step's noise; rows of `first` [N] bool, on the CPU, begin an episode."""
        return {}

    def actions(self, quadratic: Quadratic, noise: ActingNoise) -> Tensor:
        """[N, A] within [-1, 1]; the noise has N rows, or one that all share."""
        return quadratic.mu

    def begin(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """The noise of a first step."""
        return self.follow(self.mean(rows), torch.ones(rows, dtype=torch.bool), generator)

    def adapt(self, quadratic: Quadratic, generator: torch.Generator) -> None:
        """Called with every batch that is learned from; nothing to adapt unless overridden."""


class OrnsteinUhlenbeck(Exploration):
    """x <- x - theta x + sigma N(0, 1) for every component, added to mu (Lillicrap et al. 2016, section 7).

    An episode begins with x = 0 before its first step.
    """

    def mean(self, rows: int) -> ActingNoise:
        """Zeros [rows, A]."""
        return {"ou": torch.zeros(rows, self._network.num_components, device=self._device)}

    def follow(self, noise: ActingNoise, first: Tensor, generator: torch.Generator) -> ActingNoise:
        """One step of the process."""
        x = noise["ou"].masked_fill(first.to(self._device).unsqueeze(1), 0)
        normal = torch.randn(x.shape, generator=generator, device=generator.device).to(self._device)
        return {"ou": (1 - self._config.ou_theta) * x + self._config.ou_sigma * normal}

    def actions(self, quadratic: Quadratic, noise: ActingNoise) -> Tensor:
        """mu + x, clipped to both bounds."""
        return (quadratic.mu + noise["ou"]).clamp(-1, 1)


class ParameterNoise(Exploration):
    """Adaptive parameter noise (Plappert et al. 2018, arXiv 1706.01905) on all layers above the torso.

    Each row acts for an episode, or LONGEST_PERTURBATION steps, with parameters of its own. Their standard
    deviation is the network's `perturbation_std`, which the learner keeps where mu moves as far as it should.
    """

    def mean(self, rows: int) -> ActingNoise:
        """Zeros for every parameter that is perturbed, and the steps [rows, 1] since they were drawn."""
        shapes = {**self._network.policy_shapes(), "steps": (1,)}
        return {name: torch.zeros(rows, *shape, device=self._device) for name, shape in shapes.items()}

    def follow(self, noise: ActingNoise, first: Tensor, generator: torch.Generator) -> ActingNoise:
        """A new perturbation where an episode begins or the last one has served long enough."""
        steps = noise["steps"] + 1
        stale = (first.to(self._device) | (steps[:, 0] >= LONGEST_PERTURBATION)).nonzero()[:, 0]
        if len(stale) == 0:
            return {**noise, "steps": steps}
        fresh = self._draw(len(stale), generator)
        return {
            name: values.index_copy(0, stale, fresh[name])
            for name, values in {**noise, "steps": steps}.items()
        }

    def actions(self, quadratic: Quadratic, noise: ActingNoise) -> Tensor:
        """mu of the perturbed parameters."""
        return self._network.perturbed_mu(quadratic.features, noise)

    @torch.no_grad()
    def adapt(self, quadratic: Quadratic, generator: torch.Generator) -> None:
        """Equation 5: larger where a perturbation moves mu by less than it should, smaller otherwise."""
        moved = self._network.perturbed_mu(quadratic.features, self._draw(1, generator))
        distance = (moved - quadratic.mu).square().mean().sqrt()
        too_near = distance <= self._config.parameter_noise_distance
        self._network.perturbation_std.mul_(torch.where(too_near, ADAPTATION, 1 / ADAPTATION))

    def _draw(self, rows: int, generator: torch.Generator) -> ActingNoise:
        shapes = self._network.policy_shapes()
        sizes = [math.prod(shape) for shape in shapes.values()]
        normal = torch.randn(rows, sum(sizes), generator=generator, device=generator.device)
        parts = torch.split(normal.to(self._device), sizes, dim=1)
        fresh = {name: part.view(rows, *shapes[name]) for name, part in zip(shapes, parts, strict=True)}
        return {**fresh, "steps": torch.zeros(rows, 1, device=self._device)}


EXPLORATIONS: dict[str, type[Exploration]] = {
    "ou": OrnsteinUhlenbeck,
    "parameter": ParameterNoise,
    "none": Exploration,
}


def exploration(config: ExplorationConfig, network: NafNetwork, device: torch.device) -> Exploration:
    """What `config.action_noise` names; AgentError listing the known names."""
    if config.action_noise not in EXPLORATIONS:
        known = ", ".join(EXPLORATIONS)
        raise AgentError(f"There is no action noise '{config.action_noise}': choose one of {known}.")
    return EXPLORATIONS[config.action_noise](config, network, device)
