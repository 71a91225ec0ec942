"""How training actors deviate from a deterministic policy; continuous actions are in half ranges."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from agents.base import ActingNoise, AgentError, Problem
from agents.parts.legal import DRAW_RANGE, legal_actions_of
from models.naf import NafNetwork, Quadratic

LONGEST_PERTURBATION = 500
"""Agent steps after which a perturbation is drawn anew within an episode (our choice)."""
LEAST_EPSILON = 0.01
"""Value that BTR's epsilon falls towards."""
ADAPTATION = 1.01
"""Factor by which the size of perturbations adapts (Plappert et al. 2018, arXiv 1706.01905, appendix C)."""


class EpsilonActions(ABC):
    """Random actions in place of greedy ones, in a share of the steps."""

    def __init__(self, problem: Problem, device: torch.device) -> None:
        self._device, self._legal = device, legal_actions_of(problem)
        self._numbers = DRAW_RANGE if self._legal else problem.discrete_actions()

    @abstractmethod
    def epsilons(self, rows: int) -> Tensor:
        """[rows]: the share of random actions in each environment."""

    def mean(self, rows: int) -> ActingNoise:
        """The noise under which actions are greedy."""
        explores = torch.zeros(rows, 1, dtype=torch.bool, device=self._device)
        return {"explores": explores, "random_action": explores.long()}

    def draw(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """Whether each row explores, and a number for the action that it then takes, uniform over all."""
        uniform = torch.rand(rows, 1, generator=generator, device=generator.device)
        actions = torch.randint(
            self._numbers, (rows, 1), generator=generator, device=generator.device
        )  # drawn for every row, so that no row depends on whether another one explores
        explores = uniform < self.epsilons(rows).unsqueeze(1).to(uniform)
        return {"explores": explores.to(self._device), "random_action": actions.to(self._device)}

    def actions(self, greedy: Tensor, noise: ActingNoise, s_t: Tensor | None = None) -> Tensor:
        """[N] from greedy actions [N]; the noise has N rows, or one that all share.

        `s_t` [N, H, *frame] is needed where rules forbid actions: AgentError without it.
        """
        drawn = noise["random_action"].squeeze(1)
        if self._legal is not None:
            if s_t is None:
                raise AgentError("This agent explores without a look at the rules of the game.")
            drawn = self._legal.drawn(s_t, drawn)
        return torch.where(noise["explores"].squeeze(1), drawn, greedy)


@dataclass(frozen=True)
class EpsilonGreedyConfig:
    """Named as the flags."""

    epsilon: float  # of the first environment of all
    epsilon_alpha: float  # how much less the others explore
    id_actor: int  # this process's place among the actors
    nb_actor: int
    envs_per_actor: int


class EpsilonGreedy(EpsilonActions):
    """epsilon_i = epsilon^(1 + alpha i / (N - 1)) for environment i of the N of all actors.

    Horgan et al. 2018 (arXiv 1803.00933), section 4; there an actor has one environment, so that i is the
    actor. A lone environment has epsilon itself.
    """

    def __init__(self, config: EpsilonGreedyConfig, problem: Problem, device: torch.device) -> None:
        super().__init__(problem, device)
        self._config = config

    def epsilons(self, rows: int) -> Tensor:
        """[rows] of this actor's environments. Rows beyond them have those of the first rows again, and
        actors beyond --nb-actor those of the first actors.
        """
        config = self._config
        first = max(config.id_actor, 0) % config.nb_actor * config.envs_per_actor
        place = first + torch.arange(rows) % config.envs_per_actor
        others = max(config.nb_actor * config.envs_per_actor - 1, 1)
        epsilons: Tensor = config.epsilon ** (1 + config.epsilon_alpha * place / others)
        return epsilons


@dataclass(frozen=True)
class NoisyEpsilonConfig:
    """Named as the flags."""

    noisy_epsilon_steps: int  # agent steps in which epsilon falls by a factor e; 0: there is no epsilon
    noisy_epsilon_until: float  # share of the run after which epsilon is 0
    t_max: int  # agent steps of the run


class EpsilonBesideNoise(EpsilonActions):
    """Epsilon-greedy actions beside noisy layers, with BTR's falling epsilon, alike in all environments.

    Clark et al. 2024 (arXiv 2411.03820): epsilon falls from 1 towards LEAST_EPSILON, and is switched off half
    way. By the learner's clock; it is a buffer of the online network, and so reaches actors and snapshots.
    """

    def __init__(
        self, config: NoisyEpsilonConfig, network: nn.Module, problem: Problem, device: torch.device
    ) -> None:
        """`network`: it has been given to `add_epsilon`."""
        super().__init__(problem, device)
        self._schedule, self._network = config, network

    def epsilon_at(self, t_learner: int) -> float:
        """The share of random actions at that time."""
        schedule = self._schedule
        if t_learner >= schedule.noisy_epsilon_until * schedule.t_max:
            return 0.0
        return LEAST_EPSILON + (1 - LEAST_EPSILON) * math.exp(-t_learner / schedule.noisy_epsilon_steps)

    def epsilons(self, rows: int) -> Tensor:
        """[rows]: the same for all environments."""
        return self._network.get_buffer("epsilon").expand(rows)

    def follow(self, t_learner: int) -> None:
        """Called with every update."""
        self._network.get_buffer("epsilon").fill_(self.epsilon_at(t_learner))


def add_epsilon(network: nn.Module) -> None:
    """Let epsilon travel with the network's weights: 1 until there was an update."""
    network.register_buffer("epsilon", torch.ones(1))


@dataclass(frozen=True)
class ExplorationConfig:
    """Named as the flags."""

    action_noise: str  # one of EXPLORATIONS
    ou_theta: float  # share of Ornstein-Uhlenbeck noise that each step takes away
    ou_sigma: float  # standard deviation of what it adds, half ranges
    parameter_noise_distance: float  # root mean square change of mu that is aimed at, half ranges


class Exploration:
    """No noise; the base of the kinds of noise. Rows are independent of each other."""

    def __init__(self, config: ExplorationConfig, network: NafNetwork, device: torch.device) -> None:
        self._config, self._network, self._device = config, network, device

    def mean(self, rows: int) -> ActingNoise:
        """The noise under which actions are mu."""
        return {}

    def next(self, noise: ActingNoise, first: Tensor, generator: torch.Generator) -> ActingNoise:
        """The next step's noise; rows of `first` [N] bool, on the CPU, begin an episode."""
        return {}

    def actions(self, quadratic: Quadratic, noise: ActingNoise) -> Tensor:
        """[N, A] within [-1, 1]; the noise has N rows, or one that all share."""
        return quadratic.mu

    def begin(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """The noise of an episode's first step."""
        return self.next(self.mean(rows), torch.ones(rows, dtype=torch.bool), generator)

    def adapt(self, quadratic: Quadratic, generator: torch.Generator) -> None:
        """Called with every batch that is learned from; nothing to adapt unless overridden."""


class OrnsteinUhlenbeck(Exploration):
    """x <- x - theta x + sigma N(0, 1) for every component, added to mu (Lillicrap et al. 2016, section 7).

    x is 0 before an episode's first step.
    """

    def mean(self, rows: int) -> ActingNoise:
        """Zeros [rows, A]."""
        return {"ou": torch.zeros(rows, self._network.num_components, device=self._device)}

    def next(self, noise: ActingNoise, first: Tensor, generator: torch.Generator) -> ActingNoise:
        """One step of the process."""
        x = noise["ou"].masked_fill(first.to(self._device).unsqueeze(1), 0)
        normal = torch.randn(x.shape, generator=generator, device=generator.device).to(self._device)
        return {"ou": (1 - self._config.ou_theta) * x + self._config.ou_sigma * normal}

    def actions(self, quadratic: Quadratic, noise: ActingNoise) -> Tensor:
        """mu + x, clipped to both bounds."""
        return (quadratic.mu + noise["ou"]).clamp(-1, 1)


class ParameterNoise(Exploration):
    """Adaptive parameter noise (Plappert et al. 2018, arXiv 1706.01905) on all layers above the torso.

    Each row acts for an episode, or LONGEST_PERTURBATION steps, with its own perturbed parameters. The
    perturbations' standard deviation is the network's `perturbation_std`, which the learner adapts.
    """

    def mean(self, rows: int) -> ActingNoise:
        """Zeros for every parameter that is perturbed, and the steps [rows, 1] since they were drawn."""
        shapes = {**self._network.policy_shapes(), "steps": (1,)}
        return {name: torch.zeros(rows, *shape, device=self._device) for name, shape in shapes.items()}

    def next(self, noise: ActingNoise, first: Tensor, generator: torch.Generator) -> ActingNoise:
        """A new perturbation where an episode begins, or after LONGEST_PERTURBATION steps."""
        noise = {**noise, "steps": noise["steps"] + 1}
        too_old = noise["steps"][:, 0] >= LONGEST_PERTURBATION
        rows = (first.to(self._device) | too_old).nonzero()[:, 0]
        if len(rows) == 0:
            return noise
        drawn = self._draw(len(rows), generator)
        return {name: values.index_copy(0, rows, drawn[name]) for name, values in noise.items()}

    def actions(self, quadratic: Quadratic, noise: ActingNoise) -> Tensor:
        """mu of the perturbed parameters."""
        return self._network.perturbed_mu(quadratic.features, noise)

    @torch.no_grad()
    def adapt(self, quadratic: Quadratic, generator: torch.Generator) -> None:
        """Equation 5: larger where a perturbation changes mu by less than it should, smaller otherwise."""
        perturbed = self._network.perturbed_mu(quadratic.features, self._draw(1, generator))
        distance = (perturbed - quadratic.mu).square().mean().sqrt()
        too_small = distance <= self._config.parameter_noise_distance
        self._network.perturbation_std.mul_(torch.where(too_small, ADAPTATION, 1 / ADAPTATION))

    def _draw(self, rows: int, generator: torch.Generator) -> ActingNoise:
        shapes = self._network.policy_shapes()
        sizes = [math.prod(shape) for shape in shapes.values()]
        normal = torch.randn(rows, sum(sizes), generator=generator, device=generator.device)
        parts = torch.split(normal.to(self._device), sizes, dim=1)
        drawn = {name: part.view(rows, *shapes[name]) for name, part in zip(shapes, parts, strict=True)}
        return {**drawn, "steps": torch.zeros(rows, 1, device=self._device)}


EXPLORATIONS: dict[str, type[Exploration]] = {
    "ou": OrnsteinUhlenbeck,
    "parameter": ParameterNoise,
    "none": Exploration,
}


def exploration(config: ExplorationConfig, network: NafNetwork, device: torch.device) -> Exploration:
    """The exploration named by `config.action_noise`."""
    return EXPLORATIONS[config.action_noise](config, network, device)
