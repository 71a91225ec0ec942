"""From vector steps to packets for Redis: chunks, with first priorities from the acting estimates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acting.player import VectorStep
from acting.weights import ActingWeights
from agents.base import Acting, ReplayAgent
from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import ChunkShape, Draft
from memory.chunks.codec import Meta
from memory.chunks.step_log import Moments
from memory.replay.priorities import FIRST_LEAF, PriorityRule
from memory.runs.push import Packet


class Writer(ABC):
    """Turns vector steps into packets for Redis."""

    weights_may_change = True
    """Whether the next step may be played with other weights than the last one."""

    def weights_changed(self, weights: ActingWeights) -> None:  # noqa: B027 - most need not know
        """From here on, steps are played with these."""

    @abstractmethod
    def add(self, step: VectorStep) -> list[Any]:
        """Add a vector step; returns the packets that it completed."""

    @abstractmethod
    def flush(self, frames: NDArray[Any]) -> list[Any]:
        """The packets that are left when the actor stops before `frames` [N, *frame]."""

    def state_dict(self) -> dict[str, Any] | None:
        """What was not handed out yet; None where it cannot be saved."""
        return None

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: B027 - where there is none
        """Continue from `state_dict()`."""


class ExperienceWriter(Writer):
    """The unfinished chunks of an actor's environments, for a replay."""

    def __init__(
        self, agent: ReplayAgent, environments: int, shape: ChunkShape, rule: PriorityRule, meta: Meta
    ) -> None:
        """`meta`: where the chunks come from (run, actor), kept in each."""
        self._agent = agent
        self._shape = shape
        self._rule = rule
        self._builder = ChunkBuilder(shape, environments, meta)
        self._largest = FIRST_LEAF

    def add(self, step: VectorStep) -> list[Packet]:
        """Add a vector step; returns the chunks that it completed."""
        assert step.acting is None or isinstance(step.acting, Acting)
        estimates = (None, None) if step.acting is None else (step.acting.chosen, step.acting.greedy)
        taken = step.a_t, step.rewards, step.terminated, step.truncated, step.active
        drafts = self._builder.add(Moments(step.frames, *taken, *estimates))
        return self._packets(drafts) if drafts else []

    def flush(self, frames: NDArray[Any]) -> list[Packet]:
        """What is left when the actor stops before `frames` [N, *frame], as short chunks."""
        drafts = self._builder.flush(frames)
        return self._packets(drafts) if drafts else []

    def state_dict(self) -> dict[str, Any]:
        """Unfinished chunks, and the largest leaf so far."""
        return {"builder": self._builder.state_dict(), "largest": float(self._largest)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`; ValueError for that of an older version or of other environments."""
        if "builder" not in state:
            raise ValueError("an older version saved its actor's unfinished chunks in another form")
        self._builder.load_state_dict(state["builder"])
        self._largest = np.float32(state["largest"])

    def _packets(self, drafts: list[Draft]) -> list[Packet]:
        sizes = np.array([draft.transitions for draft in drafts])
        leaves = np.zeros((len(drafts), self._shape.chunk_length), np.float32)
        leaves[np.arange(self._shape.chunk_length) < sizes[:, None]] = self._first_leaves(drafts)
        return [Packet(draft.data, row, draft.transitions) for draft, row in zip(drafts, leaves, strict=True)]

    def _first_leaves(self, drafts: list[Draft]) -> NDArray[np.float32]:
        """Leaves of all transitions of `drafts`; the largest so far where an estimate is missing."""
        chosen = np.concatenate([draft.chosen for draft in drafts])
        greedy = np.concatenate([draft.greedy for draft in drafts])
        r_t, discount_t = np.concatenate([draft.targets for draft in drafts]).T
        known = ~np.isnan(chosen).any(axis=1)
        values = np.full(len(r_t), self._largest, np.float32)
        if known.any():
            has_bootstrap, terminal = ~np.isnan(greedy).any(axis=1), discount_t == 0
            multiplied_by_0 = ~has_bootstrap & terminal  # so that any number will do
            greedy[multiplied_by_0] = chosen[multiplied_by_0]
            known &= has_bootstrap | terminal
        if known.any():
            losses = self._agent.initial_losses(chosen[known], r_t[known], discount_t[known], greedy[known])
            values[known] = self._rule.leaves(losses)
            self._largest = np.maximum(self._largest, values[known].max())
            values[~known] = self._largest
        return values
