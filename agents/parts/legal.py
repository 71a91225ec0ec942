"""Obeys the rules of games that forbid some actions, wherever an agent's network is asked.

The newest frame of an observation ends with which of the A actions are legal (envs/legal.py).
"""

from __future__ import annotations

from torch import Tensor

from agents.base import Problem

FORBIDDEN = -1e6
"""Estimate, or logit, of an action that is not legal: it is below every other, and the action's probability
is 0.
"""
DRAW_RANGE = 2**31
"""Drawn integers are below this number: modulo a few actions they are uniform to one in a hundred million."""


class LegalActions:
    """Of a problem whose observations say which actions are legal."""

    def __init__(self, num_actions: int) -> None:
        self._num_actions = num_actions

    def mask(self, observation: Tensor) -> Tensor:
        """observation [B, H, *frame] -> [B, A] bool; where nothing is legal (a game is over), all."""
        newest, count = observation[:, -1], self._num_actions
        rules = newest[:, -count:] if newest.ndim == 2 else newest[..., -1].flatten(1)[:, :count]
        legal = rules > 0
        return legal | ~legal.any(1, keepdim=True)

    def only(self, estimates: Tensor, observation: Tensor) -> Tensor:
        """estimates [B, ..., A]: FORBIDDEN where the action is not legal."""
        mask = self.mask(observation)
        return estimates.masked_fill(~mask.view(len(mask), *(1,) * (estimates.ndim - 2), -1), FORBIDDEN)

    def drawn(self, observation: Tensor, numbers: Tensor) -> Tensor:
        """[B]: the legal actions that numbers [B] below DRAW_RANGE stand for, each with equal probability."""
        mask = self.mask(observation)
        place = numbers % mask.sum(1)
        return (mask.cumsum(1) > place.unsqueeze(1)).int().argmax(1)


def legal_actions_of(problem: Problem) -> LegalActions | None:
    """None where every action is legal always."""
    return LegalActions(problem.discrete_actions()) if problem.masked else None
