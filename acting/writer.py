"""What an actor does with its vector steps before they are pushed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from acting.player import VectorStep
from acting.weights_source import ActingWeights


class Writer(ABC):
    """Makes packets of vector steps."""

    @property
    def weights_may_change(self) -> bool:
        """Whether the next step may be played with other weights than the last one."""
        return True

    def weights_changed(self, weights: ActingWeights) -> None:  # noqa: B027 - most need not know
        """What comes is played with these."""

    def state_dict(self) -> dict[str, Any] | None:
        """What was not handed out yet; None where it cannot be saved."""
        return None

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: B027 - where there is none
        """Go on from `state_dict()`."""

    @abstractmethod
    def add(self, step: VectorStep) -> list[Any]:
        """Take in a vector step; returns the packets that it completed."""

    @abstractmethod
    def flush(self, frames: NDArray[Any]) -> list[Any]:
        """The actor stops before `frames` [N, *frame]: what is left."""
