"""A box of continuous actions and its map to [-1, 1]: the unit in which agents work is half a range."""

from __future__ import annotations

import torch
from torch import Tensor

from agents.base import AgentError, Problem


class ActionBox:
    """Bounded actions of A components.

    Raises:
      AgentError: the problem's actions are discrete, or a component has no finite range.
    """

    def __init__(self, problem: Problem, device: torch.device) -> None:
        if problem.action_low is None or problem.action_high is None:
            raise AgentError("This agent needs continuous actions, and this environment's are discrete.")
        self._low = torch.tensor(problem.action_low, dtype=torch.float32, device=device)  # [A]
        self._high = torch.tensor(problem.action_high, dtype=torch.float32, device=device)
        self._half = (self._high - self._low) / 2
        if not (self._half.isfinite() & (self._half > 0)).all():
            raise AgentError("This agent needs bounds for each action, the lower one below the upper one.")

    @property
    def num_components(self) -> int:
        """A."""
        return len(self._half)

    def to_unit(self, actions: Tensor) -> Tensor:
        """[..., A] of the environment -> [..., A] in half ranges around the middle."""
        return (actions - self._low) / self._half - 1

    def from_unit(self, unit: Tensor) -> Tensor:
        """[..., A] in half ranges -> [..., A] of the environment, clipped to both bounds."""
        actions = self._low + (unit + 1) * self._half
        return torch.maximum(torch.minimum(actions, self._high), self._low)
