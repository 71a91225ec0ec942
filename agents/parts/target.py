"""Target networks: slower copies of the online network, which give the targets of learning."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import torch
from torch import nn

from agents.learning import load_weights

NetworkT = TypeVar("NetworkT", bound=nn.Module)


class Target(ABC, Generic[NetworkT]):
    """A copy of the online network, without gradient, that follows it."""

    def __init__(self, online: NetworkT) -> None:
        self.network: NetworkT = copy.deepcopy(online).requires_grad_(False)
        self._online = online

    @abstractmethod
    def follow(self, t_learner: int) -> None:
        """Called after every update; `t_learner` is the learner's clock in agent steps."""

    def copy(self) -> None:
        """Make the target equal to the online network now."""
        self.network.load_state_dict(self._online.state_dict())

    def state_dict(self) -> dict[str, object]:
        """The target's weights."""
        return {"network": self.network.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`."""
        load_weights(self.network, state["network"])


class PeriodicTarget(Target[NetworkT]):
    """Renewed when the clock crosses a multiple of `period` agent steps (Mnih et al. 2015)."""

    def __init__(self, online: NetworkT, period: int) -> None:
        super().__init__(online)
        self._period = period
        self._last_step: int | None = None  # the clock at the last `follow`

    def follow(self, t_learner: int) -> None:
        """Copy if a multiple was crossed since the last call; the first call only starts the clock."""
        if self._last_step is not None and t_learner // self._period > self._last_step // self._period:
            self.copy()
        self._last_step = t_learner

    def state_dict(self) -> dict[str, object]:
        """The target's weights and the clock."""
        return {**super().state_dict(), "last_step": self._last_step}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`."""
        super().load_state_dict(state)
        self._last_step = state["last_step"]


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
