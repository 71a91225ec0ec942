"""Epsilon-greedy exploration with an epsilon per environment (Horgan et al. 2018, arXiv 1803.00933)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from agents.base import ActingNoise


@dataclass(frozen=True)
class EpsilonGreedyConfig:
    """Named as the flags."""

    epsilon: float  # of the first environment of all
    epsilon_alpha: float  # how much less the others explore
    id_actor: int  # this process's place among the actors
    nb_actor: int
    envs_per_actor: int


class EpsilonGreedy:
    """epsilon_i = epsilon^(1 + alpha i / (N - 1)) for environment i of the N of all actors (section 4).

    There an actor has one environment, so that i is the actor. A lone environment has epsilon itself.
    """

    def __init__(self, config: EpsilonGreedyConfig, num_actions: int, device: torch.device) -> None:
        self._config, self._num_actions, self._device = config, num_actions, device

    def epsilons(self, rows: int) -> Tensor:
        """[rows] of this actor's environments; rows beyond them begin with the first one again."""
        config = self._config
        first = max(config.id_actor, 0) * config.envs_per_actor
        place = first + torch.arange(rows) % config.envs_per_actor
        others = max(config.nb_actor * config.envs_per_actor - 1, 1)
        epsilons: Tensor = config.epsilon ** (1 + config.epsilon_alpha * place / others)
        return epsilons

    def mean(self, rows: int) -> ActingNoise:
        """The noise under which actions are greedy."""
        never = torch.zeros(rows, 1, dtype=torch.bool, device=self._device)
        return {"explores": never, "random_action": never.long()}

    def draw(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """Whether each row explores, and the action that it then takes, uniform over all."""
        uniform = torch.rand(rows, 1, generator=generator, device=generator.device)
        actions = torch.randint(
            self._num_actions, (rows, 1), generator=generator, device=generator.device
        )  # drawn for every row, so that a row depends on no other one's exploring
        explores = uniform < self.epsilons(rows).unsqueeze(1).to(uniform)
        return {"explores": explores.to(self._device), "random_action": actions.to(self._device)}

    def actions(self, greedy: Tensor, noise: ActingNoise) -> Tensor:
        """[N] from greedy actions [N]; the noise has N rows, or one that all share."""
        return torch.where(noise["explores"].squeeze(1), noise["random_action"].squeeze(1), greedy)
