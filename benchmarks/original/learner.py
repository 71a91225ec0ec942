"""What the plainly written learners have in common: one step of Adam after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from agents.base import TensorBatch

NetworkT = TypeVar("NetworkT", bound=nn.Module)
DrawsT = TypeVar("DrawsT")


class PlainLearner(ABC, Generic[NetworkT, DrawsT]):
    """An online network and Adam; a kind of learner adds what it draws, and its losses."""

    def __init__(self, online: NetworkT, max_grad_norm: float = 0.0, **adam: Any) -> None:
        """`max_grad_norm`: 0 clips no gradient; `adam`: Adam's arguments."""
        self.online, self._max_grad_norm = online, max_grad_norm
        self._adam = torch.optim.Adam(online.parameters(), **adam)

    def update(self, batch: TensorBatch, draws: DrawsT | None = None) -> Tensor:
        """One step of Adam; the losses [B] before importance weights. `draws`: fresh ones unless given."""
        losses = self.losses(batch, self.draw(len(batch.r_t)) if draws is None else draws)
        self._adam.zero_grad()
        torch.autograd.backward((batch.weights * losses).mean())
        if self._max_grad_norm > 0:
            clip_grad_norm_(self.online.parameters(), self._max_grad_norm)
        self._adam.step()
        return losses.detach()

    @abstractmethod
    def draw(self, rows: int) -> DrawsT:
        """The randomness of an update of so many rows."""

    @abstractmethod
    def losses(self, batch: TensorBatch, draws: DrawsT) -> Tensor:
        """The losses [B] before importance weights."""
